/* The rewrite `online-weights` (online softmax) turns the three passes of a softmax into one. The
 * row kernel over [m, n] stores weight / total, where weight = power(x - shift), shift is the
 * greatest x of the row and total is the sum of its weights. The power of a sum is a product of
 * powers, so weights by one shift are weights by another shift times a power of the difference. The
 * second matmul is linear, so its accumulators can be rescaled, and divided by the total at the
 * end. Then the shift may be the greatest x so far.
 *
 * The rewrite changes arithmetic. Weights are rounded before they are divided by the total, and
 * computed only as exactly as they are rounded. Sums have another order. Columns that a row's mask
 * hides are not multiplied at all, so an infinity or NaN there gives no NaN. plan/rewrite.h has the
 * error bound. */
#ifndef FUSEC_LAUNCH_ONLINE_SOFTMAX_H
#define FUSEC_LAUNCH_ONLINE_SOFTMAX_H

#include "plan/plan.h"

/* Finds the rewrite of `rows`, which read the result of the matmul `scores`; its weight is
 * SCALAR_NONE if there is none. May add scalars to `rows`. `passed`: the buffer of the scores. */
OnlineSoftmax online_softmax_find(const Kernel *scores, Kernel *rows, uint32_t passed);

#endif
