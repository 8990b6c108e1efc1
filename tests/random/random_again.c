/* Statements over a few values that are read repeatedly, of short extents: matmuls of matmuls with
 * a common operand, and row ops whose input has other readers. They have one dtype and inputs of
 * their own, so that shapes match. */
#include "random/random_state.h"

#include <math.h>

enum { MIN_STATEMENTS = 4, MAX_STATEMENTS = 8 };

typedef struct Again {
    RandomState *s;
    Dtype dtype;
    uint32_t first; /* the first value to draw from */
    double limit;   /* bound on products of two values */
} Again;

static void draw_extents(RandomState *s) {
    static const int64_t extents[] = {1, 1, 1, 2, 8, 8, 40};
    uint32_t n_symbols = dim_n_symbols(s->dims);
    for (uint32_t k = 0; k < RANDOM_POOL; k++) {
        s->pool[k] = dim_const(s->dims, extents[rng_below(&s->rng, 7)]);
        if (n_symbols && rng_chance(&s->rng, 20))
            s->pool[k] = dim_symbol(s->dims, rng_below(&s->rng, n_symbols));
        if (random_wants_empty(s)) s->pool[k] = random_empty_extent(s);
    }
}

/* Whether `b` has the shape of `a`, or, if `is_operand`, fits as its rhs. */
static bool meets(const Shape *a, const Shape *b, bool is_operand) {
    uint32_t rank = a->rank, n_same = is_operand ? rank - 2 : rank;
    bool does = rank == b->rank && (!is_operand || b->dims[rank - 2] == a->dims[rank - 1]);
    for (uint32_t k = 0; k < n_same && does; k++) does = a->dims[k] == b->dims[k];
    return does;
}

/* Draws a value; with `shape`, one that matches it in this sense. */
static int draw(const Again *g, const Shape *shape, bool is_operand) {
    int found = RANDOM_NONE;
    uint32_t n = 0;
    for (uint32_t i = g->first; i < g->s->values.n; i++) {
        const RandomValue *v = random_value(g->s, (int)i);
        if (v->dtype != g->dtype || v->shape.rank < 2) continue;
        if (shape && !meets(shape, &v->shape, is_operand)) continue;
        if (rng_below(&g->s->rng, ++n) == 0) found = (int)i;
    }
    return found;
}

/* The value's text, clamped to the square root of the limit; `reach` gets the largest magnitude. */
static const char *bounded(const Again *g, int value, double *reach) {
    double hi = floor(sqrt(g->limit)), lo = -hi;
    const char *text = random_within(g->s, value, &lo, &hi);
    *reach = fmax(fabs(lo), fabs(hi));
    return text;
}

/* `a @ b`; RANDOM_NONE for `b` takes a new input. */
static int multiply(const Again *g, int a, int b) {
    RandomState *s = g->s;
    Shape left = random_value(s, a)->shape, right = left, result = left;
    right.dims[left.rank - 2] = left.dims[left.rank - 1];
    right.dims[left.rank - 1] = s->pool[rng_below(&s->rng, RANDOM_POOL)];
    if (b == RANDOM_NONE && !random_fits(s, &right)) return RANDOM_NONE;
    if (b == RANDOM_NONE) b = random_input(s, g->dtype, &right);
    result.dims[left.rank - 1] = random_value(s, b)->shape.dims[left.rank - 1];
    double reach[2], n = (double)dim_hi(s->dims, left.dims[left.rank - 1]);
    const char *a_text = bounded(g, a, &reach[0]), *b_text = bounded(g, b, &reach[1]);
    double most = n * reach[0] * reach[1];
    return random_bind(s, g->dtype, &result, -most, most,
                       str_format(s->arena, "%s @ %s", a_text, b_text));
}

/* A matmul of drawn values, sometimes followed by a second one. */
static void multiply_any(const Again *g) {
    RandomState *s = g->s;
    int a = draw(g, NULL, false);
    Shape left = random_value(s, a)->shape;
    int b = rng_chance(&s->rng, 75) ? draw(g, &left, true) : RANDOM_NONE;
    int product = multiply(g, a, b);
    if (product == RANDOM_NONE || !rng_chance(&s->rng, 50)) return;
    if (meets(&left, &random_value(s, product)->shape, true)) multiply(g, a, product);
}

static int join(const Again *g, int a, int b) {
    static const char *const infixes[] = {"+", "-", "*"};
    RandomState *s = g->s;
    Shape shape = random_value(s, a)->shape;
    double reach[2];
    const char *a_text = bounded(g, a, &reach[0]), *b_text = bounded(g, b, &reach[1]);
    double most = fmax(reach[0] * reach[1], reach[0] + reach[1]);
    return random_bind(
        s, g->dtype, &shape, -most, most,
        str_format(s->arena, "%s %s %s", a_text, infixes[rng_below(&s->rng, 3)], b_text));
}

static int join_any(const Again *g) {
    int a = draw(g, NULL, false);
    Shape shape = random_value(g->s, a)->shape;
    return join(g, a, draw(g, &shape, false));
}

/* Reduces rows, columns or all: by a maximum, or by an op that reads its exponentials in two
 * passes. */
static int reduce(const Again *g, int a) {
    RandomState *s = g->s;
    Shape shape = random_value(s, a)->shape;
    uint32_t last = shape.rank - 1, form = rng_below(&s->rng, 4);
    uint32_t axes = form == 0 ? 3u << (last - 1) : form == 1 ? 1u << (last - 1) : 1u << last;
    const char *list = form == 0   ? str_format(s->arena, "[%u, %u]", last - 1, last)
                       : form == 1 ? str_format(s->arena, "%u", last - 1)
                                   : "-1";
    if (dtype_is_int(g->dtype) || s->options.without_prelude || rng_chance(&s->rng, 20)) {
        double lo = random_value(s, a)->lo, hi = random_value(s, a)->hi;
        Shape result = shape_reduced(s->dims, &shape, axes, true);
        return random_bind(
            s, g->dtype, &result, lo, hi,
            str_format(s->arena, "max(%s, axis=%s, keep=true)", random_value(s, a)->name, list));
    }
    double lo = -60, hi = 60;
    const char *text = random_within(s, a, &lo, &hi);
    bool is_log = rng_chance(&s->rng, 40);
    return random_bind(
        s, g->dtype, &shape, is_log ? -200 : 0, is_log ? 0 : 1,
        str_format(s->arena, "%s(%s, axis=%s)", is_log ? "log_softmax" : "softmax", text, list));
}

/* A row op, its input and its result, all read by matmuls. So each value needs memory, which one
 * may take over from another. */
static void reduce_beside(const Again *g) {
    int of = draw(g, NULL, false);
    if (rng_chance(&g->s->rng, 60)) of = reduce(g, of);
    int rows = of == RANDOM_NONE ? of : reduce(g, of);
    if (rows == RANDOM_NONE || random_value(g->s, rows)->shape.rank < 2) return;
    Shape shape = random_value(g->s, rows)->shape;
    if (!meets(&shape, &random_value(g->s, of)->shape, false)) return;
    int both = join(g, of, rows);
    int stored[3] = {of, rows, both};
    for (int i = 0; i < 3; i++)
        if (stored[i] != RANDOM_NONE) multiply(g, stored[i], RANDOM_NONE);
}

void random_make_again(RandomState *s) {
    static const Dtype dtypes[] = {DT_F32, DT_F32, DT_F64, DT_F16, DT_BF16, DT_I32, DT_I8};
    Again g = {.s = s, .dtype = dtypes[rng_below(&s->rng, 7)], .first = s->values.n};
    g.limit = fmin(random_limit(g.dtype), 1e8) / 64;
    draw_extents(s);
    Shape shape = random_shape(s, 2, 3);
    random_input(s, g.dtype, &shape);
    uint32_t n = (uint32_t)rng_between(&s->rng, MIN_STATEMENTS, MAX_STATEMENTS);
    bool has_gemms = !s->options.without_matmul;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t which = rng_below(&s->rng, 10);
        if (which < 5 && has_gemms)
            multiply_any(&g);
        else if (which < 7)
            join_any(&g);
        else
            reduce(&g, draw(&g, NULL, false));
    }
    if (has_gemms && rng_chance(&s->rng, 50)) reduce_beside(&g);
}
