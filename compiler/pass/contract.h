/* Contracts: whether the plan keeps what the source's `fuse must` blocks ask for. (`fuse never` is
 * kept by construction: pass/group.c.) Requires a scheduled plan with its launches linked, since
 * what passes on chip counts as fused. */
#ifndef FUSEC_CONTRACT_H
#define FUSEC_CONTRACT_H

#include "base/diag.h"
#include "ir/kernel.h"

/* Reports every edge inside a `fuse must` block that is stored; false if there is one. */
bool contract_check(const Plan *plan, Diags *diags);

#endif
