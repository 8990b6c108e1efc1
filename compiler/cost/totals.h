/* What a plan's tensors take, and the least that any program moves for them: totals of a PlanCost
 * that no kernel has a share in. */
#ifndef FUSEC_COST_TOTALS_H
#define FUSEC_COST_TOTALS_H

#include "cost/cost.h"

/* Sets least_bytes, bound_bytes, workspace_bytes and unshared_bytes; plan, dims and n_init are
 * there. */
void cost_totals(Arena *arena, PlanCost *cost);

#endif
