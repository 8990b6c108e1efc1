/* From source text to a plan, for tests of fusion. Everything lives on the arena; what is not in
 * order fails the test. */
#ifndef FUSEC_TESTS_PLANS_H
#define FUSEC_TESTS_PLANS_H

#include "explain/explain.h"
#include "fuse/fuse.h"

/* Of a checked graph, for passes that are run one by one. */
Planning plans_planning(Arena *arena, Arena *scratch, TargetId target, PlanUnit *unit);

Module *plans_parse(Arena *arena, const char *source);
/* The plan of graph `index`. `off`: one kernel per op. */
Plan *plans_fuse(Arena *arena, const Module *module, uint32_t index, bool off);
/* The same with options; NULL after a diagnostic. */
Plan *plans_fuse_with(Arena *arena, const Graph *graph, FuseOptions options, Diags *diags);
/* Has a fused plan's operands laid out; joins launches of a scheduled plan. */
void plans_lay_out(Arena *arena, Plan *plan, TargetId target);
void plans_compose(Arena *arena, Plan *plan, TargetId target, uint32_t modes);
/* Of a graph that has none: the diagnostics. */
const char *plans_refusal(Arena *arena, const Module *module, uint32_t index);
/* The plan as the driver leaves it: fused, scheduled, linked, placed; and priced for the card at
 * the dims (by symbol, negative: chosen; NULL: all are). */
typedef struct PricedPlan {
    Plan *plan;
    PlanCost *cost;
} PricedPlan;
PricedPlan plans_price(Arena *arena, const Module *module, uint32_t index, bool off,
                       TargetId target, const Card *card, const int64_t *dims);
/* The same with no kernels in turns. */
PricedPlan plans_price_without_turns(Arena *arena, const Module *module, uint32_t index,
                                     TargetId target);

#endif
