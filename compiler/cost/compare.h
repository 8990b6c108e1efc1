/* Comparing prices of plans: a plan has a price at each of several values of the dims
 * (cost_points), and one rule for all passes says which of two plans is better. */
#ifndef FUSEC_COST_COMPARE_H
#define FUSEC_COST_COMPARE_H

#include "cost/cost.h"
#include "pipeline/pipeline.h"

/* Microseconds at each point. */
typedef struct Prices {
    double us[COST_MAX_POINTS];
} Prices;
/* Of a scheduled plan. On the arena it leaves nothing. */
Prices prices_of_plan(Arena *arena, const Plan *plan, const Target *target,
                      const CostPoints *points);
/* Of a graph as one kernel for each op. False: that cannot be. */
bool prices_of_unfused(const Planning *p, Arena *arena, Arena *scratch, const Graph *graph,
                       const CostPoints *points, Prices *prices);
/* Whether `other` is to be taken in place of `now`: by the geometric mean over the diagonal of the
 * points it is faster by more than 2 %, and nowhere more than 2 % slower than `apart`, one kernel
 * for each op; or `now` is that slow somewhere, and `other` is not, or less. */
bool prices_are_better(const CostPoints *points, const Prices *now, const Prices *other,
                       const Prices *apart);

/* Of kernels that may start as one launch, which a host starts sooner than several: whether they
 * should. At no point slower, but for 2 %, and on the mean of the diagonal neither. */
bool prices_favor_joining(const CostPoints *points, const Prices *together, const Prices *apart);
/* Where that is not so: whether it could be, for what prices know; or they are faster on that mean,
 * and nowhere lose as much as a launch takes a host. For kernels that are no slower than their ops.
 */
bool prices_may_favor_joining(const CostPoints *points, const Prices *together,
                              const Prices *apart);
/* What a plan may take that starts so many launches less than one of `us`: as much, for what prices
 * know. */
double prices_tie_us(double us, uint32_t n_launches);
/* At no point slower, but for 2 %. */
bool prices_are_no_slower(const CostPoints *points, const Prices *plan, const Prices *other);
/* The geometric mean of the ratios over the diagonal of the points. */
double prices_mean(const CostPoints *points, const Prices *a, const Prices *b);

#endif
