/* pow: 2^(y log2|x|), with log2 to 65 bits for double; float works in double throughout, where a
 * 2^-37 logarithm is ample. The special cases of C99 F.9.4.4 are selected at the end. */
#include "codegen/math/math_ops.h"

static const double two_log2_e[2] = {2 * LOG2_E_HIGH, 2 * LOG2_E_LOW};
static const double third[2] = {0x1.5555555555555p-2, 0x1.5555555555555p-56};

/* (atanh(s) / s - 1) / z = 1/3 + z P(z), z = s^2: the tail P, 2^-73. */
static const double atanh_tail[] = {
    0x1.9999999999996p-3, 0x1.2492492492f52p-3, 0x1.c71c71c5965bap-4, 0x1.745d182977935p-4,
    0x1.3b1364bea6184p-4, 0x1.1120710438a91p-4, 0x1.de3d1d86fc913p-5, 0x1.eac8b0bc33870p-5};

/* 2 atanh(s) / (s ln2) in z to 2^-45, and (2^r - 1) / r to 2^-37, for float's results. */
static const double light_atanh[] = {0x1.71547652b8251p+1, 0x1.ec709dc53c7c7p-1,
                                     0x1.2776c29324f0ep-1, 0x1.a61a2ed7ca71fp-2,
                                     0x1.47955495a8ec1p-2, 0x1.21b0fee95a371p-2};
static const double light_exp2[] = {
    0x1.62e42fef89d72p-1,  0x1.ebfbdff7eba08p-3,  0x1.c6b08dc6c7b3cp-5,  0x1.3b2ab7adaf1b6p-7,
    0x1.5d875eb4b75dcp-10, 0x1.43073d25a5116p-13, 0x1.00c8badea1586p-16, 0x1.655c3b25f137ap-20};

/* s = (m - 1) / (m + 1) as a pair. */
static Pair atanh_argument(const Fp *p, LogParts x) {
    Val divisor = fp_add(p, x.m, fp_num(p, 1.0));
    Val m_part = fp_sub(p, divisor, fp_num(p, 1.0));
    Val divisor_low = fp_sub(p, x.m, m_part);
    Pair s = {.high = math_div(p->k, x.f, divisor)};
    Val negated = fp_neg(p, s.high);
    Val rest = fp_fma(p, negated, divisor, x.f);
    rest = fp_fma(p, negated, divisor_low, rest);
    s.low = math_div(p->k, rest, divisor);
    return s;
}

/* log2 as a pair, 2^-65 of it. */
static Pair log2_pair(const Fp *p, LogParts x) {
    Pair s = atanh_argument(p, x);
    Pair z = pair_mul(p, s, s);
    Val tail = fp_poly(p, z.high, atanh_tail, COUNT_OF(atanh_tail));
    Val bend = fp_mul(p, z.high, tail);
    Pair slope = pair_fast_sum(p, fp_num(p, third[0]), bend);
    slope.low = fp_add(p, slope.low, fp_num(p, third[1]));
    Pair excess = pair_mul(p, z, slope);
    Pair factor = pair_fast_sum(p, fp_num(p, 1.0), excess.high);
    factor.low = fp_add(p, factor.low, excess.low);
    Pair half = pair_mul(p, s, factor);
    Pair scale = {fp_num(p, two_log2_e[0]), fp_num(p, two_log2_e[1])};
    Pair log = pair_mul(p, half, scale);
    Pair sum = pair_fast_sum(p, x.e, log.high);
    sum.low = fp_add(p, sum.low, log.low);
    return sum;
}

/* size^y for double; `size` is |x|, whose logarithm was made right for 0 and infinity. */
static Val power_f64(const Fp *p, Val size, Val y) {
    LogParts parts = fp_log_parts(p, size, true);
    Pair log = log2_pair(p, parts);
    Val high = fp_log_specials(p, size, log.high);
    Val product = fp_mul(p, y, high);
    Val negated = fp_neg(p, product);
    Val low = fp_mul(p, y, log.low);
    Val error = fp_fma(p, y, high, negated);
    low = fp_add(p, error, low);
    Val extent = math_fabs(p->k, product);
    Val is_moderate = fp_lt(p, extent, fp_num(p, 1080.0));
    low = fp_select(p, is_moderate, low, fp_num(p, 0.0)); /* NaN beside an infinity */
    product = fp_clamp(p, product, -1080.0, 1080.0);
    Rounded n = fp_round(p, product);
    Val r = fp_sub(p, product, n.whole);
    r = fp_add(p, r, low);
    Val value = fp_exp2_near(p, r);
    return fp_scale(p, value, n);
}

/* The same for operands and a result that fit float, in double. */
static Val power_light(const Fp *p, Val size, Val y) {
    LogParts x = fp_log_parts(p, size, false);
    Val divisor = fp_add(p, x.m, fp_num(p, 1.0));
    Val s = math_div(p->k, x.f, divisor);
    Val z = fp_mul(p, s, s);
    Val series = fp_poly(p, z, light_atanh, COUNT_OF(light_atanh));
    Val log = fp_fma(p, s, series, x.e);
    log = fp_log_specials(p, size, log);
    Val product = fp_mul(p, y, log);
    product = fp_clamp(p, product, -200.0, 200.0);
    Rounded n = fp_round(p, product);
    Val r = fp_sub(p, product, n.whole);
    Val slope = fp_poly(p, r, light_exp2, COUNT_OF(light_exp2));
    Val value = fp_fma(p, r, slope, fp_num(p, 1.0));
    Val scale = fp_power(p, n);
    return fp_mul(p, value, scale);
}

typedef struct Parity {
    Val is_integer, is_odd;
} Parity;

static Parity parity_of(const Fp *p, Val y) {
    Val whole = math_trunc(p->k, y);
    Val half = fp_mul(p, y, fp_num(p, 0.5)); /* inexact only where y is no integer */
    Val half_whole = math_trunc(p->k, half);
    Val is_split = fp_ne(p, half, half_whole);
    Parity r = {.is_integer = fp_eq(p, y, whole)};
    r.is_odd = fp_and(p, r.is_integer, is_split);
    return r;
}

/* `result` is |x|^y where that is a number. Later selections win. */
static Val pow_specials(const Fp *p, Val x, Val size, Val y, Val result) {
    Parity parity = parity_of(p, y);
    Val zero = fp_num(p, 0.0);
    Val one = fp_num(p, 1.0);
    Val sign_source = fp_select(p, parity.is_odd, x, one);
    result = math_copysign(p->k, result, sign_source);
    Val is_negative = fp_lt(p, x, zero);
    Val is_finite = fp_lt(p, size, fp_inf(p));
    Val has_no_root = k_not(p->k, parity.is_integer);
    Val is_domain_error = fp_and(p, is_negative, is_finite);
    is_domain_error = fp_and(p, is_domain_error, has_no_root);
    result = fp_select(p, is_domain_error, fp_nan(p), result);
    Val is_nan = fp_unordered(p, x, y);
    result = fp_select(p, is_nan, fp_nan(p), result);
    Val is_power_zero = fp_eq(p, y, zero);
    Val is_base_one = fp_eq(p, x, one);
    Val is_one = fp_or(p, is_power_zero, is_base_one);
    Val y_size = math_fabs(p->k, y);
    Val is_y_infinite = fp_eq(p, y_size, fp_inf(p));
    Val is_unit = fp_eq(p, size, one);
    Val is_unit_power = fp_and(p, is_y_infinite, is_unit);
    is_one = fp_or(p, is_one, is_unit_power);
    return fp_select(p, is_one, one, result);
}

Val math_pow(const Codegen *k, Val x, Val y) {
    Fp own = fp_of(k, x);
    Fp p = fp_f64(&own);
    if (!own.is_f64) {
        x = k_fpext(k, x, p.type);
        y = k_fpext(k, y, p.type);
    }
    Val size = math_fabs(k, x);
    Val power = own.is_f64 ? power_f64(&p, size, y) : power_light(&p, size, y);
    Val result = pow_specials(&p, x, size, y, power);
    return own.is_f64 ? result : k_fptrunc(k, result, own.type);
}
