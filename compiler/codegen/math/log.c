/* log and log2. x = m * 2^e with m in [sqrt(1/2), sqrt(2)), f = m - 1. In float log(1 + f) is a
 * polynomial; in double it is 2 atanh(s), s = f / (2 + f), as a polynomial in s^2. */
#include "codegen/math/math_ops.h"

static const double ln2_f64[2] = {LN2_HIGH, LN2_LOW};
static const double ln2_f32[2] = {0x1.62e430p-1, -0x1.05c610p-29};
static const double log2_e_f64[2] = {LOG2_E_HIGH, LOG2_E_LOW};
static const double log2_e_f32[2] = {0x1.715476p+0, 0x1.4ae0c0p-26};

/* (log(1 + f) - f) / f^2, and the same over ln2: 2^-27 of the logarithm. */
static const double log_f32[] = {-0x1.fffff8p-2, 0x1.555550p-2,  -0x1.000426p-2,
                                 0x1.99a3f2p-3,  -0x1.542750p-3, 0x1.227184p-3,
                                 -0x1.0f3868p-3, 0x1.0849a0p-3,  -0x1.382e2ap-4};
static const double log2_f32[] = {-0x1.715470p-1, 0x1.ec7096p-2,  -0x1.715a74p-2,
                                  0x1.277e3cp-2,  -0x1.eabce4p-3, 0x1.a30572p-3,
                                  -0x1.8749cap-3, 0x1.7d4952p-3,  -0x1.c2618ap-4};

/* (2 atanh(s) / s - 2) / z, z = s^2: 2^-59 of the logarithm. */
static const double atanh_f64[] = {0x1.5555555555592p-1, 0x1.999999997ff54p-2, 0x1.24924941dc456p-2,
                                   0x1.c71c521914127p-3, 0x1.74663bec7e493p-3, 0x1.39a201ad07728p-3,
                                   0x1.2f02d3df1c64bp-3};

/* The exponent as a number. double: 52 bits under the exponent of 2^52 are such an integer. */
static Val exponent_number(const Fp *p, Val field, Val bias) {
    Val number;
    if (p->is_f64) {
        Val bits = fp_or(p, field, fp_int(p, 0x4330000000000000u));
        number = fp_from_bits(p, bits);
    } else {
        number = k_sitofp(p->k, field, p->type);
    }
    return fp_sub(p, number, bias);
}

LogParts fp_log_parts(const Fp *p, Val x, bool subnormals) {
    unsigned n_mantissa = p->is_f64 ? 52 : 23;
    uint64_t one = p->is_f64 ? 0x3ff0000000000000u : 0x3f800000u;
    uint64_t root = p->is_f64 ? 0x3fe6a09e667f3bcdu : 0x3f3504f3u; /* sqrt(1/2) */
    double offset = p->is_f64 ? 0x1p52 + 1023.0 : 127.0;
    Val bias = fp_num(p, offset);
    if (subnormals) {
        Val is_small = fp_lt(p, x, fp_num(p, p->is_f64 ? 0x1p-1022 : 0x1p-126));
        Val scaled = fp_mul(p, x, fp_num(p, 0x1p54));
        x = fp_select(p, is_small, scaled, x);
        bias = fp_select(p, is_small, fp_num(p, offset + 54.0), bias);
    }
    Val bits = fp_to_bits(p, x);
    Val shifted = fp_iadd(p, bits, fp_int(p, one - root));
    Val field = fp_shr(p, shifted, n_mantissa);
    Val fraction = fp_and(p, shifted, fp_int(p, ((uint64_t)1 << n_mantissa) - 1));
    Val m_bits = fp_iadd(p, fraction, fp_int(p, root));
    LogParts parts = {.m = fp_from_bits(p, m_bits)};
    parts.e = exponent_number(p, field, bias);
    parts.f = fp_sub(p, parts.m, fp_num(p, 1.0));
    return parts;
}

Val fp_log_specials(const Fp *p, Val x, Val result) {
    Val is_number = fp_lt(p, x, fp_inf(p));
    result = fp_select(p, is_number, result, x);
    Val is_negative = fp_lt(p, x, fp_num(p, 0.0));
    result = fp_select(p, is_negative, fp_nan(p), result);
    Val is_zero = fp_eq(p, x, fp_num(p, 0.0));
    Val minus_inf = fp_int(p, p->is_f64 ? 0xfff0000000000000u : 0xff800000u);
    return fp_select(p, is_zero, LLVMConstBitCast(minus_inf, p->type), result);
}

static Val log_f32_of(const Fp *p, LogParts x) {
    Val tail = fp_poly(p, x.f, log_f32, COUNT_OF(log_f32));
    Val square = fp_mul(p, x.f, x.f);
    Val low = fp_mul(p, x.e, fp_num(p, ln2_f32[1]));
    low = fp_fma(p, square, tail, low);
    Val sum = fp_add(p, x.f, low);
    return fp_fma(p, x.e, fp_num(p, ln2_f32[0]), sum);
}

static Val log2_f32_of(const Fp *p, LogParts x) {
    Val tail = fp_poly(p, x.f, log2_f32, COUNT_OF(log2_f32));
    Val square = fp_mul(p, x.f, x.f);
    Val low = fp_mul(p, square, tail);
    low = fp_fma(p, x.f, fp_num(p, log2_e_f32[1]), low);
    Val sum = fp_fma(p, x.f, fp_num(p, log2_e_f32[0]), low);
    return fp_add(p, x.e, sum);
}

/* log(1 + f) = f - (h - s * (h + R)), h = f^2 / 2, R = z * P(z). */
typedef struct LogSeries {
    Val h, correction; /* s * (h + R) */
} LogSeries;

static LogSeries log_series(const Fp *p, Val f) {
    Val divisor = fp_add(p, f, fp_num(p, 2.0));
    Val s = math_div(p->k, f, divisor);
    Val z = fp_mul(p, s, s);
    Val series = fp_poly(p, z, atanh_f64, COUNT_OF(atanh_f64));
    Val half = fp_mul(p, f, fp_num(p, 0.5));
    LogSeries r = {.h = fp_mul(p, half, f)};
    Val sum = fp_fma(p, z, series, r.h);
    r.correction = fp_mul(p, s, sum);
    return r;
}

static Val log_f64_of(const Fp *p, LogParts x) {
    LogSeries r = log_series(p, x.f);
    Val low = fp_fma(p, x.e, fp_num(p, ln2_f64[1]), r.correction);
    Val below = fp_sub(p, low, r.h);
    Val sum = fp_add(p, x.f, below);
    return fp_fma(p, x.e, fp_num(p, ln2_f64[0]), sum);
}

/* The logarithm as a pair f - h, then times log2(e), so that e + it rounds once. */
static Val log2_f64_of(const Fp *p, LogParts x) {
    LogSeries r = log_series(p, x.f);
    Val minus_h = fp_neg(p, r.h);
    Pair log = pair_fast_sum(p, x.f, minus_h);
    log.low = fp_add(p, log.low, r.correction);
    Pair scale = {fp_num(p, log2_e_f64[0]), fp_num(p, log2_e_f64[1])};
    Pair product = pair_mul(p, log, scale);
    Pair sum = pair_fast_sum(p, x.e, product.high);
    Val low = fp_add(p, sum.low, product.low);
    return fp_add(p, sum.high, low);
}

Val math_log(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    LogParts parts = fp_log_parts(&p, x, true);
    Val result = p.is_f64 ? log_f64_of(&p, parts) : log_f32_of(&p, parts);
    return fp_log_specials(&p, x, result);
}

Val math_log2(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    LogParts parts = fp_log_parts(&p, x, true);
    Val result = p.is_f64 ? log2_f64_of(&p, parts) : log2_f32_of(&p, parts);
    return fp_log_specials(&p, x, result);
}
