/* Quotients of many f32 by one divisor, correctly rounded, without a branch per element.
 *
 * With r = 1/y rounded to nearest, q = x*r is at most 1.5 ULP off, and q + (x - y*q)*r, by two
 * fused multiply-adds, is the quotient rounded to nearest. Where q is next to the quotient that is
 * Markstein's theorem. It may be one further away only if x's significand is less than y's; then
 * the result can be wrong only where the quotient is within 4 units of 2^-48/y of the middle
 * between two numbers (significands in [1, 2)). There are few such pairs, and test_math.c tries all
 * of them. The remainder is taken with its sign turned, so that of zero it is +0 and the sign of x
 * stays.
 *
 * That needs a divisor that is positive and moderate, and moderate quotients. Few instructions tell
 * for all lanes together whether all are between 2^-63 and 2, which is usual; a second look lets
 * zeros pass, of which the same holds and of which a masked softmax has many; others are divided
 * one by one. */
#include "back/math_ops.h"

MathDivisor math_divisor(const MathCtx *m, Val y) {
    Fp p = fp_of(m, y);
    MathDivisor d = {.value = y};
    LLVMBuilderRef b = m->builder;
    Val reciprocal = LLVMBuildFDiv(b, fp_num(&p, 1), y, "");
    d.minus_reciprocal = fp_neg(&p, reciprocal);
    d.reciprocal = reciprocal;
    Val is_large = LLVMBuildFCmp(b, LLVMRealOGE, y, fp_num(&p, 0x1p-32), "");
    Val is_small = LLVMBuildFCmp(b, LLVMRealOLE, y, fp_num(&p, 0x1p32), "");
    Val is_moderate = fp_and(&p, is_large, is_small);
    Val is_excess = LLVMBuildNot(b, is_moderate, "");
    d.excess = fp_excess(&p, is_excess);
    return d;
}

static Val quick_quotient(const Fp *p, Val x, const MathDivisor *d) {
    Val y = fp_splat(p->m, d->value, p->lanes);
    Val reciprocal = fp_splat(p->m, d->reciprocal, p->lanes);
    Val minus_reciprocal = fp_splat(p->m, d->minus_reciprocal, p->lanes);
    Val near = fp_mul(p, x, reciprocal);
    Val minus_x = fp_neg(p, x);
    Val minus_rest = fp_fma(p, y, near, minus_x);
    return fp_fma(p, minus_rest, minus_reciprocal, near);
}

static Val plain_quotient(const Fp *one, Val x, const void *divisor) {
    const MathDivisor *d = divisor;
    return LLVMBuildFDiv(one->m->builder, x, d->value, "");
}

Val math_quotient(const MathCtx *m, Val x, const MathDivisor *d) {
    Fp p = fp_of(m, x);
    LLVMBuilderRef b = m->builder;
    Val quick = quick_quotient(&p, x, d);
    LLVMBasicBlockRef from[3] = {LLVMGetInsertBlock(b)};
    Val function = LLVMGetBasicBlockParent(from[0]);
    LLVMBasicBlockRef look = LLVMAppendBasicBlockInContext(m->context, function, "look_again");
    LLVMBasicBlockRef unusual = LLVMAppendBasicBlockInContext(m->context, function, "unusual");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(m->context, function, "divided");
    Val is_usual = fp_all_usual(&p, quick, d->excess);
    LLVMBuildCondBr(b, is_usual, done, look);
    LLVMPositionBuilderAtEnd(b, look);
    Val is_zero = fp_eq(&p, x, fp_num(&p, 0));
    Val others = fp_select(&p, is_zero, fp_num(&p, 1), quick);
    is_usual = fp_all_usual(&p, others, d->excess);
    LLVMBuildCondBr(b, is_usual, done, unusual);
    from[1] = look;
    LLVMPositionBuilderAtEnd(b, unusual);
    Val values[3] = {quick, quick, fp_each_lane(&p, x, plain_quotient, d, done)};
    from[2] = LLVMGetInsertBlock(b);
    LLVMPositionBuilderAtEnd(b, done);
    Val quotient = LLVMBuildPhi(b, p.type, "");
    LLVMAddIncoming(quotient, values, from, 3);
    return quotient;
}
