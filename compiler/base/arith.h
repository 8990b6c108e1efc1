/* Integer arithmetic that C has no operator for. */
#ifndef FUSEC_BASE_ARITH_H
#define FUSEC_BASE_ARITH_H

#include <stdint.h>

static inline int64_t min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Of numbers that are not negative. */
static inline int64_t ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

/* The least multiple of `step` that is at least `n`. */
static inline int64_t round_up(int64_t n, int64_t step) {
    return ceil_div(n, step) * step;
}

/* The quotient rounded towards minus infinity. */
static inline int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

#endif
