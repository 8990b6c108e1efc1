/* The rewrite `online-weights`, which makes a softmax's three passes one: rows that store weight /
 * total, where total is the sum of the weights and weight = power(x - shift), shift being the
 * greatest x of the row. As power turns sums into products, weights by one shift are those by
 * another times a power of the difference; as the product behind is linear, its sums can be scaled
 * instead, and divided by the total in the end. Rows then need the greatest x so far only.
 *
 * It changes arithmetic: weights are rounded before they are divided by the total and not after,
 * and are computed as exactly as they are rounded; sums are in another order; and columns that a
 * row's mask leaves out are not multiplied at all, so that what is infinite or NaN there makes no
 * NaN. What it is held to: plan/rewrite.h. */
#ifndef FUSEC_LAUNCH_ONLINE_SOFTMAX_H
#define FUSEC_LAUNCH_ONLINE_SOFTMAX_H

#include "plan/plan.h"

/* What `rows`, over the product `scores`, can be rewritten to; weight SCALAR_NONE: nothing. Adds to
 * the rows' scalars. `passed`: the buffer of the scores. */
OnlineSoftmax online_softmax_find(const Kernel *scores, Kernel *rows, uint32_t passed);

#endif
