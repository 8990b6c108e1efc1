/* erf. Near zero x + x P(x^2); beyond, 1 - exp(-Q(|x|)) with Q = -log(erfc), which is smooth, a
 * polynomial. Both are computed and one selected. */
#include "codegen/math/math_ops.h"

/* erf(x) / x - 1 in x^2; |x| < 0.9375 for float, 0.9 for double (2^-56). */
static const double inner_f32[] = {0.128379151,   -0.37612468,   0.112815522,
                                   -0.0267570354, 0.00497913128, -0.000591942167};
static const double inner_f64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379f5p-2,  0x1.ce2f21a042f13p-4,  -0x1.b82ce31294d74p-6,
    0x1.565bcd110b465p-8,  -0x1.c02db49fca153p-11, 0x1.f9a33b3fa3cc4p-14, -0x1.f4d3bdc22c669p-17,
    0x1.b9f15d42e6736p-20, -0x1.5f547786d1608p-23, 0x1.f2d1bb7646fcep-27, -0x1.07f5aab995873p-30};

/* float: Q(t) / t - 1, t up to 4. double: Q(1 + u), u up to 5, weighted by erfc: far out, where
 * the terms grow and cancel, e^-Q no longer matters. */
static const double outer_f32[] = {0.128561065,  0.635582507,     0.105345018,     -0.0227602236,
                                   0.0029829524, -6.85666528e-05, -4.18788841e-05, 4.63599099e-06};
static const double outer_f64[] = {
    0x1.d97fbf27aa2a1p+0,   0x1.51c9b0006c23dp+1,   0x1.afabc11a28f9ap-1,   0x1.5477f09ca8f0dp-5,
    -0x1.48c9d40d0edd7p-7,  0x1.033f69abee11cp-9,   -0x1.f1b4b4177da21p-13, -0x1.b8c1dca627bc3p-16,
    0x1.c76b9439b95e4p-16,  -0x1.41c2db8ad1c17p-17, 0x1.12114932ba5a3p-19,  -0x1.21e866d6f4f5bp-23,
    -0x1.95b3a22806363p-24, 0x1.7954663ca684ep-25,  -0x1.12bc4ac15f08ep-27, -0x1.9ff7b36de0662p-31,
    0x1.f2a4d1e13de9bp-31,  -0x1.2eeb0cd488599p-32, 0x1.973bc4bb51c74p-35,  -0x1.313e2d64e36dep-38,
    0x1.903185c84dc92p-43};

/* -Q(size) */
static Val log_erfc(const Fp *p, Val size) {
    double limit = p->is_f64 ? 6.0 : 4.0; /* erf rounds to 1 from here on */
    Val is_large = fp_gt(p, size, fp_num(p, limit));
    Val t = fp_select(p, is_large, fp_num(p, limit), size);
    Val q;
    if (p->is_f64) {
        Val u = fp_sub(p, t, fp_num(p, 1.0));
        q = fp_poly(p, u, outer_f64, COUNT_OF(outer_f64));
    } else {
        Val h = fp_poly(p, t, outer_f32, COUNT_OF(outer_f32));
        q = fp_fma(p, t, h, t);
    }
    return fp_neg(p, q);
}

Val math_erf(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    Val size = math_fabs(k, x);
    Val exponent = log_erfc(&p, size);
    Val erfc = fp_exp_normal(&p, exponent);
    Val outer = fp_sub(&p, fp_num(&p, 1.0), erfc);
    Val s = fp_mul(&p, size, size);
    Val series = p.is_f64 ? fp_poly(&p, s, inner_f64, COUNT_OF(inner_f64))
                          : fp_poly(&p, s, inner_f32, COUNT_OF(inner_f32));
    Val inner = fp_fma(&p, size, series, size);
    Val is_inner = fp_lt(&p, size, fp_num(&p, p.is_f64 ? 0.9 : 0.9375));
    Val result = fp_select(&p, is_inner, inner, outer);
    return math_copysign(k, result, x);
}
