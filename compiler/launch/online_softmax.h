/* The rewrite `online-weights` (online softmax): it turns the three passes of a softmax into one.
 * Rows [m, n] store weight / total, where weight = power(x - shift), shift is the greatest x of the
 * row and total is the sum of its weights. Power turns sums into products, so weights by one shift
 * are weights by another shift times a power of the difference. The product that consumes the rows
 * is linear, so its sums can be scaled instead, and divided by the total at the end. Then a row
 * needs only the greatest x so far.
 *
 * It changes arithmetic. Weights are rounded before they are divided by the total, and computed as
 * exactly as they are rounded. Sums are in another order. Columns that a row's mask leaves out are
 * not multiplied at all, so an infinity or NaN there makes no NaN. plan/rewrite.h has the bound
 * that the results are held to. */
#ifndef FUSEC_LAUNCH_ONLINE_SOFTMAX_H
#define FUSEC_LAUNCH_ONLINE_SOFTMAX_H

#include "plan/plan.h"

/* The rewrite of `rows`, which consume the product `scores`; its weight is SCALAR_NONE if there is
 * none. Adds to the rows' scalars. `passed`: the buffer of the scores. */
OnlineSoftmax online_softmax_find(const Kernel *scores, Kernel *rows, uint32_t passed);

#endif
