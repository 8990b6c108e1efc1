/* See math_reference.h. */
#include "math_reference.h"

#include <math.h>

static double silu(double x) {
    return x < 0 ? x * exp(x) / (1 + exp(x)) : x / (1 + exp(-x));
}

static long double silul(long double x) {
    return x < 0 ? x * expl(x) / (1 + expl(x)) : x / (1 + expl(-x));
}

const MathReference math_references[N_MATH_REFERENCES] = {
    {MATH_OP_exp, exp, expl, 800, 1.1, 1.1},    {MATH_OP_exp2, exp2, exp2l, 1100, 1.1, 1.1},
    {MATH_OP_log, log, logl, 3, 1.1, 1.1},      {MATH_OP_log2, log2, log2l, 3, 1.1, 1.1},
    {MATH_OP_sin, sin, sinl, 2e6, 1.6, 1.1},    {MATH_OP_cos, cos, cosl, 2e6, 1.6, 1.1},
    {MATH_OP_tanh, tanh, tanhl, 2, 1.4, 2.8},   {MATH_OP_erf, erf, erfl, 4, 1.3, 1.1},
    {MATH_OP_silu, silu, silul, 800, 3.2, 3.2}, {MATH_OP_pow, NULL, NULL, 10, 0.6, 1.1},
};

double math_error_ulp(double got, long double want, Dtype type) {
    bool is_f32 = type == DT_F32;
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
    long double limit = ldexpl(1.0L, is_f32 ? 128 : 1024);
    if (fabsl(want) > limit) want = copysignl(limit, want);
    long double value = isinf(got) ? copysignl(limit, (long double)got) : (long double)got;
    if (value == want) return 0;
    int exponent = is_f32 ? -126 : -1022;
    if (want != 0 && ilogbl(want) > exponent) exponent = ilogbl(want);
    return (double)ldexpl(fabsl(value - want), (is_f32 ? 23 : 52) - exponent);
}

uint64_t math_random(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
