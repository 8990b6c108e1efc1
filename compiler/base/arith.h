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

/* The quotient rounded towards minus infinity. */
static inline int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

#endif
