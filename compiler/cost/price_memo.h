/* Prices of plans that are alike. Layers of a network are alike, and so are the few kernels of
 * which a trial (launch/trial.h) makes plans, layer by layer. The prices of such a plan depend on
 * its launches, kernels, schedules and buffers, but not on nodes, names and numbers of buffers. The
 * memo has the latest few plans. It holds for one graph, target and set of points. */
#ifndef FUSEC_COST_PRICE_MEMO_H
#define FUSEC_COST_PRICE_MEMO_H

#include "cost/compare.h"

/* A new empty memo. It keeps what it knows on the arena. */
PriceMemo *price_memo_new(Arena *arena);
/* prices_of_plan, unless the memo knows them. `memo` may be NULL. */
Prices price_memo_plan(PriceMemo *memo, Arena *arena, const Plan *plan, const Target *target,
                       const CostPoints *points);

#endif
