/* Comparison of tensors, safe against NaN: an element is wrong unless a comparison shows that it is
 * right. */
#ifndef FUSEC_TESTS_COMPARE_H
#define FUSEC_TESTS_COMPARE_H

#include "base/str.h"
#include "interp/tensor.h"

typedef struct Comparison {
    int64_t n_elems, n_wrong;
    int64_t first; /* row-major number of the first wrong element */
    double expected, actual, bound;
    double ulps;  /* distance of the first wrong element; NaN when one is NaN */
    double worst; /* largest distance / bound of all bounded elements; 0 to 1 when all are right */
    int64_t n_finite; /* number of finite expected elements */
} Comparison;

/* Whether both are one number, with zeros of the same sign, or both are NaN. */
bool compare_same(double a, double b);

/* Whether one element is right; `bound` as interp_node gives it. */
bool compare_element(Dtype dtype, double expected, double actual, double bound);

/* Compares each element within its bound. `bounds` NULL: all bounds are 0, so only NaN payloads may
 * differ. A different dtype or shape makes every element wrong. */
bool compare_within(const Tensor *expected, const Tensor *actual, const double *bounds,
                    Comparison *result);

/* Compares bytes; NaN payloads count too. */
bool compare_bits(const Tensor *shape, const uint8_t *expected, const uint8_t *actual,
                  Comparison *result);

/* `3 of 70 elements are wrong; first [1, 12]: expected 0.25, got 0.5 (8388608 ulp, bound 1e-7)` */
void compare_print(const Comparison *result, const Tensor *shape, Text *out);

#endif
