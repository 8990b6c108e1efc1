/* See prim.h. */
#include "codegen/math/prim.h"

#include "codegen/math/math.h"

/* Signed max or min as an unsigned one, with the sign bits flipped before and after. ptxas 13.0 for
 * sm_90 and later merges the signed max(max(c, -a), -b) into one instruction that takes a for
 * -a. */
static Val gpu_int_extreme(const Codegen *k, bool is_max, Val a, Val b) {
    LLVMTypeRef type = k_element_type(a);
    uint64_t sign = UINT64_C(1) << (LLVMGetIntTypeWidth(type) - 1);
    Val signs = k_splat(k, LLVMConstInt(type, sign, 0), k_lanes(a));
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

/* Whether LLVM would turn the select into a signed max or min: it selects one of two numbers by
 * comparing them. */
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

static Val int_min(const Codegen *k, Val a, Val b) {
    return int_extreme(k, false, a, b);
}
static Val int_max(const Codegen *k, Val a, Val b) {
    return int_extreme(k, true, a, b);
}

static Val bit_width(const Codegen *k, Val a) {
    LLVMTypeRef type = k_element_type(a);
    return k_splat(k, k_int(type, LLVMGetIntTypeWidth(type)), k_lanes(a));
}

/* The count, or of one that LLVM leaves undefined the greatest that it defines. */
static Val defined_count(const Codegen *k, Val a, Val count, Val is_count) {
    LLVMTypeRef type = k_element_type(a);
    Val most = k_splat(k, k_int(type, (int64_t)LLVMGetIntTypeWidth(type) - 1), k_lanes(a));
    return k_select(k, is_count, count, most);
}

/* Shifts by counts that LLVM leaves undefined shift all bits out. */
static Val int_shl(const Codegen *k, Val a, Val b) {
    Val is_count = k_ult(k, b, bit_width(k, a));
    Val shifted = k_shl(k, a, defined_count(k, a, b, is_count));
    return k_select(k, is_count, shifted, LLVMConstNull(LLVMTypeOf(a)));
}

static Val int_shr(const Codegen *k, Val a, Val b) {
    Val is_count = k_ult(k, b, bit_width(k, a));
    return k_ashr(k, a, defined_count(k, a, b, is_count));
}

static Val unsigned_shr(const Codegen *k, Val a, Val b) {
    Val is_count = k_ult(k, b, bit_width(k, a));
    Val shifted = k_lshr(k, a, defined_count(k, a, b, is_count));
    return k_select(k, is_count, shifted, LLVMConstNull(LLVMTypeOf(a)));
}

typedef Val (*Binary)(const Codegen *k, Val a, Val b);

/* Of integers without a sign, where it matters. */
static Val unsigned_prim(const Codegen *k, PrimId prim, Val a, Val b) {
    static const Binary binaries[PRIM_COUNT] = {
        [PRIM_DIV] = math_udiv,   [PRIM_REM] = math_urem, [PRIM_MIN] = k_umin,
        [PRIM_MAX] = k_umax,      [PRIM_LT] = k_ult,      [PRIM_LE] = k_ule,
        [PRIM_SHR] = unsigned_shr};
    if (binaries[prim]) return binaries[prim](k, a, b);
    return prim == PRIM_ABS ? a : NULL;
}

static Val int_prim(const Codegen *k, PrimId prim, Val a, Val b) {
    static const Binary binaries[PRIM_COUNT] = {
        [PRIM_ADD] = k_add,     [PRIM_SUB] = k_sub,    [PRIM_MUL] = k_mul,   [PRIM_DIV] = math_idiv,
        [PRIM_REM] = math_irem, [PRIM_MIN] = int_min,  [PRIM_MAX] = int_max, [PRIM_LT] = k_slt,
        [PRIM_LE] = k_sle,      [PRIM_EQ] = k_eq,      [PRIM_NE] = k_ne,     [PRIM_AND] = k_and,
        [PRIM_OR] = k_or,       [PRIM_BITAND] = k_and, [PRIM_BITOR] = k_or,  [PRIM_BITXOR] = k_xor,
        [PRIM_SHL] = int_shl,   [PRIM_SHR] = int_shr};
    if (binaries[prim]) return binaries[prim](k, a, b);
    if (prim == PRIM_NEG) return k_neg(k, a);
    if (prim == PRIM_ABS) return int_abs(k, a);
    if (prim == PRIM_NOT) return k_not(k, a);
    ice(k->arena, "%s of integers", prim_info(prim)->name);
}

/* A float primitive that this function does not list is a function or an operation of the same
 * name. */
static Val float_prim(const Codegen *k, PrimId prim, Val a, Val b) {
    static const Binary binaries[PRIM_COUNT] = {[PRIM_ADD] = k_fadd,
                                                [PRIM_SUB] = k_fsub,
                                                [PRIM_MUL] = k_fmul,
                                                [PRIM_DIV] = math_div,
                                                [PRIM_REM] = math_frem};
    static const LLVMRealPredicate predicates[PRIM_COUNT] = {[PRIM_LT] = LLVMRealOLT,
                                                             [PRIM_LE] = LLVMRealOLE,
                                                             [PRIM_EQ] = LLVMRealOEQ,
                                                             [PRIM_NE] = LLVMRealUNE};
    if (binaries[prim]) return binaries[prim](k, a, b);
    if (predicates[prim]) return math_compare(k, predicates[prim], a, b);
    return math_binary(k, prim_info(prim)->name, a, b);
}

Val math_prim(const Codegen *k, PrimId prim, Dtype dtype, Val a, Val b, Val c) {
    if (prim == PRIM_SELECT && dtype_is_int(dtype)) return int_select(k, a, b, c);
    if (prim == PRIM_SELECT) return k_select(k, a, b, c);
    if (dtype_is_float(dtype)) return float_prim(k, prim, a, b);
    Val result = dtype_is_unsigned(dtype) ? unsigned_prim(k, prim, a, b) : NULL;
    return result ? result : int_prim(k, prim, a, b);
}

Val math_multiply_add(const Codegen *k, Dtype dtype, Val a, Val b, Val sum) {
    if (dtype_is_float(dtype)) return math_fma(k, a, b, sum);
    return k_add(k, k_mul(k, a, b), sum);
}
