/* Comparing prices of plans: a plan has a price at each of several values of the dims
 * (cost_points), and one rule for all passes says which of two plans is better. */
#ifndef FUSEC_COST_COMPARE_H
#define FUSEC_COST_COMPARE_H

#include "cost/cost.h"
#include "pipeline/pipeline.h"

/* Microseconds at each point. */
typedef struct Prices {
    double us[COST_MAX_POINTS];
    /* CPU: at the first point, on one core, where launches wake no other; else 0. */
    double alone_us;
} Prices;
/* The prices of a scheduled plan. Nothing stays on the arena. */
Prices prices_of_plan(Arena *arena, const Plan *plan, const Target *target,
                      const CostPoints *points);
/* The prices of a graph as one kernel per op. False: the graph cannot be planned so. */
bool prices_of_unfused(const Planning *p, Arena *arena, Arena *scratch, const Graph *graph,
                       const CostPoints *points, Prices *prices);
/* The tolerances of comparisons, by name: PRICES(name, share, us, gain). Let the bound be
 * the other plan's price plus `us` microseconds. A plan is within a tolerance of the other plan if,
 * at each point, its price is at most `share` times the bound, and if, on the mean of the diagonal,
 * `gain` times its price is at most the bound.
 * - NO_SLOWER: the plan is no slower.
 * - JOINED: kernels should be one launch, which the host starts sooner than several.
 * - TIED: the same within the model's error for small kernels.
 */
#define PRICE_TOLERANCES(PRICES)             \
    PRICES(NO_SLOWER, COST_LOSS, 0, 0)       \
    PRICES(JOINED, COST_LOSS, 0, COST_WORTH) \
    PRICES(TIED, COST_LOSS, COST_TIE_US, COST_WORTH)

typedef enum {
#define PRICES(name, ...) PRICES_##name,
    PRICE_TOLERANCES(PRICES)
#undef PRICES
} PriceTolerance;

bool prices_are_within(const CostPoints *points, const Prices *plan, const Prices *other,
                       PriceTolerance tolerance);
/* The geometric mean of the ratios a / b over the diagonal. */
double prices_mean(const CostPoints *points, const Prices *a, const Prices *b);
/* Whether `other` should replace `now`. True if it is faster by more than 2 % by the geometric mean
 * over the diagonal, and nowhere more than 2 % slower than `apart`, one kernel per op. Also true if
 * `now` is that slow somewhere and `other` is not, or less so. */
bool prices_are_better(const CostPoints *points, const Prices *now, const Prices *other,
                       const Prices *apart);
/* Whether kernels may be one launch although they are not within JOINED: the difference is within
 * the model's error, or the joint launch is faster on that mean and loses nowhere as much as a
 * launch costs the host. Only for kernels that are no slower than their ops. */
bool prices_may_favor_joining(const CostPoints *points, const Prices *together,
                              const Prices *apart);
/* The excess of the plan over the allowed slowdown beside `apart`, summed over all points. At
 * points other than the default dims, which come first, prices are less certain, so that a plan
 * that is much faster at most sizes is not split for a few percent at one size. */
double prices_excess(const CostPoints *points, const Prices *plan, const Prices *apart);

/* At one point: whether `us` is enough less than `current_us` for a change. */
bool price_is_worth(double us, double current_us);
/* At one point: whether `us` exceeds `other_us` by no more than the tolerated loss. */
bool price_is_no_loss(double us, double other_us);
/* The time, within the model's error, up to which a plan with `n_launches` fewer launches ties with
 * a plan of `us`. */
double price_tie_us(double us, uint32_t n_launches);

#endif
