/* Quotients of many f32 by one divisor, correctly rounded, without a branch per element.
 *
 * Let r = 1/y rounded to nearest. Then q = x*r is wrong by at most 1.5 ULP, and q + (x - y*q)*r, by
 * two fma, is the quotient rounded to nearest. If q is a neighbour of the quotient, this is
 * Markstein's theorem. q can be one step further away only if the significand of x is less than
 * that of y. Then the result can be wrong only if the quotient is within 4 units of 2^-48/y of the
 * midpoint between two numbers (significands in [1, 2)). There are few such pairs, and test_math.c
 * tries all of them. The remainder is computed with its sign flipped, so that a zero remainder is
 * +0 and the sign of x stays. If no x has a sign, this needs no negation.
 *
 * The method needs a positive, moderate divisor and moderate quotients: divisors between 2^-32 and
 * 2^32 and dividends from 2^-94 to 2^34, whose remainders are normal numbers too. A few
 * instructions test all lanes together; usually all lanes pass. Zero dividends are right too, and a
 * masked softmax has many: fractions pass the first test with zeros, other dividends pass a second
 * test. A NaN among fractions passes, because its result is NaN in any case. All other lanes are
 * divided in f64, which has more than twice the digits of f32 plus two, so that rounding its
 * quotient is correct, subnormal results included; a CPU, which divides fractions so, has an
 * instruction for them. The tests look at dividends and not at
 * quotients, so that quotients can reuse the registers of the dividends. */
#include "codegen/math/math_ops.h"

MathDivisor math_divisor(const Codegen *k, Val y) {
    Fp p = fp_of(k, y);
    MathDivisor d = {.value = y};
    Val parts[4];
    math_call(k, "divisor_parts", &y, parts);
    d.reciprocal = parts[0];
    d.minus_reciprocal = parts[1];
    d.minus_value = parts[2];
    d.moderate = fp_condition_bits(&p, parts[3]);
    return d;
}

static Val quick_quotient(const Fp *p, Val x, const MathDivisor *d) {
    Val args[] = {x, fp_splat(p->k, d->value, p->lanes), NULL, NULL}, results[2];
    args[2] = fp_splat(p->k, d->reciprocal, p->lanes);
    args[3] = fp_splat(p->k, d->minus_reciprocal, p->lanes);
    math_call(p->k, "shared_quotient", args, results);
    return results[1];
}

static Val quick_quotient_of_fractions(const Fp *p, Val x, const MathDivisor *d) {
    Val args[] = {x, fp_splat(p->k, d->minus_value, p->lanes), NULL}, result;
    args[2] = fp_splat(p->k, d->reciprocal, p->lanes);
    math_call(p->k, "shared_quotient_of_fraction", args, &result);
    return result;
}

/* The divisor in f64. */
static MathDivisor wide_divisor(const Codegen *k, Val y) {
    MathDivisor d = {.value = k_fpext(k, y, k->f64)};
    d.reciprocal = math_unary(k, "refined_reciprocal", d.value);
    d.minus_reciprocal = k_fneg(k, d.reciprocal);
    return d;
}

static Val wide_quotient(const Fp *p, Val x, const void *divisor) {
    const MathDivisor *d = divisor;
    Fp wide = fp_f64(p);
    Val args[] = {k_fpext(p->k, x, wide.type), NULL, NULL, NULL}, result;
    args[1] = fp_splat(p->k, d->value, p->lanes);
    args[2] = fp_splat(p->k, d->reciprocal, p->lanes);
    args[3] = fp_splat(p->k, d->minus_reciprocal, p->lanes);
    math_call(p->k, "wide_shared_quotient", args, &result);
    return k_fptrunc(p->k, result, p->type);
}

static void branch_if_usual(const Fp *p, Val x, const MathDivisor *d, LLVMBasicBlockRef usual,
                            LLVMBasicBlockRef unusual) {
    const Codegen *k = p->k;
    Val is_usual = fp_all_usual(p, x, d->moderate);
    LLVMBasicBlockRef look = k_block(k, "look_again");
    k_cond_br(k, is_usual, usual, look);
    k_goto(k, look);
    Val is_zero = k_fcmp(k, LLVMRealOEQ, x, fp_num(p, 0));
    Val others = k_select(k, is_zero, fp_num(p, 1), x);
    is_usual = fp_all_usual(p, others, d->moderate);
    k_cond_br(k, is_usual, usual, unusual);
}

/* A CPU divides all lanes. Ends with a jump to `done`. */
static Val unusual_quotient(const Fp *p, Val x, const MathDivisor *d, LLVMBasicBlockRef done) {
    if (k_has_ptx(p->k)) {
        MathDivisor wide = wide_divisor(p->k, d->value);
        return fp_few_lanes(p, x, wide_quotient, &wide, done);
    }
    Val quotient = k_fdiv(p->k, x, fp_splat(p->k, d->value, p->lanes));
    k_br(p->k, done);
    return quotient;
}

Val math_quotient(const Codegen *k, Val x, const MathDivisor *d, bool are_fractions) {
    Fp p = fp_of(k, x);
    LLVMBasicBlockRef usual = k_block(k, "usual");
    LLVMBasicBlockRef unusual = k_block(k, "unusual");
    LLVMBasicBlockRef done = k_block(k, "divided");
    if (are_fractions) {
        Val is_usual = fp_all_usual_fractions(&p, x, d->moderate);
        k_cond_br(k, is_usual, usual, unusual);
    } else
        branch_if_usual(&p, x, d, usual, unusual);
    k_goto(k, usual);
    Val quick = are_fractions ? quick_quotient_of_fractions(&p, x, d) : quick_quotient(&p, x, d);
    k_br(k, done);
    k_goto(k, unusual);
    Val slow = unusual_quotient(&p, x, d, done);
    LLVMBasicBlockRef from = k_here(k);
    k_goto(k, done);
    return k_merge(k, quick, usual, slow, from);
}
