/* See bytes.h. The u8 side is multiplied as the i8 that are less by 128, so that both sides have
 * one dtype. The product then lacks 128 times the sums of the other side along the contracted
 * axis. i32 wraps, so the order of these steps does not matter. */
#include "ir/build/bytes.h"

enum { U8_BIAS = 128 };

bool build_are_mixed_bytes(Dtype a, Dtype b) {
    bool are_bytes = dtype_is_int(a) && dtype_is_int(b) && dtype_bytes(a) == 1;
    return a != b && are_bytes && dtype_bytes(b) == 1;
}

static NodeId with_number(Builder *b, OpId op, NodeId x, int64_t number) {
    const Operand operands[2] = {operand_tensor(x), operand_int(dim_const(b->dims, number))};
    return x == NODE_NONE ? x : build_eltwise(b, op, 2, operands);
}

/* u8 as the i8 that are less by 128. */
static Operand less_bias(Builder *b, const Operand *x, Dtype dtype) {
    Operand flipped = operand_tensor(with_number(b, OP_BITWISE_XOR, x->node, U8_BIAS));
    return operand_tensor(build_bitcast(b, &flipped, dtype));
}

/* 128 times the sums of a side, which the product lacks. */
static NodeId lacked(Builder *b, const Operand *side, Dtype wide, uint32_t axis, bool keep) {
    NodeId x = build_cast(b, side, wide);
    if (x != NODE_NONE) x = build_reduce(b, OP_SUM, x, 1u << axis, keep);
    return with_number(b, OP_MUL, x, U8_BIAS);
}

NodeId build_mixed_bytes(Builder *b, const Operand *left, const Operand *right) {
    Dtype of_left = build_dtype_of(b, left), of_right = build_dtype_of(b, right);
    bool is_left = dtype_is_unsigned(of_left);
    Dtype one = is_left ? of_right : of_left, wide = dtype_compute(one);
    Operand sides[2] = {*left, *right};
    sides[!is_left] = less_bias(b, is_left ? left : right, one);
    NodeId product = build_matmul(b, &sides[0], &sides[1], PRECISION_FULL, &wide);
    if (product == NODE_NONE) return product;
    uint32_t n_left = build_shape_of(b, left->node)->rank;
    uint32_t n_right = build_shape_of(b, right->node)->rank;
    uint32_t axis = !is_left ? n_left - 1 : n_right > 1 ? n_right - 2 : 0;
    NodeId rest = lacked(b, is_left ? right : left, wide, axis, n_left > 1 && n_right > 1);
    if (rest == NODE_NONE) return rest;
    const Operand terms[2] = {operand_tensor(product), operand_tensor(rest)};
    return build_eltwise(b, OP_ADD, 2, terms);
}
