/* Checks that the plan fuses every edge inside the source's `fuse must` blocks. (Grouping keeps
 * `fuse never` by construction: fuse/group.c.) A value that an init kernel prepares counts as a
 * param, and its edges break no block. */
#ifndef FUSEC_EXPLAIN_MUST_CHECK_H
#define FUSEC_EXPLAIN_MUST_CHECK_H

#include "base/diag.h"
#include "explain/advice.h"
#include "explain/conflict.h"
#include "plan/must.h"

/* Reports every stored edge inside a `fuse must` block, and returns false if one exists. Several
 * ops of one call that read a value give one report. The plan must be scheduled and its launches
 * composed, because values in shared memory or registers count as fused. `advices` has an advice
 * per edge, or is NULL. `conflicts` may be NULL; a block with conflicts reports their edges, and no
 * other stored edge. */
bool must_check(const Plan *plan, const Advice *advices, const VecConflict *conflicts,
                Diags *diags);

#endif
