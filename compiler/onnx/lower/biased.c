/* Elements of 8 bits that the language has no dtype for. Their formats are those of f8e4m3 and
 * f8e5m2 with exponents that count from one more, without infinity and -0, whose bits are NaN. The
 * graph holds them as u8. So the bits of a number are those that the language's dtype has for twice
 * the number; or, where that dtype goes as far, for the number with an exponent larger by one. */
#include "onnx/call/import_state.h"

#include <math.h>

enum { NAN_BITS = 0x80, SIZE_BITS = 0x7f };

/* The bits by which numbers with neighbouring exponents differ. */
static double exponent_step(Dtype like) {
    return 1 << (dtype_info(like)->n_digits - 1);
}

static NodeId bits_as(Call *c, NodeId x, Dtype dtype) {
    Operand operand = operand_tensor(x);
    return build_bitcast(c->im->b, &operand, dtype);
}

NodeId biased_value(Call *c, NodeId bits) {
    Dtype like = DT_F32;
    if (!elem_biased(held_type(c->im, bits), &like)) return bits;
    double step = exponent_step(like);
    NodeId is_large = op2n(c, OP_GREATER_EQUAL, op2n(c, OP_BITWISE_AND, bits, SIZE_BITS), 2 * step);
    NodeId high = cast_to(c, bits_as(c, op2n(c, OP_SUB, bits, step), like), DT_F32);
    NodeId low = op2n(c, OP_MUL, cast_to(c, bits_as(c, bits, like), DT_F32), 0.5);
    NodeId is_nan = op2n(c, OP_EQUAL, bits, NAN_BITS);
    return where(c, is_nan, constant(c, (double)NAN, low), where(c, is_large, high, low));
}

NodeId biased_bits(Call *c, NodeId x, int64_t type, bool saturates) {
    Dtype like;
    if (x == NODE_NONE || !elem_biased(type, &like)) return NODE_NONE;
    if (!dtype_is_float(dtype_of(c, x))) x = cast_to(c, x, DT_F32);
    double step = exponent_step(like),
           top = ldexp(1, (1 << (dtype_info(like)->n_exponent_bits - 1)) - 1);
    double most = top * (2 - 1 / step), half = top / step / 2;
    if (saturates) x = op3(c, OP_CLAMP, x, constant(c, -most, x), constant(c, most, x));
    NodeId size = op1(c, OP_ABS, x), is_nan = op2(c, OP_NOT_EQUAL, x, x);
    if (!saturates)
        is_nan = op2(c, OP_LOGICAL_OR, is_nan, op2n(c, OP_GREATER_EQUAL, size, most + half));
    NodeId low = bits_as(c, cast_to(c, op2n(c, OP_MUL, x, 2), like), DT_U8);
    NodeId high = op2n(c, OP_ADD, bits_as(c, cast_to(c, x, like), DT_U8), step);
    NodeId bits = where(c, op2n(c, OP_GREATER_EQUAL, size, 1), high, low);
    bits = where(c, op2n(c, OP_EQUAL, bits, NAN_BITS), constant(c, 0, bits), bits); /* -0 */
    return held_as(c->im, where(c, is_nan, constant(c, NAN_BITS, bits), bits), type);
}
