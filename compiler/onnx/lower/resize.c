/* Interpolation. Resize works axis by axis: an output element is a sum of neighbours along the
 * axis (its taps), whose indices and weights the import computes. GridSample reads x wherever a
 * tensor of coordinates says, so its taps are computed when it runs. */
#include "onnx/lower/resize.h"

#include <math.h>

enum { MAX_TAPS = 64 };

static bool interpolation_of(Call *c, Str mode, Interpolation *kind) {
    static const struct {
        const char *name;
        Interpolation kind;
    } names[] = {{"nearest", INTERPOLATE_NEAREST},
                 {"linear", INTERPOLATE_LINEAR},
                 {"bilinear", INTERPOLATE_LINEAR},
                 {"cubic", INTERPOLATE_CUBIC},
                 {"bicubic", INTERPOLATE_CUBIC}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, mode) == 0) {
            *kind = names[i].kind;
            return true;
        }
    return onnx_fail(c, DIAG_NO_LOWERING, "mode `%s` is not supported", mode);
}

/* Resize. */

typedef struct ResizedAxis {
    int64_t from, to;    /* extents; -1: no constant */
    float scale, scaled; /* scaled: from * scale, of which `to` is the whole part */
    double begin, end;
    DimId extent; /* of the result, where an extent is no constant; DIM_NONE: as it is */
} ResizedAxis;

/* The place that output element i is taken from: arithmetic of f32, which decides between
 * neighbours as that of onnxruntime and PyTorch does. */
static double source_of(const Resizing *r, const ResizedAxis *a, int64_t i) {
    float x = (float)i, from = (float)a->from, to = a->scaled, scale = a->scale;
    if (strcmp(r->transform, "align_corners") == 0) return to == 1 ? 0 : x * (from - 1) / (to - 1);
    if (strcmp(r->transform, "asymmetric") == 0) return x / scale;
    if (strcmp(r->transform, "tf_half_pixel_for_nn") == 0) return (x + 0.5F) / scale;
    float begin = (float)a->begin, length = (float)a->end - begin;
    if (r->crops && to == 1) return (begin + length / 2) * (from - 1);
    if (r->crops) return begin * (from - 1) + x * length * (from - 1) / (to - 1);
    if (strcmp(r->transform, "pytorch_half_pixel") == 0 && a->to == 1) return 0;
    float centre = (x + 0.5F) / scale - 0.5F;
    if (strcmp(r->transform, "half_pixel_symmetric") == 0)
        centre += from / 2 * (1 - (float)a->to / to);
    return centre;
}

/* Keys' kernel at distance x. */
static double cubic_weight(double x, double a) {
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double nearest_weight(const Resizing *r, double ratio, int tap) {
    bool takes_next = ratio > 0.5;
    if (strcmp(r->nearest, "round_prefer_ceil") == 0) takes_next = ratio >= 0.5;
    if (strcmp(r->nearest, "floor") == 0) takes_next = false;
    if (strcmp(r->nearest, "ceil") == 0) takes_next = true;
    return (ratio == 1 || takes_next) == tap;
}

/* How many taps an element has: an even number. */
static int64_t taps_of(const Resizing *r, const ResizedAxis *a) {
    double shrinks = r->is_smooth && a->scale < 1 ? a->scale : 1;
    if (r->kind == INTERPOLATE_NEAREST) return 2;
    return 2 - 2 * ((int64_t)floor((r->kind == INTERPOLATE_LINEAR ? -1 : -2) / shrinks) + 1);
}

/* The first index, and the weights, of output element i. `ratio`, in (0, 1], is the way from the
 * left neighbour. */
static int64_t weights_of(const Resizing *r, const ResizedAxis *a, int64_t i, int64_t n,
                          double *weights) {
    double x = source_of(r, a, i), sum = 0;
    if (!(fabs(x) < INT32_MAX)) x = x > 0 ? INT32_MAX : -INT32_MAX;
    double left = ceil(x) - 1;
    double ratio = x - left, shrinks = r->is_smooth && a->scale < 1 ? a->scale : 1;
    int64_t first = (int64_t)left - n / 2 + 1;
    for (int64_t k = 0; k < n; k++) {
        double distance = ((double)(k - n / 2 + 1) - ratio) * shrinks;
        weights[k] = r->kind == INTERPOLATE_NEAREST  ? nearest_weight(r, ratio, (int)k)
                     : r->kind == INTERPOLATE_LINEAR ? fmax(0, 1 - fabs(distance))
                                                     : cubic_weight(distance, r->cubic);
        if (r->excludes && (first + k < 0 || first + k >= a->from)) weights[k] = 0;
        sum += weights[k];
    }
    for (int64_t k = 0; k < n && (r->excludes || r->is_smooth) && sum != 0; k++) weights[k] /= sum;
    return first;
}

/* One tap of each output element, as a vector of indices and one of weights; *is_used: whether any
 * weight is other than 0. */
typedef struct Taps {
    int64_t n;
    double *index[MAX_TAPS], *weight[MAX_TAPS];
} Taps;

static bool make_taps(Call *c, const Resizing *r, const ResizedAxis *a, Taps *taps) {
    double weights[MAX_TAPS];
    taps->n = taps_of(r, a);
    if (taps->n > MAX_TAPS)
        return onnx_fail(c, DIAG_LIMIT, "antialias of more than %d taps", (int)MAX_TAPS);
    for (int64_t k = 0; k < taps->n; k++) {
        taps->index[k] = arena_array(c->im->arena, double, (size_t)a->to + 1);
        taps->weight[k] = arena_array(c->im->arena, double, (size_t)a->to + 1);
    }
    for (int64_t i = 0; i < a->to; i++) {
        int64_t first = weights_of(r, a, i, taps->n, weights);
        for (int64_t k = 0; k < taps->n; k++) {
            int64_t at = first + k < 0 ? 0 : first + k >= a->from ? a->from - 1 : first + k;
            taps->index[k][i] = (double)at;
            taps->weight[k][i] = weights[k];
        }
    }
    return true;
}

/* A vector along an axis, beside a tensor of this rank. */
static NodeId along(Call *c, Dtype dtype, uint32_t rank, uint32_t axis, int64_t n,
                    const double *values) {
    int64_t dims[MAX_RANK];
    for (uint32_t k = 0; k < rank; k++) dims[k] = k == axis ? n : 1;
    return table_node(c, dtype, rank, dims, values);
}

static NodeId indexed(Call *c, NodeId x, uint32_t axis, int64_t n, const double *index) {
    return build_gather(c->im->b, x, table_node(c, DT_I32, 1, &n, index), axis);
}

static NodeId nearest_axis(Call *c, NodeId x, uint32_t axis, const ResizedAxis *a, Taps *taps) {
    for (int64_t i = 0; i < a->to; i++)
        if (taps->weight[1][i] != 0) taps->index[0][i] = taps->index[1][i];
    return indexed(c, x, axis, a->to, taps->index[0]);
}

static NodeId resized_axis(Call *c, NodeId x, uint32_t axis, const Resizing *r,
                           const ResizedAxis *a) {
    Taps taps;
    NodeId sum = NODE_NONE;
    if (x == NODE_NONE || !make_taps(c, r, a, &taps)) return NODE_NONE;
    uint32_t rank = shape_of(c, x)->rank;
    if (r->kind == INTERPOLATE_NEAREST) sum = nearest_axis(c, x, axis, a, &taps);
    for (int64_t k = 0; k < taps.n && r->kind != INTERPOLATE_NEAREST; k++) {
        NodeId weight = along(c, dtype_of(c, x), rank, axis, a->to, taps.weight[k]);
        NodeId part = op2(c, OP_MUL, indexed(c, x, axis, a->to, taps.index[k]), weight);
        sum = sum == NODE_NONE ? part : op2(c, OP_ADD, sum, part);
    }
    if (!r->crops) return sum;
    double *outside = arena_array(c->im->arena, double, (size_t)a->to + 1);
    for (int64_t i = 0; i < a->to; i++) {
        double source = source_of(r, a, i);
        outside[i] = source < 0 || source > (double)(a->from - 1);
    }
    NodeId is_outside = op2n(c, OP_NOT_EQUAL, along(c, DT_I32, rank, axis, a->to, outside), 0);
    return where(c, is_outside, constant(c, r->beyond, x), sum);
}

/* The numbers of an input that must be known; *n 0: it is not given, or empty. */
static bool known_list_of(Call *c, uint32_t i, double *values, uint32_t *n) {
    const Known *known = input_known(c, i);
    *n = 0;
    if (!has_input(c, i)) return true;
    if (!known || known->n > 2 * MAX_RANK) return fail_unknown(c, i);
    for (uint32_t k = 0; k < known->n; k++) {
        int64_t whole = 0;
        if (known->ints && !known_int(c->im, known, k, &whole)) return fail_unknown(c, i);
        values[k] = known->floats ? known->floats[k] : (double)whole;
    }
    *n = known->n;
    return true;
}

static bool resized_extent(Call *c, ResizedAxis *a, double to) {
    enum { MAX_RESIZED = 1 << 20 };
    if (!(a->scale > 0 && to >= 1 && to <= MAX_RESIZED) || a->from < 1)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "an axis of %lld would have %g elements",
                         (long long)a->from, to);
    a->to = (int64_t)to;
    return true;
}

/* A scale is an f32, and so is its product with the extent: 0.7 of 10 is 7. */
static bool scale_axis(Call *c, ResizedAxis *a, DimId from, double scale) {
    a->scale = (float)scale;
    a->scaled = a->scale * (float)a->from;
    if (a->from >= 0) return resized_extent(c, a, a->scaled);
    if (scale == 1) return true;
    a->to = -1;
    a->extent = scaled_extent(c, from, scale);
    return a->extent != DIM_NONE;
}

static bool size_axis(Call *c, ResizedAxis *a, DimId from, DimId size) {
    int64_t to;
    if (size == from) return true;
    if (a->from >= 0 && dim_is_const(c->im->b->dims, size, &to)) {
        a->scale = (float)to / (float)a->from;
        a->scaled = (float)to;
        return resized_extent(c, a, (double)to);
    }
    if (!onnx_need_least(c, size, 1)) return false;
    if (dim_lo(c->im->b->dims, size) < 1)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "an axis would have %s elements",
                         dim_str(c->im->b->dims, c->im->arena, size));
    *a = (ResizedAxis){.from = a->from, .to = -1, .end = 1, .extent = size};
    return true;
}

/* All axes of the list have the scale of one of them. */
static bool keep_aspect(Call *c, uint32_t n_axes, const uint32_t *order, ResizedAxis *axes,
                        bool takes_least) {
    float best = 0;
    for (uint32_t i = 0; i < n_axes; i++) {
        const ResizedAxis *a = &axes[order[i]];
        if (a->from < 0 || a->to < 0)
            return onnx_fail(c, DIAG_NO_LOWERING,
                             "keep_aspect_ratio_policy needs extents that are constants");
        if (i == 0 || (takes_least ? a->scale < best : a->scale > best)) best = a->scale;
    }
    for (uint32_t i = 0; i < n_axes; i++) {
        ResizedAxis *a = &axes[order[i]];
        a->scale = best;
        a->scaled = best * (float)a->from;
        if (!resized_extent(c, a, roundf(a->scaled))) return false;
    }
    return true;
}

/* Sets the scale and the extent of each axis of the list from `scales` or `sizes`. */
static bool scale_axes(Call *c, const Shape *shape, uint32_t n_axes, const uint32_t *order,
                       ResizedAxis *axes, uint32_t scales_input, uint32_t sizes_input) {
    double values[2 * MAX_RANK];
    uint32_t n;
    IntList sizes = {0};
    Str policy = attr_string(c, "keep_aspect_ratio_policy", "stretch");
    const OnnxAttr *given = typed_attr(c, "scales", ATTR_FLOATS);
    if (!known_list_of(c, scales_input, values, &n)) return false;
    for (uint32_t k = 0; given && k < given->floats.n && k < MAX_RANK; k++)
        values[n++] = given->floats.data[k];
    if (!n && !list_argument(c, NULL, sizes_input, &sizes)) return false;
    if (n + sizes.n != n_axes)
        return onnx_fail(c, DIAG_WRONG_COUNT, "%u scales or sizes of %u axes", n + sizes.n, n_axes);
    for (uint32_t i = 0; i < n_axes; i++) {
        ResizedAxis *a = &axes[order[i]];
        DimId from = shape->dims[order[i]];
        if (!(n ? scale_axis(c, a, from, values[i]) : size_axis(c, a, from, sizes.dims[i])))
            return false;
    }
    return !sizes.n || strcmp(policy, "stretch") == 0 ||
           keep_aspect(c, n_axes, order, axes, strcmp(policy, "not_larger") == 0);
}

static bool resize(Call *c, const Resizing *r, uint32_t roi, uint32_t scales, uint32_t sizes) {
    NodeId x = input(c, 0);
    int64_t extents[MAX_RANK];
    ResizedAxis axes[MAX_RANK];
    uint32_t order[MAX_RANK], n_roi;
    double bounds[2 * MAX_RANK];
    const VecInt *given;
    if (!const_dims_but(c, x, UINT32_MAX, extents) ||
        !known_list_of(c, r->crops ? roi : UINT32_MAX, bounds, &n_roi))
        return false;
    uint32_t rank = shape_of(c, x)->rank, n = rank;
    for (uint32_t k = 0; k < rank; k++)
        axes[order[k] = k] = (ResizedAxis){.from = extents[k],
                                           .to = extents[k],
                                           .scale = 1,
                                           .scaled = (float)extents[k],
                                           .end = 1,
                                           .extent = DIM_NONE};
    if (attr_ints(c, "axes", &given)) {
        n = given->n > MAX_RANK ? MAX_RANK : given->n;
        for (uint32_t k = 0; k < n; k++)
            if (!axis_of(c, given->data[k], rank, &order[k])) return false;
    }
    if (r->crops && n_roi != 2 * n)
        return onnx_fail(c, DIAG_WRONG_COUNT, "roi has %u numbers for %u axes", n_roi, n);
    Shape shape = *shape_of(c, x);
    if (!scale_axes(c, &shape, n, order, axes, scales, sizes)) return false;
    Dtype dtype = dtype_of(c, x);
    if (r->kind != INTERPOLATE_NEAREST)
        x = cast_to(c, x, dtype_is_float(dtype) ? dtype_compute(dtype) : DT_F32);
    for (uint32_t i = 0; i < n; i++) {
        ResizedAxis *a = &axes[order[i]];
        if (r->crops) a->begin = bounds[i], a->end = bounds[n + i];
        bool is_cut = a->begin != 0 || a->end != 1;
        if (a->from < 0 && is_cut) a->extent = shape.dims[order[i]];
        if (a->extent != DIM_NONE)
            x = resized_dim(c, x, order[i], r, a->extent, a->scale);
        else if (a->scale != 1 || a->to != a->from || is_cut)
            x = resized_axis(c, x, order[i], r, a);
    }
    return output(c, 0, cast_to(c, x, dtype));
}

bool onnx_resize(Call *c) {
    Resizing r = {
        .transform = attr_string(c, "coordinate_transformation_mode",
                                 c->opset < 11 ? "asymmetric" : "half_pixel"),
        .nearest = attr_string(c, "nearest_mode", c->opset < 11 ? "floor" : "round_prefer_floor"),
        .is_smooth = attr_int(c, "antialias", 0) != 0,
        .excludes = attr_int(c, "exclude_outside", 0) != 0,
        .cubic = attr_float(c, "cubic_coeff_a", CUBIC_COEFF),
        .beyond = attr_float(c, "extrapolation_value", 0)};
    r.crops = strcmp(r.transform, "tf_crop_and_resize") == 0;
    if (!interpolation_of(c, attr_string(c, "mode", "nearest"), &r.kind)) return false;
    return c->opset < 11 ? resize(c, &r, UINT32_MAX, 1, UINT32_MAX) : resize(c, &r, 1, 2, 3);
}

/* GridSample. x: [n, c, s0, s1, ..], grid: [n, o.., axes], the last axis of x first. */

typedef struct Sampling {
    Interpolation kind;
    NodeId x;      /* [n * s0 * s1 * .., c] */
    NodeId *at;    /* per axis of s: f32[n, o..] */
    int64_t *size; /* s0, s1, .. */
    uint32_t n;
    Str padding;
    bool aligns; /* align_corners */
    Shape shape; /* [n, o..] */
} Sampling;

/* x mirrored at the borders until it lies between them. */
static NodeId reflected(Call *c, NodeId x, double low, double high) {
    double range = high - low;
    NodeId is_low = op2n(c, OP_LESS, x, low), up = op2n(c, OP_SUB, x, high);
    NodeId beyond = where(c, is_low, op1(c, OP_NEG, op2n(c, OP_SUB, x, low)), up);
    NodeId turns = op1(c, OP_FLOOR, op2n(c, OP_DIV, beyond, range));
    NodeId rest = op2(c, OP_SUB, beyond, op2n(c, OP_MUL, turns, range));
    NodeId is_even = op2n(c, OP_EQUAL, op2n(c, OP_REM, turns, 2), 0);
    NodeId from_low = op2(c, OP_EQUAL, is_even, is_low);
    NodeId above = op2n(c, OP_ADD, rest, low);
    NodeId inside = where(c, from_low, above, op1(c, OP_NEG, op2n(c, OP_SUB, rest, high)));
    NodeId is_inside =
        op2(c, OP_LOGICAL_AND, op2n(c, OP_GREATER_EQUAL, x, low), op2n(c, OP_LESS_EQUAL, x, high));
    return where(c, is_inside, x, inside);
}

static NodeId clamped(Call *c, NodeId x, double low, double high) {
    NodeId least = constant(c, low, x);
    return op3(c, OP_CLAMP, x, least, constant(c, high, x));
}

static NodeId into_borders(Call *c, const Sampling *s, uint32_t axis, NodeId x) {
    double n = (double)s->size[axis], low = s->aligns ? 0 : -0.5, high = n - (s->aligns ? 1 : 0.5);
    if (strcmp(s->padding, "border") == 0) {
        NodeId is_inside = op2(c, OP_LOGICAL_AND, op2n(c, OP_GREATER_EQUAL, x, low),
                               op2n(c, OP_LESS_EQUAL, x, high));
        return where(c, is_inside, x, clamped(c, x, 0, n - 1));
    }
    return strcmp(s->padding, "reflection") == 0 ? reflected(c, x, low, high) : x;
}

/* From -1 to 1, to the elements of the axis. */
static NodeId coordinate(Call *c, const Sampling *s, uint32_t axis, NodeId grid) {
    double n = (double)s->size[axis];
    NodeId x = op2n(c, OP_ADD, grid, 1);
    x = s->aligns ? op2n(c, OP_MUL, op2n(c, OP_DIV, x, 2), n - 1)
                  : op2n(c, OP_DIV, op2n(c, OP_SUB, op2n(c, OP_MUL, x, n), 1), 2);
    if (s->kind == INTERPOLATE_CUBIC) return x; /* its neighbours are taken into the borders */
    return into_borders(c, s, axis, s->kind == INTERPOLATE_NEAREST ? op1(c, OP_ROUND, x) : x);
}

NodeId tap_weight(Call *c, Interpolation kind, NodeId ratio, int offset) {
    const double a = CUBIC_COEFF;
    if (kind == INTERPOLATE_LINEAR && offset == 1) return ratio;
    NodeId x = op1(c, OP_ABS, op2n(c, OP_SUB, ratio, offset));
    if (kind == INTERPOLATE_LINEAR) return op1(c, OP_NEG, op2n(c, OP_SUB, x, 1));
    bool is_near = offset == 0 || offset == 1;
    NodeId y = op2n(c, OP_MUL, x, is_near ? a + 2 : a);
    y = op2n(c, OP_SUB, y, is_near ? a + 3 : 5 * a);
    if (!is_near) y = op2n(c, OP_ADD, op2(c, OP_MUL, y, x), 8 * a);
    y = op2(c, OP_MUL, y, x);
    return is_near ? op2n(c, OP_ADD, op2(c, OP_MUL, y, x), 1) : op2n(c, OP_SUB, y, 4 * a);
}

/* The elements at one neighbour per axis, times their weights: [n, o.., c] */
static NodeId sample_tap(Call *c, const Sampling *s, const int *offsets) {
    NodeId place = index_along(c, &s->shape, 0), weight = NODE_NONE, is_inside = NODE_NONE;
    for (uint32_t k = 0; k < s->n; k++) {
        double n = (double)s->size[k];
        NodeId left = op1(c, OP_FLOOR, s->at[k]), at = op2n(c, OP_ADD, left, offsets[k]);
        if (s->kind != INTERPOLATE_NEAREST) {
            NodeId w = tap_weight(c, s->kind, op2(c, OP_SUB, s->at[k], left), offsets[k]);
            weight = weight == NODE_NONE ? w : op2(c, OP_MUL, weight, w);
        }
        NodeId in =
            op2(c, OP_LOGICAL_AND, op2n(c, OP_GREATER_EQUAL, at, 0), op2n(c, OP_LESS, at, n));
        is_inside = is_inside == NODE_NONE ? in : op2(c, OP_LOGICAL_AND, is_inside, in);
        if (strcmp(s->padding, "reflection") == 0)
            at = reflected(c, at, s->aligns ? 0 : -0.5, n - (s->aligns ? 1 : 0.5));
        at = cast_to(c, clamped(c, at, 0, n - 1), DT_I32);
        place = op2(c, OP_ADD, op2n(c, OP_MUL, place, n), at);
    }
    NodeId value = build_gather(c->im->b, s->x, place, 0);
    uint32_t last = s->shape.rank;
    if (strcmp(s->padding, "zeros") == 0)
        value = where(c, with_axis(c, is_inside, last), value, constant(c, 0, value));
    return weight == NODE_NONE ? value : op2(c, OP_MUL, value, with_axis(c, weight, last));
}

static NodeId sample(Call *c, const Sampling *s) {
    int n_taps = s->kind == INTERPOLATE_NEAREST ? 1 : s->kind == INTERPOLATE_LINEAR ? 2 : 4;
    int n_all = 1, offsets[MAX_RANK];
    NodeId sum = NODE_NONE;
    for (uint32_t k = 0; k < s->n; k++) n_all *= n_taps;
    for (int i = 0; i < n_all; i++) {
        int rest = i;
        for (uint32_t k = s->n; k-- > 0; rest /= n_taps) offsets[k] = rest % n_taps - (n_taps == 4);
        NodeId part = sample_tap(c, s, offsets);
        sum = sum == NODE_NONE ? part : op2(c, OP_ADD, sum, part);
    }
    return sum;
}

/* x of two spatial axes whose extents follow from dims, by the prelude. */
static bool grid_sample_dims(Call *c) {
    const NodeId tensors[] = {input(c, 0), input(c, 1)};
    Interpolation kind;
    static const char *const modes[] = {[INTERPOLATE_NEAREST] = "nearest",
                                        [INTERPOLATE_LINEAR] = "bilinear",
                                        [INTERPOLATE_CUBIC] = "bicubic"};
    if (!interpolation_of(c, attr_string(c, "mode", "linear"), &kind)) return false;
    Str padding = attr_string(c, "padding_mode", "zeros");
    const char *call = str_format(
        c->im->arena, "grid_sample(x, w, mode=\"%s\", padding_mode=\"%s\", align_corners=%s)",
        modes[kind], padding, attr_int(c, "align_corners", 0) ? "true" : "false");
    if (strspn(padding, "abcdefghijklmnopqrstuvwxyz") != strlen(padding))
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "its padding_mode is no word");
    return output(c, 0, express(c, call, 2, tensors));
}

static bool has_open_plane(Call *c, NodeId x) {
    int64_t extent;
    if (x == NODE_NONE || shape_of(c, x)->rank != 4) return false;
    return !dim_is_const(c->im->b->dims, shape_of(c, x)->dims[2], &extent) ||
           !dim_is_const(c->im->b->dims, shape_of(c, x)->dims[3], &extent);
}

bool onnx_grid_sample(Call *c) {
    NodeId x = input(c, 0), grid = input(c, 1), at[MAX_RANK];
    int64_t extents[MAX_RANK], rows[2] = {-1, 0};
    Sampling s = {.at = at, .aligns = attr_int(c, "align_corners", 0) != 0};
    s.padding = attr_string(c, "padding_mode", "zeros");
    if (has_open_plane(c, x)) return grid_sample_dims(c);
    if (grid == NODE_NONE || !const_dims_but(c, x, 1, extents) ||
        !interpolation_of(c, attr_string(c, "mode", "linear"), &s.kind))
        return false;
    uint32_t rank = shape_of(c, x)->rank, last = shape_of(c, grid)->rank - 1;
    s.n = rank - 2;
    if (rank < 3 || rank > 5 || last + 1 != rank)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "it needs x and a grid of 3 to 5 axes");
    s.size = extents + 2;
    s.shape = shape_reduced(c->im->b->dims, shape_of(c, grid), 1u << last, false);
    rows[1] = extents[1];
    s.x = reshape_const(c, move_axis(c, x, 1, rank - 1), 2, rows);
    for (uint32_t k = 0; k < s.n; k++)
        at[k] = coordinate(c, &s, k, at_index(c, grid, last, s.n - 1 - k));
    return output(c, 0, move_axis(c, sample(c, &s), rank - 1, 1));
}
