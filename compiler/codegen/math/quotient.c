/* Quotients of many f32 by one divisor, correctly rounded, without a branch per element.
 *
 * With r = 1/y rounded to nearest, q = x*r is at most 1.5 ULP off, and q + (x - y*q)*r, by two
 * fused multiply-adds, is the quotient rounded to nearest. Where q is next to the quotient that is
 * Markstein's theorem. It may be one further away only if x's significand is less than y's; then
 * the result can be wrong only where the quotient is within 4 units of 2^-48/y of the middle
 * between two numbers (significands in [1, 2)). There are few such pairs, and test_math.c tries all
 * of them. The remainder is taken with its sign turned, so that of zero it is +0 and the sign of x
 * stays; where no x has a sign that takes no negation.
 *
 * That needs a divisor that is positive and moderate, and moderate quotients: of divisors between
 * 2^-32 and 2^32 those of dividends from 2^-94 to 2^34, whose remainders too are normal numbers.
 * Few instructions tell for all lanes together whether they are, which is usual. Zeros may pass, of
 * which the same holds and of which a masked softmax has many: of fractions at once, else at a
 * second look. Of fractions NaN passes too, since all that it makes is NaN. Others are divided in
 * f64, which has more than twice the digits plus two, so that rounding the quotient again rounds
 * once, subnormal results included. Dividends are looked at rather than quotients, so that these
 * can take their registers. */
#include "codegen/math/math_ops.h"

MathDivisor math_divisor(const Codegen *k, Val y) {
    Fp p = fp_of(k, y);
    MathDivisor d = {.value = y};
    Val reciprocal = k_fdiv(k, fp_num(&p, 1), y);
    d.minus_reciprocal = fp_neg(&p, reciprocal);
    d.minus_value = fp_neg(&p, y);
    d.reciprocal = reciprocal;
    Val is_large = k_fcmp(k, LLVMRealOGE, y, fp_num(&p, 0x1p-32));
    Val is_small = k_fcmp(k, LLVMRealOLE, y, fp_num(&p, 0x1p32));
    Val is_moderate = fp_and(&p, is_large, is_small);
    d.moderate = fp_condition_bits(&p, is_moderate);
    return d;
}

/* `p` is of float or double, as the divisor is. */
static Val quick_quotient(const Fp *p, Val x, const MathDivisor *d, Val *near) {
    Val y = fp_splat(p->k, d->value, p->lanes);
    Val reciprocal = fp_splat(p->k, d->reciprocal, p->lanes);
    Val minus_reciprocal = fp_splat(p->k, d->minus_reciprocal, p->lanes);
    *near = fp_mul(p, x, reciprocal);
    Val minus_x = fp_neg(p, x);
    Val minus_rest = fp_fma(p, y, *near, minus_x);
    return fp_fma(p, minus_rest, minus_reciprocal, *near);
}

static Val quick_quotient_of_fractions(const Fp *p, Val x, const MathDivisor *d) {
    Val minus_y = fp_splat(p->k, d->minus_value, p->lanes);
    Val reciprocal = fp_splat(p->k, d->reciprocal, p->lanes);
    Val near = fp_mul(p, x, reciprocal);
    Val rest = fp_fma(p, minus_y, near, x);
    return fp_fma(p, rest, reciprocal, near);
}

/* In f64. */
static MathDivisor wide_divisor(const Codegen *k, Val y) {
    Fp narrow = fp_of(k, y), wide = fp_f64(&narrow);
    MathDivisor d = {.value = k_fpext(k, y, wide.type)};
    d.reciprocal = fp_refined_reciprocal(&wide, d.value);
    d.minus_reciprocal = fp_neg(&wide, d.reciprocal);
    return d;
}

/* The remainder is no number where the quotient is infinite, or the divisor; where it is zero, the
 * sign may be lost. */
static Val wide_quotient(const Fp *p, Val x, const void *divisor) {
    Fp wide = fp_f64(p);
    Val x_wide = k_fpext(p->k, x, wide.type), near;
    Val quotient = quick_quotient(&wide, x_wide, divisor, &near);
    Val is_good = fp_ne(&wide, quotient, fp_num(&wide, 0));
    quotient = fp_select(&wide, is_good, quotient, near);
    return k_fptrunc(p->k, quotient, p->type);
}

static void branch_if_usual(const Fp *p, Val x, const MathDivisor *d, LLVMBasicBlockRef usual,
                            LLVMBasicBlockRef unusual) {
    const Codegen *k = p->k;
    Val is_usual = fp_all_usual(p, x, d->moderate);
    LLVMBasicBlockRef look = k_block(k, "look_again");
    k_cond_br(k, is_usual, usual, look);
    k_goto(k, look);
    Val is_zero = fp_eq(p, x, fp_num(p, 0));
    Val others = fp_select(p, is_zero, fp_num(p, 1), x);
    is_usual = fp_all_usual(p, others, d->moderate);
    k_cond_br(k, is_usual, usual, unusual);
}

Val math_quotient(const Codegen *k, Val x, const MathDivisor *d, bool are_fractions) {
    Fp p = fp_of(k, x);
    Val near;
    LLVMBasicBlockRef usual = k_block(k, "usual");
    LLVMBasicBlockRef unusual = k_block(k, "unusual");
    LLVMBasicBlockRef done = k_block(k, "divided");
    if (are_fractions) {
        Val is_usual = fp_all_usual_fractions(&p, x, d->moderate);
        k_cond_br(k, is_usual, usual, unusual);
    } else
        branch_if_usual(&p, x, d, usual, unusual);
    k_goto(k, usual);
    Val quick =
        are_fractions ? quick_quotient_of_fractions(&p, x, d) : quick_quotient(&p, x, d, &near);
    k_br(k, done);
    k_goto(k, unusual);
    MathDivisor wide = wide_divisor(k, d->value);
    Val slow = fp_few_lanes(&p, x, wide_quotient, &wide, done);
    LLVMBasicBlockRef from = k_here(k);
    k_goto(k, done);
    return k_merge(k, quick, usual, slow, from);
}
