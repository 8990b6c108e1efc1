/* From source text to a plan, for tests of fusion. Everything lives on the arena. */
#ifndef FUSEC_TESTS_PLANS_H
#define FUSEC_TESTS_PLANS_H

#include "pass/explain.h"
#include "pass/fuse.h"

/* The module, or NULL with the diagnostics as text in `*errors`. */
Module *plans_parse(Arena *arena, const char *source, const char **errors);
/* The plan of graph `index`, or NULL. `off`: one kernel per op. */
Plan *plans_fuse(Arena *arena, const Module *module, uint32_t index, bool off, const char **errors);
/* The plan as the driver leaves it: fused, scheduled, linked, placed; and priced for the card at
 * the dims (by symbol, negative: chosen; NULL: all are). */
typedef struct PricedPlan {
    Plan *plan;
    PlanCost *cost;
} PricedPlan;
PricedPlan plans_price(Arena *arena, const Module *module, uint32_t index, bool off,
                       TargetId target, const Card *card, const int64_t *dims);

#endif
