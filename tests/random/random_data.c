/* Random symbol values and tensor contents. */
#include "random/random_data.h"

#include <math.h>

void random_symbol_values(Rng *rng, const DimTab *dims, int64_t limit, int64_t *values) {
    for (uint32_t s = 0; s < dim_n_symbols(dims); s++) {
        const DimSymbol *symbol = dim_symbol_info(dims, s);
        int64_t lo = (symbol->lo + symbol->multiple - 1) / symbol->multiple;
        int64_t hi = symbol->hi / symbol->multiple;
        if (hi > limit / symbol->multiple && limit / symbol->multiple >= lo)
            hi = limit / symbol->multiple;
        int64_t drawn = rng_between(rng, lo, hi);
        uint32_t edge = rng_below(rng, 8);
        values[s] = (edge == 0 ? lo : edge == 1 ? hi : drawn) * symbol->multiple;
    }
}

static double special_number(Rng *rng, Dtype dtype) {
    if (dtype_kind(dtype) == KIND_BOOL) return rng_below(rng, 2);
    if (dtype_is_int(dtype)) { /* a cast wraps or saturates them */
        bool is_wide = dtype_is_wide(dtype);
        const double integers[] = {
            is_wide ? -0x1p63 : -0x1p31, is_wide ? 0x1p63 : UINT32_MAX, 0, -1, 65536,
            is_wide ? -0x1p53 : -65537};
        return integers[rng_below(rng, 6)];
    }
    double max = dtype_max(dtype), least = dtype_ulp(dtype, 0);
    const double floats[] = {NAN,  INFINITY, -INFINITY, 0.0, -0.0,  max,
                             -max, least,    -least,    0.5, 100.0, 3 * least};
    return floats[rng_below(rng, 12)];
}

static double fill_number(Rng *rng, RandomFill fill, Dtype dtype, int64_t i, double constant) {
    if (dtype_kind(dtype) == KIND_BOOL && fill != FILL_CONSTANT) return rng_below(rng, 2);
    double uniform =
        dtype_kind(dtype) == KIND_INT ? (double)rng_between(rng, -10, 10) : rng_uniform(rng, -4, 4);
    switch (fill) {
    case FILL_UNIFORM:
        return uniform;
    case FILL_INTEGERS:
        return (double)rng_between(rng, -3, 3);
    case FILL_RAMP:
        return dtype_is_int(dtype) ? (double)(i % 97) : (double)(i % 509) / 128 - 2;
    case FILL_CONSTANT:
        return constant;
    case FILL_SPECIAL:
        return rng_chance(rng, 6) ? special_number(rng, dtype) : uniform;
    case FILL_COUNT:
        break;
    }
    return 0;
}

void random_fill(Rng *rng, RandomFill fill, Tensor *tensor) {
    double constant = (double)rng_between(rng, -3, 3);
    int64_t n = tensor_n_elems(tensor);
    for (int64_t i = 0; i < n; i++)
        tensor_set_number(tensor, i, fill_number(rng, fill, tensor->dtype, i, constant));
}

const char *random_fill_name(RandomFill fill) {
    static const char *const names[FILL_COUNT] = {"uniform", "integers", "ramp", "constant",
                                                  "special"};
    return fill < FILL_COUNT ? names[fill] : "?";
}
