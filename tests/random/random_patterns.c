/* Patterns that fusion has special forms for: several float ops that one kernel computes. See
 * random_state.h. */
#include "random/random_state.h"

#include <math.h>

/* The lhs's text, clamped so that a sum of its products with values up to `reach` stays below the
 * dtype's limit; `most` gets the largest such sum. */
static const char *left_operand(RandomState *s, int a, double reach, double *most) {
    RandomValue v = *random_value(s, a);
    double n = (double)dim_hi(s->dims, v.shape.dims[v.shape.rank - 1]);
    double hi = random_limit(v.dtype) / (reach * (n + 1)), lo = -hi;
    const char *text = random_within(s, a, &lo, &hi);
    *most = n * reach * fmax(fabs(lo), fabs(hi));
    return text;
}

/* The shape of a rhs for `a`: [K,N]. */
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
    const char *left = left_operand(s, a, reach, &most);
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
    const char *left = left_operand(s, a, random_value(s, b)->hi, &most);
    int h = random_bind(s, dtype, &whole, -most, most,
                        str_format(s->arena, "%s @ %s", left, random_value(s, b)->name));
    const char *name = random_value(s, h)->name;
    const char *rows = whole.rank == 2 ? ":" : ":, :";
    const char *n = dim_str(s->dims, s->arena, half.dims[half.rank - 1]);
    return random_bind(
        s, dtype, &half, -most, most,
        str_format(s->arena, "sigmoid(%s[%s, 0:%s]) * %s[%s, %s:]", name, rows, n, name, rows, n));
}

/* A row op on a value and on a new input, each with a reduction of its own. */
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

/* `a @ (b * scale)`, with one scale per column or a single number. */
static int make_computed_operand(RandomState *s, Dtype dtype) {
    int a = random_pick(s, dtype, 2, 3, RANDOM_NONE);
    if (a == RANDOM_NONE || s->options.without_matmul) return RANDOM_NONE;
    Shape result, right = right_shape(s, a, &result);
    Shape columns = {.rank = 1, .dims = {right.dims[1]}};
    if (!random_fits(s, &right) || !random_fits(s, &result)) return RANDOM_NONE;
    int b = random_input(s, dtype, &right), scale = random_input(s, dtype, &columns);
    bool is_number = rng_chance(&s->rng, 40);
    double most, reach = random_value(s, b)->hi * fmax(2, random_value(s, scale)->hi);
    const char *left = left_operand(s, a, reach, &most);
    return random_bind(
        s, dtype, &result, -most, most,
        str_format(s->arena, "%s @ (%s * %s)", left, random_value(s, b)->name,
                   is_number ? random_number(s, dtype, 2) : random_value(s, scale)->name));
}

/* A reader of the rows that no kernel over the rows can compute. */
static int read_elsewhere(RandomState *s, int rows) {
    const RandomValue v = *random_value(s, rows);
    Shape shape = v.shape;
    switch (rng_below(&s->rng, 5)) {
    case 0:
        return random_make_view(s, OP_GATHER, v.dtype, rows);
    case 1:
        return random_make_reduce_axes(s, rng_chance(&s->rng, 50) ? OP_SUM : OP_MAX, rows, 1);
    case 2:
        return random_make_reduce_axes(s, OP_SUM, rows, (1u << shape.rank) - 1);
    case 3:
        if (s->options.without_matmul) return RANDOM_NONE;
        return random_make_matmul(s, OP_MATMUL, v.dtype, rows);
    }
    if (dim_lo(s->dims, shape.dims[0]) < 2) return RANDOM_NONE;
    shape.dims[0] = dim_sub(s->dims, shape.dims[0], dim_const(s->dims, 1));
    return random_bind(s, v.dtype, &shape, 2 * v.lo, 2 * v.hi,
                       str_format(s->arena, "%s[1:] + %s[:-1]", v.name, v.name));
}

/* A reader after a matmul's rows, of any kind and at any position. Usually the rows could pass
 * through shared memory to another matmul. */
static int make_rows_of_matmul(RandomState *s, Dtype dtype) {
    if (rng_chance(&s->rng, 60)) dtype = rng_chance(&s->rng, 50) ? DT_BF16 : DT_F16;
    int a = random_pick(s, dtype, 2, 3, RANDOM_NONE);
    if (a == RANDOM_NONE || s->options.without_matmul) return RANDOM_NONE;
    Shape result, right = right_shape(s, a, &result);
    if (rng_chance(&s->rng, 80)) right.dims[1] = dim_mul_const(s->dims, right.dims[1], 2);
    result.dims[result.rank - 1] = right.dims[1];
    if (!random_fits(s, &right) || !random_fits(s, &result)) return RANDOM_NONE;
    int b = random_input(s, dtype, &right);
    double most, lo = -60, hi = 60;
    const char *left = left_operand(s, a, random_value(s, b)->hi, &most);
    int h = random_bind(s, dtype, &result, -most, most,
                        str_format(s->arena, "%s @ %s", left, random_value(s, b)->name));
    const char *text = random_within(s, h, &lo, &hi);
    int rows =
        s->options.without_prelude
            ? random_bind(s, dtype, &result, lo - hi, 0,
                          str_format(s->arena, "%s - max(%s, axis=-1, keep=true)", text, text))
            : random_bind(s, dtype, &result, 0, 1, str_format(s->arena, "softmax(%s)", text));
    return read_elsewhere(s, rows);
}

/* A row op of several stages, of which an early one stores a part of the last one's input. */
static int make_slices_of_rows(RandomState *s, Dtype dtype) {
    int x = random_pick(s, dtype, 1, 4, RANDOM_NONE);
    if (x == RANDOM_NONE) return RANDOM_NONE;
    Shape shape = random_value(s, x)->shape, part = shape;
    DimId *n = &part.dims[shape.rank - 1];
    if (dim_lo(s->dims, *n) < 2 || !random_fits(s, &shape)) return RANDOM_NONE;
    double reach = fmin(60, cbrt(random_limit(dtype) / (2 * (double)dim_hi(s->dims, *n) + 2)));
    double lo = -reach, hi = reach, most = reach * reach * (double)dim_hi(s->dims, *n);
    *n = dim_sub(s->dims, *n, dim_const(s->dims, 1));
    const char *text = random_within(s, x, &lo, &hi);
    int scaled = random_bind(s, dtype, &shape, -most, most,
                             str_format(s->arena, "%s * %s(%s, axis=-1, keep=true)", text,
                                        rng_chance(&s->rng, 60) ? "sum" : "min", text));
    const char *name = random_value(s, scaled)->name;
    int rows =
        s->options.without_prelude || rng_chance(&s->rng, 30)
            ? random_bind(s, dtype, &shape, lo - hi, 0,
                          str_format(s->arena, "%s - max(%s, axis=-1, keep=true)", text, text))
            : random_bind(s, dtype, &shape, 0, 1, str_format(s->arena, "softmax(%s)", text));
    random_bind(s, dtype, &part, -most, most,
                str_format(s->arena, "%s[..., %s]", name, rng_chance(&s->rng, 50) ? "1:" : ":-1"));
    return random_bind(s, dtype, &shape, -most * 2 * reach, most * 2 * reach,
                       str_format(s->arena, "%s * %s", random_value(s, rows)->name, name));
}

static const Dtype dtypes[] = {DT_F32, DT_BF16, DT_F16, DT_F64};

bool random_make_row_pattern(RandomState *s, uint64_t number) {
    Dtype dtype = dtypes[number / 2 % 4];
    return (number % 2 ? make_slices_of_rows(s, dtype) : make_rows_of_matmul(s, dtype)) !=
           RANDOM_NONE;
}

/* Every maker meets every dtype; dual GEMMs alternate between both forms. */
int random_make_pattern(RandomState *s, uint64_t number) {
    static int (*const makers[2][3])(RandomState *, Dtype) = {
        {make_gated_pair, make_rows, make_computed_operand},
        {make_gated_halves, make_rows, make_computed_operand}};
    return makers[number / 12 % 2][number % 3](s, dtypes[number / 3 % 4]);
}
