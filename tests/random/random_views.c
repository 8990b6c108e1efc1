/* Makers of views and concats. */
#include "random/random_state.h"

#include <math.h>
#include <string.h>

static int bind_view(RandomState *s, int from, const Shape *shape, const char *text) {
    const RandomValue v = *random_value(s, from);
    return random_bind(s, v.dtype, shape, v.lo, v.hi, text);
}

static int make_transpose(RandomState *s, int from) {
    const RandomValue v = *random_value(s, from);
    uint32_t rank = v.shape.rank, perm[MAX_RANK];
    bool is_reversal = rank > 1 && rng_chance(&s->rng, 30);
    for (uint32_t k = 0; k < rank; k++) perm[k] = is_reversal ? rank - 1 - k : k;
    for (uint32_t k = rank; k > 1 && !is_reversal; k--) {
        uint32_t other = rng_below(&s->rng, k), kept = perm[k - 1];
        perm[k - 1] = perm[other];
        perm[other] = kept;
    }
    if (rank == 2) perm[0] = 1, perm[1] = 0;
    Shape shape = {.rank = rank};
    Text text = {.arena = s->arena};
    text_printf(&text, "transpose(%s", v.name);
    if (!is_reversal) text_puts(&text, ", perm=[");
    for (uint32_t k = 0; k < rank; k++) {
        shape.dims[k] = v.shape.dims[perm[k]];
        if (!is_reversal) text_printf(&text, "%s%u", k ? ", " : "", perm[k]);
    }
    text_puts(&text, is_reversal ? ")" : "])");
    return bind_view(s, from, &shape, text_str(&text));
}

/* Merges two neighbouring axes. */
static bool merge_axes(RandomState *s, Shape *shape) {
    if (shape->rank < 2) return false;
    uint32_t at = rng_below(&s->rng, shape->rank - 1);
    DimId product = dim_mul(s->dims, shape->dims[at], shape->dims[at + 1]);
    if (!product) return false;
    shape->dims[at] = product;
    for (uint32_t k = at + 1; k + 1 < shape->rank; k++) shape->dims[k] = shape->dims[k + 1];
    shape->rank--;
    return true;
}

/* Splits an axis by a divisor of its extent, or by 1. */
static bool split_axis(RandomState *s, Shape *shape) {
    static const int64_t factors[] = {2, 3, 4, 8, 11, 5, 1};
    if (shape->rank == 0 || shape->rank >= 4) return false;
    uint32_t at = rng_below(&s->rng, shape->rank);
    DimId outer = DIM_NONE, inner = DIM_NONE;
    uint32_t first = rng_below(&s->rng, 4);
    for (uint32_t i = 0; i < 7 && !outer; i++) {
        inner = dim_const(s->dims, factors[i < 6 ? (first + i) % 6 : i]);
        outer = dim_exact_div(s->dims, shape->dims[at], inner);
    }
    if (!outer) return false;
    for (uint32_t k = shape->rank; k > at + 1; k--) shape->dims[k] = shape->dims[k - 1];
    bool is_outer_first = rng_chance(&s->rng, 50);
    shape->dims[at] = is_outer_first ? outer : inner;
    shape->dims[at + 1] = is_outer_first ? inner : outer;
    shape->rank++;
    return true;
}

static int make_reshape(RandomState *s, int from) {
    const RandomValue v = *random_value(s, from);
    Shape shape = v.shape;
    uint32_t n_steps = 1 + rng_below(&s->rng, 2);
    for (uint32_t i = 0; i < n_steps; i++)
        if (rng_chance(&s->rng, 50) ? !merge_axes(s, &shape) : !split_axis(s, &shape))
            merge_axes(s, &shape);
    if (shape_equal(&shape, &v.shape) && !split_axis(s, &shape)) {
        shape.dims[shape.rank++] = dim_const(s->dims, 1);
        if (shape.rank > 4) return RANDOM_NONE;
    }
    return bind_view(s, from, &shape,
                     str_format(s->arena, "reshape(%s, %s)", v.name, random_shape_str(s, &shape)));
}

/* Repeats axes of extent 1, or puts axes in front. */
static int make_expand(RandomState *s, int from) {
    const RandomValue v = *random_value(s, from);
    Shape shape = v.shape;
    bool grows = false;
    for (uint32_t k = 0; k < shape.rank; k++)
        if (dim_equals_const(s->dims, shape.dims[k], 1) && rng_chance(&s->rng, 80)) {
            shape.dims[k] = s->pool[rng_below(&s->rng, RANDOM_POOL)];
            grows = grows || !dim_equals_const(s->dims, shape.dims[k], 1);
        }
    if (!grows || rng_chance(&s->rng, 20)) {
        for (uint32_t k = shape.rank; k > 0; k--) shape.dims[k] = shape.dims[k - 1];
        shape.dims[0] = rng_chance(&s->rng, 50) ? s->pool[rng_below(&s->rng, RANDOM_POOL)]
                                                : dim_const(s->dims, 3);
        shape.rank++;
    }
    if (shape.rank > 4 || !random_fits(s, &shape)) return RANDOM_NONE;
    return bind_view(s, from, &shape,
                     str_format(s->arena, "expand(%s, %s)", v.name, random_shape_str(s, &shape)));
}

/* The number of elements of `extent` that a step takes. If the step always divides it, the exact
 * quotient is the canonical form. */
static DimId stepped(RandomState *s, DimId extent, int64_t step) {
    if (dim_multiple(s->dims, extent) % step == 0)
        return dim_div(s->dims, extent, dim_const(s->dims, step));
    return dim_ceil_div(s->dims, extent, step);
}

/* One axis of a slice that leaves every element out. */
static void empty_slice_axis(RandomState *s, DimId *extent, Text *text) {
    int64_t at = rng_between(&s->empties, 0, dim_lo(s->dims, *extent));
    text_printf(text, "%lld:%lld", (long long)at, (long long)at);
    if (rng_chance(&s->empties, 40))
        text_printf(text, ":%lld", (long long)rng_between(&s->empties, 2, 4));
    *extent = dim_const(s->dims, 0);
}

/* The text of elements `first` to `last` of an axis, each NULL where the axis ends. */
static void print_range(Text *text, const char *first, const char *last, int64_t step) {
    text_printf(text, "%s:%s", first ? first : "", last ? last : "");
    if (step != 1) text_printf(text, ":%lld", (long long)step);
}

static const char *bound(RandomState *s, int64_t value) {
    return str_format(s->arena, "%lld", (long long)value);
}

/* One axis of a slice: its text, and its extent in place of the argument's. Leaves elements out if
 * the extent allows it. */
static void slice_axis(RandomState *s, DimId *extent, Text *text) {
    int64_t least = dim_lo(s->dims, *extent), skip = 0, drop = 0, step = 1;
    if (rng_chance(&s->rng, 30)) step = rng_between(&s->rng, 2, 3);
    if (least >= 2 && (step == 1 || rng_chance(&s->rng, 50))) {
        skip = rng_between(&s->rng, 0, least / 2);
        drop = rng_between(&s->rng, skip ? 0 : 1, least - skip - 1);
        if (drop > 3) drop = rng_between(&s->rng, 1, 3);
    }
    bool is_downward = rng_chance(&s->rng, 25);
    const char *first = skip ? bound(s, skip) : NULL, *end = drop ? bound(s, -drop) : NULL;
    const char *top = drop ? bound(s, -drop - 1) : NULL, *below = skip ? bound(s, skip - 1) : NULL;
    if (least >= 2 && rng_chance(&s->rng, 15)) { /* a fixed number of elements */
        int64_t past = rng_between(&s->rng, skip + 1, least);
        *extent = stepped(s, dim_const(s->dims, past - skip), step);
        first = bound(s, skip);
        end = bound(s, past);
        top = bound(s, past - 1);
    } else {
        DimId taken = dim_sub(s->dims, *extent, dim_const(s->dims, skip + drop));
        *extent = stepped(s, taken, step);
    }
    if (is_downward)
        print_range(text, top, below, -step);
    else
        print_range(text, first, end, step);
}

static int make_slice(RandomState *s, int from) {
    const RandomValue v = *random_value(s, from);
    Shape shape = v.shape;
    Text text = {.arena = s->arena};
    text_printf(&text, "%s[", v.name);
    uint32_t chosen = rng_below(&s->rng, shape.rank);
    for (uint32_t k = 0; k < shape.rank; k++) {
        if (k) text_puts(&text, ", ");
        if (random_wants_empty(s))
            empty_slice_axis(s, &shape.dims[k], &text);
        else if (k == chosen || rng_chance(&s->rng, 35))
            slice_axis(s, &shape.dims[k], &text);
        else
            text_puts(&text, ":");
    }
    text_puts(&text, "]");
    bool is_downward = strstr(text_str(&text), ":-") != NULL; /* or leaves elements out */
    if (shape_equal(&shape, &v.shape) && !is_downward) return RANDOM_NONE;
    return bind_view(s, from, &shape, text_str(&text));
}

static int make_pad(RandomState *s, int from) {
    const RandomValue v = *random_value(s, from);
    Shape shape = v.shape;
    Text low = {.arena = s->arena}, high = {.arena = s->arena};
    uint32_t chosen = rng_below(&s->rng, shape.rank);
    for (uint32_t k = 0; k < shape.rank; k++) {
        bool is_padded = k == chosen || rng_chance(&s->rng, 30);
        int64_t before = is_padded ? rng_below(&s->rng, 4) : 0;
        int64_t after = is_padded ? 1 + rng_below(&s->rng, 3) : 0;
        shape.dims[k] = dim_add(s->dims, shape.dims[k], dim_const(s->dims, before + after));
        text_printf(&low, "%s%lld", k ? ", " : "", (long long)before);
        text_printf(&high, "%s%lld", k ? ", " : "", (long long)after);
    }
    double fill = v.dtype == DT_BOOL ? rng_below(&s->rng, 2) : (double)rng_between(&s->rng, -1, 2);
    fill = fmax(fill, random_least(v.dtype));
    const char *value = rng_chance(&s->rng, 30)
                            ? ""
                            : str_format(s->arena, ", value=%s", random_number(s, v.dtype, fill));
    if (!*value) fill = 0;
    const char *call = str_format(s->arena, "pad(%s, low=[%s], high=[%s]%s)", v.name,
                                  text_str(&low), text_str(&high), value);
    return random_bind(s, v.dtype, &shape, fmin(v.lo, fill), fmax(v.hi, fill), call);
}

/* Borders of the tensor's own elements. */
static int make_border(RandomState *s, int from) {
    static const char *const modes[] = {"reflect", "replicate", "circular"};
    const RandomValue v = *random_value(s, from);
    Shape shape = v.shape;
    Text amounts[2] = {{.arena = s->arena}, {.arena = s->arena}};
    for (uint32_t k = 0; k < shape.rank; k++) {
        int64_t most = dim_lo(s->dims, shape.dims[k]) - 1;
        for (int side = 0; side < 2; side++) {
            int64_t amount = rng_between(&s->rng, 0, most < 0 ? 0 : most > 3 ? 3 : most);
            shape.dims[k] = dim_add(s->dims, shape.dims[k], dim_const(s->dims, amount));
            text_printf(&amounts[side], "%s%lld", k ? ", " : "", (long long)amount);
        }
    }
    if (shape_equal(&shape, &v.shape) || !random_fits(s, &shape)) return RANDOM_NONE;
    return bind_view(s, from, &shape,
                     str_format(s->arena, "pad(%s, low=[%s], high=[%s], mode=\"%s\")", v.name,
                                text_str(&amounts[0]), text_str(&amounts[1]),
                                modes[rng_below(&s->rng, 3)]));
}

/* Values between the elements of an axis. */
static int make_spread(RandomState *s, int from) {
    const RandomValue v = *random_value(s, from);
    Shape shape = v.shape;
    uint32_t chosen = rng_below(&s->rng, shape.rank);
    int64_t gap = rng_between(&s->rng, 1, 3);
    DimId *extent = &shape.dims[chosen];
    Text none = {.arena = s->arena}, gaps = {.arena = s->arena};
    if (dim_lo(s->dims, *extent) < 1) return RANDOM_NONE;
    *extent = dim_sub(s->dims, dim_mul_const(s->dims, *extent, gap + 1), dim_const(s->dims, gap));
    for (uint32_t k = 0; k < shape.rank; k++) {
        text_printf(&none, "%s0", k ? ", " : "");
        text_printf(&gaps, "%s%lld", k ? ", " : "", k == chosen ? (long long)gap : 0);
    }
    if (shape_equal(&shape, &v.shape) || !random_fits(s, &shape)) return RANDOM_NONE;
    return random_bind(s, v.dtype, &shape, fmin(v.lo, 0), fmax(v.hi, 0),
                       str_format(s->arena, "pad(%s, low=[%s], high=[%s], interior=[%s])", v.name,
                                  text_str(&none), text_str(&none), text_str(&gaps)));
}

/* Windows over one axis. */
static int make_windows(RandomState *s, int from) {
    const RandomValue v = *random_value(s, from);
    uint32_t axis = rng_below(&s->rng, v.shape.rank);
    int64_t size = rng_between(&s->rng, 1, 3), stride = rng_between(&s->rng, 1, 3);
    int64_t dilation = rng_between(&s->rng, 1, 2), reach = (size - 1) * dilation + 1;
    int64_t border = rng_chance(&s->rng, 40) ? 2 : 0;
    int64_t low = rng_between(&s->rng, 0, border), high = rng_between(&s->rng, 0, border);
    Shape shape = {.rank = v.shape.rank + 1};
    DimId extent = dim_add(s->dims, v.shape.dims[axis], dim_const(s->dims, low + high));
    if (v.shape.rank >= 4) return RANDOM_NONE;
    for (; dim_lo(s->dims, extent) < reach; high++)
        extent = dim_add(s->dims, extent, dim_const(s->dims, 1));
    extent = dim_sub(s->dims, extent, dim_const(s->dims, reach));
    extent = dim_div(s->dims, extent, dim_const(s->dims, stride));
    for (uint32_t k = 0; k < v.shape.rank; k++)
        shape.dims[windows_axis(1u << axis, k)] = v.shape.dims[k];
    shape.dims[axis] = dim_add(s->dims, extent, dim_const(s->dims, 1));
    shape.dims[axis + 1] = dim_const(s->dims, size);
    if (!random_fits(s, &shape)) return RANDOM_NONE;
    return random_bind(s, v.dtype, &shape, fmin(v.lo, 0), fmax(v.hi, 0),
                       str_format(s->arena,
                                  "windows(%s, size=[%lld], axis=%u, stride=%lld, dilation=%lld, "
                                  "low=%lld, high=%lld)",
                                  v.name, (long long)size, axis, (long long)stride,
                                  (long long)dilation, (long long)low, (long long)high));
}

static int make_gather(RandomState *s, int from) {
    Shape data = random_value(s, from)->shape, shape = {0};
    uint32_t axis = rng_below(&s->rng, data.rank);
    if (dim_lo(s->dims, data.dims[axis]) < 1) return RANDOM_NONE;
    Dtype of_index = rng_chance(&s->rng, 70) ? DT_I32 : DT_I64;
    int indices = random_pick(s, of_index, 0, 2, RANDOM_NONE);
    Shape index = random_value(s, indices)->shape;
    for (uint32_t k = 0; k < axis; k++) shape.dims[shape.rank++] = data.dims[k];
    for (uint32_t k = 0; k < index.rank; k++) shape.dims[shape.rank++] = index.dims[k];
    for (uint32_t k = axis + 1; k < data.rank; k++) shape.dims[shape.rank++] = data.dims[k];
    if (shape.rank > 4 || !random_fits(s, &shape)) return RANDOM_NONE;
    return bind_view(s, from, &shape,
                     str_format(s->arena, "gather(%s, %s, axis=%u)", random_value(s, from)->name,
                                random_value(s, indices)->name, axis));
}

int random_make_view(RandomState *s, OpId op, Dtype dtype, int arg) {
    bool takes_scalars = op == OP_EXPAND || op == OP_RESHAPE;
    uint32_t least = takes_scalars ? 0 : op == OP_TRANSPOSE ? 2 : 1;
    int from = random_pick(s, dtype, least, op == OP_WINDOWS ? 3 : 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    switch ((int)op) {
    case OP_TRANSPOSE:
        return make_transpose(s, from);
    case OP_RESHAPE:
        return make_reshape(s, from);
    case OP_EXPAND:
        return make_expand(s, from);
    case OP_SLICE:
        return make_slice(s, from);
    case OP_PAD:
        if (rng_chance(&s->rng, 20)) return make_border(s, from);
        return rng_chance(&s->rng, 20) ? make_spread(s, from) : make_pad(s, from);
    case OP_WINDOWS:
        return make_windows(s, from);
    case OP_GATHER:
        return make_gather(s, from);
    }
    return RANDOM_NONE;
}

/* An operand of a concat that differs from `from` along one axis at most: an existing value, the
 * value itself, or a new input with another extent there. */
static int concat_part(RandomState *s, int from, uint32_t axis) {
    const RandomValue v = *random_value(s, from);
    for (uint32_t i = 0; i < s->values.n; i++) {
        const RandomValue *other = &s->values.data[i];
        if (other->dtype != v.dtype || other->shape.rank != v.shape.rank) continue;
        Shape as_if = other->shape;
        as_if.dims[axis] = v.shape.dims[axis];
        if (shape_equal(&as_if, &v.shape) && rng_chance(&s->rng, 30)) return (int)i;
    }
    if (rng_chance(&s->rng, 30)) return from;
    Shape shape = v.shape;
    shape.dims[axis] = s->pool[rng_below(&s->rng, RANDOM_POOL)];
    if (random_wants_empty(s)) shape.dims[axis] = dim_const(s->dims, 0);
    return random_fits(s, &shape) ? random_input(s, v.dtype, &shape) : from;
}

int random_make_concat(RandomState *s, OpId op, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 1, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    const RandomValue first = *random_value(s, from);
    Shape shape = first.shape;
    uint32_t axis = rng_below(&s->rng, shape.rank), n = 2 + rng_below(&s->rng, 2);
    double lo = first.lo, hi = first.hi;
    Text text = {.arena = s->arena};
    text_printf(&text, "%s([%s", op_info(op)->name, first.name);
    for (uint32_t i = 1; i < n; i++) {
        const RandomValue part = *random_value(s, concat_part(s, from, axis));
        shape.dims[axis] = dim_add(s->dims, shape.dims[axis], part.shape.dims[axis]);
        lo = fmin(lo, part.lo);
        hi = fmax(hi, part.hi);
        text_printf(&text, ", %s", part.name);
    }
    text_printf(&text, "], axis=%u)", axis);
    return random_bind(s, dtype, &shape, lo, hi, text_str(&text));
}
