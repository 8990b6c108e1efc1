/* Random symbol values and tensor contents for tests. */
#ifndef FUSEC_TESTS_RANDOM_DATA_H
#define FUSEC_TESTS_RANDOM_DATA_H

#include "interp/tensor.h"
#include "ir/dim.h"
#include "random/rng.h"

/* A value for each symbol within its range and multiple; often the least or the greatest. At most
 * `limit` where the range allows it. */
void random_symbol_values(Rng *rng, const DimTab *dims, int64_t limit, int64_t *values);

typedef enum {
    FILL_UNIFORM,  /* floats in (-4, 4), i32 in -10..10, bool */
    FILL_INTEGERS, /* small whole numbers: every sum is exact, so an index fault cannot hide */
    FILL_RAMP,     /* the element's number, scaled: a fault in indexing shows where */
    FILL_CONSTANT,
    FILL_SPECIAL, /* uniform with NaN, infinities, -0, subnormals and the largest strewn in */
    FILL_COUNT
} RandomFill;

void random_fill(Rng *rng, RandomFill fill, Tensor *tensor);
const char *random_fill_name(RandomFill fill);

#endif
