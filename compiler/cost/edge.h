/* Edges of the graph by themselves: what an edge costs as two kernels and as one, whatever the plan
 * does with its ops. */
#ifndef FUSEC_COST_EDGE_H
#define FUSEC_COST_EDGE_H

#include "cost/cost.h"

typedef struct EdgeCost {
    double saved_bytes; /* written and read again where it is stored */
    double fused_us;    /* as one kernel, which does not store the value between: the plan's, if it
                         * has one of just the two ops, else what the kernels of each add up to
                         * less the value. 0 where the plan stores it: that kernel was not made, and
                         * may compute the value again */
    double unfused_us;  /* as kernels of their own; 0: an input, a literal or an output */
} EdgeCost;

/* `makers`: of the plan with fusion off, for each node the kernels that make it. */
typedef struct EdgeCosts {
    const PlanCost *fused, *unfused;
    const VecU32 *makers; /* per node */
} EdgeCosts;

/* Lives as long as the arena; keeps both. */
EdgeCosts edge_costs(Arena *arena, const PlanCost *fused, const PlanCost *unfused);
EdgeCost edge_cost(const EdgeCosts *costs, const Edge *edge);

#endif
