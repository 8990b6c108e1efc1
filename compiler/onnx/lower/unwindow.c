/* Windows the other way: transposed convolutions, columns put together to images, and pools
 * undone. */
#include "onnx/call/import_state.h"

/* Strides, pads and extents may not be larger. */
enum { MAX_SPREAD = 1 << 24 };

/* Spatial axes, of tensors [n, c, d0, d1, ..]. */
typedef struct Spread {
    uint32_t n;
    int64_t in[MAX_RANK] /* -1: no constant */, kernel[MAX_RANK], stride[MAX_RANK],
        dilation[MAX_RANK], low[MAX_RANK], high[MAX_RANK], beyond[MAX_RANK];
} Spread;

/* Strides, dilations and pads; the outputs' extents are those of `output_shape`, or follow. */
static bool spread_pads(Call *c, Spread *s) {
    int64_t pads[2 * MAX_RANK], shape[MAX_RANK];
    const VecInt *given;
    Str automatic = attr_string(c, "auto_pad", "NOTSET");
    bool is_same = strncmp(automatic, "SAME", 4) == 0,
         is_upper = strcmp(automatic, "SAME_UPPER") == 0;
    bool has_shape = attr_ints(c, "output_shape", &given) && given->n;
    if (!onnx_check_auto_pad(c, automatic)) return false;
    if (!attr_list(c, "strides", s->n, 1, MAX_SPREAD, s->stride) ||
        !attr_list(c, "dilations", s->n, 1, MAX_SPREAD, s->dilation) ||
        !attr_list(c, "pads", 2 * s->n, 0, MAX_SPREAD, pads) ||
        !attr_list(c, "output_padding", s->n, 0, MAX_SPREAD, s->beyond) ||
        !attr_list(c, "output_shape", s->n, 0, MAX_SPREAD, shape))
        return false;
    for (uint32_t k = 0; k < s->n; k++) {
        int64_t reach = (s->kernel[k] - 1) * s->dilation[k] + 1;
        int64_t full = (s->in[k] - 1) * s->stride[k] + reach;
        s->low[k] = pads[k];
        s->high[k] = pads[s->n + k];
        if (has_shape && s->in[k] < 0)
            return onnx_fail(c, DIAG_NO_LOWERING, "output_shape needs extents that are constants");
        if (has_shape || is_same) {
            int64_t total = s->beyond[k] + (has_shape ? full - shape[k] : reach - s->stride[k]);
            s->low[k] = is_upper || total < 0 ? total / 2 : total - total / 2;
            if (!is_same && total >= 0) s->low[k] = total / 2;
            s->high[k] = total - s->low[k];
        }
        int64_t out = full + s->beyond[k] - s->low[k] - s->high[k];
        if (s->in[k] >= 0 && out < 1)
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "its result would be empty");
    }
    return true;
}

/* Zeros between the elements, and around them; negative amounts cut off. */
static NodeId spread_out(Call *c, NodeId x, const Spread *s, const int64_t *low,
                         const int64_t *high) {
    DimId between[MAX_RANK], before[MAX_RANK], behind[MAX_RANK];
    if (x == NODE_NONE) return x;
    uint32_t rank = shape_of(c, x)->rank;
    for (uint32_t k = 0; k < rank; k++) between[k] = before[k] = behind[k] = number(c, 0);
    for (uint32_t k = 0; k < s->n; k++) {
        uint32_t axis = rank - s->n + k;
        between[axis] = number(c, s->stride[k] - 1);
        before[axis] = number(c, low[k] > 0 ? low[k] : 0);
        behind[axis] = number(c, high[k] > 0 ? high[k] : 0);
    }
    x = build_spread(c->im->b, x, (DimList){rank, between}, NULL);
    for (uint32_t k = 0; k < s->n && x != NODE_NONE; k++) {
        int64_t cut_low = low[k] < 0 ? -low[k] : 0, cut_high = high[k] < 0 ? -high[k] : 0;
        uint32_t axis = rank - s->n + k;
        DimId cut = number(c, cut_low + cut_high),
              extent = dim_sub(c->im->b->dims, shape_of(c, x)->dims[axis], cut);
        if (!onnx_need_least(c, extent, 1)) return NODE_NONE;
        if (dim_lo(c->im->b->dims, extent) < 1) {
            onnx_fail(c, DIAG_BAD_ARGUMENT, "its pads may be larger than axis %u", axis);
            return NODE_NONE;
        }
        x = part_of(c, x, axis, number(c, cut_low), extent);
    }
    return build_pad(c->im->b, x, (DimList){rank, before}, (DimList){rank, behind}, NULL);
}

/* A transposed convolution without padding, of which `low` and `high` elements are cut off; beyond
 * it are zeros. */
static NodeId conv_transpose_cut(Call *c, NodeId x, NodeId weights, const Spread *s,
                                 int64_t groups) {
    Spread all = {.n = s->n};
    int64_t low[MAX_RANK], high[MAX_RANK];
    for (uint32_t k = 0; k < s->n; k++) {
        all.stride[k] = 1;
        low[k] = -s->low[k];
        high[k] = s->beyond[k] - s->high[k];
    }
    NodeId operands[] = {x, weights};
    const char *text = str_format(
        c->im->arena, "conv_transpose%ud(x, w, stride=%s, groups=%lld, dilation=%s)", s->n,
        int_list(c, s->n, s->stride), (long long)groups, int_list(c, s->n, s->dilation));
    return spread_out(c, express(c, text, 2, operands), &all, low, high);
}

/* x: [n, c, d..], weights: [c, m / g, k..], bias: [m] -> [n, m, o..] */
bool onnx_conv_transpose(Call *c) {
    NodeId x = input(c, 0), weights = input(c, 1);
    int64_t extents[MAX_RANK], kernel[MAX_RANK], groups = attr_int(c, "group", 1);
    uint32_t all_but_channels = ~2u;
    if (!const_dims_but(c, x, all_but_channels, extents) || !const_dims(c, weights, kernel))
        return false;
    uint32_t rank = shape_of(c, x)->rank;
    if (rank < 3 || rank != shape_of(c, weights)->rank || rank + 1 > MAX_RANK ||
        extents[1] != kernel[0] || groups < 1 || kernel[0] % groups)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "x, its weights and its groups do not fit");
    Spread s = {.n = rank - 2};
    for (uint32_t k = 0; k < s.n; k++) {
        s.in[k] = extents[k + 2];
        s.kernel[k] = kernel[k + 2];
        if (s.in[k] == 0 || s.in[k] > MAX_SPREAD || s.kernel[k] < 1 || s.kernel[k] > MAX_SPREAD)
            return onnx_fail(c, DIAG_LIMIT, "axis %u is empty, or too large", k + 2);
    }
    if (!spread_pads(c, &s)) return false;
    NodeId y = conv_transpose_cut(c, x, weights, &s, groups);
    if (has_input(c, 2) && y != NODE_NONE) y = op2(c, OP_ADD, y, per_channel(c, input(c, 2), rank));
    return output(c, 0, y);
}

static bool known_extents(Call *c, uint32_t i, int64_t *extents, uint32_t *n) {
    IntList list;
    if (!list_argument(c, NULL, i, &list) ||
        !constant_list(c, &list, "shape", extents, MAX_RANK - 2))
        return false;
    *n = list.n;
    for (uint32_t k = 0; k < list.n; k++)
        if (extents[k] < 1 || extents[k] > MAX_SPREAD)
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "an extent is %lld", (long long)extents[k]);
    return true;
}

/* x: [n, c * taps, windows] -> [n, c, image..]: where windows meet, they add up. */
bool onnx_col2im(Call *c) {
    NodeId x = input(c, 0), sum = NODE_NONE;
    int64_t extents[MAX_RANK], image[MAX_RANK], wide[MAX_RANK], low[MAX_RANK], high[MAX_RANK];
    int64_t pads[2 * MAX_RANK], n_taps = 1, n_windows = 1;
    uint32_t n = 0;
    Spread s = {0};
    enum { MAX_UNROLLED = 1024 };
    if (!const_dims_but(c, x, 1, extents) || !known_extents(c, 1, image, &s.n) ||
        !known_extents(c, 2, s.kernel, &n) ||
        !attr_list(c, "strides", s.n, 1, MAX_SPREAD, s.stride) ||
        !attr_list(c, "dilations", s.n, 1, MAX_SPREAD, s.dilation) ||
        !attr_list(c, "pads", 2 * s.n, 0, MAX_SPREAD, pads))
        return false;
    if (n != s.n || shape_of(c, x)->rank != 3)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "its shapes do not fit");
    for (uint32_t k = 0; k < n; k++) {
        wide[k] = image[k] + pads[k] + pads[n + k];
        s.in[k] = (wide[k] - (s.kernel[k] - 1) * s.dilation[k] - 1) / s.stride[k] + 1;
        if (s.in[k] < 1 || s.kernel[k] > MAX_UNROLLED / n_taps || s.in[k] > INT32_MAX / n_windows)
            return onnx_fail(c, DIAG_LIMIT, "it has no windows, or too many");
        n_taps *= s.kernel[k];
        n_windows *= s.in[k];
    }
    if (extents[1] % n_taps || extents[2] != n_windows)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "it has %lld windows of %lld taps, not %lld",
                         (long long)n_windows, (long long)n_taps, (long long)extents[2]);
    int64_t cut[MAX_RANK + 1] = {extents[0], extents[1] / n_taps, n_taps};
    for (uint32_t k = 0; k < n; k++) cut[3 + k] = s.in[k];
    x = reshape_const(c, x, 3 + n, cut);
    for (int64_t tap = 0; tap < n_taps; tap++) {
        int64_t rest = tap;
        for (uint32_t k = n; k-- > 0; rest /= s.kernel[k]) {
            low[k] = rest % s.kernel[k] * s.dilation[k];
            high[k] = wide[k] - low[k] - (s.in[k] - 1) * s.stride[k] - 1;
        }
        NodeId part = spread_out(c, at_index(c, x, 2, tap), &s, low, high);
        sum = sum == NODE_NONE ? part : op2(c, OP_ADD, sum, part);
    }
    for (uint32_t k = 0; k < n; k++)
        sum = part_of(c, sum, 2 + k, number(c, pads[k]), number(c, image[k]));
    return output(c, 0, sum);
}

/* The elements of a pool back at the places that it gave as indices; zeros elsewhere. */
bool onnx_max_unpool(Call *c) {
    static const int64_t all[] = {-1};
    NodeId x = input(c, 0), places = cast_to(c, input(c, 1), DT_I32);
    int64_t extents[MAX_RANK], pads[2 * MAX_RANK], kernel[MAX_RANK], to[MAX_RANK], n_all = 1;
    Spread s = {0};
    IntList wanted;
    if (places == NODE_NONE || !const_dims(c, x, extents)) return false;
    uint32_t rank = shape_of(c, x)->rank;
    if (rank < 3) return onnx_fail(c, DIAG_SHAPE_MISMATCH, "it needs 3 axes or more");
    s.n = rank - 2;
    if (!attr_list(c, "kernel_shape", s.n, 1, MAX_SPREAD, kernel) ||
        !attr_list(c, "strides", s.n, 1, MAX_SPREAD, s.stride) ||
        !attr_list(c, "pads", 2 * s.n, 0, MAX_SPREAD, pads) || !list_argument(c, NULL, 2, &wanted))
        return false;
    for (uint32_t k = 0; k < rank; k++) {
        to[k] = extents[k];
        if (to[k] > MAX_SPREAD) return onnx_fail(c, DIAG_LIMIT, "axis %u is too large", k);
        if (k >= 2)
            to[k] = (extents[k] - 1) * s.stride[k - 2] - pads[k - 2] - pads[s.n + k - 2] +
                    kernel[k - 2];
        if (to[k] < 1 || to[k] > MAX_SPREAD / n_all)
            return onnx_fail(c, DIAG_LIMIT, "its result would be empty, or too large");
        n_all *= to[k];
    }
    Shape flat = {1, {number(c, n_all)}};
    NodeId y = scattered(c, expand_to(c, constant(c, 0, x), &flat),
                         reshape_const(c, places, 1, all), reshape_const(c, x, 1, all), "none");
    y = reshape_const(c, y, rank, to);
    if (!wanted.is_given || y == NODE_NONE) return output(c, 0, y);
    DimId low[MAX_RANK], high[MAX_RANK];
    if (wanted.n != rank)
        return onnx_fail(c, DIAG_WRONG_COUNT, "output_shape has %u axes", wanted.n);
    for (uint32_t k = 0; k < rank; k++) {
        low[k] = number(c, 0);
        high[k] = dim_sub(c->im->b->dims, wanted.dims[k], number(c, to[k]));
    }
    return output(c, 0, build_pad(c->im->b, y, (DimList){rank, low}, (DimList){rank, high}, NULL));
}
