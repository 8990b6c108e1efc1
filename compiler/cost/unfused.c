/* The cost of a graph as one kernel per op. See compare.h. */
#include "cost/compare.h"

bool prices_of_unfused(const Planning *p, Arena *arena, Arena *scratch, const Graph *graph,
                       const CostPoints *points, Prices *prices) {
    Graph *own = graph_for_trial(arena, graph);
    const Plan *plan = pipeline_try(p, arena, scratch, MODE_OPS, own, NULL, PASS_SCHEDULE);
    if (plan) *prices = prices_of_plan(scratch, plan, p->target, points);
    return plan != NULL;
}
