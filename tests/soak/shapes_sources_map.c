/* Programs for maps. See shapes.h. */
#include "shapes_maker.h"

const char *make_map(Maker *m) {
    static const int hi[] = {1 << 20, 1 << 12, 1 << 10};
    uint32_t rank = 1 + rng_below(&m->rng, 3);
    Axes axes = {{"N", "M", "K"}, rank};
    for (uint32_t k = 0; k < rank; k++) dim(m, axes.of[k], 3, hi[rank - 1], 1);
    uint32_t n_steps = 1 + rng_below(&m->rng, 3);
    finish(m, chain(m, viewed(m, input(m, m->dtype, axes)), n_steps));
    return source(m);
}

const char *make_map_flat(Maker *m) {
    const char *odd = str_format(m->arena, "%d", 2 * (int)rng_between(&m->rng, 0, 500) + 1);
    Axes axes = {{"N", "M", odd}, 2 + rng_below(&m->rng, 2)};
    dim(m, "N", 3, 500, 1), dim(m, "M", 3, 500, 1);
    finish(m, chain(m, viewed(m, input(m, m->dtype, axes)), 2));
    return source(m);
}

/* Maps in tiles. */

/* Orders of axes in which another one is last. */
static const char *const orders[MOST_AXES + 1][3] = {
    [2] = {"10", "10", "10"}, [3] = {"021", "210", "102"}, [4] = {"0312", "0231", "1302"}};

static Axes drawn_axes(Maker *m) {
    static const int hi[MOST_AXES + 1] = {[2] = 2000, [3] = 300, [4] = 90};
    static const char *const names[MOST_AXES] = {"A", "B", "C", "D"};
    Axes axes = {.n = 2 + rng_below(&m->rng, MOST_AXES - 1)};
    bool is_known = rng_chance(&m->rng, 50);
    for (uint32_t k = 0; k < axes.n; k++) {
        int most = axes.n == 4 && k == 0 ? 4 : hi[axes.n];
        axes.of[k] = is_known ? number(m, 1, most) : names[k];
        if (!is_known) dim(m, names[k], 1, most, most > 8 && rng_chance(&m->rng, 50) ? 8 : 1);
    }
    return axes;
}

static Value transposed(Maker *m, Value v, const char *order) {
    Text text = {.arena = m->arena};
    Axes axes = {.n = v.axes.n};
    for (uint32_t k = 0; k < axes.n; k++) {
        axes.of[k] = v.axes.of[order[k] - '0'];
        text_printf(&text, "%s%c", k ? ", " : "", order[k]);
    }
    return bind(m, v.dtype, axes, "transpose(%s, [%s])", v.name, text_str(&text));
}

/* Every other element along the last axis, or what meets another that lies as it does. */
static Value before_transpose(Maker *m, Value v) {
    uint32_t kind = rng_below(&m->rng, 4);
    if (kind == 0 && v.axes.n == 2)
        return bind(m, v.dtype,
                    AXES(v.axes.of[0], str_format(m->arena, "(%s + 1) / 2", v.axes.of[1])),
                    "%s[:, ::2]", v.name);
    if (kind == 1) {
        const char *other = input(m, v.dtype, v.axes).name;
        return bind(m, v.dtype, v.axes, v.dtype == DT_BOOL ? "not_equal(%s, %s)" : "sub(%s, %s)",
                    v.name, other);
    }
    return kind == 2 ? unary(m, v) : v;
}

/* The last two axes as one. */
static Value joined(Maker *m, Value v) {
    Axes axes = v.axes;
    axes.n--;
    axes.of[axes.n - 1] = str_format(m->arena, "(%s) * (%s)", axes.of[axes.n - 1], axes.of[axes.n]);
    return bind(m, v.dtype, axes, "reshape(%s, %s)", v.name, shape_text(m, &axes, 0));
}

const char *make_map_tile(Maker *m) {
    Value v = before_transpose(m, input(m, m->dtype, drawn_axes(m)));
    v = transposed(m, v, orders[v.axes.n][rng_below(&m->rng, 3)]);
    if (rng_chance(&m->rng, 30)) v = joined(m, v);
    finish(m, chain(m, v, rng_below(&m->rng, 3)));
    return source(m);
}
