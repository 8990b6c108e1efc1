/* Contracts: whether the plan keeps what the source's `fuse must` blocks ask for. (`fuse never` is
 * kept by construction: fuse/group.c.) What an init step prepares for a run is as good as a param,
 * and breaks no contract. */
#ifndef FUSEC_EXPLAIN_MUST_CHECK_H
#define FUSEC_EXPLAIN_MUST_CHECK_H

#include "base/diag.h"
#include "explain/advice.h"
#include "explain/conflict.h"
#include "plan/must.h"

/* Reports every edge inside a `fuse must` block that is stored, once for all ops of one call that
 * read the value; false if there is one. Requires a scheduled plan with its launches composed,
 * since values in shared memory or registers count as fused. `advices`: per edge, or NULL.
 * `conflicts`, or NULL: of a block that has any, these edges are reported, and not what else the
 * attempt stored. */
bool must_check(const Plan *plan, const Advice *advices, const VecConflict *conflicts,
                Diags *diags);

#endif
