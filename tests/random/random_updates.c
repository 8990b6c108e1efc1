/* See random_updates.h. random_graph.h draws each op with parts of its own argument alone. */
#include "random/random_updates.h"

#include "base/str.h"
#include "ir/dtype.h"
#include "random/rng.h"

enum { MOST_RANK = 3, MOST_STATEMENTS = 12, MOST_VALUES = 2 * MOST_STATEMENTS + 2 };

/* All values have one shape. */
typedef struct Updates {
    Arena *arena;
    Rng rng;
    Dtype dtype;
    uint32_t rank;
    const char *extents[MOST_RANK];
    const char *values[MOST_VALUES];
    uint32_t n_values;
    Text dims, body;
} Updates;

/* Late values are drawn more often. */
static const char *draw(Updates *u) {
    uint32_t n = u->n_values, late = n < 4 ? n : 4;
    return u->values[rng_chance(&u->rng, 75) ? n - 1 - rng_below(&u->rng, late)
                                             : rng_below(&u->rng, n)];
}

static const char *bind(Updates *u, const char *expression) {
    const char *name = str_format(u->arena, "v%u", u->n_values);
    text_printf(&u->body, "  %s = %s\n", name, expression);
    return u->values[u->n_values++] = name;
}

/* One text for each axis, another one for one axis: `[0, at, 0]`. */
static const char *listed(const Updates *u, uint32_t axis, const char *own, const char *other) {
    Text list = {.arena = u->arena};
    for (uint32_t k = 0; k < u->rank; k++)
        text_printf(&list, "%s%s", k ? ", " : "", k == axis ? own : other);
    return str_format(u->arena, "[%s]", text_str(&list));
}

static const char *place(Updates *u) {
    static const char *const places[] = {"at", "at", "at + 1", "to", "0"};
    return places[rng_below(&u->rng, sizeof places / sizeof *places)];
}

/* What replaces the tensor `old`, or a row of it. */
static const char *part_of(Updates *u, const char *old, uint32_t axis, bool is_whole) {
    const char *from = rng_chance(&u->rng, 20) ? old : draw(u);
    bool is_product = u->rank > 1 && dtype_is_float(u->dtype) && rng_chance(&u->rng, 25);
    if (is_whole && is_product) return str_format(u->arena, "%s @ w", from);
    if (is_whole) return from;
    from = str_format(u->arena, "%s%s", from, listed(u, axis, "0:1", ":"));
    bool is_last = axis + 1 == u->rank;
    if (is_product && !is_last) return str_format(u->arena, "%s @ w", from);
    return rng_chance(&u->rng, 30) ? str_format(u->arena, "%s * 2", from) : from;
}

static const char *update_of(Updates *u, const char *old) {
    uint32_t axis = rng_below(&u->rng, u->rank);
    bool is_whole = rng_chance(&u->rng, 50);
    const char *part = part_of(u, old, axis, is_whole), *own = place(u);
    const char *other = is_whole && rng_chance(&u->rng, 50) ? own : "0";
    return str_format(u->arena, "dynamic_update_slice(%s, %s, %s)", old, part,
                      listed(u, axis, own, other));
}

static void make_loop(Updates *u) {
    const char *first = draw(u), *part = draw(u);
    if (rng_chance(&u->rng, 50))
        bind(u, str_format(u->arena,
                           "loop t in 0:N with h = %s { return dynamic_update_slice(h, %s, %s) }",
                           first, part, listed(u, 0, "t", "t")));
    else
        bind(u,
             str_format(u->arena, "loop i in 0:3 with h = %s { return maximum(roll(h, i, 0), %s) }",
                        first, part));
}

static const char *elementwise(Updates *u) {
    uint32_t n = rng_below(&u->rng, 3);
    const char *a = draw(u), *b = draw(u);
    if (n == 0) return str_format(u->arena, "%s + %s", a, b);
    return str_format(u->arena, n == 1 ? "maximum(%s, %s)" : "%s - %s", a, b);
}

/* A reader over the rows of an axis, or one that moves elements. */
static const char *reader(Updates *u) {
    const char *a = draw(u), *b = draw(u);
    unsigned axis = rng_below(&u->rng, u->rank);
    switch (rng_below(&u->rng, 5)) {
    case 0:
        return str_format(u->arena, "%s - max(%s, axis=%u, keep=true)", a, b, axis);
    case 1:
        return str_format(u->arena, "roll(%s, 1, %u)", a, axis);
    case 2:
        return str_format(u->arena, "cummax(%s, axis=%u)", a, axis);
    case 3:
        return str_format(u->arena, "concat([%s%s, %s%s], axis=%u)", a, listed(u, axis, "1:", ":"),
                          b, listed(u, axis, "0:1", ":"), axis);
    default:
        return str_format(u->arena, "take_along_dim(%s, argsort(%s, axis=%u), axis=%u)", a, b, axis,
                          axis);
    }
}

static void make(Updates *u) {
    uint32_t kind = rng_below(&u->rng, 100);
    const char *old = draw(u);
    if (kind < 35) {
        bind(u, update_of(u, old));
    } else if (kind < 50) {
        bind(u, update_of(u, old));
        bind(u, update_of(u, old));
    } else if (kind < 70) {
        bind(u, elementwise(u));
    } else if (kind < 92) {
        bind(u, reader(u));
    } else {
        make_loop(u);
    }
}

static void draw_shape(Updates *u) {
    static const uint32_t extents[] = {1, 2, 3, 4, 6, 8, 9, 16, 17};
    u->rank = 1 + rng_below(&u->rng, MOST_RANK);
    for (uint32_t k = 0; k < u->rank; k++) {
        uint32_t extent = extents[rng_below(&u->rng, sizeof extents / sizeof *extents)];
        bool is_open = rng_chance(&u->rng, 25);
        if (is_open) text_printf(&u->dims, "dim D%u in 1..%u\n", k, extent + 5);
        u->extents[k] =
            is_open ? str_format(u->arena, "D%u", k) : str_format(u->arena, "%u", extent);
    }
}

static const char *type_of(const Updates *u) {
    Text type = {.arena = u->arena};
    for (uint32_t k = 0; k < u->rank; k++) text_printf(&type, "%s%s", k ? ", " : "", u->extents[k]);
    return str_format(u->arena, "%s[%s]", dtype_name(u->dtype), text_str(&type));
}

const char *random_updates_source(Arena *arena, uint64_t seed) {
    static const Dtype dtypes[] = {DT_F32, DT_F32, DT_F32, DT_F16, DT_BF16, DT_F64, DT_I32, DT_I64};
    Updates u = {.arena = arena, .rng = rng_new(seed)};
    u.dims.arena = u.body.arena = arena;
    u.dtype = dtypes[rng_below(&u.rng, sizeof dtypes / sizeof *dtypes)];
    draw_shape(&u);
    u.values[u.n_values++] = "x";
    u.values[u.n_values++] = "z";
    uint32_t n = 2 + rng_below(&u.rng, MOST_STATEMENTS - 2);
    for (uint32_t i = 0; i < n; i++) make(&u);
    const char *type = type_of(&u), *last = u.extents[u.rank - 1];
    Text outputs = {.arena = arena};
    text_printf(&outputs, "%s: %s", u.values[u.n_values - 1], type);
    for (uint32_t i = 2; i + 1 < u.n_values; i++)
        if (rng_chance(&u.rng, 15)) text_printf(&outputs, ", %s: %s", u.values[i], type);
    return str_format(arena,
                      "%sdim N in 0..5\ngraph g(x: %s, z: %s, w: %s[%s, %s], at: i32, to: i32) -> "
                      "(%s) {\n%s}\n",
                      text_str(&u.dims), type, type, dtype_name(u.dtype), last, last,
                      text_str(&outputs), text_str(&u.body));
}
