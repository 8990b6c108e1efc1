/* Windows, and pads beyond one value around a tensor: values between elements, and borders made of
 * the tensor's own elements. These pads are made of other views. See build.h. */
#include "ir/build/build.h"

static DimId number(const Builder *b, int64_t value) {
    return dim_const(b->dims, value);
}

/* Elements `begin`, `begin` + `step`, .. of one axis, `extent` of them. */
static NodeId cut_axis(Builder *b, NodeId x, uint32_t axis, DimId begin, DimId extent,
                       int64_t step) {
    Slicing s = build_slicing(b, x);
    if (x == NODE_NONE) return x;
    s.per_axis.begin[axis] = begin;
    s.per_axis.step[axis] = step;
    s.to.dims[axis] = extent;
    return build_slicing_finish(b, &s);
}

/* Values between elements. */

/* Each element becomes a row that it begins, and the rows are joined. The last row has only its
 * element. */
static NodeId spread_axis(Builder *b, NodeId x, uint32_t axis, int64_t gap, const Operand *value) {
    Shape to = *build_shape_of(b, x);
    DimId n = to.dims[axis], zero = number(b, 0), rows[MAX_RANK + 1], behind[MAX_RANK + 1];
    if (gap == 0 || n == zero) return x;
    if (dim_lo(b->dims, n) < 1) {
        build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = 5, .item = axis + 1},
                   "`interior` of an axis that can be empty: %s", dim_str(b->dims, b->arena, n));
        return NODE_NONE;
    }
    DimId none[MAX_RANK + 1];
    for (uint32_t k = 0; k <= to.rank; k++) {
        none[k] = zero;
        rows[k] = k == axis + 1 ? number(b, 1) : to.dims[k - (k > axis)];
        behind[k] = k == axis + 1 ? number(b, gap) : zero;
    }
    uint32_t rank = to.rank + 1;
    x = build_reshape(b, x, (DimList){rank, rows});
    x = build_pad(b, x, (DimList){rank, none}, (DimList){rank, behind}, value);
    to.dims[axis] = dim_mul_const(b->dims, n, gap + 1);
    if (x == NODE_NONE || !build_check_shape(b, &to)) return NODE_NONE;
    DimId extent = dim_sub(b->dims, to.dims[axis], number(b, gap));
    return cut_axis(b, build_reshaped(b, x, &to), axis, zero, extent, 1);
}

NodeId build_spread(Builder *b, NodeId x, DimList interior, const Operand *value) {
    const BuildPlace at = {.arg = 5};
    if (x == NODE_NONE ||
        !build_check_per_axis(b, at, "interior", interior.n, build_shape_of(b, x)->rank))
        return NODE_NONE;
    for (uint32_t k = 0; k < interior.n && x != NODE_NONE; k++) {
        int64_t gap;
        if (!dim_is_const(b->dims, interior.dims[k], &gap) || gap < 0 || gap > INT32_MAX) {
            build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = 5, .item = k + 1},
                       "`interior` must hold integers of 0 or more, not %s",
                       dim_str(b->dims, b->arena, interior.dims[k]));
            return NODE_NONE;
        }
        x = spread_axis(b, x, k, gap, value);
    }
    return x;
}

/* Borders. */

static const char *const border_names[BORDER_COUNT] = {
    [BORDER_CONSTANT] = "constant",
    [BORDER_REFLECT] = "reflect",
    [BORDER_REPLICATE] = "replicate",
    [BORDER_CIRCULAR] = "circular",
};

const char *border_name(Border border) {
    return border_names[border];
}

/* The axis must have the elements that the border repeats. */
static bool check_border(Builder *b, Border border, uint32_t arg, DimId n, DimId amount) {
    DimId one = number(b, 1), zero = number(b, 0), needed = amount;
    if (amount == zero) return true;
    if (border == BORDER_REFLECT) needed = dim_add(b->dims, amount, one);
    if (border == BORDER_REPLICATE) needed = one;
    if (needed != DIM_NONE && dim_prove_le(b->dims, needed, n)) return true;
    build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = arg},
               "a %s border of %s needs an axis of %s elements or more, not %s",
               border_name(border), dim_str(b->dims, b->arena, amount),
               dim_str(b->dims, b->arena, needed), dim_str(b->dims, b->arena, n));
    return false;
}

/* The `amount` elements before (low) or after an axis. */
static NodeId border_part(Builder *b, NodeId x, uint32_t axis, Border border, bool is_low,
                          DimId amount) {
    Shape shape = *build_shape_of(b, x);
    DimTab *dims = b->dims;
    DimId n = shape.dims[axis], zero = number(b, 0), one = number(b, 1);
    if (border == BORDER_REFLECT)
        return cut_axis(b, x, axis, is_low ? amount : dim_sub(dims, n, number(b, 2)), amount, -1);
    if (border == BORDER_CIRCULAR)
        return cut_axis(b, x, axis, is_low ? dim_sub(dims, n, amount) : zero, amount, 1);
    NodeId edge = cut_axis(b, x, axis, is_low ? zero : dim_sub(dims, n, one), one, 1);
    shape.dims[axis] = amount;
    return build_expand(b, edge, (DimList){shape.rank, shape.dims});
}

static NodeId border_axis(Builder *b, NodeId x, uint32_t axis, Border border, DimId low,
                          DimId high) {
    NodeId parts[3];
    uint32_t n = 0;
    DimId zero = number(b, 0);
    if (low != zero) parts[n++] = border_part(b, x, axis, border, true, low);
    parts[n++] = x;
    if (high != zero) parts[n++] = border_part(b, x, axis, border, false, high);
    return build_concat(b, n, parts, axis);
}

NodeId build_pad_border(Builder *b, NodeId x, DimList low, DimList high, Border border) {
    if (x == NODE_NONE || !build_check_pad(b, x, low, high)) return NODE_NONE;
    const Shape from = *build_shape_of(b, x);
    for (uint32_t k = 0; k < from.rank && x != NODE_NONE; k++) {
        if (!check_border(b, border, 2, from.dims[k], low.dims[k]) ||
            !check_border(b, border, 3, from.dims[k], high.dims[k]))
            return NODE_NONE;
        x = border_axis(b, x, k, border, low.dims[k], high.dims[k]);
    }
    return x;
}

/* Windows. */

Windowing build_windowing(Builder *b, NodeId x) {
    Windowing w = {.x = x};
    for (uint32_t k = 0; k < MAX_RANK; k++) {
        w.size[k] = number(b, 1);
        w.low[k] = w.high[k] = number(b, 0);
        w.stride[k] = w.dilation[k] = 1;
    }
    return w;
}

/* Elements from the first to the last tap of a window. */
static DimId reach(Builder *b, const Windowing *w, uint32_t axis) {
    DimId one = number(b, 1), steps = dim_sub(b->dims, w->size[axis], one);
    if (steps) steps = dim_mul_const(b->dims, steps, w->dilation[axis]);
    return steps ? dim_add(b->dims, steps, one) : DIM_NONE;
}

void build_window_padding(Builder *b, Windowing *w, uint32_t axis, bool is_causal) {
    DimId total = dim_sub(b->dims, reach(b, w, axis), number(b, 1));
    w->low[axis] = is_causal ? total : dim_div(b->dims, total, number(b, 2));
    w->high[axis] = dim_sub(b->dims, total, w->low[axis]);
}

static bool check_positive(Builder *b, uint32_t arg, const char *what, int64_t value) {
    if (value >= 1 && value <= INT32_MAX) return true;
    build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = arg},
               "`%s` of `windows` must be a positive integer", what);
    return false;
}

static bool check_window(Builder *b, const Windowing *w, uint32_t axis) {
    if (!check_positive(b, 4, "stride", w->stride[axis]) ||
        !check_positive(b, 5, "dilation", w->dilation[axis]))
        return false;
    if (dim_lo(b->dims, w->size[axis]) >= 1) return true;
    build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = 2}, "a window can have no elements: %s",
               dim_str(b->dims, b->arena, w->size[axis]));
    return false;
}

/* The number of windows along an axis of this extent; DIM_NONE after an error. */
static DimId count_windows(Builder *b, const Windowing *w, uint32_t axis, DimId extent) {
    DimId needed = reach(b, w, axis);
    if (needed && dim_prove_le(b->dims, needed, extent)) {
        DimId rest = dim_sub(b->dims, extent, needed), stride = number(b, w->stride[axis]);
        return dim_add(b->dims, dim_div(b->dims, rest, stride), number(b, 1));
    }
    BuildError *error = build_fail(
        b, DIAG_SLICE_BOUNDS, (BuildPlace){.arg = 2},
        "a window reaches over %s elements, and axis %u is not known to have as many: %s",
        needed ? dim_str(b->dims, b->arena, needed) : "too many", axis,
        dim_str(b->dims, b->arena, extent));
    error->nodes[error->n_nodes++] = w->x;
    error->symbols = dim_symbols_used(b->dims, extent);
    return DIM_NONE;
}

/* The tensor with its padding; the axes without windows have none. */
static NodeId padded(Builder *b, const Windowing *w) {
    DimList low = {build_shape_of(b, w->x)->rank, w->low}, high = {low.n, w->high};
    for (uint32_t k = 0; k < low.n; k++) {
        DimId least = dim_lo(b->dims, low.dims[k]) < 0 ? low.dims[k] : high.dims[k];
        if (dim_lo(b->dims, least) >= 0) continue;
        build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = 6}, "padding can be negative: %s",
                   dim_str(b->dims, b->arena, least))
            ->help = "Write a slice to take elements away.";
        return NODE_NONE;
    }
    return build_pad(b, w->x, low, high, w->value);
}

NodeId build_windows(Builder *b, const Windowing *w) {
    AxisAttrs per_axis = {0};
    Node node = {.op = OP_WINDOWS, .n_args = 1, .attrs = {.axes = w->axes, .per_axis = &per_axis}};
    if (w->x == NODE_NONE) return NODE_NONE;
    uint32_t rank = build_shape_of(b, w->x)->rank;
    for (uint32_t k = 0; k < rank; k++)
        if (w->axes >> k & 1 && !check_window(b, w, k)) return NODE_NONE;
    NodeId x = padded(b, w);
    if (x == NODE_NONE) return x;
    if (!build_check_rank(b, windows_axis(w->axes, rank))) {
        b->errors.data[b->errors.n - 1].help = "Join axes along which no window slides by reshape, "
                                               "and part them behind the reduction.";
        return NODE_NONE;
    }
    if (!w->axes) return x;
    const Shape from = *build_shape_of(b, x);
    node.dtype = graph_node(b->graph, x)->dtype;
    node.args = &x;
    node.shape.rank = rank;
    for (uint32_t k = 0; k < rank; k++) {
        bool is_window = w->axes >> k & 1;
        DimId extent = is_window ? count_windows(b, w, k, from.dims[k]) : from.dims[k];
        if (extent == DIM_NONE) return NODE_NONE;
        node.shape.dims[windows_axis(w->axes, k)] = extent;
        per_axis.step[k] = w->stride[k];
        per_axis.dilation[k] = w->dilation[k];
        if (!is_window) continue;
        node.shape.dims[windows_tap_axis(w->axes, k)] = w->size[k];
        node.shape.rank++;
    }
    return build_checked_node(b, node);
}
