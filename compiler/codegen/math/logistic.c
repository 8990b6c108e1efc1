/* The logistic function and the normal distribution's, which activations multiply by. */
#include "codegen/math/math_ops.h"

/* With z = e^-|x|, which cannot overflow: 1 / (1 + z), below 0 z / (1 + z). */
static Val two_sided(const Fp *p, Val x) {
    Val size = math_fabs(p->k, x);
    Val minus_size = fp_neg(p, size);
    Val z = math_exp_below_0(p->k, minus_size);
    Val is_below = fp_lt(p, x, fp_num(p, 0.0));
    Val dividend = fp_select(p, is_below, z, fp_num(p, 1.0));
    Val divisor = fp_add(p, z, fp_num(p, 1.0));
    return math_near_quotient(p->k, dividend, divisor);
}

/* NVIDIA's machines: 1 / (1 + 2^u), u = -x log2(e), is 2^-K / (2^-K + 2^(u - K)). The machine's
 * reciprocal takes and gives normal numbers alone; so scaled it lasts until the result is 0.
 *
 * 2^u = 2^n 2^r. A product that saturates keeps n from N_LEAST to N_LEAST + N_RANGE, whatever x is;
 * NaN comes through in r. log2(e) has two terms. */
static Val machine_logistic(const Fp *p, Val x) {
    enum { K = 26, N_LEAST = -100, N_RANGE = 252 };
    const double shift = 0x1.8p23, log2_e_low = 0x1.4ae0c0p-26;
    Val share_args[] = {x, fp_num(p, -LOG2_E_HIGH / N_RANGE),
                        fp_num(p, -(double)N_LEAST / N_RANGE)};
    Val share = fp_machine(p, "fma.rn.sat.f32 $0, $1, $2, $3;", share_args, 3);
    Val shifted = fp_fma(p, share, fp_num(p, N_RANGE), fp_num(p, shift));
    Val minus_n = fp_sub(p, fp_num(p, shift - N_LEAST), shifted);
    Val log2_e = fp_opaque(p, -LOG2_E_HIGH);
    Val r = fp_fma(p, x, log2_e, minus_n);
    r = fp_fma(p, x, fp_num(p, -log2_e_low), r);
    Val power = fp_machine(p, "ex2.approx.ftz.f32 $0, $1;", &r, 1);
    Val scale = fp_to_bits(p, shifted);
    scale = fp_shl(p, scale, 23);
    scale = fp_iadd(p, scale, fp_int(p, (uint64_t)(127 + N_LEAST - K) << 23)); /* 2^(n - K) */
    scale = fp_from_bits(p, scale);
    Val divisor = fp_fma(p, power, scale, fp_num(p, 0x1p-26));
    Val reciprocal = fp_machine_reciprocal(p, divisor);
    return fp_mul(p, reciprocal, fp_num(p, 0x1p-26));
}

Val math_logistic(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    return k_has_ptx(k) && !p.is_f64 ? machine_logistic(&p, x) : two_sided(&p, x);
}

/* The same without the parts: 16 bits do not see what rounding u - K loses, 2^-18 of it at worst.
 */
Val math_logistic_16(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    if (!k_has_ptx(k) || p.is_f64) return math_logistic(k, x);
    Val log2_e = fp_opaque(&p, -LOG2_E_HIGH);
    Val exponent = fp_fma(&p, x, log2_e, fp_num(&p, -16.0));
    Val power = fp_machine(&p, "ex2.approx.ftz.f32 $0, $1;", &exponent, 1);
    Val divisor = fp_add(&p, power, fp_num(&p, 0x1p-16));
    Val reciprocal = fp_machine_reciprocal(&p, divisor);
    return fp_mul(&p, reciprocal, fp_num(&p, 0x1p-16));
}

Val math_normal(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    Val scaled = fp_mul(&p, x, fp_num(&p, 0.70710678118654752440));
    Val erf = math_erf(k, scaled);
    Val twice = fp_add(&p, erf, fp_num(&p, 1.0));
    return fp_mul(&p, twice, fp_num(&p, 0.5));
}

/* The logistic function of x P(x^2), a fit to the logarithm of the odds normal(x) / normal(-x) for
 * |x| < 5.1; beyond, P stands still: 1 - normal(|x|) is below 2 10^-7 there. */
Val math_normal_12(const Codegen *k, Val x) {
    static const double odds[] = {1.5950960555, 0.07364732236, -4.904981148e-4, -3.208489324e-5,
                                  1.1244823727e-6};
    Fp p = fp_of(k, x);
    if (!k_has_ptx(k) || p.is_f64) return math_normal(k, x);
    double coefs[COUNT_OF(odds)];
    for (size_t i = 0; i < COUNT_OF(odds); i++) coefs[i] = -LOG2_E_HIGH * odds[i];
    Val square = fp_mul(&p, x, x);
    square = math_minimum(k, square, fp_num(&p, 26.0));
    Val slope = fp_poly(&p, square, coefs, COUNT_OF(coefs));
    Val one = fp_opaque(&p, 1.0);
    Val exponent = fp_mul(&p, x, slope);
    exponent = fp_mul(&p, exponent, one);
    Val power = fp_machine(&p, "ex2.approx.ftz.f32 $0, $1;", &exponent, 1);
    Val divisor = fp_add(&p, power, fp_num(&p, 1.0));
    return fp_machine_reciprocal(&p, divisor);
}
