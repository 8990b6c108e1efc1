/* Softmax and product on a CPU and on an emulated GPU, beside a plain loop in double; and what the
 * recurrence defines of hidden keys, of rows without keys and of NaN. */
#include "emulator/emu.h"
#include "lib/compiled.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "dim M in 1..1000\ndim N in 0..1000\ndim C in 1..1000\n"
    "graph natural(x: f32[M, N], v: f32[N, C]) -> (y: f32[M, C]) {\n"
    "  y = softmax_matmul(x, v)\n}\n"
    "graph binary(x: f32[M, N], v: f32[N, C]) -> (y: f32[M, C]) {\n"
    "  y = softmax2_matmul(x, v)\n}\n"
    "graph logarithm(x: f32[M, N], v: f32[N, C]) -> (y: f32[M, C]) {\n"
    "  y = softmax_lse(x, v)\n}\n"
    "graph both(x: f32[M, N], v: f32[N, C]) -> (y: f32[M, C], l: f32[M, 1]) "
    "{\n  l = softmax_lse(x, v)[:, :1]\n  y = softmax_matmul(x, v)\n}\n";

/* Rows, keys and columns: less and more than a block of keys, a tile of rows, a part of columns;
 * few rows and more keys than a part has. */
static const int64_t extents[][3] = {{1, 1, 1},     {5, 128, 3},   {7, 129, 40},   {3, 0, 5},
                                     {33, 1, 5},    {41, 128, 3},  {37, 129, 40},  {33, 0, 5},
                                     {67, 300, 17}, {33, 256, 64}, {34, 513, 300}, {2, 513, 300},
                                     {32, 770, 20}};
enum { N_EXTENTS = sizeof extents / sizeof *extents };

/* Row r sees the keys up to 3 r + 100, but row 2 sees none and row 3 has a NaN. Rows 4 and 5 have
 * finite scores of weight 0, which hide nothing; all scores of row 6 are the least number. Keys
 * from 101 on have infinities and NaNs among their values: some rows of a block see them, others do
 * not. */
static float value_at(Rng *rng, int64_t key, int64_t column) {
    static const float special[] = {INFINITY, NAN, -INFINITY};
    if (key > 100 && key % 9 == 0 && column % 4) return special[column % 4 - 1];
    if (key == 200) return NAN;
    if (key == 119 && column % 4 == 1) return -INFINITY;
    return (float)rng_between(rng, -1000, 1000) / 100;
}

static void fill(const int64_t *dims, float *x, float *v) {
    int64_t m = dims[0], n = dims[1], c = dims[2];
    Rng rng = rng_new((uint64_t)(m * n));
    for (int64_t i = 0; i < m * n; i++) {
        int64_t row = i / n, key = i % n;
        x[i] = (float)rng_between(&rng, -1000, 1000) / 50;
        if (row == 2 || key > 3 * row + 100) x[i] = -INFINITY;
        if (row == 3 && key == 4) x[i] = NAN;
        if (row == 4 && key % 7 == 3) x[i] = -1e9F;
        if (row == 5 && key % 7 == 3) x[i] = -FLT_MAX;
        if (row == 6) x[i] = -FLT_MAX;
    }
    for (int64_t i = 0; i < n * c; i++) v[i] = value_at(&rng, i / c, i % c);
}

typedef enum { NATURAL, BINARY, LOGARITHM } Wanted;

/* The sum of P v for a column, in double; or the logarithm of the sum of the powers. */
static double want_at(const float *x, const float *v, const int64_t *dims, Wanted wanted) {
    int64_t n = dims[1], c = dims[2];
    double most = -INFINITY, total = 0, sum = 0;
    for (int64_t k = 0; k < n; k++) most = x[k] > most || isnan(x[k]) ? x[k] : most;
    for (int64_t k = 0; k < n; k++) {
        double d = x[k] - most, weight = wanted == BINARY ? exp2(d) : exp(d);
        if (x[k] == -INFINITY) continue;
        total += weight;
        sum += weight * v[k * c];
    }
    return wanted == LOGARITHM ? most + log(total) : sum / total;
}

/* `y` has the columns of the product, or one. */
static void expect_results(const float *x, const float *v, const float *y, const int64_t *dims,
                           int64_t n_columns, Wanted wanted) {
    for (int64_t i = 0; i < dims[0] * n_columns; i++) {
        int64_t row = i / n_columns, column = i % n_columns;
        double want = want_at(x + row * dims[1], v + column, dims, wanted);
        bool is_right = isnan(want)   ? isnan(y[i])
                        : isinf(want) ? (double)y[i] == want
                                      : fabs(y[i] - want) <= 2e-4;
        cr_assert(is_right, "row %lld column %lld of [%lld, %lld] x [%lld]: %g, not %g",
                  (long long)row, (long long)column, (long long)dims[0], (long long)dims[1],
                  (long long)dims[2], (double)y[i], want);
    }
}

static void check_cpu(TargetId target, const char *graph, Wanted wanted, bool has_log) {
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_new(source, target);
    Rig rig;
    size_t n;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, graph, &options), "%s", rig.error);
    for (size_t e = 0; e < N_EXTENTS; e++) {
        cr_assert(rig_place(&rig, p.module->dims, extents[e]), "%s", rig.error);
        float *x = (float *)(void *)rig_contents(&rig, "x", &n);
        float *v = (float *)(void *)rig_contents(&rig, "v", &n);
        fill(extents[e], x, v);
        cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
        expect_results(x, v, (const float *)(const void *)rig_result(&rig, "y", &n), extents[e],
                       extents[e][2], wanted);
        if (!has_log) continue;
        const float *logs = (const float *)(const void *)rig_result(&rig, "l", &n);
        expect_results(x, v, logs, extents[e], 1, LOGARITHM);
    }
    rig_close(&rig);
    compile_free(&p);
}

Test(online, cpu, .timeout = 60) {
    check_cpu(TARGET_CPU, "natural", NATURAL, false);
    check_cpu(TARGET_CPU, "binary", BINARY, false);
    check_cpu(TARGET_CPU, "logarithm", LOGARITHM, false);
    check_cpu(TARGET_CPU, "both", NATURAL, true);
}

static void run_gpu(EmuKernel *kernel, const Kernel *of, const Plan *plan, const int64_t *dims) {
    size_t n_x = (size_t)(dims[0] * dims[1]), n_v = (size_t)(dims[1] * dims[2]);
    size_t n_y = (size_t)(dims[0] * dims[2]);
    float *x = calloc(n_x + 1, sizeof *x), *v = calloc(n_v + 1, sizeof *v);
    float *y = calloc(n_y, sizeof *y), *l = calloc((size_t)dims[0], sizeof *l);
    int64_t by_value[3] = {dims[0], dims[1], dims[2]};
    uint64_t at[4];
    void *params[7];
    char error[400];
    for (uint32_t i = 0; i < of->args.n; i++) {
        const char *name = plan->buffers.data[of->args.data[i]].name;
        const float *data = *name == 'y' ? y : *name == 'l' ? l : *name == 'x' ? x : v;
        at[i] = (uint64_t)(uintptr_t)data;
        params[i] = &at[i];
    }
    for (uint32_t i = 0; i < 3; i++) params[of->args.n + i] = &by_value[i];
    fill(dims, x, v);
    int64_t n_warps = (dims[0] + 3) / 4 * ((dims[2] + 127) / 128);
    EmuLaunch launch = {.n_blocks = (uint32_t)((n_warps + 3) / 4),
                        .n_threads = kernel->n_threads,
                        .params = params,
                        .seed = 1};
    cr_assert(emu_run(kernel, &launch, error, sizeof error), "%s", error);
    expect_results(x, v, y, dims, dims[2], NATURAL);
    expect_results(x, v, l, dims, 1, LOGARITHM);
    free(x), free(v), free(y), free(l);
}

/* With so many rows the keys have no parts. */
static const char many[] = "dim M in 33..1000\ndim N in 0..1000\ndim C in 1..1000\n"
                           "graph both(x: f32[M, N], v: f32[N, C]) -> (y: f32[M, C], l: f32[M, 1]) "
                           "{\n  y = softmax_matmul(x, v)\n  l = softmax_lse(x, v)[:, :1]\n}\n";

Test(online, gpu, .timeout = 120) {
    Compiled p = compiled_new(many, TARGET_SM_80);
    EmuModule module;
    cr_assert(emu_module_init(&module, p.bytes), "%s", module.error);
    cr_assert(module.kernels.n == 1 && p.plan->kernels.n == 1 &&
              p.plan->kernels.data[0].args.n == 4);
    for (size_t e = 0; e < N_EXTENTS; e++)
        if (extents[e][0] > 32)
            run_gpu(module.kernels.data[0], &p.plan->kernels.data[0], p.plan, extents[e]);
    emu_module_free(&module);
    compile_free(&p);
}

/* What comes before the scores and after the results is in the op's kernel, and views of the values
 * are read in place. */
Test(online, fuses_with_what_is_around) {
    Compiled p = compiled_new(
        "graph g(x: f32[4, 40, 300], v: bf16[300, 4, 64], b: f32[40, 300]) -> (y: bf16[4, 40, 64]) "
        "{\n  s = where(iota([40, 300], axis=1) <= iota([40, 300], axis=0) + 260, x * 0.125 + b, "
        "-inf)\n  y = relu(softmax_matmul(s, transpose(v, perm=[1, 0, 2])) * 2)\n}\n",
        TARGET_CPU);
    cr_expect_eq(p.plan->kernels.n, 1u);
    cr_expect_eq(p.plan->kernels.data[0].form, FORM_ONLINE);
    compile_free(&p);
}
