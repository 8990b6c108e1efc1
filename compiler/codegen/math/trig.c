/* sin and cos, over the whole range. x = (n + q) pi/2 with |q| <= 1/2; sin and cos of q pi/2 by
 * polynomials, chosen and signed by n mod 4.
 *
 * Where x is large only few bits of 2/pi matter: those whose product with x's last place is a
 * multiple of 4 fall away, those far below do not count. They are chosen by selects among
 * constants, so there is no table in memory and no branch. */
#include "codegen/math/math_ops.h"

/* pi/2 and 2/pi, each term the rest of those before. */
static const double half_pi[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                  -0x1.f1976b7ed8fbcp-110};
static const double two_over_pi = 0x1.45f306dc9c883p-1;

/* 2/pi less the bits of weight 2^-(first - 25) and more, rounded to a pair: right for float x,
 * 2^first <= |x| < 2^(first + 20). */
static const struct {
    double high, low, first; /* 2^first */
} windows[] = {
    {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0.0},
    {0x1.7cc1b727220a9p-7, 0x1.3f84eafa3ea6ap-61, 0x1p30},
    {0x1.b9391054a7f0ap-26, -0x1.505c1596447e5p-81, 0x1p50},
    {0x1.054a7f09d5f48p-46, -0x1.596447e493ad5p-101, 0x1p70},
    {0x1.f09d5f47d4d37p-66, 0x1.c0db6295993c4p-120, 0x1p90},
    {0x1.f47d4d377036ep-86, -0x1.d6a66c3bc6fbep-140, 0x1p110},
};

/* 2/pi in pieces of 53 bits, times 2^200 so that the last is a normal number. */
enum { N_PIECES = 23, N_USED = 5 };
static const double pieces[N_PIECES] = {
    0x1.45f306dc9c882p+199, 0x1.4a7f09d5f47d4p+146, 0x1.a6ee06db14accp+93,  0x1.3c439041fe516p+40,
    0x1.d5ef5de2b0db8p-15,  0x1.2371d2126e970p-67,  0x1.924bba8274600p-126, 0x1.21cfe1deb1cb1p-172,
    0x1.4d39f74411af8p-227, 0x1.4baed1213a671p-278, 0x1.8135a2fbf209cp-331, 0x1.91d639835339fp-384,
    0x1.272117e2ef7e4p-438, 0x1.41d8ffc4bffeep-491, 0x1.02cc07f79788cp-543, 0x1.6b414da3eda6cp-597,
    0x1.fb3c9f2c26dd2p-650, 0x1.d18fd9a797fa8p-702, 0x1.6ba93dd63f5f2p-755, 0x1.f17b3d0739f78p-808,
    0x1.4a525d4d7f6bfp-861, 0x1.88fc6ae842b00p-915, 0x1.98237e3db5d5fp-967};

/* (sin(r) / r - 1) / r^2 and (cos(r) - 1 + r^2/2) / r^4 in r^2, |r| <= pi/4. */
static const double sin_f64[] = {-0x1.5555555555548p-3,  0x1.111111110f731p-7,
                                 -0x1.a01a019be9cf0p-13, 0x1.71de35563c78cp-19,
                                 -0x1.ae5e4cadb46ebp-26, 0x1.5d8bc0a711b9fp-33};
static const double cos_f64[] = {0x1.555555555554bp-5,  -0x1.6c16c16c15013p-10,
                                 0x1.a01a019c8eda0p-16, -0x1.27e4f7f14e9d8p-22,
                                 0x1.1ee9db9b2a543p-29, -0x1.8fa666ecb7fbdp-37};
static const double sin_f32[] = {-0x1.555546p-3, 0x1.110778p-7, -0x1.995402p-13};
static const double cos_f32[] = {0x1.55554ap-5, -0x1.6c0c28p-10, 0x1.99e808p-16};

typedef struct Angle {
    Val quadrant; /* bits; the lowest two count */
    Pair r;       /* radians; float uses `high` alone */
} Angle;

/* The angle in double: x * (high + low) less its whole part is exact to 2^-60. */
static Angle reduce_f32(const Fp *own, Val narrow) {
    Fp p = fp_f64(own);
    Val x = k_fpext(p.k, narrow, p.type);
    Val size = math_fabs(p.k, x);
    Val high = fp_num(&p, windows[0].high);
    Val low = fp_num(&p, windows[0].low);
    for (size_t i = 1; i < COUNT_OF(windows); i++) {
        Val is_below = fp_lt(&p, size, fp_num(&p, windows[i].first));
        high = fp_select(&p, is_below, high, fp_num(&p, windows[i].high));
        low = fp_select(&p, is_below, low, fp_num(&p, windows[i].low));
    }
    Pair turns = pair_product(&p, x, high);
    Rounded n = fp_round(&p, turns.high);
    Val fraction = fp_sub(&p, turns.high, n.whole);
    Val rest = fp_fma(&p, x, low, turns.low);
    fraction = fp_add(&p, fraction, rest);
    Val r = fp_mul(&p, fraction, fp_num(&p, half_pi[0]));
    Angle a = {.r.high = k_fptrunc(p.k, r, own->type)};
    Val bits = fp_to_bits(&p, n.shifted);
    a.quadrant = k_trunc(p.k, bits, own->bits);
    return a;
}

/* |x| < 2^27: subtract n pi/2; n times the first term cancels x exactly. */
static Angle reduce_small(const Fp *p, Val x) {
    Rounded n = fp_round_product(p, x, two_over_pi);
    Val first = fp_fma(p, n.whole, fp_num(p, -half_pi[0]), x);
    Pair second = pair_product(p, n.whole, fp_num(p, -half_pi[1]));
    Pair sum = pair_sum(p, first, second.high);
    Val low = fp_fma(p, n.whole, fp_num(p, -half_pi[2]), second.low);
    low = fp_add(p, sum.low, low);
    Angle a = {.r = pair_fast_sum(p, sum.high, low)};
    a.quadrant = fp_to_bits(p, n.shifted);
    return a;
}

/* The five pieces that count: from piece k = floor((exponent - 54) / 53) on. The index's bits
 * shift the list by 16, 8, 4, 2, 1 places. */
static void choose_pieces(const Fp *p, Val x, Val chosen[N_USED]) {
    Val bits = fp_to_bits(p, x);
    Val field = fp_shr(p, bits, 52);
    field = fp_and(p, field, fp_int(p, 0x7ff));
    Val past = fp_isub(p, field, fp_int(p, 1023 + 54));
    Val scaled = fp_imul(p, past, fp_int(p, 1237)); /* / 53, right up to 1023 - 54 */
    Val at_k = fp_shr(p, scaled, 16);
    Val size = math_fabs(p->k, x);
    Val is_near = fp_lt(p, size, fp_num(p, 0x1p54));
    at_k = fp_select(p, is_near, fp_int(p, 0), at_k);
    Val list[N_PIECES];
    for (size_t i = 0; i < N_PIECES; i++) list[i] = fp_num(p, pieces[i]);
    size_t n_left = N_PIECES;
    for (size_t places = 16; places > 0; places /= 2) {
        size_t n_needed = N_USED + places - 1;
        Val is_shifted = fp_is_set(p, at_k, places);
        for (size_t i = 0; i < n_needed && i + places < n_left; i++) {
            list[i] = fp_select(p, is_shifted, list[i + places], list[i]);
        }
        if (n_needed < n_left) n_left = n_needed;
    }
    for (size_t i = 0; i < N_USED; i++) chosen[i] = list[i];
}

/* x less a multiple of 4, |result| <= 2; exact. */
static Val drop_turns(const Fp *p, Val x) {
    Val quarter = fp_mul(p, x, fp_num(p, 0.25));
    Val turns = math_rint(p->k, quarter);
    return fp_fma(p, turns, fp_num(p, -4.0), x);
}

/* A value added to a sum, the error to what is left over. */
static void add_to(const Fp *p, Val *sum, Val term, Val *error) {
    Pair s = pair_sum(p, *sum, term);
    *sum = s.high;
    *error = s.low;
}

/* |x| >= 2^27: the products of x and each piece, in quarters of a turn, summed largest first.
 * The errors of that sum are summed again with theirs, for the fraction can be as small as
 * 2^-62 of a quarter. */
static Angle reduce_large(const Fp *p, Val x) {
    Val chosen[N_USED];
    choose_pieces(p, x, chosen);
    Val scaled = fp_mul(p, x, fp_num(p, 0x1p-200));
    Pair term[N_USED];
    for (size_t i = 0; i < N_USED; i++) term[i] = pair_product(p, scaled, chosen[i]);
    Val sum = drop_turns(p, term[0].high);
    Val second = drop_turns(p, term[0].low);
    Val third = drop_turns(p, term[1].high);
    Val error[9];
    add_to(p, &sum, second, &error[0]);
    add_to(p, &sum, third, &error[1]);
    add_to(p, &sum, term[1].low, &error[2]);
    add_to(p, &sum, term[2].high, &error[3]);
    Rounded n = fp_round(p, sum);
    Val fraction = fp_sub(p, sum, n.whole);
    Val low = error[0];
    add_to(p, &low, error[1], &error[4]);
    add_to(p, &low, error[2], &error[5]);
    add_to(p, &low, error[3], &error[6]);
    add_to(p, &low, term[2].low, &error[7]);
    add_to(p, &low, term[3].high, &error[8]);
    Val lowest = fp_add(p, term[3].low, term[4].high);
    for (size_t i = 4; i < 9; i++) lowest = fp_add(p, lowest, error[i]);
    Pair turns = pair_sum(p, fraction, low);
    turns.low = fp_add(p, turns.low, lowest);
    turns = pair_fast_sum(p, turns.high, turns.low);
    Pair scale = {fp_num(p, half_pi[0]), fp_num(p, half_pi[1])};
    Angle a = {.r = pair_mul(p, turns, scale)};
    a.quadrant = fp_to_bits(p, n.shifted);
    return a;
}

static Angle reduce_f64(const Fp *p, Val x) {
    Angle small = reduce_small(p, x);
    Angle large = reduce_large(p, x);
    Val size = math_fabs(p->k, x);
    Val is_small = fp_lt(p, size, fp_num(p, 0x1p27));
    Angle a = {.quadrant = fp_select(p, is_small, small.quadrant, large.quadrant)};
    a.r.high = fp_select(p, is_small, small.r.high, large.r.high);
    a.r.low = fp_select(p, is_small, small.r.low, large.r.low);
    return a;
}

static Val sin_near(const Fp *p, Pair r) {
    Val z = fp_mul(p, r.high, r.high);
    Val cube = fp_mul(p, z, r.high);
    if (!p->is_f64) {
        Val series = fp_poly(p, z, sin_f32, COUNT_OF(sin_f32));
        return fp_fma(p, cube, series, r.high);
    }
    Val series = fp_poly(p, z, sin_f64, COUNT_OF(sin_f64));
    Val slope = fp_fma(p, z, fp_num(p, -0.5), fp_num(p, 1.0));
    Val low = fp_mul(p, r.low, slope);
    low = fp_fma(p, cube, series, low);
    return fp_add(p, r.high, low);
}

static Val cos_near(const Fp *p, Pair r) {
    Val z = fp_mul(p, r.high, r.high);
    if (!p->is_f64) {
        Val series = fp_poly(p, z, cos_f32, COUNT_OF(cos_f32));
        Val bend = fp_fma(p, z, series, fp_num(p, -0.5));
        return fp_fma(p, z, bend, fp_num(p, 1.0));
    }
    Val series = fp_poly(p, z, cos_f64, COUNT_OF(cos_f64));
    Val half = fp_mul(p, z, fp_num(p, 0.5));
    Val main = fp_sub(p, fp_num(p, 1.0), half);
    Val kept = fp_sub(p, fp_num(p, 1.0), main);
    Val lost = fp_sub(p, kept, half);
    Val square = fp_mul(p, z, z);
    Val turn = fp_mul(p, r.high, r.low);
    Val low = fp_sub(p, lost, turn);
    low = fp_fma(p, square, series, low);
    return fp_add(p, main, low);
}

/* sin of a quarter turn more is cos: `ahead` quarters are added. */
static Val sine(const Codegen *k, Val x, unsigned ahead) {
    Fp p = fp_of(k, x);
    Angle a = p.is_f64 ? reduce_f64(&p, x) : reduce_f32(&p, x);
    Val quadrant = fp_iadd(&p, a.quadrant, fp_int(&p, ahead));
    Val odd = sin_near(&p, a.r);
    Val even = cos_near(&p, a.r);
    Val is_even = fp_is_set(&p, quadrant, 1);
    Val value = fp_select(&p, is_even, even, odd);
    Val negated = fp_neg(&p, value);
    Val is_negative = fp_is_set(&p, quadrant, 2);
    return fp_select(&p, is_negative, negated, value);
}

Val math_sin(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    Val value = sine(k, x, 0);
    Val is_zero = fp_eq(&p, x, fp_num(&p, 0.0)); /* the polynomial loses its sign */
    return fp_select(&p, is_zero, x, value);
}

Val math_cos(const Codegen *k, Val x) {
    return sine(k, x, 1);
}
