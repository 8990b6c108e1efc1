/* Softmax and product (docs/design/attention.md): what a weight is, on every target. */
#ifndef FUSEC_CODEGEN_SCALAR_ONLINE_H
#define FUSEC_CODEGEN_SCALAR_ONLINE_H

#include "codegen/scalar/point.h"

/* The power of x - greatest, which is at most 0: a weight, or the scale of earlier sums. x may be a
 * vector; `greatest` is a scalar. */
Val online_power(const Lower *lower, Val x, Val greatest);
/* The weight as the product has it, before it is rounded: at the point of its key times its factor.
 */
Val online_multiplied(Point *point, Val weight);
/* The weight of `score` as it enters the product: rounded to the values' dtype, in the dtype of the
 * sums. A hidden key, of score -infinity, has the weight -0. */
Val online_rounded(const Lower *lower, Val score, Val weight);
/* The value at the point, in the dtype of the sums, in all lanes. */
Val online_value(Point *point);
/* The value as a row multiplies it, which gives its key the weight (one lane) of online_rounded: a
 * hidden key's infinity or NaN counts as 0. */
Val online_seen_value(const Lower *lower, Val weight, Val value);
/* Whether a lane of the sums is NaN, as each is that has multiplied a hidden key's infinity or NaN:
 * i1. So only a product with such sums is repeated with seen values. */
Val online_has_nan(const Codegen *k, const Val *sums, uint32_t n);
/* The weight as it enters the sum of weights, at the point of its key. */
Val online_counted(Point *point, Val weight);

/* The keys of the point's batch, [begin, end), index_type: those of its part (split/split_keys.h),
 * or all. */
typedef struct OnlineKeys {
    Val begin, end;
} OnlineKeys;
OnlineKeys online_keys(const Point *point);

/* The element of a row's result: its sum over its total, or the logarithm of the total times the
 * power of the greatest score; of a part its sum. `sum` may be a vector, and so is the element. */
Val online_result(const Lower *lower, Val sum, Val greatest, Val total);
/* Whether rows have something to store beside their sums. */
bool online_stores_rows(const Kernel *kernel);
/* Stores it for the row at the point, in the first column: of a part the greatest score and the sum
 * of weights, else the logarithm. */
void online_store_row(Point *point, Val greatest, Val total);
/* greatest + log(total) of reduction `slot`, before it is rounded to the result's dtype. */
Val online_log(const Lower *lower, uint32_t slot, Val greatest, Val total);

#endif
