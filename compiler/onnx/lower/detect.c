/* Ops that read an image between its elements, at places that are computed: regions pooled to one
 * size, and convolutions whose taps are moved. A place is (y, x); its four neighbours are read from
 * rows [places of all images, channels]. */
#include "onnx/call/import_state.h"

typedef struct Places {
    NodeId rows;  /* [n * h * w, channels] */
    NodeId image; /* i32: which image of n */
    NodeId y, x;  /* f32, of the shape of the result but for the channels */
    int64_t height, width;
} Places;

/* The neighbour below (side 0) or above of a coordinate, as i32, and its weight. */
static NodeId neighbour(Call *c, NodeId at, int side, int64_t extent, NodeId *weight) {
    NodeId low = op1(c, OP_FLOOR, at), ratio = op2(c, OP_SUB, at, low), zero = constant(c, 0, at);
    *weight = side ? ratio : op1(c, OP_NEG, op2n(c, OP_SUB, ratio, 1));
    NodeId index = op2n(c, OP_ADD, low, side);
    return cast_to(c, op3(c, OP_CLAMP, index, zero, constant(c, (double)(extent - 1), at)), DT_I32);
}

/* low <= at, and at < high or at <= high */
static NodeId lies_in(Call *c, NodeId at, double low, double high, OpId is_below) {
    return op2(c, OP_LOGICAL_AND, op2n(c, OP_GREATER_EQUAL, at, low), op2n(c, is_below, at, high));
}

/* The elements of corner `k`, times their weights: [places.., channels]. `is_bounded`: elements
 * outside the image are 0; else they are those at its border. */
static NodeId corner(Call *c, const Places *p, int k, bool is_bounded) {
    NodeId wy, wx, y = neighbour(c, p->y, k / 2, p->height, &wy);
    NodeId x = neighbour(c, p->x, k % 2, p->width, &wx), weight = op2(c, OP_MUL, wy, wx);
    if (weight == NODE_NONE || y == NODE_NONE || x == NODE_NONE) return NODE_NONE;
    if (is_bounded) {
        NodeId in_y = lies_in(c, p->y, -(k / 2), (double)(p->height - k / 2), OP_LESS);
        NodeId in_x = lies_in(c, p->x, -(k % 2), (double)(p->width - k % 2), OP_LESS);
        weight = where(c, op2(c, OP_LOGICAL_AND, in_y, in_x), weight, constant(c, 0, weight));
    }
    NodeId place = op2(c, OP_ADD, op2n(c, OP_MUL, p->image, (double)p->height), y);
    place = op2(c, OP_ADD, op2n(c, OP_MUL, place, (double)p->width), x);
    NodeId values = build_gather(c->im->b, p->rows, place, 0);
    if (values == NODE_NONE) return values;
    return op2(c, OP_MUL, values, with_axis(c, weight, shape_of(c, weight)->rank));
}

static NodeId interpolated(Call *c, const Places *p, bool is_bounded) {
    NodeId sum = corner(c, p, 0, is_bounded);
    for (int k = 1; k < 4; k++) sum = op2(c, OP_ADD, sum, corner(c, p, k, is_bounded));
    return sum;
}

/* Regions. */

/* The coordinates of a region's samples along one axis: [regions, n * ratio]. `first` is the column
 * of rois that the axis begins in. A sample beyond the image by more than 1 is marked. */
static NodeId samples(Call *c, NodeId rois, uint32_t first, int64_t n, int64_t ratio,
                      int64_t extent, NodeId *is_in) {
    bool is_half = strcmp(attr_string(c, "coordinate_transformation_mode",
                                      c->opset < 16 ? "output_half_pixel" : "half_pixel"),
                          "half_pixel") == 0;
    NodeId ends[2];
    for (uint32_t i = 0; i < 2; i++) {
        ends[i] = part_of(c, rois, 1, number(c, first + 2 * i), number(c, 1));
        ends[i] = op2n(c, OP_MUL, ends[i], attr_float(c, "spatial_scale", 1));
        if (is_half) ends[i] = op2n(c, OP_SUB, ends[i], 0.5);
    }
    NodeId size = op2(c, OP_SUB, ends[1], ends[0]);
    if (!is_half) size = op2n(c, OP_MAXIMUM, size, 1);
    size = op2n(c, OP_DIV, size, (double)(n * ratio));
    Shape row = {2, {number(c, 1), number(c, n * ratio)}};
    NodeId step = op2n(c, OP_ADD, cast_to(c, index_along(c, &row, 1), DT_F32), 0.5);
    NodeId at = op2(c, OP_ADD, ends[0], op2(c, OP_MUL, step, size));
    *is_in = lies_in(c, at, -1, (double)extent, OP_LESS_EQUAL);
    NodeId zero = constant(c, 0, at);
    return op3(c, OP_CLAMP, at, zero, constant(c, (double)(extent - 1), at));
}

/* x: [n, c, h, w], rois: [r, 4], images: [r] -> [r, c, oh, ow] */
bool onnx_roi_align(Call *c) {
    NodeId x = input(c, 0), rois = cast_to(c, input(c, 1), DT_F32), in_y, in_x;
    NodeId image = cast_to(c, input(c, 2), DT_I32);
    int64_t extents[MAX_RANK], high = attr_int(c, "output_height", 1);
    int64_t wide = attr_int(c, "output_width", 1), ratio = attr_int(c, "sampling_ratio", 0);
    bool is_max = strcmp(attr_string(c, "mode", "avg"), "max") == 0;
    enum { MAX_SAMPLES = 4096 };
    if (rois == NODE_NONE || image == NODE_NONE || !const_dims(c, x, extents)) return false;
    if (ratio < 1 || ratio > MAX_SAMPLES || high < 1 || high > MAX_SAMPLES || wide < 1 ||
        wide > MAX_SAMPLES)
        return onnx_fail(c, DIAG_NO_LOWERING,
                         "it needs a sampling_ratio other than 0, since the "
                         "samples of a region are counted while importing");
    if (shape_of(c, x)->rank != 4 || shape_of(c, rois)->rank != 2 || shape_of(c, image)->rank != 1)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "its tensors need 4, 2 and 1 axes");
    int64_t rows[2] = {-1, extents[1]};
    Places p = {.height = extents[2], .width = extents[3]};
    Dtype dtype = dtype_of(c, x);
    p.rows = reshape_const(c, move_axis(c, cast_to(c, x, DT_F32), 1, 3), 2, rows);
    p.y = with_axis(c, samples(c, rois, 1, high, ratio, p.height, &in_y), 2);
    p.x = with_axis(c, samples(c, rois, 0, wide, ratio, p.width, &in_x), 1);
    p.image = with_axis(c, with_axis(c, image, 1), 2);
    NodeId is_in = op2(c, OP_LOGICAL_AND, with_axis(c, in_y, 2), with_axis(c, in_x, 1));
    NodeId values = is_max ? corner(c, &p, 0, false) : interpolated(c, &p, false);
    for (int k = 1; k < 4 && is_max; k++)
        values = op2(c, OP_MAXIMUM, values, corner(c, &p, k, false));
    if (values == NODE_NONE || is_in == NODE_NONE) return false;
    values = where(c, with_axis(c, is_in, 3), values, constant(c, 0, values));
    int64_t cut[] = {-1, high, ratio, wide, ratio, extents[1]};
    values = reduce(c, is_max ? OP_MAX : OP_MEAN, reshape_const(c, values, 6, cut), 20, false);
    return output(c, 0, cast_to(c, move_axis(c, values, 3, 1), dtype));
}

/* Convolutions with moved taps. */

typedef struct Moved {
    int64_t n_groups, n_moves; /* groups of channels; groups that are moved together */
    int64_t stride[2], dilation[2], low[2], kernel[2], out[2];
} Moved;

static bool pair_of(Call *c, const char *name, int64_t otherwise, int64_t *values) {
    const VecInt *given;
    bool is_given = attr_ints(c, name, &given) && given->n >= 2;
    for (uint32_t k = 0; k < 2; k++) {
        values[k] = is_given ? given->data[k] : otherwise;
        if (values[k] < otherwise || values[k] > INT32_MAX)
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "%s has %lld", name, (long long)values[k]);
    }
    return true;
}

/* offsets: [n, moves, taps, 2, oh, ow] -> one coordinate of each tap: [n, moves, taps, oh, ow] */
static NodeId moved_taps(Call *c, const Moved *m, NodeId offsets, uint32_t axis) {
    NodeId moved = at_index(c, offsets, 3, axis);
    if (moved == NODE_NONE) return moved;
    Shape shape = *shape_of(c, moved);
    NodeId tap = index_along(c, &shape, 2), at = index_along(c, &shape, 3 + axis);
    tap = axis == 0 ? op2n(c, OP_DIV, tap, (double)m->kernel[1])
                    : op2n(c, OP_REM, tap, (double)m->kernel[1]);
    at = op2n(c, OP_MUL, at, (double)m->stride[axis]);
    at = op2(c, OP_ADD, at, op2n(c, OP_MUL, tap, (double)m->dilation[axis]));
    return op2(c, OP_ADD, cast_to(c, op2n(c, OP_SUB, at, (double)m->low[axis]), DT_F32), moved);
}

static bool moved_of(Call *c, Moved *m, const int64_t *x, const int64_t *weights,
                     const int64_t *offsets) {
    m->n_groups = attr_int(c, "group", 1);
    m->n_moves = attr_int(c, "offset_group", 1);
    for (uint32_t k = 0; k < 2; k++) {
        m->kernel[k] = weights[2 + k];
        m->out[k] = offsets[2 + k];
    }
    if (!pair_of(c, "strides", 1, m->stride) || !pair_of(c, "dilations", 1, m->dilation) ||
        !pair_of(c, "pads", 0, m->low))
        return false;
    if (m->n_groups < 1 || m->n_moves < 1 || m->n_groups > x[1] || m->n_moves > x[1] ||
        x[1] % m->n_moves || weights[0] % m->n_groups || weights[1] * m->n_groups != x[1] ||
        offsets[1] != m->n_moves * m->kernel[0] * m->kernel[1] * 2)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "its channels, weights and offsets do not fit");
    return true;
}

/* x: [n, c, h, w], weights: [m, c / g, kh, kw], offsets: [n, moves * taps * 2, oh, ow],
 * mask: [n, moves * taps, oh, ow] -> [n, m, oh, ow] */
bool onnx_deform_conv(Call *c) {
    static const int64_t last_first[] = {0, 1, 5, 2, 3, 4};
    NodeId x = input(c, 0), weights = input(c, 1), offsets = input(c, 2);
    int64_t extents[MAX_RANK], kernel[MAX_RANK], moves[MAX_RANK];
    Moved m;
    if (!const_dims(c, x, extents) || !const_dims(c, weights, kernel) ||
        !const_dims(c, offsets, moves))
        return false;
    if (shape_of(c, x)->rank != 4 || shape_of(c, weights)->rank != 4 ||
        shape_of(c, offsets)->rank != 4)
        return onnx_fail(c, DIAG_NO_LOWERING, "it needs images of 2 axes");
    if (!moved_of(c, &m, extents, kernel, moves)) return false;
    int64_t n_taps = m.kernel[0] * m.kernel[1], each = extents[1] / m.n_moves;
    Dtype dtype = dtype_of(c, x);
    int64_t cut[] = {extents[0], m.n_moves, n_taps, 2, m.out[0], m.out[1]}, rows[2] = {-1, each};
    int64_t split[] = {extents[0], m.n_moves, each, extents[2], extents[3]};
    offsets = reshape_const(c, cast_to(c, offsets, DT_F32), 6, cut);
    Places p = {.height = extents[2], .width = extents[3]};
    x = reshape_const(c, cast_to(c, x, DT_F32), 5, split);
    p.rows = reshape_const(c, move_axis(c, x, 2, 4), 2, rows);
    p.y = moved_taps(c, &m, offsets, 0);
    p.x = moved_taps(c, &m, offsets, 1);
    if (p.y == NODE_NONE || p.x == NODE_NONE) return false;
    Shape shape = *shape_of(c, p.y);
    p.image = op2n(c, OP_MUL, index_along(c, &shape, 0), (double)m.n_moves);
    p.image = op2(c, OP_ADD, p.image, index_along(c, &shape, 1));
    NodeId values = interpolated(c, &p, true);
    if (has_input(c, 4)) {
        int64_t to[] = {extents[0], m.n_moves, n_taps, m.out[0], m.out[1], 1};
        values = op2(c, OP_MUL, values, reshape_const(c, cast_to(c, input(c, 4), DT_F32), 6, to));
    }
    int64_t columns[] = {extents[0], m.n_groups, kernel[1] * n_taps, m.out[0] * m.out[1]};
    int64_t matrix[] = {m.n_groups, kernel[0] / m.n_groups, kernel[1] * n_taps};
    int64_t to[] = {extents[0], kernel[0], m.out[0], m.out[1]};
    values = reshape_const(c, transpose(c, values, last_first), 4, columns);
    NodeId y = matmul(c, reshape_const(c, cast_to(c, weights, DT_F32), 3, matrix), values);
    y = cast_to(c, reshape_const(c, y, 4, to), dtype);
    if (has_input(c, 3)) y = op2(c, OP_ADD, y, per_channel(c, input(c, 3), 4));
    return output(c, 0, y);
}
