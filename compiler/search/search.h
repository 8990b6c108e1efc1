/* Choosing between plans by price. Fusion's rules say which ops can be one kernel and mostly should
 * be. Where that is predicted to be slower, search changes the plan by candidates: a reduction,
 * rows of several tensors, a transpose or every op as a kernel of its own; an operand of a matmul
 * stored, or recomputed in the matmul; what is broadcast stored; a concat stored in place; a kernel
 * cut in two.
 *
 * A candidate concerns one kernel (and the kernels that compute its operands). It is priced on the
 * subgraph of these kernels, at all points of cost_points. It is taken in two cases: the subgraph
 * is more than 2 % faster, by the geometric mean over the diagonal of the points, and at no point
 * more than 2 % slower than one kernel per op; or it is at no point more than 2 % slower and the
 * current subgraph is. */
#ifndef FUSEC_SEARCH_SEARCH_H
#define FUSEC_SEARCH_SEARCH_H

#include "cost/compare.h"

/* The number of tried plans is bounded for every graph. If the graph cannot be planned, PASS_FUSE
 * reports why. */
bool decide_pass(const Planning *p, PlanUnit *unit);

#endif
