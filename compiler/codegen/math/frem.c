/* C's fmod. The quotient is taken in pieces of about 50 bits: with Y = y * 2^k just within that
 * reach of the remainder r, r - trunc(r / Y) * Y is exact, being a multiple of both operands'
 * last places and less than Y. The rounded quotient may be one too large; a negative remainder
 * is put right by adding Y. float's exponents need six such steps at most, in double, and takes
 * all of them; double loops. */
#include "codegen/math/math_ops.h"

/* r mod step, for 0 <= r < 2^52 step. */
static Val remainder_step(const Fp *p, Val r, Val step) {
    Val ratio = math_div(p->k, r, step);
    Val quotient = math_trunc(p->k, ratio);
    Val negated = fp_neg(p, quotient);
    Val rest = fp_fma(p, negated, step, r);
    Val is_negative = fp_lt(p, rest, fp_num(p, 0.0));
    Val raised = fp_add(p, rest, step);
    return fp_select(p, is_negative, raised, rest);
}

static Val frem_f32(const Fp *own, Val x_narrow, Val y_narrow) {
    static const double steps[] = {0x1p230, 0x1p184, 0x1p138, 0x1p92, 0x1p46, 1.0};
    Fp p = fp_f64(own);
    const Codegen *k = p.k;
    Val x = k_fpext(k, x_narrow, p.type);
    Val y = k_fpext(k, y_narrow, p.type);
    Val x_size = math_fabs(k, x);
    Val y_size = math_fabs(k, y);
    Val r = x_size;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        Val step = fp_mul(&p, y_size, fp_num(&p, steps[i]));
        r = remainder_step(&p, r, step);
    }
    Val is_x_finite = fp_lt(&p, x_size, fp_inf(&p));
    Val is_y_infinite = fp_eq(&p, y_size, fp_inf(&p));
    Val is_x = fp_and(&p, is_x_finite, is_y_infinite);
    r = fp_select(&p, is_x, x_size, r);
    r = math_copysign(k, r, x);
    return k_fptrunc(k, r, own->type);
}

/* floor(log2(x)) + 1023 for finite x > 0, subnormals too. */
static Val exponent_of(const Fp *p, Val x) {
    Val is_small = fp_lt(p, x, fp_num(p, 0x1p-1022));
    Val scaled = fp_mul(p, x, fp_num(p, 0x1p54));
    Val normal = fp_select(p, is_small, scaled, x);
    Val bits = fp_to_bits(p, normal);
    Val field = fp_shr(p, bits, 52);
    Val offset = fp_select(p, is_small, fp_int(p, 54), fp_int(p, 0));
    return fp_isub(p, field, offset);
}

static Val power_of_two(const Fp *p, Val n) {
    Val field = fp_iadd(p, n, fp_int(p, 1023));
    Val bits = fp_shl(p, field, 52);
    return fp_from_bits(p, bits);
}

/* y * 2^n, n >= 0 the largest multiple that keeps r / (y * 2^n) below 2^52. */
static Val step_for(const Fp *p, Val r, Val y, Val y_exponent) {
    Val r_exponent = exponent_of(p, r);
    Val distance = fp_isub(p, r_exponent, y_exponent);
    Val n = fp_isub(p, distance, fp_int(p, 51));
    Val is_far = k_sgt(p->k, n, fp_int(p, 0));
    n = fp_select(p, is_far, n, fp_int(p, 0));
    Val half = fp_shr(p, n, 1);
    Val rest = fp_isub(p, n, half);
    Val first = power_of_two(p, half);
    Val second = power_of_two(p, rest);
    Val step = fp_mul(p, y, first);
    return fp_mul(p, step, second);
}

/* Lanes that are done take quotients of zero. Infinite x and y = 0 turn into NaN in the first
 * round, which ends the loop; infinite y never enters it. */
static Val frem_f64(const Fp *p, Val x, Val y) {
    const Codegen *k = p->k;
    Val x_size = math_fabs(k, x);
    Val y_size = math_fabs(k, y);
    Val y_exponent = exponent_of(p, y_size);
    LLVMBasicBlockRef entry = k_here(k);
    LLVMBasicBlockRef head = k_block(k, "frem");
    LLVMBasicBlockRef body = k_block(k, "frem.step");
    LLVMBasicBlockRef done = k_block(k, "frem.done");
    k_branch(k, head);
    Val r = k_phi(k, p->type);
    Val is_less = fp_lt(p, r, y_size);
    Val is_nan = fp_unordered(p, r, y_size);
    Val is_done = fp_or(p, is_less, is_nan);
    Val is_open = k_not(k, is_done);
    Val is_any = fp_any_lane(p, is_open);
    k_cond_br(k, is_any, body, done);
    k_goto(k, body);
    Val step = step_for(p, r, y_size, y_exponent);
    Val stepped = remainder_step(p, r, step);
    Val next = fp_select(p, is_open, stepped, r);
    k_br(k, head);
    k_incoming(r, x_size, entry);
    k_incoming(r, next, body);
    k_goto(k, done);
    Val is_y_nan = fp_unordered(p, y_size, y_size);
    Val result = fp_select(p, is_y_nan, y_size, r);
    return math_copysign(k, result, x);
}

Val math_frem(const Codegen *k, Val x, Val y) {
    Fp p = fp_of(k, x);
    return p.is_f64 ? frem_f64(&p, x, y) : frem_f32(&p, x, y);
}
