/* Resize along an axis whose extent follows from dims. The places that output elements are taken
 * from are f32: for sizes i * from / to, of whole numbers, so that no place that is whole is
 * rounded. */
#include "onnx/lower/resize.h"

#include <math.h>

DimId scaled_extent(Call *c, DimId from, double scale) {
    enum { MAX_FACTOR = 1 << 16, PARTS = 64 };
    DimTab *dims = c->im->b->dims;
    double parts = scale * PARTS;
    if (scale > 0 && scale <= MAX_FACTOR && parts == floor(parts)) {
        DimId to = dim_mul_const(dims, from, (int64_t)parts), n = number(c, PARTS);
        DimId whole = dim_exact_div(dims, to, n);
        return whole == DIM_NONE ? dim_div(dims, to, n) : whole;
    }
    onnx_fail(c, DIAG_NO_LOWERING,
              "the extent %s cannot be scaled by %g: a scale of an extent that is no constant is a "
              "multiple of 1/64; sizes may follow from dims",
              dim_str(dims, c->im->arena, from), scale);
    return DIM_NONE;
}

static bool can_resize(Call *c, const Resizing *r, double scale) {
    const char *what = r->crops                                            ? "tf_crop_and_resize"
                       : strcmp(r->transform, "half_pixel_symmetric") == 0 ? r->transform
                       : r->excludes                                       ? "exclude_outside"
                       : r->is_smooth && scale < 1                         ? "antialias"
                       : r->kind == INTERPOLATE_CUBIC && r->cubic != CUBIC_COEFF ? "cubic_coeff_a"
                                                                                 : NULL;
    return !what || onnx_fail(c, DIAG_NO_LOWERING, "%s needs extents that are constants", what);
}

static NodeId f32_of(Call *c, DimId dim) {
    return cast_to(c, number_node(c, dim, DT_I32), DT_F32);
}

/* i * from / to, or i / scale. */
static NodeId scaled_back(Call *c, NodeId i, NodeId from, NodeId to, double scale) {
    return scale != 0 ? op2n(c, OP_DIV, i, scale) : op2(c, OP_DIV, op2(c, OP_MUL, i, from), to);
}

/* f32[to]: where each element is taken from. */
static NodeId places(Call *c, const Resizing *r, DimId from_dim, DimId to_dim, double scale) {
    NodeId from = f32_of(c, from_dim), to = f32_of(c, to_dim);
    NodeId i = cast_to(c, build_iota(c->im->b, (DimList){1, &to_dim}, 0, DT_I32), DT_F32);
    if (strcmp(r->transform, "asymmetric") == 0) return scaled_back(c, i, from, to, scale);
    if (strcmp(r->transform, "align_corners") == 0) {
        if (scale != 0) to = op2n(c, OP_MUL, from, scale);
        NodeId span = op2n(c, OP_MAXIMUM, op2n(c, OP_SUB, to, 1), 1);
        return op2(c, OP_DIV, op2(c, OP_MUL, i, op2n(c, OP_SUB, from, 1)), span);
    }
    NodeId centre = scaled_back(c, op2n(c, OP_ADD, i, 0.5), from, to, scale);
    if (strcmp(r->transform, "tf_half_pixel_for_nn") == 0) return centre;
    centre = op2n(c, OP_SUB, centre, 0.5);
    if (strcmp(r->transform, "pytorch_half_pixel") != 0) return centre;
    return where(c, op2n(c, OP_EQUAL, to, 1), constant(c, 0, centre), centre);
}

/* The elements of x at places, clamped into the axis. */
static NodeId picked(Call *c, NodeId x, uint32_t axis, NodeId at) {
    NodeId zero = constant(c, 0, at);
    NodeId last = op2n(c, OP_SUB, f32_of(c, shape_of(c, x)->dims[axis]), 1);
    return build_gather(c->im->b, x, cast_to(c, op3(c, OP_CLAMP, at, zero, last), DT_I32), axis);
}

static NodeId nearest(Call *c, const Resizing *r, NodeId at) {
    if (strcmp(r->nearest, "floor") == 0) return op1(c, OP_FLOOR, at);
    if (strcmp(r->nearest, "ceil") == 0) return op1(c, OP_CEIL, at);
    if (strcmp(r->nearest, "round_prefer_ceil") == 0)
        return op1(c, OP_FLOOR, op2n(c, OP_ADD, at, 0.5));
    return op1(c, OP_CEIL, op2n(c, OP_SUB, at, 0.5));
}

NodeId resized_dim(Call *c, NodeId x, uint32_t axis, const Resizing *r, DimId to, double scale) {
    if (x == NODE_NONE || to == DIM_NONE || !can_resize(c, r, scale)) return NODE_NONE;
    NodeId at = places(c, r, shape_of(c, x)->dims[axis], to, scale), sum = NODE_NONE;
    if (r->kind == INTERPOLATE_NEAREST) return picked(c, x, axis, nearest(c, r, at));
    NodeId left = op1(c, OP_FLOOR, at), ratio = op2(c, OP_SUB, at, left);
    Shape beside = {.rank = shape_of(c, x)->rank};
    for (uint32_t k = 0; k < beside.rank; k++) beside.dims[k] = k == axis ? to : number(c, 1);
    int reach = r->kind == INTERPOLATE_LINEAR ? 0 : 1;
    for (int offset = -reach; offset <= 1 + reach; offset++) {
        NodeId weight = cast_to(c, tap_weight(c, r->kind, ratio, offset), dtype_of(c, x));
        NodeId value = picked(c, x, axis, op2n(c, OP_ADD, left, offset));
        NodeId part = op2(c, OP_MUL, value, reshape_to(c, weight, &beside));
        sum = sum == NODE_NONE ? part : op2(c, OP_ADD, sum, part);
    }
    return sum;
}
