/* Comparison of tensors under bounds and by bits. */
#include "lib/compare.h"

#include <math.h>
#include <string.h>

bool compare_same(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && !signbit(a) == !signbit(b);
}

bool compare_element(Dtype dtype, double expected, double actual, double bound) {
    if (isinf(bound)) return true;
    if (bound == 0 || isnan(expected) || isnan(actual)) return compare_same(expected, actual);
    return dtype_distance(dtype, expected, actual) <= bound;
}

bool compare_within(const Tensor *expected, const Tensor *actual, const double *bounds,
                    Comparison *result) {
    *result = (Comparison){.n_elems = tensor_n_elems(expected)};
    if (expected->dtype != actual->dtype || !tensor_same_shape(expected, actual)) {
        result->n_wrong = result->n_elems;
        return false;
    }
    Dtype dtype = expected->dtype;
    for (int64_t i = 0; i < result->n_elems; i++) {
        double bound = bounds ? bounds[i] : 0;
        double want = tensor_number(expected, i), got = tensor_number(actual, i);
        result->n_finite += isfinite(want) != 0;
        double share = dtype_distance(dtype, want, got) / bound;
        if (bound > 0 && isfinite(bound) && share > result->worst) result->worst = share;
        bool is_right = dtype_is_int(dtype) && bound == 0
                            ? tensor_int(expected, i) == tensor_int(actual, i)
                            : compare_element(dtype, want, got, bound);
        if (is_right || result->n_wrong++) continue;
        result->first = i;
        result->expected = want;
        result->actual = got;
        result->bound = bound;
        result->ulps = dtype_ulps(dtype, want, got);
    }
    return result->n_wrong == 0;
}

bool compare_bits(const Tensor *shape, const uint8_t *expected, const uint8_t *actual,
                  Comparison *result) {
    *result = (Comparison){.n_elems = tensor_n_elems(shape)};
    uint32_t n_bytes = dtype_bytes(shape->dtype);
    for (int64_t i = 0; i < result->n_elems; i++) {
        const uint8_t *want = expected + i * n_bytes, *got = actual + i * n_bytes;
        double number = dtype_load(shape->dtype, want);
        result->n_finite += isfinite(number) != 0;
        if (memcmp(want, got, n_bytes) == 0 || result->n_wrong++) continue;
        result->first = i;
        result->expected = number;
        result->actual = dtype_load(shape->dtype, got);
        result->ulps = dtype_ulps(shape->dtype, number, result->actual);
    }
    return result->n_wrong == 0;
}

void compare_print(const Comparison *result, const Tensor *shape, Text *out) {
    if (!result->n_wrong) {
        text_printf(out, "all %lld elements agree", (long long)result->n_elems);
        return;
    }
    text_printf(out, "%lld of %lld elements are wrong; first [", (long long)result->n_wrong,
                (long long)result->n_elems);
    int64_t strides[TENSOR_MAX_RANK];
    tensor_strides(shape, strides);
    for (uint32_t k = 0; k < shape->rank; k++)
        text_printf(out, "%s%lld", k ? ", " : "",
                    (long long)(result->first / strides[k] % shape->dims[k]));
    text_printf(out, "]: expected %.17g, got %.17g (%g ulp, bound %g)", result->expected,
                result->actual, result->ulps, result->bound);
}
