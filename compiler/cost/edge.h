/* The cost of single edges of the graph: as two kernels and as one, whatever the plan does with the
 * two ops. */
#ifndef FUSEC_COST_EDGE_H
#define FUSEC_COST_EDGE_H

#include "cost/cost.h"

typedef struct EdgeCost {
    double saved_bytes; /* traffic of storing the value and reading it again */
    double fused_us;    /* time as one kernel, which does not store the value. If the plan has a
                         * kernel of just the two ops, its time; else the sum of both ops' kernels
                         * without the value's traffic. 0 if the plan stores the value: the joint
                         * kernel does not exist, and might recompute the value */
    double unfused_us;  /* time as two kernels; 0: the edge is from an input or literal, or to an
                         * output */
} EdgeCost;

typedef struct Pair Pair;

/* Per node: the kernels that make it in the plan without fusion, and the kernels of the fused plan
 * that compute it together with one of its arguments and nothing else. */
typedef struct EdgeCosts {
    const PlanCost *fused, *unfused;
    const VecU32 *makers;
    const Pair *const *pairs;
} EdgeCosts;

/* The result lives as long as the arena and keeps both plans' costs. */
EdgeCosts edge_costs(Arena *arena, const PlanCost *fused, const PlanCost *unfused);
EdgeCost edge_cost(const EdgeCosts *costs, const Edge *edge);

#endif
