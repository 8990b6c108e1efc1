/* Random symbol values and tensor contents for tests. */
#ifndef FUSEC_TESTS_RANDOM_DATA_H
#define FUSEC_TESTS_RANDOM_DATA_H

#include "interp/tensor.h"
#include "ir/dim/dim.h"
#include "random/rng.h"

/* A value for each symbol within its range and multiple, often the least or the greatest; at most
 * `limit` if the range allows it. */
void random_symbol_values(Rng *rng, const DimTab *dims, int64_t limit, int64_t *values);

typedef enum {
    FILL_UNIFORM,  /* floats in (-4, 4), i32 in -10..10, bool */
    FILL_INTEGERS, /* small integers: every sum is exact, so rounding cannot hide a wrong index */
    FILL_RAMP,     /* the element's number, scaled: it shows where a wrong index is */
    FILL_CONSTANT,
    FILL_SPECIAL, /* uniform with some NaN, infinities, -0, subnormals and largest numbers */
    FILL_COUNT
} RandomFill;

void random_fill(Rng *rng, RandomFill fill, Tensor *tensor);
const char *random_fill_name(RandomFill fill);

#endif
