/* Random numbers of the prelude: Philox's published vectors, the same bits fused, unfused and on an
 * emulated GPU, and their statistics for one key. */
#include "emulator/emu.h"
#include "lib/compiled.h"
#include "lib/rig.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t key[2] = {20260101, 7};

/* A program on the CPU, its key set, after a run. */
typedef struct Run {
    Compiled compiled;
    Rig rig;
} Run;

static void run_open(Run *run, const char *source, CompileMode mode, const int64_t *dims) {
    RigOptions options = RIG_OPTIONS_INIT;
    size_t n_bytes;
    run->compiled = compiled_as(source, TARGET_CPU, mode);
    cr_assert(rig_open(&run->rig, run->compiled.bytes, run->compiled.n_bytes, "g", &options) &&
                  rig_place(&run->rig, run->compiled.module->dims, dims),
              "%s", run->rig.error);
    memcpy(rig_contents(&run->rig, "key", &n_bytes), key, sizeof key);
}

static const void *run_result(Run *run, const char *name, size_t *n_bytes) {
    cr_assert(rig_run(&run->rig, 0xF5), "%s", run->rig.error);
    return rig_result(&run->rig, name, n_bytes);
}

static void run_close(Run *run) {
    rig_close(&run->rig);
    compile_free(&run->compiled);
}

/* Random123's file of known answers: counter, key, words of philox4x32 with 10 rounds. */
static const uint32_t known[][10] = {
    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e,
     0xa20bc7c6, 0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb,
     0x5001e420, 0x24126ea1},
};

Test(random_numbers, philox_has_the_published_words, .timeout = 60) {
    Run run;
    size_t n_bytes;
    run_open(&run,
             "graph g(key: u32[2], c: u32[4]) -> (w: u32[4]) {\n"
             "  w = stack(philox(key, c[0], c[1], c[2], c[3]))\n}\n",
             COMPILE_FUSED, NULL);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        memcpy(rig_contents(&run.rig, "c", &n_bytes), known[k], 16);
        memcpy(rig_contents(&run.rig, "key", &n_bytes), known[k] + 4, 8);
        const uint32_t *words = run_result(&run, "w", &n_bytes);
        for (int i = 0; i < 4; i++)
            cr_expect_eq(words[i], known[k][6 + i], "vector %zu, word %d: %x, not %x", k, i,
                         words[i], known[k][6 + i]);
    }
    run_close(&run);
}

static const char all[] =
    "dim M in 1..1000\n"
    "graph g(key: u32[2], x: f32[M, 8]) -> (u: f32[M, 8], v: f32[8 * M], w: f32[M, 8], "
    "i: i32[M, 8], n: f32[M, 8], d: f32[M, 8], b: f32[M, 8]) {\n"
    "  u = rand(key, [M, 8])\n  v = rand(key, [8 * M])\n  w = rand(key, [M, 8], stream=1)\n"
    "  i = randint(key, [M, 8], -3, 10)\n  n = randn(key, [M, 8])\n"
    "  d = dropout(x, 0.25, key)\n  b = bernoulli(0.0 * x + 0.25, key)\n}\n";

Test(random_numbers, are_the_same_fused_and_unfused, .timeout = 120) {
    static const char *const names[] = {"u", "v", "w", "i", "n", "d", "b"};
    const int64_t m = 37;
    Run fused, unfused;
    size_t n_bytes, n_other;
    run_open(&fused, all, COMPILE_FUSED, &m), run_open(&unfused, all, COMPILE_UNFUSED, &m);
    for (Run *run = &fused; run; run = run == &fused ? &unfused : NULL) {
        float *x = (float *)(void *)rig_contents(&run->rig, "x", &n_bytes);
        for (int64_t e = 0; e < 8 * m; e++) x[e] = 3;
        cr_assert(rig_run(&run->rig, 0xF5), "%s", run->rig.error);
    }
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const uint8_t *a = rig_result(&fused.rig, names[k], &n_bytes);
        const uint8_t *b = rig_result(&unfused.rig, names[k], &n_other);
        cr_expect(n_bytes == n_other && !memcmp(a, b, n_bytes), "%s", names[k]);
    }
    const float *u = (const void *)rig_result(&fused.rig, "u", &n_bytes);
    const float *v = (const void *)rig_result(&fused.rig, "v", &n_bytes);
    const float *w = (const void *)rig_result(&fused.rig, "w", &n_bytes);
    const float *d = (const void *)rig_result(&fused.rig, "d", &n_bytes);
    const float *b = (const void *)rig_result(&fused.rig, "b", &n_bytes);
    const int32_t *i = (const void *)rig_result(&fused.rig, "i", &n_bytes);
    int n_equal = 0;
    for (int64_t e = 0; e < 8 * m; e++) {
        cr_expect(u[e] == v[e], "the shape changes element %lld", (long long)e);
        cr_expect_eq(d[e], u[e] >= 0.25F ? 4.0F : 0.0F, "dropout of %lld", (long long)e);
        cr_expect_eq(b[e], u[e] < 0.25F ? 1.0F : 0.0F, "bernoulli of %lld", (long long)e);
        cr_expect(fabs((i[e] + 3.5) / 13 - u[e]) <= 0.5 / 13 + 1e-6, "randint of %lld",
                  (long long)e);
        n_equal += u[e] == w[e];
    }
    cr_expect(n_equal < 3, "another stream has %d of the same numbers", n_equal);
    run_close(&fused), run_close(&unfused);
}

/* Mean and variance within five standard errors; bytes by chi-square with 255 degrees of freedom,
 * whose standard deviation is 22.6. */
Test(random_numbers, have_the_statistics_of_their_distributions, .timeout = 120) {
    enum { N = 1000000 };
    static const double variances[] = {1.0 / 12, 1}, fourths[] = {1.0 / 80, 3}, means[] = {0.5, 0};
    Run run;
    size_t n_bytes;
    run_open(&run,
             "graph g(key: u32[2]) -> (u: f32[1000, 1000], n: f32[1000, 1000]) {\n"
             "  u = rand(key, [1000, 1000])\n  n = randn(key, [1000, 1000])\n}\n",
             COMPILE_FUSED, NULL);
    for (int k = 0; k < 2; k++) {
        const float *x = run_result(&run, k ? "n" : "u", &n_bytes);
        double sum = 0, squares = 0, deviation = sqrt(variances[k] / N);
        cr_assert_eq(n_bytes, N * sizeof *x);
        for (int e = 0; e < N; e++) sum += x[e], squares += pow(x[e] - means[k], 2);
        cr_expect(fabs(sum / N - means[k]) < 5 * deviation, "mean %g", sum / N);
        deviation = sqrt((fourths[k] - pow(variances[k], 2)) / N);
        cr_expect(fabs(squares / N - variances[k]) < 5 * deviation, "variance %g", squares / N);
    }
    const float *u = (const void *)rig_result(&run.rig, "u", &n_bytes);
    for (int byte = 0; byte < 3; byte++) {
        int counts[256] = {0};
        double chi = 0;
        for (int e = 0; e < N; e++) {
            cr_assert(u[e] >= 0 && u[e] < 1);
            counts[(uint32_t)(u[e] * 16777216) >> 8 * byte & 255]++;
        }
        for (int c = 0; c < 256; c++) chi += pow(counts[c] - N / 256.0, 2) / (N / 256.0);
        cr_expect(chi > 255 - 5 * 22.6 && chi < 255 + 5 * 22.6, "byte %d: chi-square %g", byte,
                  chi);
    }
    run_close(&run);
}

/* Within the bound that the prelude states, of the words that `random_words` gives. */
Test(random_numbers, normal_numbers_are_within_their_bound, .timeout = 120) {
    enum { N = 100000 };
    Run run;
    size_t n_bytes;
    run_open(&run,
             "graph g(key: u32[2]) -> (n: f32[100000], u: u32[100000], v: u32[100000]) {\n"
             "  n = randn(key, [100000])\n  u, v, _, _ = random_words(key, [100000])\n}\n",
             COMPILE_FUSED, NULL);
    const float *n = run_result(&run, "n", &n_bytes);
    const uint32_t *u = (const void *)rig_result(&run.rig, "u", &n_bytes);
    const uint32_t *v = (const void *)rig_result(&run.rig, "v", &n_bytes);
    double worst = 0;
    for (int e = 0; e < N; e++) {
        double r = sqrt(-2 * log((float)ldexp(u[e] + 1.0, -32)));
        double want = r * cos(ldexp(v[e] - 2147483648.0, -31) * 3.14159265358979323846);
        worst = fmax(worst, fabs(n[e] - want));
    }
    cr_expect(worst <= 1e-5, "off by %g", worst);
    run_close(&run);
}

/* The first kernel of the program, all variants, on an emulated GPU: the bits of the CPU. */
Test(random_numbers, are_the_same_on_a_gpu, .timeout = 120) {
    static const char source[] = "graph g(key: u32[2]) -> (u: f32[5, 301]) {\n"
                                 "  u = rand(key, [5, 301])\n}\n";
    enum { N = 5 * 301 };
    Run run;
    EmuModule module;
    char error[400];
    size_t n_bytes;
    float u[N];
    run_open(&run, source, COMPILE_FUSED, NULL);
    const void *want = run_result(&run, "u", &n_bytes);
    for (TargetId target = 0; target < TARGET_COUNT; target++) {
        if (target_get(target)->device != DEVICE_GPU) continue;
        Compiled p = compiled_new(source, target);
        uint64_t at[2];
        void *params[2] = {&at[0], &at[1]};
        const Kernel *kernel = &p.plan->kernels.data[0];
        PtxReport report;
        compiled_assemble(&p, (PtxOptions){0}, &report);
        cr_assert(emu_module_init(&module, p.bytes), "%s", module.error);
        cr_assert(p.plan->kernels.n == 1 && kernel->args.n == 2);
        for (uint32_t i = 0; i < 2; i++) {
            BufferKind kind = p.plan->buffers.data[kernel->args.data[i]].kind;
            at[i] = (uint64_t)(uintptr_t)(kind == BUFFER_INPUT ? (const void *)key : u);
        }
        for (uint32_t k = 0; k < module.kernels.n; k++) {
            uint32_t n_threads = module.kernels.data[k]->n_threads;
            EmuLaunch launch = {
                .n_blocks = N / n_threads + 1, .n_threads = n_threads, .params = params, .seed = 1};
            memset(u, 0xFF, sizeof u);
            cr_assert(emu_run(module.kernels.data[k], &launch, error, sizeof error), "%s", error);
            cr_expect(!memcmp(u, want, sizeof u), "target %d, variant %u", (int)target, k);
        }
        emu_module_free(&module);
        compile_free(&p);
    }
    run_close(&run);
}
