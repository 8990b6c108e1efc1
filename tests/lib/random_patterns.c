/* What fusion has forms for of their own: several ops together, in which one kernel takes the place
 * of several. Of floats. See random_state.h. */
#include "lib/random_state.h"

#include <math.h>

/* The first factor's text, held to where a sum of products with values up to `reach` stays below
 * the dtype's limit; `most` gets the largest such sum. */
static const char *left_factor(RandomState *s, int a, double reach, double *most) {
    RandomValue v = *random_value(s, a);
    double n = (double)dim_hi(s->dims, v.shape.dims[v.shape.rank - 1]);
    double hi = random_limit(v.dtype) / (reach * (n + 1)), lo = -hi;
    const char *text = random_within(s, a, &lo, &hi);
    *most = n * reach * fmax(fabs(lo), fabs(hi));
    return text;
}

/* Of a right factor for `a`: [K, N]. */
static Shape right_shape(RandomState *s, int a, Shape *result) {
    Shape shape = {.rank = 2};
    *result = random_value(s, a)->shape;
    shape.dims[0] = result->dims[result->rank - 1];
    shape.dims[1] = s->pool[rng_below(&s->rng, RANDOM_POOL)];
    result->dims[result->rank - 1] = shape.dims[1];
    return shape;
}

/* `sigmoid(a @ b) * (a @ c)`. */
static int make_gated_pair(RandomState *s, Dtype dtype) {
    int a = random_pick(s, dtype, 2, 3, RANDOM_NONE);
    if (a == RANDOM_NONE || s->options.without_matmul) return RANDOM_NONE;
    Shape result, right = right_shape(s, a, &result);
    if (!random_fits(s, &right) || !random_fits(s, &result)) return RANDOM_NONE;
    int b = random_input(s, dtype, &right), c = random_input(s, dtype, &right);
    double most, reach = fmax(random_value(s, b)->hi, random_value(s, c)->hi);
    const char *left = left_factor(s, a, reach, &most);
    int gate = random_bind(s, dtype, &result, -most, most,
                           str_format(s->arena, "%s @ %s", left, random_value(s, b)->name));
    int up = random_bind(s, dtype, &result, -most, most,
                         str_format(s->arena, "%s @ %s", left, random_value(s, c)->name));
    return random_bind(s, dtype, &result, -most, most,
                       str_format(s->arena, "sigmoid(%s) * %s", random_value(s, gate)->name,
                                  random_value(s, up)->name));
}

/* `h = a @ b; sigmoid(first) * second` of the halves of `h`. */
static int make_gated_halves(RandomState *s, Dtype dtype) {
    int a = random_pick(s, dtype, 2, 3, RANDOM_NONE);
    if (a == RANDOM_NONE || s->options.without_matmul) return RANDOM_NONE;
    Shape half, right = right_shape(s, a, &half);
    right.dims[1] = dim_mul_const(s->dims, right.dims[1], 2);
    Shape whole = half;
    whole.dims[whole.rank - 1] = right.dims[1];
    if (!random_fits(s, &right) || !random_fits(s, &whole)) return RANDOM_NONE;
    int b = random_input(s, dtype, &right);
    double most;
    const char *left = left_factor(s, a, random_value(s, b)->hi, &most);
    int h = random_bind(s, dtype, &whole, -most, most,
                        str_format(s->arena, "%s @ %s", left, random_value(s, b)->name));
    const char *name = random_value(s, h)->name;
    const char *rows = whole.rank == 2 ? ":" : ":, :";
    const char *n = dim_str(s->dims, s->arena, half.dims[half.rank - 1]);
    return random_bind(
        s, dtype, &half, -most, most,
        str_format(s->arena, "sigmoid(%s[%s, 0:%s]) * %s[%s, %s:]", name, rows, n, name, rows, n));
}

/* Rows of a value and of a fresh input, each with a reduction of its own. */
static int make_rows(RandomState *s, Dtype dtype) {
    int x = random_pick(s, dtype, 1, 4, RANDOM_NONE);
    if (x == RANDOM_NONE) return RANDOM_NONE;
    Shape shape = random_value(s, x)->shape;
    int z = random_input(s, dtype, &shape);
    double lo = -60, hi = 60;
    const char *left = random_within(s, x, &lo, &hi), *right = random_value(s, z)->name;
    double reach = random_value(s, z)->hi;
    if (!s->options.without_prelude && rng_chance(&s->rng, 60))
        return random_bind(s, dtype, &shape, 0, 1,
                           str_format(s->arena, "softmax(%s) * softmax(%s)", left, right));
    return random_bind(s, dtype, &shape, lo - hi - reach, hi - lo + reach,
                       str_format(s->arena,
                                  "%s - max(%s, axis=-1, keep=true) + min(%s, axis=-1, keep=true)",
                                  left, left, right));
}

/* `a @ (b * scale)`, by columns or as a number. */
static int make_computed_factor(RandomState *s, Dtype dtype) {
    int a = random_pick(s, dtype, 2, 3, RANDOM_NONE);
    if (a == RANDOM_NONE || s->options.without_matmul) return RANDOM_NONE;
    Shape result, right = right_shape(s, a, &result);
    Shape columns = {.rank = 1, .dims = {right.dims[1]}};
    if (!random_fits(s, &right) || !random_fits(s, &result)) return RANDOM_NONE;
    int b = random_input(s, dtype, &right), scale = random_input(s, dtype, &columns);
    bool is_number = rng_chance(&s->rng, 40);
    double most, reach = random_value(s, b)->hi * fmax(2, random_value(s, scale)->hi);
    const char *left = left_factor(s, a, reach, &most);
    return random_bind(
        s, dtype, &result, -most, most,
        str_format(s->arena, "%s @ (%s * %s)", left, random_value(s, b)->name,
                   is_number ? random_number(s, dtype, 2) : random_value(s, scale)->name));
}

/* Every maker meets every dtype, gated products by turns of both forms. */
int random_make_pattern(RandomState *s, uint64_t number) {
    static int (*const makers[2][3])(RandomState *, Dtype) = {
        {make_gated_pair, make_rows, make_computed_factor},
        {make_gated_halves, make_rows, make_computed_factor}};
    static const Dtype dtypes[] = {DT_F32, DT_BF16, DT_F16, DT_F64};
    return makers[number / 12 % 2][number % 3](s, dtypes[number / 3 % 4]);
}
