/* From source text to a plan, for tests of fusion. Everything lives on the arena. An error fails
 * the test. */
#ifndef FUSEC_TESTS_PLANS_H
#define FUSEC_TESTS_PLANS_H

#include "explain/explain.h"
#include "fuse/fuse.h"

/* The planning of a checked graph, to run passes one by one. */
Planning plans_planning(Arena *arena, Arena *scratch, TargetId target, PlanUnit *unit);

Module *plans_parse(Arena *arena, const char *source);
/* The plan of graph `index`. `off`: one kernel per op. */
Plan *plans_fuse(Arena *arena, const Module *module, uint32_t index, bool off);
/* plans_fuse with options; NULL after a diagnostic. */
Plan *plans_fuse_with(Arena *arena, const Graph *graph, FuseOptions options, Diags *diags);
/* Lay out the operands of a fused plan, and compose the launches of a scheduled plan. */
void plans_lay_out(Arena *arena, Plan *plan, TargetId target);
enum { LAUNCH_MODES_OF_GEMMS = 1 << LAUNCH_GEMM_ROWS_GEMM | 1 << LAUNCH_SEQUENCE };
void plans_compose(Arena *arena, Plan *plan, TargetId target, uint32_t modes);
/* The plan of the source's first graph, priced for the target's own card. */
const Plan *plans_of(Arena *arena, TargetId target, const char *source);
/* The values of the graph's first output, by the interpreter. Inputs are drawn: integers of 8 bits
 * from -127 to 127, all others from -2 to 2. The graph has at most 4. */
const double *plans_values(Arena *arena, const Graph *graph);
/* The diagnostics of a graph that cannot be planned. */
const char *plans_refusal(Arena *arena, const Module *module, uint32_t index);
/* The driver's plan (fused, scheduled, composed and placed) with its predicted cost for the card.
 * `dims` are by symbol; a negative value, or NULL for all, takes the default. */
typedef struct PricedPlan {
    Plan *plan;
    PlanCost *cost;
} PricedPlan;
PricedPlan plans_price(Arena *arena, const Module *module, uint32_t index, bool off,
                       TargetId target, const Card *card, const int64_t *dims);
/* plans_price of graph 0 as the driver does it for advice: a plan like many before, whose regions
 * the memo knows. */
PricedPlan plans_price_again(Arena *arena, const Module *module, TargetId target, RegionMemo *memo);
/* plans_price in the mode that prices slices of a plan: without one-block launches. */
PricedPlan plans_price_slices(Arena *arena, const Module *module, uint32_t index, TargetId target);

#endif
