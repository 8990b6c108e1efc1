/* The operations of math.h that are exact or correctly rounded, and i32 division. The elementary
 * functions are in exp.c, log.c, pow.c, trig.c, erf.c, frem.c,
 * logistic.c. */
#include "codegen/math/math_ops.h"

Val math_fma(const Codegen *k, Val x, Val y, Val z) {
    Val args[] = {x, y, z};
    return fp_intrinsic(k, "llvm.fma", LLVMTypeOf(x), args, 3);
}

static Val unary(const Codegen *k, const char *name, Val x) {
    return fp_intrinsic(k, name, LLVMTypeOf(x), &x, 1);
}

Val math_sqrt(const Codegen *k, Val x) {
    return unary(k, "llvm.sqrt", x);
}
Val math_fabs(const Codegen *k, Val x) {
    return unary(k, "llvm.fabs", x);
}
Val math_floor(const Codegen *k, Val x) {
    return unary(k, "llvm.floor", x);
}
Val math_ceil(const Codegen *k, Val x) {
    return unary(k, "llvm.ceil", x);
}
Val math_trunc(const Codegen *k, Val x) {
    return unary(k, "llvm.trunc", x);
}
Val math_rint(const Codegen *k, Val x) {
    return unary(k, "llvm.roundeven", x);
}

/* Adding half of the last kept place to the magnitude, or a little less where that place is even,
 * carries into the exponent as it should. A NaN becomes the quiet one: the carry could make a
 * number of it, cutting off an infinity. */
Val math_tf32(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    Val bits = fp_to_bits(&p, x);
    Val is_odd = fp_and(&p, fp_shr(&p, bits, 13), fp_int(&p, 1));
    bits = fp_iadd(&p, bits, fp_int(&p, 0xfff));
    bits = fp_iadd(&p, bits, is_odd);
    bits = fp_and(&p, bits, fp_int(&p, 0xffffe000));
    Val rounded = fp_from_bits(&p, bits);
    Val is_nan = fp_unordered(&p, x, x);
    return fp_select(&p, is_nan, fp_nan(&p), rounded);
}

/* On the bits: LLVM moves a rounding of a copysign to both its operands, and for the sign of one in
 * double that is rounded to half it calls a function that nothing defines. */
Val math_copysign(const Codegen *k, Val magnitude, Val sign) {
    Fp p = fp_of(k, magnitude);
    uint64_t sign_bit = p.is_f64 ? (uint64_t)1 << 63 : (uint64_t)1 << 31;
    Val size = fp_and(&p, fp_to_bits(&p, magnitude), fp_int(&p, sign_bit - 1));
    Val taken = fp_and(&p, fp_to_bits(&p, sign), fp_int(&p, sign_bit));
    return fp_from_bits(&p, fp_or(&p, size, taken));
}

/* x86 has max and min with one flaw each: of equal operands or with NaN the second is the result.
 * Taken in both orders, and-ing (for the minimum, or-ing) the results makes the sign of zero
 * right. NaN is selected: with AVX-512 a mask or-ed into the bits (VPMOVM2D) waits for what its
 * register held before, and rows that could overlap would follow one another. */
static Val extreme(const Codegen *k, Val x, Val y, bool larger) {
    Fp p = fp_of(k, x);
    Val is_x = larger ? fp_gt(&p, x, y) : fp_lt(&p, x, y);
    Val one = fp_select(&p, is_x, x, y);
    Val is_y = larger ? fp_gt(&p, y, x) : fp_lt(&p, y, x);
    Val other = fp_select(&p, is_y, y, x);
    Val one_bits = fp_to_bits(&p, one);
    Val other_bits = fp_to_bits(&p, other);
    Val bits = larger ? fp_and(&p, one_bits, other_bits) : fp_or(&p, one_bits, other_bits);
    Val is_nan = fp_unordered(&p, x, y);
    Val all_bits = fp_from_bits(&p, fp_int(&p, UINT64_MAX));
    return fp_select(&p, is_nan, all_bits, fp_from_bits(&p, bits));
}

static Val extreme_of(const Codegen *k, Val x, Val y, bool larger) {
    Fp p = fp_of(k, x);
    if (!k_has_ptx(k) || p.is_f64) return extreme(k, x, y, larger); /* PTX has no max.NaN.f64 */
    Val args[] = {x, y};
    return fp_intrinsic(k, larger ? "llvm.maximum" : "llvm.minimum", p.type, args, 2);
}

Val math_maximum(const Codegen *k, Val x, Val y) {
    return extreme_of(k, x, y, true);
}
Val math_minimum(const Codegen *k, Val x, Val y) {
    return extreme_of(k, x, y, false);
}

Val fp_clamp(const Fp *p, Val x, double low, double high) {
    Val is_low = fp_lt(p, x, fp_num(p, low));
    x = fp_select(p, is_low, fp_num(p, low), x);
    return fp_at_most(p, x, high);
}

Val fp_at_most(const Fp *p, Val x, double high) {
    if (k_has_ptx(p->k) && !p->is_f64) return math_minimum(p->k, x, fp_num(p, high));
    Val is_high = fp_gt(p, x, fp_num(p, high));
    return fp_select(p, is_high, fp_num(p, high), x);
}

/* Whether ptxas knows no bound of it. */
static bool is_boundless(Val x) {
    return LLVMIsALoadInst(x) || LLVMIsABinaryOperator(x) || LLVMIsACastInst(x);
}

static double number_of(const Fp *p, Val constant) {
    LLVMBool loses;
    Val one = p->lanes ? LLVMGetAggregateElement(constant, 0) : constant;
    return LLVMConstRealGetDouble(one, &loses);
}

/* As f32, of as many lanes. */
static Val widened(const Fp *p, Val x) {
    if (LLVMIsConstant(x)) return fp_num(p, number_of(p, x));
    return k_fpext(p->k, x, p->type);
}

/* Whether ptxas must not know `x`, with which `other` is compared. */
static bool is_to_hide(Val x, Val other) {
    return LLVMIsConstant(x) && !LLVMIsConstant(other) && !is_boundless(other);
}

static bool is_short(const Fp *p) {
    LLVMTypeRef element = p->lanes ? LLVMGetElementType(p->type) : p->type;
    LLVMTypeKind kind = LLVMGetTypeKind(element);
    return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind;
}

/* ptxas 13.0 takes a comparison for decided where it knows that one side, |x| or 2^x of f32, is at
 * least 0 and the other, a constant, is not: but for NaN it is false. Then the constant is hidden;
 * of 16 bits none can be, so that those are compared as f32. */
Val math_compare(const Codegen *k, LLVMRealPredicate predicate, Val x, Val y) {
    Fp p = fp_of(k, x);
    if (k_has_ptx(k) && !p.is_f64) {
        bool hides_x = is_to_hide(x, y), hides_y = is_to_hide(y, x);
        if ((hides_x || hides_y) && is_short(&p)) {
            p = fp_f32(&p);
            x = widened(&p, x);
            y = widened(&p, y);
        }
        if (hides_x) x = fp_opaque(&p, number_of(&p, x));
        if (hides_y) y = fp_opaque(&p, number_of(&p, y));
    }
    return k_fcmp(k, predicate, x, y);
}

typedef struct Division {
    Val quotient; /* right for every divisor but 0, where it is x */
    Val zero, is_by_zero;
} Division;

/* x86 has no vector division of integers. The quotient of two 32-bit integers in double is off
 * from an integer by 2^-32 at least or is one, so truncating it is exact. */
static Val divide_by_double(const Codegen *k, Val x, Val y) {
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMTypeRef wide = LLVMVectorType(k->f64, LLVMGetVectorSize(type));
    Val x_wide = k_sitofp(k, x, wide);
    Val y_wide = k_sitofp(k, y, wide);
    Val quotient = k_fdiv(k, x_wide, y_wide);
    return k_fptosi(k, quotient, type);
}

static Division divide(const Codegen *k, Val x, Val y) {
    LLVMTypeRef type = LLVMTypeOf(x);
    bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    unsigned lanes = is_vector ? LLVMGetVectorSize(type) : 0;
    LLVMTypeRef word = k->i32;
    Val one = fp_splat(k, LLVMConstInt(word, 1, 0), lanes);
    Division d = {.zero = LLVMConstNull(type)};
    d.is_by_zero = k_eq(k, y, d.zero);
    Val is_by_minus_one = k_eq(k, y, LLVMConstAllOnes(type));
    Val is_trap = k_or(k, d.is_by_zero, is_by_minus_one);
    Val safe = k_select(k, is_trap, one, y);
    Val quotient =
        is_vector && k->target->has->cores ? divide_by_double(k, x, safe) : k_sdiv(k, x, safe);
    Val negated = k_sub(k, d.zero, x);
    d.quotient = k_select(k, is_by_minus_one, negated, quotient);
    return d;
}

Val math_idiv(const Codegen *k, Val x, Val y) {
    Division d = divide(k, x, y);
    return k_select(k, d.is_by_zero, d.zero, d.quotient);
}

Val math_irem(const Codegen *k, Val x, Val y) {
    Division d = divide(k, x, y);
    Val product = k_mul(k, d.quotient, y);
    Val rest = k_sub(k, x, product);
    return k_select(k, d.is_by_zero, d.zero, rest);
}
