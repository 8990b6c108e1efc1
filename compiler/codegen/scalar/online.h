/* Softmax and product (docs/design/attention.md): what a weight is, on every target. */
#ifndef FUSEC_CODEGEN_SCALAR_ONLINE_H
#define FUSEC_CODEGEN_SCALAR_ONLINE_H

#include "codegen/scalar/point.h"

/* The score that keys have which do not exist: -infinity, or where weights are quantised 0. */
double online_no_score(const Reduce *reduce);
/* Whether the result needs the weights of keys. */
bool online_weighs(const Reduce *reduce);
/* What a score counts as where the greatest is found: itself, or where weights are quantised its
 * absolute value. */
Val online_size(const Lower *lower, Val score);
/* The weight of score x, which may be a vector, before it is rounded. `greatest` is a scalar. */
Val online_weight(const Lower *lower, Val x, Val greatest);
/* The scale of earlier sums when the greatest value grows. `before` may be a vector. */
Val online_scale(const Lower *lower, Val before, Val greatest);
/* The weight as the product has it, before it is rounded: at the point of its key times its factor.
 */
Val online_multiplied(Point *point, Val weight);
/* The weight of `score` as it enters the product: rounded to the values' dtype, or as the
 * quantising map does, in the dtype of the sums. With powers a hidden key, of score -infinity, has
 * the weight -0, which no other weight is. */
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

/* Sets the results at the point, in all lanes. The first is the row's sum over its total, or the
 * result of the row; of a part its sum. Where weights are quantised it is the sum; but that of a
 * row whose greatest value is 0, infinite or NaN is what the quantising map makes of NaN. Then
 * stores may read the result of the row too. */
void online_set_results(Point *point, Val sum, Val greatest, Val total);
/* Whether rows have something to store beside their sums. */
bool online_stores_rows(const Kernel *kernel);
/* Stores it for the row at the point, in the first column: of a part the greatest score and the sum
 * of weights, else the result of the row. */
void online_store_row(Point *point, Val greatest, Val total);
/* The result of the row of reduction `slot`, before it is rounded to its dtype: greatest +
 * log(total), or the greatest value. */
Val online_of_row(const Lower *lower, uint32_t slot, Val greatest, Val total);

#endif
