/* codegen/math: error bounds, special values, the same bits in every vector width, exact
 * operations against the C library, integer division. All code is compiled for x86-64-v3 in
 * process. Conversions and PTX are in test_convert.c. */
#include "lib/compare.h"
#include "tools/math_eval.h"
#include "tools/math_jit.h"
#include "tools/math_reference.h"

#include <criterion/criterion.h>

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N_WIDTHS = 3, N_BATCH = 1 << 14 };
static const unsigned widths_f32[N_WIDTHS] = {0, 8, 16};
static const unsigned widths_f64[N_WIDTHS] = {0, 4, 8};

typedef union Word32 {
    uint32_t bits;
    float number;
} Word32;

typedef union Word64 {
    uint64_t bits;
    double number;
} Word64;

static float as_f32(uint32_t bits) {
    return (Word32){.bits = bits}.number;
}
static double as_f64(uint64_t bits) {
    return (Word64){.bits = bits}.number;
}

/* One operation compiled in the three widths. */
typedef struct Trio {
    MathJit *jit;
    MathFunction f[N_WIDTHS];
    size_t out_bytes;
} Trio;

static Trio trio_new(MathOp op, Dtype type) {
    MathKernel kernels[N_WIDTHS];
    for (size_t i = 0; i < N_WIDTHS; i++) {
        unsigned lanes = type == DT_F64 ? widths_f64[i] : widths_f32[i];
        kernels[i] = (MathKernel){.op = op, .from = type, .lanes = lanes};
    }
    Trio t = {.jit = math_jit_new(kernels, N_WIDTHS), .out_bytes = dtype_bytes(type)};
    cr_assert_not_null(t.jit, "%s does not compile", math_op_name(op));
    for (size_t i = 0; i < N_WIDTHS; i++) t.f[i] = math_jit_function(t.jit, i);
    return t;
}

/* Runs all widths on n elements, a multiple of 16, and requires equal bits. */
static void trio_run(const Trio *t, const void *x, const void *y, void *out, size_t n) {
    static uint64_t other[N_BATCH];
    t->f[0](x, y, out, n);
    for (size_t i = 1; i < N_WIDTHS; i++) {
        t->f[i](x, y, other, n);
        if (memcmp(out, other, n * t->out_bytes) == 0) continue;
        const char *a = out, *b = (const char *)other;
        size_t at = 0;
        while (memcmp(a + at * t->out_bytes, b + at * t->out_bytes, t->out_bytes) == 0) at++;
        cr_assert_fail("element %zu differs between widths", at);
    }
}

static const double special_numbers[] = {0.0,
                                         0x1p-149,
                                         0x1.8p-149,
                                         0x1.fffffcp-127,
                                         0x1p-126,
                                         0x1p-1074,
                                         0x1p-1022,
                                         0x1.fp-1023,
                                         1e-300,
                                         1e-30,
                                         0x1p-30,
                                         0.25,
                                         0.5,
                                         0.6,
                                         0.9375,
                                         0.99999994,
                                         1.0,
                                         1.0000001192,
                                         1.5,
                                         2.0,
                                         2.5,
                                         3.0,
                                         4.0,
                                         0x1.8p1,
                                         87.33654,
                                         88.722839,
                                         88.72284,
                                         89.0,
                                         103.97208,
                                         103.972084,
                                         104.0,
                                         127.99999,
                                         128.0,
                                         149.0,
                                         150.0,
                                         151.0,
                                         709.782712893,
                                         709.7827129,
                                         745.1332191,
                                         745.13322,
                                         1023.99,
                                         1024.0,
                                         1074.0,
                                         1075.0,
                                         1076.0,
                                         1.57079632679,
                                         3.14159274,
                                         16384.5,
                                         8388607.5,
                                         8388609.0,
                                         16777217.0,
                                         0x1p27,
                                         0x1p31,
                                         0x1p53,
                                         0x1p54,
                                         0x1p63,
                                         0x1.fffffep127,
                                         0x1.fffffffffffffp1023,
                                         1e22,
                                         6381956970095103.0,
                                         (double)INFINITY,
                                         (double)NAN};
enum { N_SPECIALS = sizeof special_numbers / sizeof *special_numbers };

/* The doubles closest to multiples of pi/2, 2^-58 and less of a quarter turn off. */
static const double hard_angles[] = {
    0x1.6ac5b262ca1ffp+849, -0x1.6ac5b262ca1ffp+850, 0x1.b951f1572eba5p+23,
    0x1.504cac51f1eafp+131, 0x1.e009c53148be1p+991,  -0x1.4c96c11134d36p+577,
    0x1.cfe482285f8edp+860, 0x1.db41f3cb71d7bp+680,  0x1.e7e44a78ac18cp+197};
enum { N_HARD = sizeof hard_angles / sizeof *hard_angles };

static double special(size_t i) {
    double v = special_numbers[i / 2 % N_SPECIALS];
    return i % 2 ? -v : v;
}

static void check_f32(const MathReference *ref) {
    static float x[N_BATCH], out[N_BATCH];
    Trio t = trio_new(ref->op, DT_F32);
    uint64_t at = 0;
    while (at < (uint64_t)1 << 32) {
        for (size_t i = 0; i < N_BATCH; i++, at += 4793) x[i] = as_f32((uint32_t)at);
        for (size_t i = 0; i < 2 * N_SPECIALS; i++) x[i] = (float)special(i);
        trio_run(&t, x, x, out, N_BATCH);
        for (size_t i = 0; i < N_BATCH; i++) {
            double want = ref->of_f32((double)x[i]);
            double error = math_error_ulp((double)out[i], (long double)want, DT_F32);
            cr_assert(error <= ref->bound_f32, "%s(%a) = %a, want %a: %.2f ULP",
                      math_op_name(ref->op), (double)x[i], (double)out[i], want, error);
        }
    }
    math_jit_free(t.jit);
}

/* Bit patterns, the range where the function varies, and neighbours of multiples of pi/2. */
static double draw_f64(uint64_t *state, double spread) {
    uint64_t bits = math_random(state);
    switch (math_random(state) % 4) {
    case 0:
        return (double)roundl((long double)(bits >> 20) * 0x1p-22L) * 1.5707963267948966;
    case 1:
        return as_f64(bits);
    default:
        return ((double)bits * 0x1p-63 - 1.0) * spread;
    }
}

static void check_f64(const MathReference *ref) {
    static double x[N_BATCH], out[N_BATCH];
    Trio t = trio_new(ref->op, DT_F64);
    uint64_t state = 5;
    for (size_t n_rounds = 0; n_rounds < 24; n_rounds++) {
        for (size_t i = 0; i < N_BATCH; i++) x[i] = draw_f64(&state, ref->spread);
        for (size_t i = 0; i < 2 * N_SPECIALS; i++) x[i] = special(i);
        for (size_t i = 0; i < N_HARD; i++) x[2 * N_SPECIALS + i] = hard_angles[i];
        trio_run(&t, x, x, out, N_BATCH);
        for (size_t i = 0; i < N_BATCH; i++) {
            long double want = ref->of_f64((long double)x[i]);
            double error = math_error_ulp(out[i], want, DT_F64);
            cr_assert(error <= ref->bound_f64, "%s(%a) = %a, want %La: %.2f ULP",
                      math_op_name(ref->op), x[i], out[i], want, error);
        }
    }
    math_jit_free(t.jit);
}

Test(math, functions_of_f32_keep_their_bounds) {
    for (size_t i = 0; i < N_MATH_REFERENCES; i++) {
        if (math_references[i].of_f32) check_f32(&math_references[i]);
    }
}

Test(math, functions_of_f64_keep_their_bounds) {
    for (size_t i = 0; i < N_MATH_REFERENCES; i++) {
        if (math_references[i].of_f64) check_f64(&math_references[i]);
    }
}

/* The programs of the functions, on numbers, have the bits of the code that is made of them. */
static void check_programs(MathOp op, Dtype type) {
    static double x[N_BATCH], y[N_BATCH], out[N_BATCH];
    static float x_f32[N_BATCH], y_f32[N_BATCH], out_f32[N_BATCH];
    bool is_f64 = type == DT_F64;
    Arena *arena = arena_new(NULL);
    const MathProgram *program = math_program_read(arena, math_op_name(op), is_f64, false);
    uint64_t state = 11;
    for (size_t i = 0; i < N_BATCH; i++) {
        double a = i < 2 * N_SPECIALS ? special(i) : draw_f64(&state, 40);
        double b = i < 2 * N_SPECIALS ? special(i / 7) : draw_f64(&state, 40);
        x[i] = is_f64 ? a : (double)(x_f32[i] = (float)a);
        y[i] = is_f64 ? b : (double)(y_f32[i] = (float)b);
    }
    Trio t = trio_new(op, type);
    if (is_f64)
        trio_run(&t, x, y, out, N_BATCH);
    else
        trio_run(&t, x_f32, y_f32, out_f32, N_BATCH);
    for (size_t i = 0; i < N_BATCH; i++) {
        double args[] = {x[i], y[i]}, want = math_eval(program, args);
        double got = is_f64 ? out[i] : (double)out_f32[i];
        bool are_same =
            (isnan(got) && isnan(want)) || (got == want && signbit(got) == signbit(want));
        cr_assert(are_same, "%s(%a, %a) = %a, by its program %a", math_op_name(op), x[i], y[i], got,
                  want);
    }
    math_jit_free(t.jit);
    arena_free(arena);
}

Test(math, programs_compute_what_their_code_does) {
    static const MathOp ops[] = {
#define OP(name, n_args) MATH_OP_##name,
        MATH_FUNCTIONS(OP)
#undef OP
            MATH_OP_max,
        MATH_OP_min, MATH_OP_copysign};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        check_programs(ops[i], DT_F32);
        check_programs(ops[i], DT_F64);
    }
}

/* Signs of zero and the results that are no numbers, where ULP says too little. */
Test(math, special_values_are_exact) {
    static const double x[] = {0.0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN,
                               1.0, -1.0};
    enum { N = sizeof x / sizeof *x };
    for (size_t r = 0; r < N_MATH_REFERENCES; r++) {
        const MathReference *ref = &math_references[r];
        if (!ref->of_f32) continue;
        for (size_t i = 0; i < N; i++) {
            static double wide[16], wide_out[16];
            static float narrow[16], narrow_out[16];
            double want = ref->of_f32(x[i]);
            if (!isnan(want) && !isinf(want) && want != 0 && fabs(want) != 1) continue;
            wide[0] = x[i];
            narrow[0] = (float)x[i];
            Trio f64 = trio_new(ref->op, DT_F64);
            Trio f32 = trio_new(ref->op, DT_F32);
            trio_run(&f64, wide, wide, wide_out, 16);
            trio_run(&f32, narrow, narrow, narrow_out, 16);
            cr_assert(compare_same(wide_out[0], want), "%s(%g) = %g in f64, want %g",
                      math_op_name(ref->op), x[i], wide_out[0], want);
            cr_assert(compare_same((double)narrow_out[0], want), "%s(%g) = %g in f32, want %g",
                      math_op_name(ref->op), x[i], (double)narrow_out[0], want);
            math_jit_free(f64.jit);
            math_jit_free(f32.jit);
        }
    }
}

static const double pow_operands[] = {0.0,
                                      -0.0,
                                      1.0,
                                      -1.0,
                                      0.5,
                                      -0.5,
                                      2.0,
                                      -2.0,
                                      3.0,
                                      -3.0,
                                      2.5,
                                      -2.5,
                                      0x1p53,
                                      -0x1p53,
                                      9007199254740991.0,
                                      16777215.0,
                                      -16777215.0,
                                      1e30,
                                      -1e30,
                                      1e-40,
                                      -1e-40,
                                      0.9999999,
                                      (double)INFINITY,
                                      -(double)INFINITY,
                                      (double)NAN};
enum { N_POW = sizeof pow_operands / sizeof *pow_operands };

static void check_pow_f64(const Trio *t, const double *x, const double *y, size_t n) {
    static double out[N_BATCH];
    trio_run(t, x, y, out, n);
    for (size_t i = 0; i < n; i++) {
        long double want = powl((long double)x[i], (long double)y[i]);
        double error = math_error_ulp(out[i], want, DT_F64);
        bool is_signed = isnan(want) || (signbit(out[i]) != 0) == (signbit(want) != 0);
        cr_assert(error <= 1.1 && is_signed, "pow(%a, %a) = %a, want %La: %.2f ULP", x[i], y[i],
                  out[i], want, error);
    }
}

static void check_pow_f32(const Trio *t, const float *x, const float *y, size_t n) {
    static float out[N_BATCH];
    trio_run(t, x, y, out, n);
    for (size_t i = 0; i < n; i++) {
        double want = pow((double)x[i], (double)y[i]);
        double error = math_error_ulp((double)out[i], (long double)want, DT_F32);
        bool is_signed = isnan(want) || (signbit(out[i]) != 0) == (signbit(want) != 0);
        cr_assert(error <= 0.6 && is_signed, "powf(%a, %a) = %a, want %a: %.2f ULP", (double)x[i],
                  (double)y[i], (double)out[i], want, error);
    }
}

Test(math, pow_is_that_of_c99) {
    static double x[N_BATCH], y[N_BATCH];
    static float x_narrow[N_BATCH], y_narrow[N_BATCH];
    Trio f64 = trio_new(MATH_OP_pow, DT_F64);
    Trio f32 = trio_new(MATH_OP_pow, DT_F32);
    uint64_t state = 7;
    for (size_t n_rounds = 0; n_rounds < 16; n_rounds++) {
        for (size_t i = 0; i < N_BATCH; i++) {
            double off = ldexp(0.5 + 0.5 * (double)(i % 7) / 7, -(int)(math_random(&state) % 50));
            x[i] = i % 4 ? draw_f64(&state, 10) : 1 + (i % 8 ? off : -off / 2);
            y[i] = draw_f64(&state, i % 4 ? 300 : 700 / off);
            x_narrow[i] = (float)draw_f64(&state, 10);
            y_narrow[i] = (float)draw_f64(&state, i % 3 ? 40 : 5);
        }
        for (size_t i = 0; i < (size_t)N_POW * N_POW; i++) {
            x[i] = pow_operands[i / N_POW];
            y[i] = pow_operands[i % N_POW];
            x_narrow[i] = (float)x[i];
            y_narrow[i] = (float)y[i];
        }
        check_pow_f64(&f64, x, y, N_BATCH);
        check_pow_f32(&f32, x_narrow, y_narrow, N_BATCH);
    }
    math_jit_free(f64.jit);
    math_jit_free(f32.jit);
}

static double maximum_of(double x, double y) {
    if (isnan(x) || isnan(y)) return (double)NAN;
    if (x == y) return signbit(x) ? y : x;
    return x > y ? x : y;
}

static double minimum_of(double x, double y) {
    return -maximum_of(-x, -y);
}

/* The exact operations give the same in float as in double, rounded (sqrt too: double has more
 * than twice the digits). */
typedef struct Exact {
    MathOp op;
    double (*unary)(double);
    double (*binary)(double, double);
} Exact;

static const Exact exacts[] = {
    {MATH_OP_frem, NULL, fmod},      {MATH_OP_sqrt, sqrt, NULL},
    {MATH_OP_abs, fabs, NULL},       {MATH_OP_copysign, NULL, copysign},
    {MATH_OP_floor, floor, NULL},    {MATH_OP_ceil, ceil, NULL},
    {MATH_OP_trunc, trunc, NULL},    {MATH_OP_rint, rint, NULL},
    {MATH_OP_max, NULL, maximum_of}, {MATH_OP_min, NULL, minimum_of},
};

static double exact_value(const Exact *e, double x, double y) {
    return e->unary ? e->unary(x) : e->binary(x, y);
}

/* Half of the pairs are near each other, or in a whole ratio. */
static double draw_partner(uint64_t *state, double x, double spread) {
    switch (math_random(state) % 4) {
    case 0:
        return x / (double)(math_random(state) % 1000 + 1);
    case 1:
        return ldexp(x, -(int)(math_random(state) % 120)) * 1.25;
    default:
        return draw_f64(state, spread);
    }
}

static void check_exact(const Exact *e) {
    static double x[N_BATCH], y[N_BATCH], out[N_BATCH];
    static float x_narrow[N_BATCH], y_narrow[N_BATCH], out_narrow[N_BATCH];
    Trio f64 = trio_new(e->op, DT_F64);
    Trio f32 = trio_new(e->op, DT_F32);
    uint64_t state = 11;
    for (size_t i = 0; i < N_BATCH; i++) {
        x[i] = draw_f64(&state, 100);
        y[i] = draw_partner(&state, x[i], 100);
        if (i < 4096) {
            x[i] = special(i / 64);
            y[i] = special(i % 64 + (i / 4 & ~(size_t)63));
        }
        if (i >= N_BATCH - 256) x[i] = (double)i * 0.5 - N_BATCH / 2.0;
        x_narrow[i] = i % 2 ? as_f32((uint32_t)math_random(&state)) : (float)x[i];
        y_narrow[i] = i % 6 == 1 ? as_f32((uint32_t)math_random(&state)) : (float)y[i];
    }
    trio_run(&f64, x, y, out, N_BATCH);
    trio_run(&f32, x_narrow, y_narrow, out_narrow, N_BATCH);
    for (size_t i = 0; i < N_BATCH; i++) {
        double want = exact_value(e, x[i], y[i]);
        cr_assert(compare_same(out[i], want), "%s(%a, %a) = %a, want %a", math_op_name(e->op), x[i],
                  y[i], out[i], want);
        float narrow = (float)exact_value(e, (double)x_narrow[i], (double)y_narrow[i]);
        cr_assert(compare_same((double)out_narrow[i], (double)narrow),
                  "%s(%a, %a) = %a in f32, want %a", math_op_name(e->op), (double)x_narrow[i],
                  (double)y_narrow[i], (double)out_narrow[i], (double)narrow);
    }
    math_jit_free(f64.jit);
    math_jit_free(f32.jit);
}

Test(math, exact_operations_are_exact) {
    for (size_t i = 0; i < sizeof exacts / sizeof *exacts; i++) check_exact(&exacts[i]);
}

/* Quotients by one divisor for so many lanes. */
static void check_quotients(MathFunction divide, const float *x, const float *y, size_t n,
                            size_t lanes) {
    static float out[N_BATCH];
    divide(x, y, out, n);
    for (size_t i = 0; i < n; i++) {
        float by = y[i / lanes * lanes], want = x[i] / by;
        bool is_same = isnan(want) ? isnan(out[i]) : memcmp(&want, &out[i], sizeof want) == 0;
        cr_assert(is_same, "%a / %a = %a, want %a", (double)x[i], (double)by, (double)out[i],
                  (double)want);
    }
}

/* All lanes of one size, so that where one is unusual all are. */
static void draw_sizes(uint64_t *state, size_t lanes, float *x, float *y) {
    int x_exponent = 0, y_exponent = 0;
    for (size_t i = 0; i < N_BATCH; i++) {
        if (i % lanes == 0) {
            x_exponent = (int)(math_random(state) % 276) - 149;
            y_exponent = (int)(math_random(state) % 140) - 70;
        }
        double significand = 1 + (double)(math_random(state) % (1 << 23)) / (1 << 23);
        x[i] = (float)ldexp(significand, x_exponent);
        y[i] = (float)ldexp(2 - significand / 2, y_exponent);
    }
}

/* In some rounds all is usual, in others next to nothing. */
static void draw_quotients(uint64_t *state, int round, size_t lanes, float *x, float *y) {
    if (round % 16 == 6) {
        draw_sizes(state, lanes, x, y);
        return;
    }
    for (size_t i = 0; i < N_BATCH; i++) {
        bool is_any = round % 4 == 0;
        y[i] = is_any ? as_f32((uint32_t)math_random(state)) : (float)draw_f64(state, 20);
        x[i] = (float)draw_f64(state, round % 4 == 1 ? 100 : 10);
        if (round % 4 != 2) y[i] = fabsf(y[i]);
        if (round % 4 == 3 || is_any) x[i] = as_f32((uint32_t)math_random(state));
        if (round % 2 == 0 && i % 5 == 0) x[i] = (float)special(i % N_SPECIALS);
        if (round == 0 && i % 3 == 0) y[i] = (float)special(i / 8 % N_SPECIALS);
        if (round > 32 && i % 16 < 8) x[i] = (float)(math_random(state) % 1000) / 1000;
        if (round > 48 && i % 3 == 0) x[i] = i % 2 ? 0.0f : -0.0f;
    }
}

/* From +0 to 1, or NaN. Of every eight batches of lanes one has what is too small. */
static void make_fractions(float *x, size_t lanes) {
    for (size_t i = 0; i < N_BATCH; i++) {
        x[i] = x[i] == 0 ? 0.0f : fabsf(x[i]);
        if (x[i] > 1) x[i] = 1 / x[i];
        bool is_small = x[i] < 0x1p-94f && x[i] > 0;
        if (is_small && i / lanes % 8) x[i] = as_f32(0x3f000000 | (uint32_t)i);
    }
}

static const struct {
    MathOp op;
    unsigned lanes;
} by_one[] = {{MATH_OP_quotient_by_one, 8},  {MATH_OP_quotient_by_one, 2},
              {MATH_OP_quotient_by_one, 56}, {MATH_OP_fraction_by_one, 8},
              {MATH_OP_fraction_by_one, 64}, {MATH_OP_fraction_by_one, 24}};

Test(math, quotients_by_one_divisor_are_exact, .timeout = 300) {
    static float x[N_BATCH], y[N_BATCH];
    for (size_t k = 0; k < sizeof by_one / sizeof *by_one; k++) {
        size_t lanes = by_one[k].lanes;
        const MathKernel kernel = {
            .op = by_one[k].op, .from = DT_F32, .to = DT_F32, .lanes = by_one[k].lanes};
        MathJit *jit = math_jit_new(&kernel, 1);
        cr_assert_not_null(jit);
        uint64_t state = 17;
        for (int round = 0; round < 64; round++) {
            draw_quotients(&state, round, lanes, x, y);
            if (by_one[k].op == MATH_OP_fraction_by_one) make_fractions(x, lanes);
            check_quotients(math_jit_function(jit, 0), x, y, N_BATCH / lanes * lanes, lanes);
        }
        math_jit_free(jit);
    }
}

/* Numbers of 24 bits as such, and as fractions. */
static void check_significands(const MathJit *jit, float *x, const float *y, size_t n) {
    check_quotients(math_jit_function(jit, 0), x, y, n, 8);
    for (size_t i = 0; i < n; i++) x[i] /= 1 << 24;
    check_quotients(math_jit_function(jit, 1), x, y, n, 8);
}

/* All pairs of significands x < y of 24 bits whose quotient is that near to the middle between two
 * numbers: x 2^25 = y m + r, m odd, |r| at most 4. */
Test(math, quotients_near_the_middle_are_exact) {
    enum { NEAREST = 4, LEAST = 1 << 23, END = 1 << 24 };
    static float x[N_BATCH], y[N_BATCH];
    const MathKernel kernels[] = {
        {.op = MATH_OP_quotient_by_one, .from = DT_F32, .to = DT_F32, .lanes = 8},
        {.op = MATH_OP_fraction_by_one, .from = DT_F32, .to = DT_F32, .lanes = 8}};
    MathJit *jit = math_jit_new(kernels, 2);
    cr_assert_not_null(jit);
    size_t n = 0, n_pairs = 0;
    for (int64_t b = LEAST; b < END; b++) {
        int64_t power = b & -b, odd = b / power, half = 1;
        if (power > NEAREST) continue;
        for (int i = 0; i < 25; i++) half = half % 2 ? (half + odd) / 2 : half / 2;
        for (size_t i = 0; i < 8; i++) x[n + i] = 1, y[n + i] = (float)b;
        size_t lane = 0;
        for (int64_t r = -NEAREST; r <= NEAREST; r++) {
            int64_t least = ((r * half) % odd + odd) % odd;
            for (int64_t a = least; a < b && r % power == 0 && r != 0; a += odd) {
                bool is_middle = ((a << 25) - r) % b == 0 && ((a << 25) - r) / b % 2;
                if (a < LEAST || !is_middle) continue;
                cr_assert_lt(lane, 8);
                x[n + lane++] = (float)a;
                n_pairs++;
            }
        }
        n += lane ? 8 : 0;
        if (n < N_BATCH && b + 1 < END) continue;
        check_significands(jit, x, y, n);
        n = 0;
    }
    cr_assert_gt(n_pairs, 2000000);
    math_jit_free(jit);
}

static int32_t wrap(int64_t v) {
    uint32_t bits = (uint32_t)(uint64_t)v;
    int32_t r;
    memcpy(&r, &bits, sizeof r);
    return r;
}

Test(math, integer_division_never_traps) {
    static const int32_t edges[] = {0,           1,       -1,         2,       -2,          3,
                                    7,           -7,      46341,      INT_MAX, INT_MAX - 1, INT_MIN,
                                    INT_MIN + 1, 1 << 30, -(1 << 30), 1000003};
    static int32_t x[N_BATCH], y[N_BATCH], quotient[N_BATCH], rest[N_BATCH];
    Trio idiv = trio_new(MATH_OP_idiv, DT_I32);
    Trio irem = trio_new(MATH_OP_irem, DT_I32);
    Trio udiv = trio_new(MATH_OP_udiv, DT_I32);
    Trio urem = trio_new(MATH_OP_urem, DT_I32);
    uint64_t state = 13;
    for (size_t i = 0; i < N_BATCH; i++) {
        uint64_t bits = math_random(&state);
        x[i] = wrap((int64_t)(bits >> 32));
        y[i] = wrap((int64_t)((bits & UINT32_MAX) >> (i % 32)));
        if (i % 3 == 0) y[i] = x[i] / (int32_t)(i + 1) + (int32_t)(i % 5) - 2;
        if (i < 256) {
            x[i] = edges[i / 16];
            y[i] = edges[i % 16];
        }
    }
    trio_run(&idiv, x, y, quotient, N_BATCH);
    trio_run(&irem, x, y, rest, N_BATCH);
    for (size_t i = 0; i < N_BATCH; i++) {
        int32_t q = y[i] ? wrap((int64_t)x[i] / y[i]) : 0;
        int32_t r = y[i] ? wrap((int64_t)x[i] % y[i]) : 0;
        cr_assert_eq(quotient[i], q, "%d / %d = %d, want %d", x[i], y[i], quotient[i], q);
        cr_assert_eq(rest[i], r, "%d %% %d = %d, want %d", x[i], y[i], rest[i], r);
    }
    trio_run(&udiv, x, y, quotient, N_BATCH);
    trio_run(&urem, x, y, rest, N_BATCH);
    for (size_t i = 0; i < N_BATCH; i++) {
        uint32_t a = (uint32_t)x[i], b = (uint32_t)y[i];
        cr_assert_eq((uint32_t)quotient[i], b ? a / b : 0, "%u / %u = %d", a, b, quotient[i]);
        cr_assert_eq((uint32_t)rest[i], b ? a % b : 0, "%u %% %u = %d", a, b, rest[i]);
    }
    Trio all[] = {idiv, irem, udiv, urem};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) math_jit_free(all[i].jit);
}
