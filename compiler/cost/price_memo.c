/* See price_memo.h. */
#include "cost/price_memo.h"

#include "base/recent.h"
#include "cost/price_key.h"

struct PriceMemo {
    Arena *arena;
    Recent *prices; /* by key */
};

PriceMemo *price_memo_new(Arena *arena) {
    PriceMemo *memo = arena_array(arena, PriceMemo, 1);
    memo->arena = arena;
    memo->prices = recent_new(arena, sizeof(Prices));
    return memo;
}

Prices price_memo_plan(PriceMemo *memo, Arena *arena, const Plan *plan, const Target *target,
                       const CostPoints *points) {
    if (!memo || !price_key_write(memo->arena, recent_begin(memo->prices), arena, plan, target))
        return prices_of_plan(arena, plan, target, points);
    const Prices *found = recent_find(memo->prices);
    if (found) return *found;
    Prices prices = prices_of_plan(arena, plan, target, points);
    recent_add(memo->prices, &prices);
    return prices;
}
