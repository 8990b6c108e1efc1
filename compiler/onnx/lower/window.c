/* Convolutions and pools over the view of windows. A tensor is [n, c, d0, d1, ..]; its windows are
 * [n, c, o0, o1, .., k0, k1, ..], where o counts windows and k taps. */
#include "onnx/call/import_state.h"

#include <math.h>

typedef struct Window {
    Windowing w;
    uint32_t n; /* spatial axes */
    int64_t size[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], low[MAX_RANK], high[MAX_RANK];
    int64_t
        beyond[MAX_RANK]; /* elements past `high` that only the last window of ceil_mode reads */
} Window;

static int64_t taps(const Window *w, uint32_t k) {
    return (w->size[k] - 1) * w->dilation[k] + 1;
}

/* SAME: as many windows as ceil(extent / stride). */
static bool same_pads(Call *c, Window *w, bool is_lower) {
    for (uint32_t k = 0; k < w->n; k++) {
        int64_t extent;
        bool is_const = dim_is_const(c->im->b->dims, shape_of(c, w->w.x)->dims[k + 2], &extent);
        if (!is_const && w->stride[k] != 1)
            return onnx_fail(c, DIAG_NO_LOWERING,
                             "auto_pad with strides needs extents that are constants");
        int64_t n = is_const ? (extent + w->stride[k] - 1) / w->stride[k] : 0;
        int64_t pad = is_const ? (n - 1) * w->stride[k] + taps(w, k) - extent : taps(w, k) - 1;
        if (pad < 0) pad = 0;
        w->low[k] = is_lower ? pad - pad / 2 : pad / 2;
        w->high[k] = pad - w->low[k];
    }
    return true;
}

/* ceil_mode: a last window that begins inside the tensor or its low padding counts. */
static bool ceil_pads(Call *c, Window *w) {
    for (uint32_t k = 0; k < w->n; k++) {
        int64_t extent;
        if (w->stride[k] == 1) continue;
        if (!dim_is_const(c->im->b->dims, shape_of(c, w->w.x)->dims[k + 2], &extent))
            return onnx_fail(c, DIAG_NO_LOWERING, "ceil_mode needs extents that are constants");
        int64_t span = extent + w->low[k] + w->high[k] - taps(w, k);
        int64_t n = (span + w->stride[k] - 1) / w->stride[k];
        if (span < 0) continue;
        if (n * w->stride[k] >= extent + w->low[k]) n--;
        w->beyond[k] = n * w->stride[k] > span ? n * w->stride[k] - span : 0;
    }
    return true;
}

static bool window_pads(Call *c, Window *w) {
    int64_t pads[2 * MAX_RANK];
    Str automatic = attr_string(c, "auto_pad", "NOTSET");
    if (!attr_list(c, "pads", 2 * w->n, 0, INT32_MAX, pads)) return false;
    for (uint32_t k = 0; k < w->n; k++) {
        w->low[k] = pads[k];
        w->high[k] = pads[w->n + k];
    }
    if (strncmp(automatic, "SAME", 4) == 0)
        return same_pads(c, w, strcmp(automatic, "SAME_LOWER") == 0);
    if (strcmp(automatic, "VALID") == 0)
        for (uint32_t k = 0; k < w->n; k++) w->low[k] = w->high[k] = 0;
    return !attr_int(c, "ceil_mode", 0) || ceil_pads(c, w);
}

static bool check_window_rank(Call *c, NodeId x) {
    uint32_t rank = shape_of(c, x)->rank;
    return (rank >= 3 && 2 * rank - 2 <= MAX_RANK) ||
           onnx_fail(c, DIAG_LIMIT, "windows need 1 to 3 spatial axes, not %d", (int)rank - 2);
}

/* Reads the attributes of windows over x. `size` NULL: kernel_shape has it. */
static bool window_of(Call *c, NodeId x, const int64_t *size, Window *w) {
    *w = (Window){0};
    if (x == NODE_NONE) return false;
    if (!check_window_rank(c, x)) return false;
    w->n = shape_of(c, x)->rank - 2;
    w->w = build_windowing(c->im->b, x);
    if (!attr_list(c, "kernel_shape", w->n, 1, INT32_MAX, w->size) ||
        !attr_list(c, "strides", w->n, 1, INT32_MAX, w->stride) ||
        !attr_list(c, "dilations", w->n, 1, INT32_MAX, w->dilation))
        return false;
    for (uint32_t k = 0; size && k < w->n; k++) w->size[k] = size[k];
    return window_pads(c, w);
}

static int64_t least_int(Dtype dtype) {
    if (elem_info((int64_t)elem_of_dtype(dtype))->kind == ELEM_IS_UINT) return 0;
    return -((int64_t)1 << (8 * (dtype_bytes(dtype) > 4 ? 4 : dtype_bytes(dtype)) - 1));
}

/* The windows; `value` stands beyond the tensor. */
static NodeId windows(Call *c, Window *w, double value) {
    Operand beyond = operand_float(value);
    NodeId x = w->w.x;
    if (dtype_is_int(dtype_of(c, x)))
        beyond =
            operand_int(number(c, isfinite(value) ? (int64_t)value : least_int(dtype_of(c, x))));
    for (uint32_t k = 0; k < w->n; k++) {
        uint32_t axis = k + 2;
        w->w.axes |= 1u << axis;
        w->w.size[axis] = number(c, w->size[k]);
        w->w.low[axis] = number(c, w->low[k]);
        w->w.high[axis] = number(c, w->high[k] + w->beyond[k]);
        w->w.stride[axis] = w->stride[k];
        w->w.dilation[axis] = w->dilation[k];
    }
    w->w.value = &beyond;
    return build_windows(c->im->b, &w->w);
}

static uint32_t tap_axes(const Window *w) {
    return ((1u << w->n) - 1) << (2 + w->n);
}

/* Convolutions. */

/* [n, c, o.., k..] -> [n, g, o0 * o1 * .., c / g * k0 * ..] for g groups */
static NodeId im2col(Call *c, NodeId x, const Window *w, int64_t groups, DimId n_windows,
                     DimId n_taps) {
    DimTab *dims = c->im->b->dims;
    if (x == NODE_NONE) return x;
    Shape from = *shape_of(c, x), cut = {.rank = from.rank + 1};
    int64_t perm[MAX_RANK + 1];
    cut.dims[0] = from.dims[0];
    cut.dims[1] = number(c, groups);
    cut.dims[2] = dim_exact_div(dims, from.dims[1], cut.dims[1]);
    if (groups == 1) { /* no axis of groups */
        cut = from;
        perm[0] = 0;
        for (uint32_t k = 0; k < w->n; k++) perm[1 + k] = 2 + k;
        perm[1 + w->n] = 1;
        for (uint32_t k = 0; k < w->n; k++) perm[2 + w->n + k] = 2 + w->n + k;
        x = build_transpose(c->im->b, x, from.rank, perm);
        Shape to = {3, {from.dims[0], n_windows, n_taps}};
        return reshape_to(c, x, &to);
    }
    if (cut.rank > MAX_RANK) {
        onnx_fail(c, DIAG_LIMIT, "a convolution of groups has at most 2 spatial axes");
        return NODE_NONE;
    }
    for (uint32_t k = 2; k < from.rank; k++) cut.dims[k + 1] = from.dims[k];
    perm[0] = 0;
    perm[1] = 1;
    for (uint32_t k = 0; k < w->n; k++) perm[2 + k] = 3 + k;
    perm[2 + w->n] = 2;
    for (uint32_t k = 0; k < w->n; k++) perm[3 + w->n + k] = 3 + w->n + k;
    x = build_transpose(c->im->b, reshape_to(c, x, &cut), cut.rank, perm);
    Shape to = {4, {from.dims[0], cut.dims[1], n_windows, n_taps}};
    return reshape_to(c, x, &to);
}

/* The products of all windows with the weights. `w` has the windows of x, beyond which `beyond`
 * stands. */
static NodeId window_products(Call *c, Window *w, double beyond, NodeId weights, int64_t groups) {
    static const int64_t swap2[] = {1, 0}, swap3[] = {0, 2, 1}, swap4[] = {0, 1, 3, 2};
    DimTab *dims = c->im->b->dims;
    Shape kernel = *shape_of(c, weights);
    DimId n_taps = number(c, 1), n_windows = n_taps;
    DimId per_group = dim_exact_div(dims, kernel.dims[0], number(c, groups));
    NodeId view = windows(c, w, beyond);
    if (view == NODE_NONE) return view;
    Shape wide = *shape_of(c, view);
    for (uint32_t k = 1; k < kernel.rank; k++) n_taps = dim_mul(dims, n_taps, kernel.dims[k]);
    for (uint32_t k = 0; k < w->n; k++) n_windows = dim_mul(dims, n_windows, wide.dims[2 + k]);
    NodeId columns = im2col(c, view, w, groups, n_windows, n_taps);
    Shape rows = {groups == 1 ? 2 : 3, {per_group, n_taps}};
    if (groups > 1) rows = (Shape){3, {number(c, groups), per_group, n_taps}};
    NodeId matrix = build_transpose(c->im->b, reshape_to(c, weights, &rows), rows.rank,
                                    groups == 1 ? swap2 : swap3);
    NodeId y = matmul_wide(c, columns, matrix);
    y = build_transpose(c->im->b, y, groups == 1 ? 3 : 4, groups == 1 ? swap3 : swap4);
    Shape to = {.rank = kernel.rank, .dims = {wide.dims[0], kernel.dims[0]}};
    for (uint32_t k = 0; k < w->n; k++) to.dims[2 + k] = wide.dims[2 + k];
    return reshape_to(c, y, &to);
}

/* Checks the weights' shape; `size` receives the taps per axis. */
static bool check_weights(Call *c, NodeId x, NodeId weights, int64_t groups, int64_t *size) {
    DimTab *dims = c->im->b->dims;
    int64_t n_out;
    if (x == NODE_NONE || weights == NODE_NONE) return false;
    Shape kernel = *shape_of(c, weights);
    if (kernel.rank != shape_of(c, x)->rank || kernel.rank < 3)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "x and its weights differ in rank");
    for (uint32_t k = 2; k < kernel.rank; k++)
        if (!dim_is_const(dims, kernel.dims[k], &size[k - 2]))
            return onnx_fail(c, DIAG_NO_LOWERING, "the weights' extents must be constants");
    if (groups < 1 || !dim_is_const(dims, kernel.dims[0], &n_out) || n_out % groups)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "group does not divide the weights' first extent");
    DimId channels = dim_mul_const(dims, kernel.dims[1], groups);
    if (channels != shape_of(c, x)->dims[1])
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "x has %s channels, the weights are for %s",
                         dim_str(dims, c->im->arena, shape_of(c, x)->dims[1]),
                         dim_str(dims, c->im->arena, channels));
    return true;
}

NodeId convolution(Call *c, NodeId x, NodeId weights, double beyond) {
    int64_t groups = attr_int(c, "group", 1), size[MAX_RANK];
    Window w;
    if (!check_weights(c, x, weights, groups, size) || !window_of(c, x, size, &w)) return NODE_NONE;
    return window_products(c, &w, beyond, weights, groups);
}

NodeId convolution_over(Call *c, NodeId x, NodeId weights, int64_t groups,
                        const int64_t *dilation) {
    int64_t size[MAX_RANK];
    if (!check_weights(c, x, weights, groups, size)) return NODE_NONE;
    Window w = {.n = shape_of(c, x)->rank - 2, .w = build_windowing(c->im->b, x)};
    if (!check_window_rank(c, x)) return NODE_NONE;
    for (uint32_t k = 0; k < w.n; k++) {
        w.size[k] = size[k];
        w.stride[k] = 1;
        w.dilation[k] = dilation[k];
    }
    return window_products(c, &w, 0, weights, groups);
}

bool onnx_conv(Call *c) {
    NodeId x = input(c, 0), y = convolution(c, x, input(c, 1), 0);
    if (!has_input(c, 2) || y == NODE_NONE) return output(c, 0, y);
    return output(c, 0, op2(c, OP_ADD, y, per_channel(c, input(c, 2), shape_of(c, y)->rank)));
}

/* Pools. */

/* The places in x of each window's largest element. taps: i32[n, c, o..], of all taps in order. */
static NodeId places_of_taps(Call *c, const Window *w, NodeId taps, const int64_t *extents) {
    Shape shape = *shape_of(c, taps);
    NodeId place = NODE_NONE, sum = index_along(c, &shape, 0);
    bool is_column_major = attr_int(c, "storage_order", 0) != 0;
    int64_t n_inner = 1, n_all = 1, stride[MAX_RANK] = {1};
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t k = is_column_major ? i : w->n - 1 - i;
        stride[k] = n_all;
        n_all *= extents[k + 2];
    }
    sum = op2n(c, OP_MUL, sum, (double)extents[1]);
    sum = op2n(c, OP_MUL, op2(c, OP_ADD, sum, index_along(c, &shape, 1)), (double)n_all);
    for (uint32_t k = w->n; k-- > 0; n_inner *= w->size[k]) {
        NodeId tap = op2n(c, OP_REM, op2n(c, OP_DIV, taps, (double)n_inner), (double)w->size[k]);
        place = op2n(c, OP_MUL, index_along(c, &shape, k + 2), (double)w->stride[k]);
        place = op2(c, OP_ADD, place, op2n(c, OP_MUL, tap, (double)w->dilation[k]));
        place = op2n(c, OP_MUL, op2n(c, OP_SUB, place, (double)w->low[k]), (double)stride[k]);
        sum = op2(c, OP_ADD, sum, place);
    }
    return sum;
}

bool onnx_max_pool(Call *c) {
    Window w;
    NodeId x = input(c, 0);
    int64_t extents[MAX_RANK];
    Dtype long_dtype;
    if (!window_of(c, x, NULL, &w)) return false;
    NodeId view = windows(c, &w, -INFINITY);
    if (has_output(c, 1) && view != NODE_NONE) {
        Shape flat = *shape_of(c, view);
        flat.rank = 3 + w.n;
        flat.dims[2 + w.n] = number(c, -1);
        if (!const_dims(c, x, extents) || !elem_dtype(ELEM_INT64, &long_dtype)) return false;
        NodeId taps = build_argreduce(c->im->b, OP_ARGMAX, reshape_to(c, view, &flat), -1, false);
        if (taps == NODE_NONE) return false;
        output(c, 1, cast_to(c, places_of_taps(c, &w, taps, extents), long_dtype));
    }
    return output(c, 0, reduce(c, OP_MAX, view, tap_axes(&w), false));
}

/* How many elements of each window count: 1 stands for each, 0 beyond. */
static NodeId counted(Call *c, const Window *w, bool counts_pads) {
    Window ones = *w;
    Shape shape = *shape_of(c, w->w.x);
    shape.dims[0] = shape.dims[1] = number(c, 1);
    for (uint32_t k = 0; k < w->n && counts_pads; k++) {
        shape.dims[k + 2] =
            dim_add(c->im->b->dims, shape.dims[k + 2], number(c, w->low[k] + w->high[k]));
        ones.low[k] = ones.high[k] = 0;
    }
    NodeId one = constant(c, 1, w->w.x);
    NodeId x = build_expand(c->im->b, one, (DimList){shape.rank, shape.dims});
    if (x == NODE_NONE) return x;
    ones.w = build_windowing(c->im->b, x);
    return reduce(c, OP_SUM, windows(c, &ones, 0), tap_axes(w), false);
}

bool onnx_average_pool(Call *c) {
    Window w;
    bool has_pads = false, has_beyond = false;
    double n = 1;
    if (!window_of(c, input(c, 0), NULL, &w)) return false;
    bool counts_pads = attr_int(c, "count_include_pad", 0) != 0;
    for (uint32_t k = 0; k < w.n; k++) {
        has_pads = has_pads || w.low[k] || w.high[k];
        has_beyond = has_beyond || w.beyond[k];
        n *= (double)w.size[k];
    }
    NodeId sum = reduce(c, OP_SUM, windows(c, &w, 0), tap_axes(&w), false);
    if (has_beyond || (has_pads && !counts_pads))
        return output(c, 0, op2(c, OP_DIV, sum, counted(c, &w, counts_pads)));
    return output(c, 0, op2n(c, OP_DIV, sum, n));
}

bool onnx_lp_pool(Call *c) {
    Window w;
    double p = (double)attr_int(c, "p", 2);
    if (!window_of(c, input(c, 0), NULL, &w)) return false;
    NodeId view = op1(c, OP_ABS, windows(c, &w, 0));
    NodeId sum = reduce(c, OP_SUM, op2n(c, OP_POW, view, p), tap_axes(&w), false);
    return output(c, 0, op2n(c, OP_POW, sum, 1 / p));
}

/* x / (bias + alpha / size * sum of squares of `size` neighbouring channels) ^ beta */
bool onnx_lrn(Call *c) {
    NodeId x = input(c, 0);
    int64_t size = attr_int(c, "size", 0);
    if (x == NODE_NONE) return false;
    if (size < 1 || size > INT32_MAX || shape_of(c, x)->rank < 2 ||
        shape_of(c, x)->rank >= MAX_RANK)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "it needs a size, and a tensor of 2 to 7 axes");
    Operand zero = operand_float(0);
    Windowing w = build_windowing(c->im->b, op2(c, OP_MUL, x, x));
    w.axes = 2;
    w.size[1] = number(c, size);
    w.low[1] = number(c, (size - 1) / 2);
    w.high[1] = number(c, size - 1 - (size - 1) / 2);
    w.value = &zero;
    NodeId sum =
        reduce(c, OP_SUM, build_windows(c->im->b, &w), 1u << windows_tap_axis(2, 1), false);
    sum = op2n(c, OP_MUL, sum, attr_float(c, "alpha", (double)1e-4f) / (double)size);
    sum = op2n(c, OP_ADD, sum, attr_float(c, "bias", 1));
    return output(c, 0, op2(c, OP_DIV, x, op2n(c, OP_POW, sum, attr_float(c, "beta", 0.75))));
}
