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
    /* Of an axis whose pads follow from its extent: `low` and `high` are the most of them, and of
     * the padded axis only `whole` elements from `cut` on count. DIM_NONE: all. */
    DimId cut[MAX_RANK], whole[MAX_RANK];
} Window;

static int64_t taps(const Window *w, uint32_t k) {
    return (w->size[k] - 1) * w->dilation[k] + 1;
}

/* The same under an extent that is no constant: windows reach over a multiple of the stride, and
 * over the taps beyond it. */
static bool same_pads_of_dim(Call *c, Window *w, uint32_t k, bool is_lower) {
    DimTab *dims = c->im->b->dims;
    DimId extent = shape_of(c, w->w.x)->dims[k + 2];
    int64_t rest = taps(w, k) - w->stride[k], most = taps(w, k) - 1;
    if (rest < 0 && most > 0)
        return onnx_fail(c, DIAG_NO_LOWERING,
                         "auto_pad with a stride longer than a window needs extents that are "
                         "constants");
    if (most == 0) return true;
    w->low[k] = is_lower ? most - most / 2 : most / 2;
    w->high[k] = most - w->low[k];
    w->whole[k] = dim_add(dims, dim_round_up(dims, extent, w->stride[k]), number(c, rest));
    DimId pad = dim_sub(dims, w->whole[k], extent), half = dim_div(dims, pad, number(c, 2));
    DimId low = is_lower ? dim_sub(dims, pad, half) : half;
    w->cut[k] = dim_sub(dims, number(c, w->low[k]), low);
    return w->cut[k] != DIM_NONE ||
           onnx_fail(c, DIAG_BAD_DIM, "an extent with its pads can be beyond 2^62");
}

/* SAME: as many windows as ceil(extent / stride). */
static bool same_pads(Call *c, Window *w, bool is_lower) {
    for (uint32_t k = 0; k < w->n; k++) {
        int64_t extent;
        bool is_const = dim_is_const(c->im->b->dims, shape_of(c, w->w.x)->dims[k + 2], &extent);
        w->low[k] = w->high[k] = 0;
        if (!is_const && w->stride[k] != 1) {
            if (!same_pads_of_dim(c, w, k, is_lower)) return false;
            continue;
        }
        int64_t n = is_const ? (extent + w->stride[k] - 1) / w->stride[k] : 0;
        int64_t pad = is_const ? (n - 1) * w->stride[k] + taps(w, k) - extent : taps(w, k) - 1;
        if (pad < 0) pad = 0;
        w->low[k] = is_lower ? pad - pad / 2 : pad / 2;
        w->high[k] = pad - w->low[k];
    }
    return true;
}

/* ceil_mode: a last window that begins inside the tensor or its low padding counts. Under extents
 * that are no constants, strides and high pads are so short that each last window does. */
static bool ceil_pads(Call *c, Window *w) {
    for (uint32_t k = 0; k < w->n; k++) {
        int64_t extent;
        if (w->stride[k] == 1) continue;
        if (!dim_is_const(c->im->b->dims, shape_of(c, w->w.x)->dims[k + 2], &extent)) {
            w->beyond[k] = w->stride[k] - 1;
            if (w->high[k] + w->stride[k] <= taps(w, k)) continue;
            return onnx_fail(c, DIAG_NO_LOWERING,
                             "ceil_mode needs extents that are constants, or a stride and a pad "
                             "that a window reaches over");
        }
        int64_t span = extent + w->low[k] + w->high[k] - taps(w, k);
        int64_t n = (span + w->stride[k] - 1) / w->stride[k];
        if (span < 0) continue;
        if (n * w->stride[k] >= extent + w->low[k]) n--;
        w->beyond[k] = n * w->stride[k] > span ? n * w->stride[k] - span : 0;
    }
    return true;
}

/* Whether each axis has as many elements, with its pads, as a window reaches over. */
static bool windows_fit(Call *c, const Window *w) {
    DimTab *dims = c->im->b->dims;
    for (uint32_t k = 0; k < w->n; k++) {
        DimId extent = shape_of(c, w->w.x)->dims[k + 2];
        int64_t least = w->cut[k] ? 0 : taps(w, k) - w->low[k] - w->high[k];
        if (!onnx_need_least(c, extent, least)) return false;
        if (dim_lo(dims, extent) < least)
            return onnx_fail(c, DIAG_SLICE_BOUNDS,
                             "a window reaches over %lld elements beside its pads, and axis %u is "
                             "not known to have as many: %s",
                             (long long)least, k + 2, dim_str(dims, c->im->arena, extent));
    }
    return true;
}

bool onnx_check_auto_pad(Call *c, Str given) {
    static const char *const all[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(given, all[i]) == 0) return true;
    return onnx_fail(c, DIAG_UNKNOWN_NAME,
                     "auto_pad `%s` is none of NOTSET, SAME_UPPER, SAME_LOWER and VALID", given);
}

static bool pads_of(Call *c, Window *w) {
    int64_t pads[2 * MAX_RANK];
    Str automatic = attr_string(c, "auto_pad", "NOTSET");
    if (!attr_list(c, "pads", 2 * w->n, 0, INT32_MAX, pads)) return false;
    for (uint32_t k = 0; k < w->n; k++) {
        w->low[k] = pads[k];
        w->high[k] = pads[w->n + k];
    }
    if (!onnx_check_auto_pad(c, automatic)) return false;
    if (strncmp(automatic, "SAME", 4) == 0)
        return same_pads(c, w, strcmp(automatic, "SAME_LOWER") == 0);
    if (strcmp(automatic, "VALID") == 0)
        for (uint32_t k = 0; k < w->n; k++) w->low[k] = w->high[k] = 0;
    return !attr_int(c, "ceil_mode", 0) || ceil_pads(c, w);
}

static bool check_window_rank(Call *c, NodeId x) {
    uint32_t rank = shape_of(c, x)->rank;
    return (rank >= 3 && rank <= 5) ||
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
    return pads_of(c, w) && windows_fit(c, w);
}

static int64_t least_int(Dtype dtype) {
    if (elem_info((int64_t)elem_of_dtype(dtype))->kind == ELEM_IS_UINT) return 0;
    return -((int64_t)1 << (8 * (dtype_bytes(dtype) > 4 ? 4 : dtype_bytes(dtype)) - 1));
}

/* x with the pads of the windows. */
static NodeId padded(Call *c, const Window *w, const Operand *value) {
    DimId low[MAX_RANK], high[MAX_RANK];
    uint32_t rank = w->n + 2;
    for (uint32_t k = 0; k < rank; k++) {
        low[k] = number(c, k < 2 ? 0 : w->low[k - 2]);
        high[k] = number(c, k < 2 ? 0 : w->high[k - 2] + w->beyond[k - 2]);
    }
    NodeId x = build_pad(c->im->b, w->w.x, (DimList){rank, low}, (DimList){rank, high}, value);
    for (uint32_t k = 0; k < w->n; k++)
        if (w->cut[k]) x = part_of(c, x, k + 2, w->cut[k], w->whole[k]);
    return x;
}

static bool has_cut(const Window *w) {
    bool is_cut = false;
    for (uint32_t k = 0; k < w->n; k++) is_cut = is_cut || w->cut[k];
    return is_cut;
}

/* The windows; `value` stands beyond the tensor. */
static NodeId windows(Call *c, Window *w, double value) {
    Operand beyond = operand_float(value);
    NodeId x = w->w.x;
    bool is_cut = has_cut(w);
    if (dtype_is_int(dtype_of(c, x)))
        beyond =
            operand_int(number(c, isfinite(value) ? (int64_t)value : least_int(dtype_of(c, x))));
    if (is_cut) x = padded(c, w, &beyond);
    if (x == NODE_NONE) return x;
    Windowing view = build_windowing(c->im->b, x);
    for (uint32_t k = 0; k < w->n; k++) {
        uint32_t axis = k + 2;
        view.axes |= 1u << axis;
        view.size[axis] = number(c, w->size[k]);
        view.low[axis] = number(c, is_cut ? 0 : w->low[k]);
        view.high[axis] = number(c, is_cut ? 0 : w->high[k] + w->beyond[k]);
        view.stride[axis] = w->stride[k];
        view.dilation[axis] = w->dilation[k];
    }
    view.value = &beyond;
    return build_windows(c->im->b, &view);
}

/* The reduction of each window, [n, c, o.., k..] -> [n, c, o..]. Taps come first, as in the
 * prelude's pools, so that lanes are results. */
static NodeId over_taps(Call *c, OpId op, NodeId view, const Window *w) {
    int64_t perm[MAX_RANK];
    uint32_t rank = 2 + 2 * w->n;
    if (view == NODE_NONE) return view;
    for (uint32_t k = 0; k < rank; k++) perm[k] = (k + 2 + w->n) % rank;
    return reduce(c, op, build_transpose(c->im->b, view, rank, perm), (1u << w->n) - 1, false);
}

/* Convolutions. */

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

NodeId convolution(Call *c, NodeId x, NodeId weights, NodeId bias, double beyond) {
    static const int64_t none[MAX_RANK] = {0};
    int64_t groups = attr_int(c, "group", 1), size[MAX_RANK];
    Window w;
    if (!check_weights(c, x, weights, groups, size) || !window_of(c, x, size, &w)) return NODE_NONE;
    Operand value = operand_float(beyond);
    if (dtype_is_int(dtype_of(c, x))) value = operand_int(number(c, (int64_t)beyond));
    bool is_even = beyond == 0 && !has_cut(&w) && !memcmp(w.low, w.high, w.n * sizeof *w.low);
    const char *text = str_format(
        c->im->arena, "conv%ud(x, w%s, stride=%s, padding=%s, dilation=%s, groups=%lld, out=%s)",
        w.n, bias == NODE_NONE ? "" : ", b", int_list(c, w.n, w.stride),
        int_list(c, w.n, is_even ? w.low : none), int_list(c, w.n, w.dilation), (long long)groups,
        dtype_name(wide_dtype(dtype_of(c, x))));
    NodeId operands[] = {is_even ? x : padded(c, &w, &value), weights, bias};
    return express(c, text, bias == NODE_NONE ? 2 : 3, operands);
}

/* Whether there is a bias that may change a sum: exporters write zeros for none. */
static bool has_bias(Call *c) {
    const Known *known = has_input(c, 2) ? input_known(c, 2) : NULL;
    bool is_zero = known && known->floats;
    for (uint32_t i = 0; is_zero && i < known->n; i++) is_zero = known->floats[i] == 0;
    return has_input(c, 2) && !is_zero;
}

bool onnx_conv(Call *c) {
    NodeId bias = has_bias(c) ? input(c, 2) : NODE_NONE;
    return output(c, 0, convolution(c, input(c, 0), input(c, 1), bias, 0));
}

/* Pools. */

/* x times a dim. */
static NodeId times(Call *c, NodeId x, DimId dim) {
    return op2(c, OP_MUL, x, number_node(c, dim, dtype_of(c, x)));
}

/* The places in x of each window's largest element. taps: i32[n, c, o..], of all taps in order. */
static NodeId places_of_taps(Call *c, const Window *w, NodeId taps, const Shape *x) {
    DimTab *dims = c->im->b->dims;
    Shape shape = *shape_of(c, taps);
    NodeId place = NODE_NONE, sum = index_along(c, &shape, 0);
    bool is_column_major = attr_int(c, "storage_order", 0) != 0;
    int64_t n_inner = 1;
    DimId n_all = number(c, 1), stride[MAX_RANK] = {n_all};
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t k = is_column_major ? i : w->n - 1 - i;
        stride[k] = n_all;
        n_all = dim_mul(dims, n_all, x->dims[k + 2]);
    }
    sum = times(c, sum, x->dims[1]);
    sum = times(c, op2(c, OP_ADD, sum, index_along(c, &shape, 1)), n_all);
    for (uint32_t k = w->n; k-- > 0; n_inner *= w->size[k]) {
        NodeId tap = op2n(c, OP_REM, op2n(c, OP_DIV, taps, (double)n_inner), (double)w->size[k]);
        place = op2n(c, OP_MUL, index_along(c, &shape, k + 2), (double)w->stride[k]);
        place = op2(c, OP_ADD, place, op2n(c, OP_MUL, tap, (double)w->dilation[k]));
        place = times(c, op2n(c, OP_SUB, place, (double)w->low[k]), stride[k]);
        sum = op2(c, OP_ADD, sum, place);
    }
    return sum;
}

bool onnx_max_pool(Call *c) {
    Window w;
    NodeId x = input(c, 0);
    Dtype long_dtype;
    if (!window_of(c, x, NULL, &w)) return false;
    NodeId view = windows(c, &w, -INFINITY);
    if (has_output(c, 1) && view != NODE_NONE) {
        Shape flat = *shape_of(c, view);
        flat.rank = 3 + w.n;
        flat.dims[2 + w.n] = number(c, -1);
        if (!elem_dtype(ELEM_INT64, &long_dtype)) return false;
        NodeId taps = build_argreduce(c->im->b, OP_ARGMAX, reshape_to(c, view, &flat), -1, false);
        if (taps == NODE_NONE) return false;
        output(c, 1, cast_to(c, places_of_taps(c, &w, taps, shape_of(c, x)), long_dtype));
    }
    return output(c, 0, over_taps(c, OP_MAX, view, &w));
}

/* How many elements of each window count: 1 stands for each, 0 beyond. */
static NodeId counted(Call *c, const Window *w, bool counts_pads) {
    Window ones = *w;
    Shape shape = *shape_of(c, w->w.x);
    shape.dims[0] = shape.dims[1] = number(c, 1);
    for (uint32_t k = 0; k < w->n && counts_pads; k++) {
        DimId all = dim_add(c->im->b->dims, shape.dims[k + 2], number(c, w->low[k] + w->high[k]));
        shape.dims[k + 2] = w->cut[k] ? w->whole[k] : all;
        ones.low[k] = ones.high[k] = 0;
        ones.cut[k] = DIM_NONE;
    }
    NodeId one = constant(c, 1, w->w.x);
    NodeId x = build_expand(c->im->b, one, (DimList){shape.rank, shape.dims});
    if (x == NODE_NONE) return x;
    ones.w = build_windowing(c->im->b, x);
    return over_taps(c, OP_SUM, windows(c, &ones, 0), w);
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
    NodeId sum = over_taps(c, OP_SUM, windows(c, &w, 0), &w);
    if (has_beyond || (has_pads && !counts_pads))
        return output(c, 0, op2(c, OP_DIV, sum, counted(c, &w, counts_pads)));
    return output(c, 0, op2n(c, OP_DIV, sum, n));
}

bool onnx_lp_pool(Call *c) {
    Window w;
    double p = (double)attr_int(c, "p", 2);
    if (!window_of(c, input(c, 0), NULL, &w)) return false;
    NodeId view = op1(c, OP_ABS, windows(c, &w, 0));
    NodeId sum = over_taps(c, OP_SUM, op2n(c, OP_POW, view, p), &w);
    return output(c, 0, op2n(c, OP_POW, sum, 1 / p));
}

/* x / (bias + alpha / size * sum of squares of `size` neighbouring channels) ^ beta */
bool onnx_lrn(Call *c) {
    NodeId x = input(c, 0);
    int64_t size = attr_int(c, "size", 0);
    if (x == NODE_NONE) return false;
    if (size < 1 || size > INT32_MAX || shape_of(c, x)->rank < 2 ||
        shape_of(c, x)->rank >= MAX_GIVEN_RANK)
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
