/* Loops: short recurrences over a value, of a kind by their number. See random_state.h. */
#include "random/random_state.h"

#include <math.h>

/* A value that a loop begins with, of a float dtype, and its text with elements within `reach`. */
static int first_value(RandomState *s, uint64_t number, uint32_t min_rank, uint32_t max_rank,
                       double reach, const char **text) {
    static const Dtype dtypes[] = {DT_F32, DT_BF16, DT_F16, DT_F64};
    double lo = -reach, hi = reach;
    int x = random_pick(s, dtypes[number % 4], min_rank, max_rank, RANDOM_NONE);
    if (x != RANDOM_NONE) *text = random_within(s, x, &lo, &hi);
    return x;
}

/* `h` is a map of itself and of the step's number, or of its rows. */
static int make_map(RandomState *s, uint64_t number, bool has_rows) {
    const char *first;
    int x = first_value(s, number, has_rows, 4, 60, &first);
    if (x == RANDOM_NONE) return RANDOM_NONE;
    const Dtype dtype = random_value(s, x)->dtype;
    const Shape shape = random_value(s, x)->shape;
    int y = random_input(s, dtype, &shape);
    double most = 1 + 2.5 * random_value(s, y)->hi;
    const char *step = has_rows ? "exp(h - max(h, axis=-1, keep=true))" : "tanh(h)";
    return random_bind(s, dtype, &shape, -most, most,
                       str_format(s->arena,
                                  "loop i in 0:3 with h = %s { return %s + %s * (i + 0.5) }", first,
                                  step, random_value(s, y)->name));
}

/* `h` times the same square in each step, from the last step to the first. */
static int make_product(RandomState *s, uint64_t number) {
    const char *first;
    if (s->options.without_matmul) return RANDOM_NONE;
    int x = first_value(s, number, 2, 3, 4, &first);
    if (x == RANDOM_NONE) return RANDOM_NONE;
    const Dtype dtype = random_value(s, x)->dtype;
    const Shape shape = random_value(s, x)->shape;
    DimId n = shape.dims[shape.rank - 1];
    Shape square = {.rank = 2, .dims = {n, n}};
    if (!random_fits(s, &square)) return RANDOM_NONE;
    int w = random_input(s, dtype, &square);
    return random_bind(s, dtype, &shape, -1, 1,
                       str_format(s->arena, "loop i in 2:-1:-1 with h = %s { return tanh(h @ %s) }",
                                  first, random_value(s, w)->name));
}

/* Two products of `h` in each step, one of which reads the step's part of stacked values. */
static int make_gated(RandomState *s, uint64_t number) {
    const char *first;
    if (s->options.without_matmul) return RANDOM_NONE;
    int x = first_value(s, number, 2, 2, 4, &first);
    if (x == RANDOM_NONE) return RANDOM_NONE;
    const Dtype dtype = random_value(s, x)->dtype;
    const Shape shape = random_value(s, x)->shape;
    Shape stack = {.rank = 3, .dims = {dim_const(s->dims, 3), shape.dims[0], shape.dims[1]}};
    Shape square = {.rank = 2, .dims = {shape.dims[1], shape.dims[1]}};
    if (!random_fits(s, &square) || !random_fits(s, &stack)) return RANDOM_NONE;
    int v = random_input(s, dtype, &square), w = random_input(s, dtype, &square);
    int z = random_input(s, dtype, &stack);
    return random_bind(s, dtype, &shape, -1, 1,
                       str_format(s->arena,
                                  "loop t in 0:3 with h = %s { return sigmoid(h @ %s) * "
                                  "tanh(h @ %s + %s[t]) }",
                                  first, random_value(s, v)->name, random_value(s, w)->name,
                                  random_value(s, z)->name));
}

/* `h` grows along its first axis. */
static int make_growing(RandomState *s, uint64_t number) {
    const char *first;
    int x = first_value(s, number, 1, 4, 60, &first);
    if (x == RANDOM_NONE) return RANDOM_NONE;
    const Dtype dtype = random_value(s, x)->dtype;
    Shape shape = random_value(s, x)->shape;
    int y = random_input(s, dtype, &shape);
    shape.dims[0] = dim_mul_const(s->dims, shape.dims[0], 3);
    return random_bind(s, dtype, &shape, -60, 60,
                       str_format(s->arena,
                                  "loop i in 0:4:2 with h = %s { return concat([h, %s * (i + "
                                  "0.5)], axis=0) }",
                                  first, random_value(s, y)->name));
}

/* A loop in a loop, which reads the outer one's part of stacked values. */
static int make_nested(RandomState *s, uint64_t number) {
    const char *first;
    int x = first_value(s, number, 0, 3, 60, &first);
    if (x == RANDOM_NONE) return RANDOM_NONE;
    const Dtype dtype = random_value(s, x)->dtype;
    const Shape shape = random_value(s, x)->shape;
    Shape stack = {.rank = shape.rank + 1, .dims = {dim_const(s->dims, 2)}};
    for (uint32_t k = 0; k < shape.rank; k++) stack.dims[k + 1] = shape.dims[k];
    if (!random_fits(s, &stack)) return RANDOM_NONE;
    int w = random_input(s, dtype, &stack);
    return random_bind(s, dtype, &shape, -1, 1,
                       str_format(s->arena,
                                  "loop i in 0:2 with h = %s { return loop k in 0:2 with g = h { "
                                  "return tanh(g * %s[i] + k * 0.25) } }",
                                  first, random_value(s, w)->name));
}

/* A dim of the program that may be a number of steps; DIM_NONE: it has none. */
static DimId random_count(RandomState *s) {
    uint32_t n_symbols = dim_n_symbols(s->dims);
    return n_symbols ? dim_symbol(s->dims, rng_below(&s->rng, n_symbols)) : DIM_NONE;
}

/* It reads its step's part of stacked values: forth and back, a map or a product, in a loop inside
 * another one, or it carries nothing and collects. */
int random_make_repeated(RandomState *s, uint64_t number) {
    const char *first;
    uint32_t kind = (uint32_t)(number / 4 % 5), is_product = kind == 1;
    DimId count = random_count(s);
    if (!count || (is_product && s->options.without_matmul)) return RANDOM_NONE;
    int x = first_value(s, number, is_product, 3, 8, &first);
    if (x == RANDOM_NONE) return RANDOM_NONE;
    const Dtype dtype = random_value(s, x)->dtype;
    const Shape shape = random_value(s, x)->shape;
    DimId n = is_product ? shape.dims[shape.rank - 1] : count;
    Shape stack = {.rank = shape.rank + 1, .dims = {count}}, square = {.rank = 2, .dims = {n, n}};
    for (uint32_t k = 0; k < shape.rank; k++) stack.dims[k + 1] = shape.dims[k];
    if (!random_fits(s, &stack) || !random_fits(s, &square)) return RANDOM_NONE;
    const char *y = random_value(s, random_input(s, dtype, &stack))->name;
    const char *steps = dim_str(s->dims, s->arena, count);
    if (kind == 0)
        return random_bind(s, dtype, &shape, -1, 1,
                           str_format(s->arena,
                                      "loop i in 0:%s with h = %s { return tanh(h * 0.5 + %s[i]) }",
                                      steps, first, y));
    if (kind == 1) {
        const char *w = random_value(s, random_input(s, dtype, &square))->name;
        return random_bind(s, dtype, &shape, -1, 1,
                           str_format(s->arena,
                                      "loop i in 0:%s with h = %s { return tanh(h @ %s + %s[i]) }",
                                      steps, first, w, y));
    }
    if (kind == 2)
        return random_bind(
            s, dtype, &shape, -1, 1,
            str_format(s->arena, "loop i in %s - 1:-1:-1 with h = %s { return sin(h - %s[i]) }",
                       steps, first, y));
    if (kind == 3)
        return random_bind(
            s, dtype, &shape, -1, 1,
            str_format(s->arena,
                       "loop i in 0:%s with h = %s { return loop k in 0:(%s + 3) / 4 "
                       "with g = h { return tanh(g * 0.5 + %s[k] - %s[i]) } }",
                       steps, first, steps, y, y));
    return random_bind(
        s, dtype, &stack, -1, 1,
        str_format(s->arena, "loop i in 0:%s { return cos(%s * %s[i]) }", steps, first, y));
}

/* The scan of an op along an axis. */
static int make_scan(RandomState *s, uint64_t number) {
    static const struct {
        const char *name;
        bool adds;
    } ops[] = {{"add", true}, {"maximum", false}, {"mul", false}, {"minimum", false}};
    const char *first;
    if (s->options.without_prelude) return RANDOM_NONE;
    int x = first_value(s, number, 1, 4, 1, &first);
    if (x == RANDOM_NONE) return RANDOM_NONE;
    const RandomValue v = *random_value(s, x);
    uint32_t axis = rng_below(&s->rng, v.shape.rank), op = (uint32_t)(number / 4 % 4);
    double most = ops[op].adds ? (double)dim_hi(s->dims, v.shape.dims[axis]) + 1 : 1;
    return random_bind(s, v.dtype, &v.shape, -most, most,
                       str_format(s->arena, "scan(%s, %s, axis=%u%s)", ops[op].name, first, axis,
                                  rng_chance(&s->rng, 50) ? ", reverse=true" : ""));
}

int random_make_loop(RandomState *s, uint64_t number) {
    enum { N_KINDS = 7 };
    switch (number % N_KINDS) {
    case 0:
        return make_map(s, number / N_KINDS, false);
    case 1:
        return make_map(s, number / N_KINDS, true);
    case 2:
        return make_product(s, number / N_KINDS);
    case 3:
        return make_growing(s, number / N_KINDS);
    case 4:
        return make_gated(s, number / N_KINDS);
    case 5:
        return make_scan(s, number / N_KINDS);
    }
    return make_nested(s, number / N_KINDS);
}
