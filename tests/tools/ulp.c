/* ulp: the largest error of each elementary function, as a Markdown table.
 *
 *     ulp [--full] [--function NAME] [--float | --double]
 *
 * float is measured against the double library, double against long double. float inputs are all
 * bit patterns in steps of 61, or with --full all of them; double inputs and pow's pairs are
 * pseudorandom: half of them bit patterns, half in the range where the function varies. Exit
 * status 1 when an error exceeds 4. */
#include "math_jit.h"
#include "math_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 14, N_DOUBLES = 1 << 22 };

typedef struct Measure {
    double max_ulp;
    double worst_x, worst_y;
    uint64_t n_samples;
} Measure;

static void note(Measure *r, double error, double x, double y) {
    r->n_samples++;
    if (error <= r->max_ulp) return;
    r->max_ulp = error;
    r->worst_x = x;
    r->worst_y = y;
}

static double draw_f64(uint64_t *state, double spread) {
    uint64_t bits = math_random(state);
    if (math_random(state) & 1) return ((double)bits * 0x1p-63 - 1.0) * spread;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float draw_f32(uint64_t *state, double spread) {
    uint32_t bits = (uint32_t)math_random(state);
    if (math_random(state) & 1) return (float)(((double)bits * 0x1p-31 - 1.0) * spread);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static Measure measure_f32(MathFunction f, const MathReference *ref, uint64_t step) {
    static float x[CHUNK], out[CHUNK];
    Measure r = {0};
    for (uint64_t at = 0; at < (uint64_t)1 << 32;) {
        size_t n = 0;
        for (; n < CHUNK; n++, at += step) {
            uint32_t bits = (uint32_t)at;
            memcpy(&x[n], &bits, sizeof bits);
        }
        f(x, x, out, n);
        for (size_t i = 0; i < n; i++) {
            double want = ref->of_f32((double)x[i]);
            note(&r, math_error_ulp((double)out[i], (long double)want, DT_F32), (double)x[i], 0);
        }
    }
    return r;
}

static Measure measure_f64(MathFunction f, const MathReference *ref, uint64_t n_samples) {
    static double x[CHUNK], out[CHUNK];
    Measure r = {0};
    uint64_t state = 1;
    while (r.n_samples < n_samples) {
        for (size_t i = 0; i < CHUNK; i++) x[i] = draw_f64(&state, ref->spread);
        f(x, x, out, CHUNK);
        for (size_t i = 0; i < CHUNK; i++) {
            note(&r, math_error_ulp(out[i], ref->of_f64((long double)x[i]), DT_F64), x[i], 0);
        }
    }
    return r;
}

/* A quarter of the bases is near 1 with a large exponent. */
static Measure measure_pow_f64(MathFunction f, uint64_t n_samples) {
    static double x[CHUNK], y[CHUNK], out[CHUNK];
    Measure r = {0};
    uint64_t state = 2;
    while (r.n_samples < n_samples) {
        for (size_t i = 0; i < CHUNK; i++) {
            x[i] = draw_f64(&state, 10);
            y[i] = draw_f64(&state, 300);
            if (i % 4) continue;
            int shift = (int)(math_random(&state) % 50);
            double off = ldexp(0.5 + 0.01 * (double)(i % 37), -shift);
            x[i] = 1 + off * (i % 8 ? 1 : -0.5);
            y[i] = draw_f64(&state, 700) / off;
        }
        f(x, y, out, CHUNK);
        for (size_t i = 0; i < CHUNK; i++) {
            long double want = powl((long double)x[i], (long double)y[i]);
            note(&r, math_error_ulp(out[i], want, DT_F64), x[i], y[i]);
        }
    }
    return r;
}

static Measure measure_pow_f32(MathFunction f, uint64_t n_samples) {
    static float x[CHUNK], y[CHUNK], out[CHUNK];
    Measure r = {0};
    uint64_t state = 3;
    while (r.n_samples < n_samples) {
        for (size_t i = 0; i < CHUNK; i++) {
            x[i] = draw_f32(&state, 10);
            y[i] = draw_f32(&state, i % 2 ? 40 : 4);
        }
        f(x, y, out, CHUNK);
        for (size_t i = 0; i < CHUNK; i++) {
            double want = pow((double)x[i], (double)y[i]);
            note(&r, math_error_ulp((double)out[i], (long double)want, DT_F32), (double)x[i],
                 (double)y[i]);
        }
    }
    return r;
}

static Measure measure(const MathReference *ref, Dtype type, bool is_full, MathFunction f) {
    uint64_t n_samples = is_full ? (uint64_t)N_DOUBLES * 16 : N_DOUBLES;
    bool is_f32 = type == DT_F32;
    if (ref->op == MATH_OP_pow) {
        return is_f32 ? measure_pow_f32(f, n_samples) : measure_pow_f64(f, n_samples);
    }
    return is_f32 ? measure_f32(f, ref, is_full ? 1 : 61) : measure_f64(f, ref, n_samples);
}

/* Prints one line of the table. Returns the error, or infinity when it could not be measured. */
static double report(const MathReference *ref, Dtype type, bool is_full) {
    bool is_f32 = type == DT_F32;
    MathKernel kernel = {.op = ref->op, .from = type, .lanes = is_f32 ? 8 : 4};
    MathJit *jit = math_jit_new(&kernel, 1);
    if (!jit) return INFINITY;
    Measure r = measure(ref, type, is_full, math_jit_function(jit, 0));
    math_jit_free(jit);
    printf("| %s | %s | %.2f | %llu | %a", math_op_name(ref->op), is_f32 ? "f32" : "f64", r.max_ulp,
           (unsigned long long)r.n_samples, r.worst_x);
    if (math_op_arity(ref->op) == 2) printf(", %a", r.worst_y);
    printf(" |\n");
    fflush(stdout);
    return r.max_ulp;
}

int main(int argc, char **argv) {
    bool is_full = false, has_f32 = true, has_f64 = true;
    const char *only = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--full") == 0) {
            is_full = true;
        } else if (strcmp(argv[i], "--float") == 0) {
            has_f64 = false;
        } else if (strcmp(argv[i], "--double") == 0) {
            has_f32 = false;
        } else if (strcmp(argv[i], "--function") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: ulp [--full] [--function NAME] [--float | --double]\n");
            return 2;
        }
    }
    double worst = 0;
    printf("| function | dtype | max ULP | samples | worst at |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < N_MATH_REFERENCES; i++) {
        const MathReference *ref = &math_references[i];
        if (only && strcmp(only, math_op_name(ref->op)) != 0) continue;
        if (has_f32) worst = fmax(worst, report(ref, DT_F32, is_full));
        if (has_f64) worst = fmax(worst, report(ref, DT_F64, is_full));
    }
    return worst <= 4 ? 0 : 1;
}
