/* Choosing between plans by price. Fusion's own rules say what can be one kernel and mostly should;
 * where that is predicted to be slower, the plan is changed by moves: reductions apart, rows of
 * several tensors in kernels of their own, a factor of a matmul stored or computed in the matmul, a
 * concat stored in pieces, a transpose or every op a kernel by itself, a kernel cut in two.
 *
 * A move concerns one kernel (and what makes a factor for it), and is priced on an excerpt of the
 * graph with that alone, at all points of cost_points. It is taken when, by the geometric mean over
 * the diagonal of the points, the excerpt is faster by more than 2 %, and nowhere more than 2 %
 * slower than as one kernel for each op; or when it is not that slow and what was there is. */
#ifndef FUSEC_SEARCH_SEARCH_H
#define FUSEC_SEARCH_SEARCH_H

#include "base/diag.h"
#include "cost/cost.h"

/* The plan for the target: fuse_graph's, or one that moves made of it. Without layouts, not
 * scheduled. What is tried is bounded, whatever the graph. Arenas and errors as for fuse_graph. */
Plan *choose_plan(Arena *arena, Arena *scratch, const Graph *graph, const Target *target,
                  Diags *diags);

/* Microseconds at each point. */
typedef struct Prices {
    double us[COST_MAX_POINTS];
} Prices;
/* Of a scheduled plan. On the arena it leaves nothing. */
Prices choose_price(Arena *arena, const Plan *plan, const Target *target, const CostPoints *points);
/* The rule above; `apart`: one kernel for each op. */
bool choose_is_better(const CostPoints *points, const Prices *now, const Prices *other,
                      const Prices *apart);

/* Of kernels that may start as one launch, which a host starts sooner than several: whether they
 * should. At no point slower, but for 2 %, and on the mean of the diagonal neither. */
bool choose_joins(const CostPoints *points, const Prices *together, const Prices *apart);
/* Where that is not so: whether it could be, for what prices know; or they are faster on that mean,
 * and nowhere lose as much as a launch takes a host. For kernels that are no slower than their ops.
 */
bool choose_may_join(const CostPoints *points, const Prices *together, const Prices *apart);
/* What a plan may take that starts so many launches less than one of `us`: as much, for what prices
 * know. */
double choose_tie_us(double us, uint32_t n_launches);
/* At no point slower, but for 2 %. */
bool choose_is_no_slower(const CostPoints *points, const Prices *plan, const Prices *other);

/* One kernel for each op. False: that cannot be. */
bool choose_price_ops(Arena *arena, Arena *scratch, const Graph *graph, const Target *target,
                      const CostPoints *points, Prices *prices);

#endif
