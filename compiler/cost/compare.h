/* Comparing plans by predicted time. A plan has a time at each of several values of the dims
 * (cost_points), and all passes use the same rule for which of two plans is better. */
#ifndef FUSEC_COST_COMPARE_H
#define FUSEC_COST_COMPARE_H

#include "cost/cost.h"
#include "pipeline/pipeline.h"

/* Microseconds at each point. */
typedef struct Prices {
    double us[COST_MAX_POINTS];
} Prices;
/* The prices of a scheduled plan. Nothing stays on the arena. */
Prices prices_of_plan(Arena *arena, const Plan *plan, const Target *target,
                      const CostPoints *points);
/* The prices of a graph as one kernel per op. False: the graph cannot be planned so. */
bool prices_of_unfused(const Planning *p, Arena *arena, Arena *scratch, const Graph *graph,
                       const CostPoints *points, Prices *prices);
/* Whether `other` should replace `now`. True if it is faster by more than 2 % by the geometric mean
 * over the diagonal, and nowhere more than 2 % slower than `apart`, one kernel per op. Also true if
 * `now` is that slow somewhere and `other` is not, or less so. */
bool prices_are_better(const CostPoints *points, const Prices *now, const Prices *other,
                       const Prices *apart);

/* Whether kernels should be one launch, which the host starts sooner than several: at no point is
 * it more than 2 % slower, and on the mean of the diagonal it is not slower. */
bool prices_favor_joining(const CostPoints *points, const Prices *together, const Prices *apart);
/* Whether kernels may be one launch although prices_favor_joining is false: the difference is
 * within the model's error, or the joint launch is faster on that mean and loses nowhere as much as
 * a launch costs the host. Only for kernels that are no slower than their ops. */
bool prices_may_favor_joining(const CostPoints *points, const Prices *together,
                              const Prices *apart);
/* The time, within the model's error, up to which a plan with `n_launches` fewer launches ties with
 * a plan of `us`. */
double prices_tie_us(double us, uint32_t n_launches);
/* At no point more than 2 % slower. */
bool prices_are_no_slower(const CostPoints *points, const Prices *plan, const Prices *other);
/* The geometric mean of the ratios a / b over the diagonal. */
double prices_mean(const CostPoints *points, const Prices *a, const Prices *b);

#endif
