/* Choosing between plans by price. Fusion's own rules say what can be one kernel and mostly should;
 * where that is predicted to be slower, the plan is changed by moves: reductions apart, rows of
 * several tensors in kernels of their own, an operand of a matmul stored or computed in the matmul,
 * a concat stored in pieces, a transpose or every op a kernel by itself, a kernel cut in two.
 *
 * A move concerns one kernel (and what makes an operand for it), and is priced on a subgraph of the
 * graph with that alone, at all points of cost_points. It is taken when, by the geometric mean over
 * the diagonal of the points, the subgraph is faster by more than 2 %, and nowhere more than 2 %
 * slower than as one kernel for each op; or when it is not that slow and what was there is. */
#ifndef FUSEC_SEARCH_SEARCH_H
#define FUSEC_SEARCH_SEARCH_H

#include "cost/compare.h"

/* What is tried is bounded, whatever the graph. Where nothing can be planned, PASS_FUSE says why.
 */
bool decide_pass(const Planning *p, PlanUnit *unit);

#endif
