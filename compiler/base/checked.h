/* Arithmetic that reports a result outside [-2^62, 2^62]. The only file with compiler
 * extensions. */
#ifndef FUSEC_BASE_CHECKED_H
#define FUSEC_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

#define CHECKED_LIMIT ((int64_t)1 << 62)

static inline bool checked_add(int64_t a, int64_t b, int64_t *sum) {
    return !__builtin_add_overflow(a, b, sum) && *sum <= CHECKED_LIMIT && *sum >= -CHECKED_LIMIT;
}

static inline bool checked_mul(int64_t a, int64_t b, int64_t *product) {
    return !__builtin_mul_overflow(a, b, product) && *product <= CHECKED_LIMIT &&
           *product >= -CHECKED_LIMIT;
}

#endif
