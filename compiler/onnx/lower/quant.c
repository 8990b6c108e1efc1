/* Quantised tensors: integers with a scale and a zero point, of the whole tensor, of each index of
 * an axis, or of each block of an axis. */
#include "onnx/call/import_state.h"

/* Input i as a tensor that broadcasts with x. */
static NodeId beside(Call *c, NodeId x, uint32_t i, uint32_t axis, int64_t block) {
    NodeId given = input(c, i);
    int64_t n;
    if (given == NODE_NONE || x == NODE_NONE) return NODE_NONE;
    Shape from = *shape_of(c, given), to = {.rank = shape_of(c, x)->rank};
    if (from.rank == 0 || (from.rank == 1 && dim_equals_const(c->im->b->dims, from.dims[0], 1)))
        return build_reshape(c->im->b, given, (DimList){0, NULL});
    if (from.rank == 1) {
        for (uint32_t k = 0; k < to.rank; k++) to.dims[k] = k == axis ? from.dims[0] : number(c, 1);
        return reshape_to(c, given, &to);
    }
    if (from.rank != to.rank || block < 1 || axis >= to.rank || to.rank == MAX_RANK) {
        onnx_fail(c, DIAG_SHAPE_MISMATCH, "its scale does not fit the tensor");
        return NODE_NONE;
    }
    Shape wide = from;
    wide.rank++;
    for (uint32_t k = to.rank; k > axis; k--) wide.dims[k] = from.dims[k - 1];
    wide.dims[axis + 1] = number(c, block);
    to = from;
    to.dims[axis] = dim_mul_const(c->im->b->dims, from.dims[axis], block);
    NodeId repeated = reshape_to(c, expand_to(c, with_axis(c, given, axis + 1), &wide), &to);
    if (!dim_is_const(c->im->b->dims, shape_of(c, x)->dims[axis], &n)) return repeated;
    return part_of(c, repeated, axis, number(c, 0), number(c, n));
}

static bool quantized_axis(Call *c, NodeId x, uint32_t *axis) {
    if (x == NODE_NONE) return false;
    int64_t given = attr_int(c, "axis", 1), rank = shape_of(c, x)->rank;
    *axis = 0;
    return given >= rank || rank == 0 || axis_of(c, given, (uint32_t)rank, axis);
}

/* The nearest integer of x, which is scaled, plus the zero point; what lies outside the dtype
 * becomes its nearest value. For an 8-bit float the nearest number, and the zero point is 0. */
static NodeId saturated(Call *c, NodeId x, NodeId zero, Dtype dtype) {
    if (dtype_is_float(dtype))
        return cast_to(c, within_range(c, x, dtype, attr_int(c, "saturate", 1) != 0), dtype);
    x = op1(c, OP_ROUND, cast_to(c, x, DT_F32));
    if (zero != NODE_NONE) x = op2(c, OP_ADD, x, cast_to(c, zero, DT_F32));
    return cast_to(c, x, dtype);
}

bool onnx_quantize(Call *c) {
    NodeId x = input(c, 0), zero = NODE_NONE;
    uint32_t axis;
    int64_t block = attr_int(c, "block_size", 0), type = attr_int(c, "output_dtype", 0);
    Dtype dtype, precision;
    if (!quantized_axis(c, x, &axis)) return false;
    NodeId scale = beside(c, x, 1, axis, block);
    if (has_input(c, 2) && !value_type(c->im, input_value(c, 2), &type)) return false;
    if (!elem_dtype(type ? type : (int64_t)ELEM_UINT8, &dtype) ||
        !dtype_in(dtype, DTS_INT | DTS_STORED))
        return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "it makes %s, which is not supported",
                         elem_info(type)->name);
    if (has_input(c, 2)) zero = beside(c, x, 2, axis, block);
    if (scale == NODE_NONE) return false;
    precision = dtype_of(c, scale);
    if (attr_int(c, "precision", 0)) elem_dtype(attr_int(c, "precision", 0), &precision);
    x = op2(c, OP_DIV, cast_to(c, x, precision), cast_to(c, scale, precision));
    return output(c, 0, saturated(c, x, zero, dtype));
}

bool onnx_dequantize(Call *c) {
    NodeId x = input(c, 0);
    uint32_t axis;
    int64_t block = attr_int(c, "block_size", 0);
    if (!quantized_axis(c, x, &axis)) return false;
    NodeId scale = beside(c, x, 1, axis, block);
    if (scale == NODE_NONE) return false;
    Dtype dtype = dtype_of(c, scale);
    bool is_int = dtype_is_int(dtype_of(c, x));
    x = cast_to(c, x, is_int ? DT_I32 : DT_F32);
    if (has_input(c, 2))
        x = op2(c, OP_SUB, x, cast_to(c, beside(c, x, 2, axis, block), is_int ? DT_I32 : DT_F32));
    Dtype wide = dtype_compute(dtype);
    return output(c, 0,
                  cast_to(c, op2(c, OP_MUL, cast_to(c, x, wide), cast_to(c, scale, wide)), dtype));
}

/* A scale and a zero point that take in 0 and all of x. */
bool onnx_dynamic_quantize(Call *c) {
    NodeId x = input(c, 0);
    if (x == NODE_NONE) return false;
    uint32_t all = (1u << shape_of(c, x)->rank) - 1;
    NodeId high = op2n(c, OP_MAXIMUM, reduce(c, OP_MAX, x, all, false), 0);
    NodeId low = op2n(c, OP_MINIMUM, reduce(c, OP_MIN, x, all, false), 0);
    NodeId span = op2(c, OP_SUB, high, low);
    span = where(c, op2(c, OP_EQUAL, high, low), constant(c, 1, span), span);
    NodeId scale = op2n(c, OP_DIV, span, 255);
    NodeId zero = op1(c, OP_NEG, op2(c, OP_DIV, low, scale));
    NodeId least = constant(c, 0, zero);
    zero = op1(c, OP_ROUND, op3(c, OP_CLAMP, zero, least, constant(c, 255, zero)));
    NodeId y = saturated(c, op2(c, OP_DIV, x, scale), zero, DT_U8);
    if (has_output(c, 1)) output(c, 1, scale);
    if (has_output(c, 2)) output(c, 2, cast_to(c, zero, DT_U8));
    return output(c, 0, y);
}

/* Input i as i32 less the zero point that input `zero` gives, along an axis if it is a vector. */
static NodeId centred(Call *c, uint32_t i, uint32_t zero, uint32_t axis) {
    NodeId x = cast_to(c, input(c, i), DT_I32);
    if (!has_input(c, zero)) return x;
    return op2(c, OP_SUB, x, cast_to(c, beside(c, x, zero, axis, 0), DT_I32));
}

static uint32_t axis_from_end(Call *c, uint32_t i, uint32_t back) {
    NodeId x = input(c, i);
    uint32_t rank = x == NODE_NONE ? 0 : shape_of(c, x)->rank;
    return rank > back ? rank - back : 0;
}

/* Products of bytes. Both sides are multiplied as they are, as i8 or as u8, so that tensor cores
 * and their like do it. What their zero points add is taken off:
 *
 *   (a - p) (b - q) = a b - p (sum of b along k) - (sum of (a - p) along k) q
 *
 * i32 wraps, so the order of these steps does not matter. */

/* A byte side, and the i32 by which its bytes are too large, or NODE_NONE. */
typedef struct ByteSide {
    NodeId x, zero;
} ByteSide;

static ByteSide byte_side(Call *c, uint32_t i, uint32_t zero, uint32_t axis) {
    ByteSide side = {input(c, i), NODE_NONE};
    if (has_input(c, zero)) side.zero = cast_to(c, beside(c, side.x, zero, axis, 0), DT_I32);
    return side;
}

/* u8 as the i8 that are less by 128. */
static NodeId less_128(Call *c, NodeId x) {
    Operand flipped = operand_tensor(op2n(c, OP_BITWISE_XOR, x, 128));
    return build_bitcast(c->im->b, &flipped, DT_I8);
}

/* The sum along an axis. */
static NodeId along(Call *c, NodeId x, uint32_t axis) {
    return reduce(c, OP_SUM, cast_to(c, x, DT_I32), 1u << axis, true);
}

/* Inputs a and b, matrices, with their zero points. */
static NodeId byte_product(Call *c, uint32_t a, uint32_t a_zero, uint32_t b, uint32_t b_zero) {
    uint32_t row = axis_from_end(c, a, 2), k = axis_from_end(c, a, 1);
    uint32_t b_k = axis_from_end(c, b, 2), column = axis_from_end(c, b, 1);
    ByteSide left = byte_side(c, a, a_zero, row), right = byte_side(c, b, b_zero, column);
    if (left.x == NODE_NONE || right.x == NODE_NONE) return NODE_NONE;
    bool is_mixed = dtype_of(c, left.x) != dtype_of(c, right.x);
    if (!column || !k || (is_mixed && (left.zero == NODE_NONE || right.zero == NODE_NONE)))
        return matmul(c, centred(c, a, a_zero, row), centred(c, b, b_zero, column));
    ByteSide *sides[] = {&left, &right};
    for (uint32_t i = 0; i < 2 && is_mixed; i++) {
        if (!dtype_is_unsigned(dtype_of(c, sides[i]->x))) continue;
        sides[i]->x = less_128(c, sides[i]->x);
        sides[i]->zero = op2n(c, OP_SUB, sides[i]->zero, 128);
    }
    NodeId y = matmul_wide(c, left.x, right.x), own = cast_to(c, left.x, DT_I32);
    if (left.zero != NODE_NONE) {
        y = op2(c, OP_SUB, y, op2(c, OP_MUL, left.zero, along(c, right.x, b_k)));
        own = op2(c, OP_SUB, own, left.zero);
    }
    if (right.zero == NODE_NONE) return y;
    return op2(c, OP_SUB, y, op2(c, OP_MUL, along(c, own, k), right.zero));
}

/* Whether the zero point of input i is one number that is known: 0, if it has none. */
static bool known_zero_point(Call *c, uint32_t i, int64_t *zero) {
    *zero = 0;
    if (!has_input(c, i)) return true;
    const Known *known = input_known(c, i);
    int64_t other;
    if (!known || !known->n || !known_int(c->im, known, 0, zero)) return false;
    for (uint32_t k = 1; k < known->n; k++)
        if (!known_int(c->im, known, k, &other) || other != *zero) return false;
    return true;
}

/* Inputs x and w with their zero points. Beyond x stands its zero point, which must be known then.
 */
static NodeId byte_convolution(Call *c, uint32_t x_zero, uint32_t i, uint32_t w_zero) {
    NodeId x = input(c, 0), w = input(c, i);
    int64_t zero, of_weights;
    if (x == NODE_NONE || w == NODE_NONE) return NODE_NONE;
    bool is_mixed = dtype_of(c, x) != dtype_of(c, w);
    if (!known_zero_point(c, x_zero, &zero) || !known_zero_point(c, w_zero, &of_weights) ||
        of_weights || (is_mixed && dtype_is_unsigned(dtype_of(c, w))))
        return convolution(c, centred(c, 0, x_zero, 1), centred(c, i, w_zero, 0), NODE_NONE, 0);
    if (is_mixed) x = less_128(c, x), zero -= 128;
    NodeId y = convolution(c, x, w, NODE_NONE, (double)zero);
    if (!zero || y == NODE_NONE) return y;
    uint32_t taps = (1u << shape_of(c, w)->rank) - 2; /* all axes but that of results */
    NodeId sums =
        op2n(c, OP_MUL, reduce(c, OP_SUM, cast_to(c, w, DT_I32), taps, false), (double)zero);
    return op2(c, OP_SUB, y, per_channel(c, sums, shape_of(c, y)->rank));
}

bool onnx_matmul_integer(Call *c) {
    return output(c, 0, byte_product(c, 0, 2, 1, 3));
}

bool onnx_conv_integer(Call *c) {
    return output(c, 0, byte_convolution(c, 2, 1, 3));
}

/* Sums of products, scaled: sums * (a * b / y) + the zero point, as the dtype of the last. */
static NodeId rescaled(Call *c, NodeId sums, NodeId a, NodeId b, NodeId y, uint32_t zero) {
    NodeId factor = op2(c, OP_DIV, op2(c, OP_MUL, a, b), y), last = input(c, zero);
    if (last == NODE_NONE || factor == NODE_NONE) return NODE_NONE;
    NodeId scaled = op2(c, OP_MUL, cast_to(c, sums, DT_F32), cast_to(c, factor, DT_F32));
    NodeId point = build_reshape(c->im->b, last, (DimList){0, NULL});
    return saturated(c, scaled, point, dtype_of(c, last));
}

/* Inputs: a, its scale, its zero point, b, its scale, its zero point, the result's. */
bool onnx_qlinear_matmul(Call *c) {
    NodeId sums = byte_product(c, 0, 2, 3, 5);
    NodeId a_scale = beside(c, input(c, 0), 1, axis_from_end(c, 0, 2), 0);
    NodeId b_scale = beside(c, input(c, 3), 4, axis_from_end(c, 3, 1), 0);
    return output(c, 0, rescaled(c, sums, a_scale, b_scale, beside(c, sums, 6, 0, 0), 7));
}

bool onnx_qlinear_conv(Call *c) {
    NodeId sums = byte_convolution(c, 2, 3, 5);
    if (sums == NODE_NONE) return false;
    NodeId w_scale = beside(c, sums, 4, 1, 0), x_scale = beside(c, input(c, 0), 1, 1, 0);
    if (has_input(c, 8))
        sums = op2(c, OP_ADD, sums, per_channel(c, input(c, 8), shape_of(c, sums)->rank));
    return output(c, 0, rescaled(c, sums, x_scale, w_scale, beside(c, sums, 6, 1, 0), 7));
}
