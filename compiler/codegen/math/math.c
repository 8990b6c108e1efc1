/* Comparisons, integer division and fma. */
#include "codegen/math/math_ops.h"

Val math_fma(const Codegen *k, Val x, Val y, Val z) {
    Val args[] = {x, y, z};
    return fp_intrinsic(k, "llvm.fma", LLVMTypeOf(x), args, 3);
}

/* Whether ptxas can derive no bound of x. */
static bool is_boundless(Val x) {
    return LLVMIsALoadInst(x) || LLVMIsABinaryOperator(x) || LLVMIsACastInst(x);
}

static double number_of(const Fp *p, Val constant) {
    LLVMBool loses;
    Val one = p->lanes ? LLVMGetAggregateElement(constant, 0) : constant;
    return LLVMConstRealGetDouble(one, &loses);
}

/* x as f32, with the same number of lanes. */
static Val widened(const Fp *p, Val x) {
    if (LLVMIsConstant(x)) return fp_num(p, number_of(p, x));
    return k_fpext(p->k, x, p->type);
}

/* Whether `x` is a constant that ptxas must not see in its comparison with `other`. */
static bool is_to_hide(Val x, Val other) {
    return LLVMIsConstant(x) && !LLVMIsConstant(other) && !is_boundless(other);
}

static bool is_short(const Fp *p) {
    LLVMTypeRef element = p->lanes ? LLVMGetElementType(p->type) : p->type;
    LLVMTypeKind kind = LLVMGetTypeKind(element);
    return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind;
}

/* ptxas 13.0 decides a comparison at compile time if it knows that one side (|x| or 2^x of f32) is
 * at least 0 and the other side is a negative constant. Its answer is wrong for NaN. Therefore the
 * constant is hidden from ptxas. A 16-bit constant cannot be hidden, so 16-bit values are compared
 * as f32. */
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
    Val quotient; /* right for every divisor except 0; there it is x */
    Val zero, is_by_zero;
} Division;

/* x86 has no vector division of integers, so the division is done in double. A quotient of two
 * 32-bit integers is an integer or at least 2^-32 away from one, so truncating the double is
 * exact. */
static Val divide_by_double(const Codegen *k, Val x, Val y, bool is_unsigned) {
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMTypeRef wide = LLVMVectorType(k->f64, LLVMGetVectorSize(type));
    Val x_wide = is_unsigned ? k_uitofp(k, x, wide) : k_sitofp(k, x, wide);
    Val y_wide = is_unsigned ? k_uitofp(k, y, wide) : k_sitofp(k, y, wide);
    Val quotient = k_fdiv(k, x_wide, y_wide);
    return is_unsigned ? k_fptoui(k, quotient, type) : k_fptosi(k, quotient, type);
}

static bool divides_by_double(const Codegen *k, Val x) {
    return k_is_vector(x) && LLVMGetIntTypeWidth(k_element_type(x)) <= 32 && k->target->has->cores;
}

static Division divide_unsigned(const Codegen *k, Val x, Val y) {
    Val one = k_splat(k, LLVMConstInt(k_element_type(x), 1, 0), k_lanes(x));
    Division d = {.zero = LLVMConstNull(LLVMTypeOf(x))};
    d.is_by_zero = k_eq(k, y, d.zero);
    Val safe = k_select(k, d.is_by_zero, one, y);
    d.quotient = divides_by_double(k, x) ? divide_by_double(k, x, safe, true) : k_udiv(k, x, safe);
    return d;
}

static Division divide_signed(const Codegen *k, Val x, Val y) {
    LLVMTypeRef type = LLVMTypeOf(x);
    Val one = k_splat(k, LLVMConstInt(k_element_type(x), 1, 0), k_lanes(x));
    Division d = {.zero = LLVMConstNull(type)};
    d.is_by_zero = k_eq(k, y, d.zero);
    Val is_by_minus_one = k_eq(k, y, LLVMConstAllOnes(type));
    Val is_trap = k_or(k, d.is_by_zero, is_by_minus_one);
    Val safe = k_select(k, is_trap, one, y);
    Val quotient =
        divides_by_double(k, x) ? divide_by_double(k, x, safe, false) : k_sdiv(k, x, safe);
    Val negated = k_sub(k, d.zero, x);
    d.quotient = k_select(k, is_by_minus_one, negated, quotient);
    return d;
}

static Val quotient_of(const Codegen *k, Division d) {
    return k_select(k, d.is_by_zero, d.zero, d.quotient);
}

static Val rest_of(const Codegen *k, Division d, Val x, Val y) {
    Val product = k_mul(k, d.quotient, y);
    Val rest = k_sub(k, x, product);
    return k_select(k, d.is_by_zero, d.zero, rest);
}

Val math_idiv(const Codegen *k, Val x, Val y) {
    return quotient_of(k, divide_signed(k, x, y));
}

Val math_irem(const Codegen *k, Val x, Val y) {
    return rest_of(k, divide_signed(k, x, y), x, y);
}

Val math_udiv(const Codegen *k, Val x, Val y) {
    return quotient_of(k, divide_unsigned(k, x, y));
}

Val math_urem(const Codegen *k, Val x, Val y) {
    return rest_of(k, divide_unsigned(k, x, y), x, y);
}
