/* Elementwise ops. Formulas keep to the definitions of the standard, and where a definition is in
 * f32 for narrower floats, the language's compute dtype is f32 too. */
#include "onnx/call/import_state.h"

#include <math.h>

bool onnx_fold_only(Call *c) {
    return onnx_fail(c, DIAG_NO_LOWERING, "its input has no shape that is known while importing");
}

/* Input i. Until opset 6 the axes of the second begin at an axis of the first. */
static NodeId operand(Call *c, uint32_t i) {
    NodeId x = input(c, i), first = input(c, 0);
    uint32_t axis;
    if (i != 1 || c->opset > 6 || !find_attr(c, "axis") || x == NODE_NONE || first == NODE_NONE)
        return x;
    uint32_t rank = shape_of(c, first)->rank;
    Shape to = *shape_of(c, x);
    if (!axis_of(c, attr_int(c, "axis", 0), rank, &axis)) return NODE_NONE;
    while (to.rank < rank - axis) to.dims[to.rank++] = number(c, 1);
    return reshape_to(c, x, &to);
}

bool onnx_eltwise(Call *c) {
    Operand operands[BUILD_MAX_OPERANDS];
    if (c->node->inputs.n > BUILD_MAX_OPERANDS) return false;
    for (uint32_t i = 0; i < c->node->inputs.n; i++) operands[i] = operand_tensor(operand(c, i));
    return output(c, 0, build_eltwise(c->im->b, c->op->id, c->node->inputs.n, operands));
}

static NodeId variadic(Call *c, OpId op) {
    NodeId x = input(c, 0);
    for (uint32_t i = 1; i < c->node->inputs.n && x != NODE_NONE; i++)
        x = op2(c, op, x, input(c, i));
    return x;
}

bool onnx_variadic(Call *c) {
    return output(c, 0, variadic(c, c->op->id));
}

bool onnx_mean_of(Call *c) {
    return output(c, 0, op2n(c, OP_DIV, variadic(c, OP_ADD), c->node->inputs.n));
}

/* x to a small whole power, as products. */
static NodeId power(Call *c, NodeId x, uint32_t n) {
    NodeId result = NODE_NONE;
    for (; n; n >>= 1) {
        if (n & 1) result = result == NODE_NONE ? x : op2(c, OP_MUL, result, x);
        if (n > 1) x = op2(c, OP_MUL, x, x);
    }
    return result;
}

/* The exponent, if it is one number that is known. */
static bool known_exponent(Call *c, double *exponent) {
    const Known *known = input_known(c, 1);
    int64_t value;
    if (!known || known->n != 1) return false;
    if (known->ints && !known_int(c->im, known, 0, &value)) return false;
    *exponent = known->ints ? (double)value : known->floats[0];
    return true;
}

bool onnx_pow(Call *c) {
    NodeId x = input(c, 0);
    double exponent = -1;
    bool is_known = known_exponent(c, &exponent);
    if (x == NODE_NONE) return false;
    bool is_int = !dtype_is_float(dtype_of(c, x));
    if (is_known && (exponent == 2 ||
                     (is_int && exponent >= 1 && exponent <= 64 && exponent == floor(exponent))))
        return output(c, 0, power(c, x, (uint32_t)exponent));
    NodeId y = operand(c, 1);
    if (y == NODE_NONE) return false;
    if (is_int) {
        NodeId base = cast_to(c, x, DT_F64);
        NodeId wide = op2(c, OP_POW, base, cast_to(c, y, DT_F64));
        return output(c, 0, cast_to(c, wide, dtype_of(c, x)));
    }
    return output(c, 0, op2(c, OP_POW, x, cast_to(c, y, dtype_of(c, x))));
}

/* fmod=1: the sign of the dividend; else that of the divisor. */
bool onnx_mod(Call *c) {
    NodeId x = input(c, 0), y = input(c, 1), rest = op2(c, OP_REM, x, y);
    if (rest == NODE_NONE || attr_int(c, "fmod", 0)) return output(c, 0, rest);
    NodeId zero = constant(c, 0, rest);
    NodeId is_below = op2(c, OP_LESS, rest, zero);
    NodeId differs = op2(c, OP_NOT_EQUAL, is_below, op2(c, OP_LESS, y, zero));
    NodeId moves = op2(c, OP_LOGICAL_AND, differs, op2(c, OP_NOT_EQUAL, rest, zero));
    return output(c, 0, op3(c, OP_WHERE, moves, op2(c, OP_ADD, rest, y), rest));
}

bool onnx_reciprocal(Call *c) {
    NodeId x = input(c, 0);
    return output(c, 0, op2(c, OP_DIV, constant(c, 1, x), x));
}

bool onnx_leaky_relu(Call *c) {
    NodeId x = input(c, 0);
    return output(c, 0, op2n(c, OP_LEAKY_RELU, x, attr_float(c, "alpha", (double)0.01f)));
}

static NodeId where_positive(Call *c, NodeId x, NodeId positive, NodeId other) {
    return op3(c, OP_WHERE, op2n(c, OP_GREATER, x, 0), positive, other);
}

bool onnx_prelu(Call *c) {
    NodeId x = input(c, 0), slopes = input(c, 1);
    if (slopes == NODE_NONE || x == NODE_NONE) return false;
    if (c->opset < 7 && shape_of(c, slopes)->rank == 1 && shape_of(c, x)->rank > 2)
        slopes = per_channel(c, slopes, shape_of(c, x)->rank);
    return output(c, 0, where_positive(c, x, x, op2(c, OP_MUL, x, slopes)));
}

/* `scale` times the prelude's elu or celu. */
static bool elu(Call *c, const char *name, double alpha, double scale) {
    const char *call = str_format(c->im->arena, "%s(x, alpha=%.17g)", name, alpha);
    NodeId x = input(c, 0), y = express(c, call, 1, &x);
    return output(c, 0, scale == 1 ? y : op2n(c, OP_MUL, y, scale));
}

bool onnx_elu(Call *c) {
    return elu(c, "elu", attr_float(c, "alpha", 1), 1);
}

bool onnx_selu(Call *c) {
    return elu(c, "elu", attr_float(c, "alpha", (double)1.67326319217681884765625f),
               attr_float(c, "gamma", (double)1.05070102214813232421875f));
}

bool onnx_celu(Call *c) {
    return elu(c, "celu", attr_float(c, "alpha", 1), 1);
}

bool onnx_gelu(Call *c) {
    bool is_tanh = strcmp(attr_string(c, "approximate", "none"), "tanh") == 0;
    return output(c, 0, op1(c, is_tanh ? OP_GELU_TANH : OP_GELU, input(c, 0)));
}

bool onnx_swish(Call *c) {
    NodeId x = input(c, 0);
    double alpha = attr_float(c, "alpha", 1);
    if (alpha == 1) return output(c, 0, op1(c, OP_SILU, x));
    return output(c, 0, op2(c, OP_MUL, x, op1(c, OP_SIGMOID, op2n(c, OP_MUL, x, alpha))));
}

static NodeId clamp(Call *c, NodeId x, double low, double high) {
    NodeId least = constant(c, low, x);
    return op3(c, OP_CLAMP, x, least, constant(c, high, x));
}

static NodeId hard_sigmoid(Call *c, NodeId x, double alpha, double beta) {
    return clamp(c, op2n(c, OP_ADD, op2n(c, OP_MUL, x, alpha), beta), 0, 1);
}

bool onnx_hard_sigmoid(Call *c) {
    return output(c, 0,
                  hard_sigmoid(c, input(c, 0), attr_float(c, "alpha", (double)0.2f),
                               attr_float(c, "beta", 0.5)));
}

bool onnx_hard_swish(Call *c) {
    NodeId x = input(c, 0);
    return output(c, 0, op2(c, OP_MUL, x, hard_sigmoid(c, x, 1.0 / 6, 0.5)));
}

bool onnx_thresholded_relu(Call *c) {
    NodeId x = input(c, 0);
    NodeId is_above = op2n(c, OP_GREATER, x, attr_float(c, "alpha", 1));
    return output(c, 0, op3(c, OP_WHERE, is_above, x, constant(c, 0, x)));
}

bool onnx_shrink(Call *c) {
    NodeId x = input(c, 0), zero = constant(c, 0, x);
    double lambda = attr_float(c, "lambd", 0.5), bias = attr_float(c, "bias", 0);
    NodeId is_low = op2n(c, OP_LESS, x, -lambda);
    NodeId low = op3(c, OP_WHERE, is_low, op2n(c, OP_ADD, x, bias), zero);
    NodeId is_high = op2n(c, OP_GREATER, x, lambda);
    return output(c, 0, op3(c, OP_WHERE, is_high, op2n(c, OP_SUB, x, bias), low));
}

bool onnx_clip(Call *c) {
    NodeId x = input(c, 0);
    const OnnxAttr *low = typed_attr(c, "min", ATTR_FLOAT),
                   *high = typed_attr(c, "max", ATTR_FLOAT);
    if (has_input(c, 1)) x = op2(c, OP_MAXIMUM, x, input(c, 1));
    if (has_input(c, 2)) x = op2(c, OP_MINIMUM, x, input(c, 2));
    if (low) x = op2n(c, OP_MAXIMUM, x, low->number);
    if (high) x = op2n(c, OP_MINIMUM, x, high->number);
    return output(c, 0, x);
}

bool onnx_is_nan(Call *c) {
    NodeId x = input(c, 0);
    return output(c, 0, op2(c, OP_NOT_EQUAL, x, x));
}

bool onnx_is_inf(Call *c) {
    NodeId x = input(c, 0), result = NODE_NONE;
    bool low = attr_int(c, "detect_negative", 1) != 0,
         high = attr_int(c, "detect_positive", 1) != 0;
    if (x == NODE_NONE) return false;
    if (low || high)
        result =
            op2n(c, OP_EQUAL, low && high ? op1(c, OP_ABS, x) : x, high ? INFINITY : -INFINITY);
    else
        result = op2(c, OP_LESS, x, x);
    return output(c, 0, result);
}

NodeId within_range(Call *c, NodeId x, Dtype dtype, bool saturates) {
    if (x == NODE_NONE || !dtype_in(dtype, DTS_STORED) || dtype_in(dtype_of(c, x), DTS_STORED))
        return x;
    bool has_infinity = dtype_info(dtype)->has_infinity;
    if (saturates != has_infinity) return x;
    double most = dtype_max(dtype), half = dtype_ulp(dtype, most) / 2;
    if (!dtype_is_float(dtype_of(c, x))) x = cast_to(c, x, DT_F32);
    if (saturates) return op3(c, OP_CLAMP, x, constant(c, -most, x), constant(c, most, x));
    NodeId beyond = op2(c, OP_GREATER, op1(c, OP_ABS, x), constant(c, most + half, x));
    return where(c, beyond, constant(c, (double)NAN, x), x);
}

bool onnx_cast(Call *c) {
    int64_t to = attr_int(c, "to", ELEM_NONE);
    Value *like = input_value(c, 1);
    Dtype dtype;
    bool saturates = attr_int(c, "saturate", 1) != 0;
    NodeId x = biased_value(c, input(c, 0));
    if (like && !value_type(c->im, like, &to)) return false;
    if (elem_biased(to, &dtype)) return output(c, 0, biased_bits(c, x, to, saturates));
    if (!elem_dtype(to, &dtype))
        return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "the language has no dtype for %s",
                         elem_info(to)->name);
    const Known *known = input_known(c, 0);
    if (!output(c, 0, cast_to(c, within_range(c, x, dtype, saturates), dtype))) return false;
    if (known && known->ints && has_output(c, 0))
        onnx_scope_own(c->scope, c->node->outputs.data[0])->whole = known;
    return true;
}

bool onnx_bit_shift(Call *c) {
    NodeId x = input(c, 0);
    bool is_left = strcmp(attr_string(c, "direction", ""), "LEFT") == 0;
    OpId op = is_left ? OP_BITWISE_LEFT_SHIFT : OP_BITWISE_RIGHT_SHIFT;
    return output(c, 0, op2(c, op, x, input(c, 1)));
}

bool onnx_bit_cast(Call *c) {
    Operand x = operand_tensor(input(c, 0));
    int64_t to = attr_int(c, "to", ELEM_NONE);
    Dtype dtype;
    if (!elem_dtype(to, &dtype))
        return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "the language has no dtype for %s",
                         elem_info(to)->name);
    return output(c, 0, build_bitcast(c->im->b, &x, dtype));
}

bool onnx_identity(Call *c) {
    return output(c, 0, input(c, 0));
}

/* The mask of a Dropout that does not train is true everywhere. */
bool onnx_dropout(Call *c) {
    NodeId x = input(c, 0);
    int64_t trains = 0;
    if (!int_argument(c, 2, 0, &trains)) return false;
    double ratio = attr_float(c, "ratio", 0.5);
    if (trains && !float_argument(c, 1, ratio, &ratio)) return false;
    if (trains && ratio != 0)
        return onnx_fail(c, DIAG_NO_LOWERING,
                         "training draws random numbers, which the language "
                         "does not have");
    if (!output(c, 0, x) || !has_output(c, 1)) return x != NODE_NONE;
    Operand yes = c->opset < 10 ? operand_float(1) : operand_bool(true);
    const Shape *shape = shape_of(c, x);
    NodeId mask = build_const(c->im->b, &yes, c->opset < 10 ? dtype_of(c, x) : DT_BOOL);
    return output(c, 1, build_expand(c->im->b, mask, (DimList){shape->rank, shape->dims}));
}
