/* Softmax and product (docs/design/attention.md): what a weight is, on every target. */
#ifndef FUSEC_CODEGEN_SCALAR_ONLINE_H
#define FUSEC_CODEGEN_SCALAR_ONLINE_H

#include "codegen/scalar/point.h"

/* The power of x - greatest, which is at most 0: a weight, or the scale of earlier sums. x may be a
 * vector; `greatest` is a scalar. */
Val online_power(const Lower *lower, Val x, Val greatest);
/* The weight as it enters the product: rounded to the values' dtype, in the dtype of the sums. */
Val online_rounded(const Lower *lower, Val weight);
/* The value at the point, in the dtype of the sums, in all lanes. */
Val online_value(Point *point);

#endif
