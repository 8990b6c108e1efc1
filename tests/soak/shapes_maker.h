/* What programs for templates are made of: dims, inputs, and random work on a value. See shapes.h.
 */
#ifndef FUSEC_TESTS_SHAPES_MAKER_H
#define FUSEC_TESTS_SHAPES_MAKER_H

#include "shapes.h"

#include <string.h>

enum { MOST_AXES = 4, MAX_CHAIN = 5 };

typedef struct Maker {
    Arena *arena;
    Rng rng;
    Dtype dtype;
    Text dims, inputs, params, body, outputs;
    uint32_t n_values, n_inputs, n_params, n_outputs;
} Maker;

/* Extents as source text. */
typedef struct Axes {
    const char *of[MOST_AXES];
    uint32_t n;
} Axes;
#define AXES(...)                                                                   \
    (Axes) {                                                                        \
        {__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *) \
    }

typedef struct Value {
    const char *name;
    Dtype dtype;
    Axes axes;
} Value;

static inline bool is_float(Dtype dtype) {
    return dtype_kind(dtype) == KIND_FLOAT;
}

static inline const char *pick(Maker *m, const char *const *list, size_t n) {
    return list[rng_below(&m->rng, (uint32_t)n)];
}
#define PICK(m, ...)                            \
    pick(m, (const char *const[]){__VA_ARGS__}, \
         sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static inline void dim(Maker *m, const char *name, int lo, int hi, int multiple) {
    text_printf(&m->dims, "dim %s in %d..%d", name, lo, hi);
    text_printf(&m->dims, multiple > 1 ? " mult %d\n" : "\n", multiple);
}

/* A known extent: often a multiple of 8, else anything. */
static inline const char *number(Maker *m, int lo, int hi) {
    int64_t n = rng_between(&m->rng, lo, hi);
    if (n > 8 && rng_chance(&m->rng, 50)) n -= n % 8;
    return str_format(m->arena, "%d", (int)n);
}

/* `ones`: axes (bit set) of extent 1. */
static inline const char *shape_text(Maker *m, const Axes *axes, uint32_t ones) {
    Text text = {.arena = m->arena};
    for (uint32_t k = 0; k < axes->n; k++)
        text_printf(&text, "%s%s", k ? ", " : "[", ones >> k & 1 ? "1" : axes->of[k]);
    text_puts(&text, axes->n ? "]" : "");
    return text_str(&text);
}

static inline const char *input_of(Maker *m, Dtype dtype, const char *shape) {
    const char *name = str_format(m->arena, "x%u", m->n_inputs);
    text_printf(&m->inputs, "%s%s: %s%s", m->n_inputs++ ? ", " : "", name, dtype_name(dtype),
                shape);
    return name;
}

static inline Value input(Maker *m, Dtype dtype, Axes axes) {
    return (Value){input_of(m, dtype, shape_text(m, &axes, 0)), dtype, axes};
}

static inline Value param(Maker *m, Dtype dtype, Axes axes) {
    const char *name = str_format(m->arena, "p%u", m->n_params++);
    text_printf(&m->params, "  param %s: %s%s = \"%s\"\n", name, dtype_name(dtype),
                shape_text(m, &axes, 0), name);
    return (Value){name, dtype, axes};
}

STR_PRINTF(4, 5)
static inline Value bind(Maker *m, Dtype dtype, Axes axes, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *expression = str_vformat(m->arena, format, args);
    va_end(args);
    const char *name = str_format(m->arena, "v%u", m->n_values++);
    text_printf(&m->body, "  %s = %s\n", name, expression);
    return (Value){name, dtype, axes};
}

static inline void output(Maker *m, Value v) {
    text_printf(&m->outputs, "%sy%u: %s%s", m->n_outputs ? ", " : "", m->n_outputs,
                dtype_name(v.dtype), shape_text(m, &v.axes, 0));
    text_printf(&m->body, "  y%u = %s\n", m->n_outputs++, v.name);
}

static inline const char *source(Maker *m) {
    return str_format(m->arena, "%sgraph g(%s) -> (%s) {\n%s%s}\n", text_str(&m->dims),
                      text_str(&m->inputs), text_str(&m->outputs), text_str(&m->params),
                      text_str(&m->body));
}

/* Elementwise work. */

/* Broadcast to the value: a scalar, a row, a column, or all of it. */
static inline const char *operand(Maker *m, const Value *v) {
    uint32_t all = (1u << v->axes.n) - 1, last = v->axes.n ? 1u << (v->axes.n - 1) : 0;
    const uint32_t ones[] = {all, all & ~last, last, 0};
    uint32_t kind = rng_below(&m->rng, 5);
    if (kind == 4) return input_of(m, v->dtype, "");
    return input_of(m, v->dtype, shape_text(m, &v->axes, ones[kind]));
}

static inline Value unary(Maker *m, Value v) {
    if (v.dtype == DT_BOOL) return bind(m, v.dtype, v.axes, "logical_not(%s)", v.name);
    const char *op = is_float(v.dtype) ? PICK(m, "relu", "sigmoid", "tanh", "gelu", "silu", "abs",
                                              "floor", "leaky_relu", "gelu_tanh", "neg", "softplus")
                                       : PICK(m, "relu", "abs", "neg", "sign");
    return bind(m, v.dtype, v.axes, "%s(%s)", op, v.name);
}

static inline Value binary(Maker *m, Value v) {
    const char *other = operand(m, &v);
    if (v.dtype == DT_BOOL)
        return bind(m, v.dtype, v.axes, "%s(%s, %s)", PICK(m, "logical_and", "logical_or"), v.name,
                    other);
    return bind(m, v.dtype, v.axes, "%s(%s, %s)",
                PICK(m, "add", "sub", "mul", "maximum", "minimum"), v.name, other);
}

static inline Value chosen(Maker *m, Value v) {
    const char *one = operand(m, &v);
    if (v.dtype == DT_BOOL) return bind(m, v.dtype, v.axes, "not_equal(%s, %s)", v.name, one);
    const char *other = operand(m, &v);
    const char *compare = PICK(m, "less", "less_equal", "greater", "equal");
    return bind(m, v.dtype, v.axes, "where(%s(%s, %s), %s, %s)", compare, v.name, one, v.name,
                other);
}

static inline Value recast(Maker *m, Value v) {
    Dtype to = is_float(v.dtype) ? (Dtype)rng_below(&m->rng, DT_I32) : v.dtype;
    if (to == v.dtype || to == DT_F64) return unary(m, v);
    return bind(m, to, v.axes, "cast(%s, %s)", v.name, dtype_name(to));
}

/* A store beside the last one. */
static inline Value kept(Maker *m, Value v) {
    if (m->n_outputs > 2) return unary(m, v);
    if (v.dtype != DT_BOOL && rng_chance(&m->rng, 40)) {
        output(m, bind(m, DT_BOOL, v.axes, "less(%s, %s)", v.name, operand(m, &v)));
        return v;
    }
    Value next = unary(m, v);
    output(m, next);
    return next;
}

static inline Value chain(Maker *m, Value v, uint32_t n_steps) {
    static Value (*const steps[])(Maker *, Value) = {unary, binary, binary, chosen, recast, kept};
    for (uint32_t i = 0; i < n_steps; i++) v = steps[rng_below(&m->rng, 6)](m, v);
    return v;
}

static inline void finish(Maker *m, Value v) {
    output(m, chain(m, v, rng_below(&m->rng, MAX_CHAIN)));
}

/* Another order, some of it, more of it, other elements. */
static inline Value viewed(Maker *m, Value v) {
    const char *a = v.axes.of[0], *b = v.axes.of[v.axes.n - 1];
    const char *name = v.name;
    if (v.axes.n != 2) return v;
    switch (rng_below(&m->rng, 7)) {
    case 0:
        return bind(m, v.dtype, AXES(b, a), "transpose(%s)", name);
    case 1:
        return bind(m, v.dtype, AXES(str_format(m->arena, "%s - 2", a), b), "%s[1:-1]", name);
    case 2:
        return bind(m, v.dtype, AXES(a, str_format(m->arena, "(%s + 1) / 2", b)), "%s[:, ::2]",
                    name);
    case 3:
        return bind(m, v.dtype,
                    AXES(str_format(m->arena, "%s + 3", a), str_format(m->arena, "%s + 1", b)),
                    "pad(%s, low=[1, 0], high=[2, 1])", name);
    case 4:
        return bind(m, v.dtype, AXES(a, str_format(m->arena, "2 * %s", b)),
                    "concat([%s, %s], axis=1)", name, input(m, v.dtype, v.axes).name);
    case 5:
        return bind(m, v.dtype, v.axes, "gather(%s, %s, axis=0)", name,
                    input(m, DT_I32, AXES(a)).name);
    default:
        return v;
    }
}

/* Families of maps, in shapes_sources_map.c. */
const char *make_map(Maker *m);
const char *make_map_flat(Maker *m);
const char *make_map_tile(Maker *m);
/* Of windows over images, in shapes_sources_im2col.c. */
const char *make_im2col(Maker *m);
/* Of strict masked softmax between products, in shapes_sources_band.c. */
const char *make_band(Maker *m);
const char *make_taps(Maker *m);
const char *make_strips(Maker *m);

#endif
