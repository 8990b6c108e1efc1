/* C's fmod. The quotient is taken in pieces of about 50 bits: with Y = y * 2^k just within that
 * reach of the remainder r, r - trunc(r / Y) * Y is exact, being a multiple of both operands'
 * last places and less than Y. The rounded quotient may be one too large; a negative remainder
 * is put right by adding Y. float's exponents need six such steps at most, in double, and takes
 * all of them; double loops. */
#include "codegen/math/math_ops.h"

/* r mod step, for 0 <= r < 2^52 step. */
static Val remainder_step(const Fp *p, Val r, Val step) {
    Val ratio = fp_div(p, r, step);
    Val quotient = math_trunc(p->m, ratio);
    Val negated = fp_neg(p, quotient);
    Val rest = fp_fma(p, negated, step, r);
    Val is_negative = fp_lt(p, rest, fp_num(p, 0.0));
    Val raised = fp_add(p, rest, step);
    return fp_select(p, is_negative, raised, rest);
}

static Val frem_f32(const Fp *own, Val x_narrow, Val y_narrow) {
    static const double steps[] = {0x1p230, 0x1p184, 0x1p138, 0x1p92, 0x1p46, 1.0};
    Fp p = fp_f64(own);
    LLVMBuilderRef b = p.m->builder;
    Val x = LLVMBuildFPExt(b, x_narrow, p.type, "");
    Val y = LLVMBuildFPExt(b, y_narrow, p.type, "");
    Val x_size = math_fabs(p.m, x);
    Val y_size = math_fabs(p.m, y);
    Val r = x_size;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        Val step = fp_mul(&p, y_size, fp_num(&p, steps[i]));
        r = remainder_step(&p, r, step);
    }
    Val is_x_finite = fp_lt(&p, x_size, fp_inf(&p));
    Val is_y_infinite = fp_eq(&p, y_size, fp_inf(&p));
    Val is_x = fp_and(&p, is_x_finite, is_y_infinite);
    r = fp_select(&p, is_x, x_size, r);
    r = math_copysign(p.m, r, x);
    return LLVMBuildFPTrunc(b, r, own->type, "");
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

/* y * 2^k, k >= 0 the largest multiple that keeps r / (y * 2^k) below 2^52. */
static Val step_for(const Fp *p, Val r, Val y, Val y_exponent) {
    Val r_exponent = exponent_of(p, r);
    Val distance = fp_isub(p, r_exponent, y_exponent);
    Val k = fp_isub(p, distance, fp_int(p, 51));
    Val is_far = LLVMBuildICmp(p->m->builder, LLVMIntSGT, k, fp_int(p, 0), "");
    k = fp_select(p, is_far, k, fp_int(p, 0));
    Val half = fp_shr(p, k, 1);
    Val rest = fp_isub(p, k, half);
    Val first = power_of_two(p, half);
    Val second = power_of_two(p, rest);
    Val step = fp_mul(p, y, first);
    return fp_mul(p, step, second);
}

static Val any_lane(const Fp *p, Val condition) {
    if (!p->lanes) return condition;
    return fp_intrinsic(p->m, "llvm.vector.reduce.or", LLVMTypeOf(condition), &condition, 1);
}

/* Lanes that are done take quotients of zero. Infinite x and y = 0 turn into NaN in the first
 * round, which ends the loop; infinite y never enters it. */
static Val frem_f64(const Fp *p, Val x, Val y) {
    LLVMBuilderRef b = p->m->builder;
    Val x_size = math_fabs(p->m, x);
    Val y_size = math_fabs(p->m, y);
    Val y_exponent = exponent_of(p, y_size);
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(b);
    Val function = LLVMGetBasicBlockParent(entry);
    LLVMContextRef context = p->m->context;
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(context, function, "frem");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(context, function, "frem.step");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(context, function, "frem.done");
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    Val r = LLVMBuildPhi(b, p->type, "");
    Val is_less = fp_lt(p, r, y_size);
    Val is_nan = fp_unordered(p, r, y_size);
    Val is_done = fp_or(p, is_less, is_nan);
    Val is_open = LLVMBuildNot(b, is_done, "");
    Val is_any = any_lane(p, is_open);
    LLVMBuildCondBr(b, is_any, body, done);
    LLVMPositionBuilderAtEnd(b, body);
    Val step = step_for(p, r, y_size, y_exponent);
    Val stepped = remainder_step(p, r, step);
    Val next = fp_select(p, is_open, stepped, r);
    LLVMBuildBr(b, head);
    Val values[] = {x_size, next};
    LLVMBasicBlockRef blocks[] = {entry, body};
    LLVMAddIncoming(r, values, blocks, 2);
    LLVMPositionBuilderAtEnd(b, done);
    Val is_y_nan = fp_unordered(p, y_size, y_size);
    Val result = fp_select(p, is_y_nan, y_size, r);
    return math_copysign(p->m, result, x);
}

Val math_frem(const MathCtx *m, Val x, Val y) {
    Fp p = fp_of(m, x);
    return p.is_f64 ? frem_f64(&p, x, y) : frem_f32(&p, x, y);
}
