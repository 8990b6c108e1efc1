/* The operations of math_ops.h. Nothing here decides about accuracy but the constants of the
 * rounding trick; no fast-math flag is ever set. */
#include "codegen/math/math_ops.h"

#include <string.h>

static LLVMTypeRef type_with_lanes(LLVMTypeRef element, unsigned lanes) {
    return lanes ? LLVMVectorType(element, lanes) : element;
}

Fp fp_of(const Codegen *k, Val x) {
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMTypeRef element = type;
    Fp p = {.k = k, .type = type};
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        p.lanes = LLVMGetVectorSize(type);
        element = LLVMGetElementType(type);
    }
    p.is_f64 = LLVMGetTypeKind(element) == LLVMDoubleTypeKind;
    LLVMTypeRef word = LLVMIntTypeInContext(k->context, p.is_f64 ? 64 : 32);
    p.bits = type_with_lanes(word, p.lanes);
    return p;
}

Fp fp_f32(const Fp *p) {
    LLVMTypeRef word = p->k->i32;
    LLVMTypeRef number = p->k->f32;
    return (Fp){.k = p->k,
                .type = type_with_lanes(number, p->lanes),
                .bits = type_with_lanes(word, p->lanes),
                .lanes = p->lanes};
}

Fp fp_f64(const Fp *p) {
    LLVMTypeRef word = p->k->i64;
    LLVMTypeRef number = p->k->f64;
    return (Fp){.k = p->k,
                .type = type_with_lanes(number, p->lanes),
                .bits = type_with_lanes(word, p->lanes),
                .lanes = p->lanes,
                .is_f64 = true};
}

Val fp_splat(const Codegen *k, Val scalar, unsigned lanes) {
    if (!lanes) return scalar;
    Val poison = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(scalar), lanes));
    Val first = k_insert(k, poison, scalar, 0);
    return k_shuffle(k, first, poison, LLVMConstNull(LLVMVectorType(k->i32, lanes)));
}

static LLVMTypeRef element_of(const Fp *p, LLVMTypeRef type) {
    return p->lanes ? LLVMGetElementType(type) : type;
}

Val fp_num(const Fp *p, double value) {
    return fp_splat(p->k, LLVMConstReal(element_of(p, p->type), value), p->lanes);
}

Val fp_int(const Fp *p, uint64_t value) {
    LLVMTypeRef word = element_of(p, p->bits);
    return fp_splat(p->k, LLVMConstInt(word, p->is_f64 ? value : (uint32_t)value, 0), p->lanes);
}

Val fp_nan(const Fp *p) {
    Val bits = fp_int(p, p->is_f64 ? 0x7ff8000000000000u : 0x7fc00000u);
    return LLVMConstBitCast(bits, p->type);
}

Val fp_inf(const Fp *p) {
    Val bits = fp_int(p, p->is_f64 ? 0x7ff0000000000000u : 0x7f800000u);
    return LLVMConstBitCast(bits, p->type);
}

Val fp_add(const Fp *p, Val x, Val y) {
    return k_fadd(p->k, x, y);
}
Val fp_sub(const Fp *p, Val x, Val y) {
    return k_fsub(p->k, x, y);
}
Val fp_mul(const Fp *p, Val x, Val y) {
    return k_fmul(p->k, x, y);
}
Val fp_neg(const Fp *p, Val x) {
    return k_fneg(p->k, x);
}

Val fp_fma(const Fp *p, Val x, Val y, Val z) {
    Val args[] = {x, y, z};
    return fp_intrinsic(p->k, "llvm.fma", LLVMTypeOf(x), args, 3);
}

Val fp_poly(const Fp *p, Val x, const double *coefs, size_t n_coefs) {
    Val sum = fp_num(p, coefs[n_coefs - 1]);
    for (size_t i = n_coefs - 1; i-- > 0;) {
        sum = fp_fma(p, sum, x, fp_num(p, coefs[i]));
    }
    return sum;
}

Val fp_lt(const Fp *p, Val x, Val y) {
    return k_fcmp(p->k, LLVMRealOLT, x, y);
}

Val fp_gt(const Fp *p, Val x, Val y) {
    return k_fcmp(p->k, LLVMRealOGT, x, y);
}

Val fp_eq(const Fp *p, Val x, Val y) {
    return k_fcmp(p->k, LLVMRealOEQ, x, y);
}

Val fp_ne(const Fp *p, Val x, Val y) {
    return k_fcmp(p->k, LLVMRealONE, x, y);
}

Val fp_unordered(const Fp *p, Val x, Val y) {
    return k_fcmp(p->k, LLVMRealUNO, x, y);
}

Val fp_select(const Fp *p, Val condition, Val then_value, Val else_value) {
    return k_select(p->k, condition, then_value, else_value);
}

Val fp_and(const Fp *p, Val x, Val y) {
    return k_and(p->k, x, y);
}
Val fp_or(const Fp *p, Val x, Val y) {
    return k_or(p->k, x, y);
}
Val fp_to_bits(const Fp *p, Val x) {
    return k_bitcast(p->k, x, p->bits);
}

Val fp_from_bits(const Fp *p, Val bits) {
    return k_bitcast(p->k, bits, p->type);
}

Val fp_iadd(const Fp *p, Val x, Val y) {
    return k_add(p->k, x, y);
}
Val fp_isub(const Fp *p, Val x, Val y) {
    return k_sub(p->k, x, y);
}
Val fp_imul(const Fp *p, Val x, Val y) {
    return k_mul(p->k, x, y);
}

Val fp_shl(const Fp *p, Val x, unsigned n_bits) {
    return k_shl(p->k, x, fp_int(p, n_bits));
}

Val fp_shr(const Fp *p, Val x, unsigned n_bits) {
    return k_lshr(p->k, x, fp_int(p, n_bits));
}

Val fp_is_set(const Fp *p, Val x, uint64_t mask) {
    Val masked = fp_and(p, x, fp_int(p, mask));
    return k_ne(p->k, masked, fp_int(p, 0));
}

/* Its bits less one, plus the grid's second extent, which is one. At the function's entry, so that
 * it costs a multiplication by it nothing. */
Val fp_opaque(const Fp *p, double value) {
    static const char name[] = "llvm.nvvm.read.ptx.sreg.nctaid.y";
    const Codegen *k = p->k;
    LLVMTypeRef type = LLVMFunctionType(k->i32, NULL, 0, 0);
    Val read = LLVMGetNamedFunction(k->module, name);
    if (!read) read = LLVMAddFunction(k->module, name, type);

    LLVMBasicBlockRef here = k_here(k);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(here));
    Val first = LLVMGetFirstInstruction(entry);
    LLVMPositionBuilder(k->builder, entry, first);
    union {
        float value;
        uint32_t bits;
    } number = {.value = (float)value};
    Val one = k_call(k, type, read, NULL, 0);
    Val bits = k_addi(k, one, number.bits - 1);
    Val opaque = k_bitcast(k, bits, k->f32);
    k_goto(k, here);
    return fp_splat(k, opaque, p->lanes);
}

static Val machine_of_one(const Fp *p, const char *text, Val *args, unsigned n_args) {
    static const char *const lists[2][MAX_MACHINE_ARGS + 1] = {
        {NULL, "=f,f", "=f,f,f", "=f,f,f,f"}, {NULL, "=d,d", "=d,d,d", "=d,d,d,d"}};
    const char *list = lists[p->is_f64][n_args];
    return k_asm(p->k, LLVMTypeOf(args[0]), text, list, args, n_args, false);
}

Val fp_machine(const Fp *p, const char *text, const Val *args, unsigned n_args) {
    LLVMTypeRef i32 = p->k->i32;
    Val all = LLVMGetPoison(p->type), own[MAX_MACHINE_ARGS];
    for (unsigned i = 0; i < (p->lanes ? p->lanes : 1); i++) {
        Val at = LLVMConstInt(i32, i, 0);
        for (unsigned j = 0; j < n_args; j++)
            own[j] = p->lanes ? k_extract_at(p->k, args[j], at) : args[j];
        Val one = machine_of_one(p, text, own, n_args);
        all = p->lanes ? k_insert_at(p->k, all, one, at) : one;
    }
    return all;
}

Val fp_intrinsic(const Codegen *k, const char *name, LLVMTypeRef type, Val *args, unsigned n_args) {
    return k_intrinsic_of(k, name, &type, 1, args, n_args);
}

static double rounding_shift(const Fp *p) {
    return p->is_f64 ? 0x1.8p52 : 0x1.8p23;
}

Rounded fp_round(const Fp *p, Val x) {
    Val shift = fp_num(p, rounding_shift(p));
    Rounded r = {.shifted = fp_add(p, x, shift)};
    r.whole = fp_sub(p, r.shifted, shift);
    return r;
}

Rounded fp_round_product(const Fp *p, Val x, double factor) {
    Val shift = fp_num(p, rounding_shift(p));
    Rounded r = {.shifted = fp_fma(p, x, fp_num(p, factor), shift)};
    r.whole = fp_sub(p, r.shifted, shift);
    return r;
}

/* 2^n from the low bits of an integer. */
static Val power_of_bits(const Fp *p, Val n) {
    Val exponent = fp_shl(p, n, p->is_f64 ? 52 : 23);
    Val bits = fp_iadd(p, exponent, fp_int(p, p->is_f64 ? 0x3ff0000000000000u : 0x3f800000u));
    return fp_from_bits(p, bits);
}

Val fp_power(const Fp *p, Rounded n) {
    Val bits = fp_to_bits(p, n.shifted);
    return power_of_bits(p, bits);
}

Val fp_scale(const Fp *p, Val value, Rounded n) {
    Rounded half = fp_round_product(p, n.whole, 0.5);
    Val bits = fp_to_bits(p, n.shifted);
    Val half_bits = fp_to_bits(p, half.shifted);
    Val rest_bits = fp_isub(p, bits, half_bits);
    Val first = power_of_bits(p, half_bits);
    Val second = power_of_bits(p, rest_bits);
    Val scaled = fp_mul(p, value, first);
    return fp_mul(p, scaled, second);
}

Pair pair_sum(const Fp *p, Val x, Val y) {
    Val sum = fp_add(p, x, y);
    Val y_part = fp_sub(p, sum, x);
    Val x_part = fp_sub(p, sum, y_part);
    Val x_error = fp_sub(p, x, x_part);
    Val y_error = fp_sub(p, y, y_part);
    Val error = fp_add(p, x_error, y_error);
    return (Pair){sum, error};
}

Pair pair_fast_sum(const Fp *p, Val x, Val y) {
    Val sum = fp_add(p, x, y);
    Val y_part = fp_sub(p, sum, x);
    Val error = fp_sub(p, y, y_part);
    return (Pair){sum, error};
}

Pair pair_product(const Fp *p, Val x, Val y) {
    Val product = fp_mul(p, x, y);
    Val negated = fp_neg(p, product);
    Val error = fp_fma(p, x, y, negated);
    return (Pair){product, error};
}

Pair pair_mul(const Fp *p, Pair x, Pair y) {
    Pair r = pair_product(p, x.high, y.high);
    Val cross = fp_mul(p, x.high, y.low);
    cross = fp_fma(p, x.low, y.high, cross);
    r.low = fp_add(p, r.low, cross);
    return r;
}
