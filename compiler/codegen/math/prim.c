/* See prim.h. */
#include "codegen/math/prim.h"

#include "codegen/math/math.h"

/* As unsigned numbers, between whose signs are turned: ptxas 13.0 makes one instruction of
 * max(max(c, -a), -b) for sm_90 and later, signed, that takes a for -a. */
static Val gpu_int_extreme(const Codegen *k, bool is_max, Val a, Val b) {
    Val signs = k_splat(k, LLVMConstInt(k->i32, 0x80000000, 0), k_lanes(a));
    Val x = k_xor(k, a, signs);
    Val y = k_xor(k, b, signs);
    Val extreme = is_max ? k_umax(k, x, y) : k_umin(k, x, y);
    return k_xor(k, extreme, signs);
}

static Val int_extreme(const Codegen *k, bool is_max, Val a, Val b) {
    if (k_has_ptx(k)) return gpu_int_extreme(k, is_max, a, b);
    LLVMIntPredicate keeps_first = is_max ? LLVMIntSGT : LLVMIntSLT;
    Val first = k_icmp(k, keeps_first, a, b);
    return k_select(k, first, a, b);
}

/* What LLVM would make a signed extreme of: a choice between two numbers by which is larger. */
static bool is_extreme(Val choice, Val a, Val b, bool *is_max) {
    if (!LLVMIsAICmpInst(choice)) return false;
    Val x = LLVMGetOperand(choice, 0), y = LLVMGetOperand(choice, 1);
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(choice);
    bool is_greater = predicate == LLVMIntSGT || predicate == LLVMIntSGE;
    bool is_less = predicate == LLVMIntSLT || predicate == LLVMIntSLE;
    *is_max = is_greater == (x == a);
    return (is_greater || is_less) && ((x == a && y == b) || (x == b && y == a));
}

static Val int_select(const Codegen *k, Val choice, Val a, Val b) {
    bool is_max;
    if (k_has_ptx(k) && is_extreme(choice, a, b, &is_max)) return int_extreme(k, is_max, a, b);
    return k_select(k, choice, a, b);
}

static Val int_abs(const Codegen *k, Val a) {
    Val zero = LLVMConstNull(LLVMTypeOf(a));
    Val negative = k_slt(k, a, zero);
    Val negated = k_neg(k, a);
    return k_select(k, negative, negated, a);
}

static Val int_prim(const Codegen *k, PrimId prim, Val a, Val b) {
    if (prim == PRIM_ADD) return k_add(k, a, b);
    if (prim == PRIM_SUB) return k_sub(k, a, b);
    if (prim == PRIM_MUL) return k_mul(k, a, b);
    if (prim == PRIM_DIV) return math_idiv(k, a, b);
    if (prim == PRIM_REM) return math_irem(k, a, b);
    if (prim == PRIM_NEG) return k_neg(k, a);
    if (prim == PRIM_ABS) return int_abs(k, a);
    if (prim == PRIM_MIN) return int_extreme(k, false, a, b);
    if (prim == PRIM_MAX) return int_extreme(k, true, a, b);
    if (prim == PRIM_LT) return k_slt(k, a, b);
    if (prim == PRIM_LE) return k_sle(k, a, b);
    if (prim == PRIM_EQ) return k_eq(k, a, b);
    if (prim == PRIM_NE) return k_ne(k, a, b);
    if (prim == PRIM_AND) return k_and(k, a, b);
    if (prim == PRIM_OR) return k_or(k, a, b);
    if (prim == PRIM_NOT) return k_not(k, a);
    ice(k->arena, "%s of integers", prim_info(prim)->name);
}

typedef Val (*MathUnary)(const Codegen *, Val);

static MathUnary unary_function(PrimId prim) {
    static const MathUnary functions[PRIM_COUNT] = {[PRIM_ABS] = math_fabs,
                                                    [PRIM_SQRT] = math_sqrt,
                                                    [PRIM_FLOOR] = math_floor,
                                                    [PRIM_CEIL] = math_ceil,
                                                    [PRIM_RINT] = math_rint,
                                                    [PRIM_EXP] = math_exp,
                                                    [PRIM_EXP_16] = math_exp_16,
                                                    [PRIM_EXP2] = math_exp2,
                                                    [PRIM_LOG] = math_log,
                                                    [PRIM_LOG2] = math_log2,
                                                    [PRIM_SQRT_22] = math_sqrt_22,
                                                    [PRIM_RSQRT_22] = math_rsqrt_22,
                                                    [PRIM_LOG_21] = math_log_21,
                                                    [PRIM_LOG2_22] = math_log2_22,
                                                    [PRIM_SIN_20] = math_sin_20,
                                                    [PRIM_COS_20] = math_cos_20,
                                                    [PRIM_SIN] = math_sin,
                                                    [PRIM_COS] = math_cos,
                                                    [PRIM_TANH] = math_tanh,
                                                    [PRIM_TANH_10] = math_tanh_10,
                                                    [PRIM_ERF] = math_erf,
                                                    [PRIM_LOGISTIC] = math_logistic,
                                                    [PRIM_LOGISTIC_16] = math_logistic_16,
                                                    [PRIM_NORMAL] = math_normal,
                                                    [PRIM_NORMAL_12] = math_normal_12,
                                                    [PRIM_TF32] = math_tf32};
    return functions[prim];
}

static Val float_prim(const Codegen *k, PrimId prim, Val a, Val b) {
    MathUnary function = unary_function(prim);
    if (function) return function(k, a);
    if (prim == PRIM_ADD) return k_fadd(k, a, b);
    if (prim == PRIM_SUB) return k_fsub(k, a, b);
    if (prim == PRIM_MUL) return k_fmul(k, a, b);
    if (prim == PRIM_DIV) return math_div(k, a, b);
    if (prim == PRIM_DIV_22) return math_div_22(k, a, b);
    if (prim == PRIM_NEG) return k_fneg(k, a);
    if (prim == PRIM_REM) return math_frem(k, a, b);
    if (prim == PRIM_MIN) return math_minimum(k, a, b);
    if (prim == PRIM_MAX) return math_maximum(k, a, b);
    if (prim == PRIM_POW) return math_pow(k, a, b);
    if (prim == PRIM_LT) return math_compare(k, LLVMRealOLT, a, b);
    if (prim == PRIM_LE) return math_compare(k, LLVMRealOLE, a, b);
    if (prim == PRIM_EQ) return math_compare(k, LLVMRealOEQ, a, b);
    if (prim == PRIM_NE) return math_compare(k, LLVMRealUNE, a, b);
    ice(k->arena, "%s of floats", prim_info(prim)->name);
}

Val math_prim(const Codegen *k, PrimId prim, Dtype dtype, Val a, Val b, Val c) {
    if (prim == PRIM_SELECT && dtype == DT_I32) return int_select(k, a, b, c);
    if (prim == PRIM_SELECT) return k_select(k, a, b, c);
    if (dtype_kind(dtype) == KIND_FLOAT) return float_prim(k, prim, a, b);
    return int_prim(k, prim, a, b);
}

Val math_multiply_add(const Codegen *k, Dtype dtype, Val a, Val b, Val sum) {
    if (dtype_kind(dtype) == KIND_FLOAT) return math_fma(k, a, b, sum);
    return k_add(k, k_mul(k, a, b), sum);
}
