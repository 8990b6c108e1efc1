/* Totals of a PlanCost that are not sums over kernels: the bytes of a plan's tensors, and the least
 * traffic of any program. */
#ifndef FUSEC_COST_TOTALS_H
#define FUSEC_COST_TOTALS_H

#include "cost/cost.h"

/* Sets least_bytes, bound_bytes, workspace_bytes and unshared_bytes. Needs plan, dims and
 * n_init. */
void cost_totals(Arena *arena, PlanCost *cost);

#endif
