/* exp, exp2, tanh. Where the machine has no 2^x of its own, x = n ln2 + r with |r| <= ln2/2, e^r by
 * a polynomial, then times 2^n. The polynomials are minimax fits of relative error. */
#include "codegen/math/math_ops.h"

#include <math.h>

/* Two terms each; float's first is short, so that x less n times it is exact. */
static const double ln2_f64[2] = {LN2_HIGH, LN2_LOW};
static const double ln2_f32[2] = {0x1.62e4p-1, 0x1.7f7d1cp-20};

/* (e^r - 1 - r) / r^2: 2^-60 and 2^-27 of e^r - 1. */
static const double exp_f64[] = {
    0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.555555555555bp-5,  0x1.111111110f710p-7,
    0x1.6c16c16c14cc9p-10, 0x1.a01a01af5ec80p-13, 0x1.a01a01a294425p-16, 0x1.71ddfa4eacbefp-19,
    0x1.27e4fd3c2f123p-22, 0x1.af5a906cd2db0p-26, 0x1.1f1daac5a4866p-29};
static const double exp_f32[] = {0.5, 0.166665122, 0.0416661873, 0.00836959761, 0.00139517034};

/* (2^r - 1) / r on |r| <= 1/2. */
static const double exp2_f64[] = {
    0x1.62e42fefa39efp-1,  0x1.ebfbdff82c59cp-3,  0x1.c6b08d704a0d5p-5,  0x1.3b2ab6fba1249p-7,
    0x1.5d87fe78b3a09p-10, 0x1.4309130be9bc4p-13, 0x1.ffcbfbf98512ap-17, 0x1.62bfce2360245p-20,
    0x1.b5260ae19d258p-24, 0x1.e6111b46f63dap-28, 0x1.e8150ea76875ep-32};
static const double exp2_f32[] = {0x1.62e430p-1, 0x1.ebfbdcp-3,  0x1.c6aee8p-5,
                                  0x1.3b2d4ap-7, 0x1.5f3e5cp-10, 0x1.41feap-13};

/* tanh(x) = x + x s P(s), s = x^2, |x| < 0.6. */
static const double tanh_f32[] = {-0.333332986, 0.133319587, -0.0537866838, 0.020805385,
                                  -0.00590586895};

typedef struct Reduced {
    Rounded n;
    Val em1; /* e^r - 1 */
} Reduced;

static Reduced reduce(const Fp *p, Val x) {
    const double *ln2 = p->is_f64 ? ln2_f64 : ln2_f32;
    Reduced d = {.n = fp_round_product(p, x, LOG2_E_HIGH)};
    Val r = fp_fma(p, d.n.whole, fp_num(p, -ln2[0]), x);
    r = fp_fma(p, d.n.whole, fp_num(p, -ln2[1]), r);
    Val tail = p->is_f64 ? fp_poly(p, r, exp_f64, COUNT_OF(exp_f64))
                         : fp_poly(p, r, exp_f32, COUNT_OF(exp_f32));
    Val square = fp_mul(p, r, r);
    d.em1 = fp_fma(p, square, tail, r);
    return d;
}

/* NVIDIA's 2^x of f32: 2 ULP over the full range, subnormals, infinities and NaN as they should. */
static bool has_exp2(const Fp *p) {
    return k_has_ptx(p->k) && !p->is_f64;
}

/* `x` must hang on what is opaque. */
static Val machine_exp2(const Fp *p, Val x) {
    return fp_machine(p, "ex2.approx.f32 $0, $1;", &x, 1);
}

/* e^x = 2^t e^d = 2^t (1 + d), where t is about x log2(e) and d = x - t ln2, which is as small as
 * the rounding of t. Good while 2^t is finite. */
static Val machine_exp(const Fp *p, Val x) {
    const double low = -0x1.05c610p-29; /* ln2 less its nearest f32 */
    Val log2_e = fp_opaque(p, LOG2_E_HIGH);
    Val t = fp_mul(p, x, log2_e);
    Val d = fp_fma(p, t, fp_num(p, -LN2_HIGH), x);
    d = fp_fma(p, t, fp_num(p, -low), d);
    Val power = machine_exp2(p, t);
    return fp_fma(p, power, d, power);
}

Val fp_exp_normal(const Fp *p, Val x) {
    if (has_exp2(p)) return machine_exp(p, x);
    Reduced d = reduce(p, x);
    Val one_plus = fp_add(p, d.em1, fp_num(p, 1.0));
    Val power = fp_power(p, d.n);
    return fp_mul(p, one_plus, power);
}

/* e^x - 1 of doubles, in the same range. */
static Val fp_expm1_normal(const Fp *p, Val x) {
    Reduced d = reduce(p, x);
    Val power = fp_power(p, d.n);
    Val power_m1 = fp_sub(p, power, fp_num(p, 1.0));
    return fp_fma(p, power, d.em1, power_m1);
}

/* Far below -110, where e^x has become 0, d would make a NaN of it. */
static Val machine_exp_below(const Fp *p, Val x) {
    x = math_maximum(p->k, x, fp_num(p, -110.0));
    return machine_exp(p, x);
}

/* From the first x whose e^x is infinite on it stands for all: 2^t is infinite there, and d
 * positive, so that it makes no NaN of it. */
static Val machine_exp_full(const Fp *p, Val x) {
    const double first = 0x1.62e430p+6;
    x = math_minimum(p->k, x, fp_num(p, first));
    return machine_exp_below(p, x);
}

/* The bounds here and in exp2 are where the result has become 0 or infinity. */
Val math_exp(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    if (has_exp2(&p)) return machine_exp_full(&p, x);
    x = p.is_f64 ? fp_clamp(&p, x, -746.0, 710.0) : fp_clamp(&p, x, -104.0, 89.0);
    Reduced d = reduce(&p, x);
    Val one_plus = fp_add(&p, d.em1, fp_num(&p, 1.0));
    return fp_scale(&p, one_plus, d.n);
}

Val math_exp_below_0(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    return has_exp2(&p) ? machine_exp_below(&p, x) : math_exp(k, x);
}

/* The square of e^(x / 2), which neither overflows nor becomes subnormal before the result does. */
Val math_exp_16(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    if (!has_exp2(&p)) return math_exp(k, x);
    Val half_log2_e = fp_opaque(&p, LOG2_E_HIGH / 2);
    Val t = fp_mul(&p, x, half_log2_e);
    Val root = fp_machine(&p, "ex2.approx.ftz.f32 $0, $1;", &t, 1);
    return fp_mul(&p, root, root);
}

Val fp_exp2_near(const Fp *p, Val r) {
    Val slope = p->is_f64 ? fp_poly(p, r, exp2_f64, COUNT_OF(exp2_f64))
                          : fp_poly(p, r, exp2_f32, COUNT_OF(exp2_f32));
    return fp_fma(p, r, slope, fp_num(p, 1.0));
}

Val math_exp2(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    if (has_exp2(&p)) {
        Val one = fp_opaque(&p, 1.0);
        x = fp_mul(&p, x, one);
        return machine_exp2(&p, x);
    }
    x = p.is_f64 ? fp_clamp(&p, x, -1076.0, 1024.0) : fp_clamp(&p, x, -151.0, 128.0);
    Rounded n = fp_round(&p, x);
    Val r = fp_sub(&p, x, n.whole);
    Val value = fp_exp2_near(&p, r);
    return fp_scale(&p, value, n);
}

/* NVIDIA's, without a choice: h / (h + 1), where h = (e^2|x| - 1) / 2 = 2^n (e^2r - 1) / 2 + (2^n -
 * 1) / 2, with r in halves of ln2. From 10 on the result is 1. */
static Val machine_tanh(const Fp *p, Val x) {
    Val size = math_fabs(p->k, x);
    size = fp_at_most(p, size, 10.0);
    Rounded n = fp_round_product(p, size, 2 * LOG2_E_HIGH);
    Val r = fp_fma(p, n.whole, fp_num(p, -ln2_f32[0] / 2), size);
    r = fp_fma(p, n.whole, fp_num(p, -ln2_f32[1] / 2), r);
    double tail_coefs[COUNT_OF(exp_f32)];
    for (size_t i = 0; i < COUNT_OF(exp_f32); i++) tail_coefs[i] = ldexp(exp_f32[i], (int)i + 1);
    Val tail = fp_poly(p, r, tail_coefs, COUNT_OF(exp_f32));
    Val square = fp_mul(p, r, r);
    Val near = fp_fma(p, square, tail, r);
    Val power = fp_power(p, n);
    Val rest = fp_fma(p, power, fp_num(p, 0.5), fp_num(p, -0.5));
    Val h = fp_fma(p, power, near, rest);
    Val divisor = fp_add(p, h, fp_num(p, 1.0));
    Val result = math_near_quotient(p->k, h, divisor);
    result = fp_at_most(p, result, 1.0);
    return math_copysign(p->k, result, x); /* 2^n - 1 loses the sign of zero */
}

static Val tanh_of_f32(const Fp *p, Val x) {
    Val size = math_fabs(p->k, x);
    Val is_large = fp_gt(p, size, fp_num(p, 10.0));
    Val bounded = fp_select(p, is_large, fp_num(p, 10.0), size);
    Val twice = fp_add(p, bounded, bounded);
    Val power = fp_exp_normal(p, twice);
    Val divisor = fp_add(p, power, fp_num(p, 1.0));
    Val fraction = math_div(p->k, fp_num(p, 2.0), divisor);
    Val outer = fp_sub(p, fp_num(p, 1.0), fraction);
    Val s = fp_mul(p, size, size);
    Val series = fp_poly(p, s, tanh_f32, COUNT_OF(tanh_f32));
    Val cube = fp_mul(p, s, size);
    Val inner = fp_fma(p, cube, series, size);
    Val is_inner = fp_lt(p, size, fp_num(p, 0.6));
    Val result = fp_select(p, is_inner, inner, outer);
    return math_copysign(p->k, result, x); /* the polynomial loses the sign of zero */
}

/* q = e^2|x| - 1: q / (q + 2), near one written as 1 - 2 / (q + 2). One division for both. */
static Val tanh_of_f64(const Fp *p, Val x) {
    Val size = math_fabs(p->k, x);
    Val is_large = fp_gt(p, size, fp_num(p, 20.0));
    Val bounded = fp_select(p, is_large, fp_num(p, 20.0), size);
    Val twice = fp_add(p, bounded, bounded);
    Val q = fp_expm1_normal(p, twice);
    Val is_inner = fp_lt(p, size, fp_num(p, 0.55));
    Val divisor = fp_add(p, q, fp_num(p, 2.0));
    Val dividend = fp_select(p, is_inner, q, fp_num(p, 2.0));
    Val inner = math_div(p->k, dividend, divisor);
    Val outer = fp_sub(p, fp_num(p, 1.0), inner);
    Val result = fp_select(p, is_inner, inner, outer);
    return math_copysign(p->k, result, x);
}

Val math_tanh(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    if (has_exp2(&p)) return machine_tanh(&p, x);
    return p.is_f64 ? tanh_of_f64(&p, x) : tanh_of_f32(&p, x);
}

Val math_tanh_10(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    if (!k_has_ptx(k) || p.is_f64) return math_tanh(k, x);
    Val one = fp_opaque(&p, 1.0);
    x = fp_mul(&p, x, one);
    return fp_machine(&p, "tanh.approx.f32 $0, $1;", &x, 1);
}
