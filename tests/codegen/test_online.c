/* Softmax and product on a CPU and on an emulated GPU, beside a plain loop in double; and what the
 * recurrence defines of hidden keys, of rows without keys and of NaN. Quantised rows and their
 * product are the same to the bit as the recurrence in a plain loop. */
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
    "{\n  l = softmax_lse(x, v)[:, :1]\n  y = softmax_matmul(x, v)\n}\n"
    "graph quantized(x: f32[M, N], v: f32[N, C]) -> (y: f32[M, C], l: f32[M, 1]) {\n"
    "  l = quantize_amax(x, v)[:, :1]\n"
    "  y = quantize_matmul(x, v, scale=127, round=true) * (l / 127)\n}\n";

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

typedef enum { NOTHING, NATURAL, BINARY, LOGARITHM, QUANTIZED, GREATEST } Wanted;

/* Of rows that are quantised no key is hidden. Row 2 is zeros. */
static void fill(const int64_t *dims, Wanted wanted, float *x, float *v) {
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
        if (row == 8 && key == 7 && wanted == QUANTIZED)
            x[i] = INFINITY;
        else if (wanted == QUANTIZED && isinf(x[i]))
            x[i] = row == 2 ? 0 : (float)(key % 91) / 7;
    }
    for (int64_t i = 0; i < n * c; i++) v[i] = value_at(&rng, i / c, i % c);
}

/* The sum of a part of the keys, and its greatest absolute value. */
typedef struct Part {
    float sum, greatest;
} Part;

static float larger(float a, float b) {
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static float over(float x, float greatest) {
    return greatest > 0 ? x / greatest : 0;
}

static Part part_of(const float *x, const float *v, int64_t c, int64_t begin, int64_t end) {
    Part part = {0, -INFINITY};
    for (int64_t first = begin; first < end; first += 128) {
        int64_t behind = first + 128 < end ? first + 128 : end;
        float greatest = part.greatest, product = 0;
        for (int64_t k = first; k < behind; k++) greatest = larger(greatest, fabsf(x[k]));
        for (int64_t k = first; k < behind; k++)
            product = fmaf(rintf(over(x[k], greatest) * 127), v[k * c], product);
        float scale = part.greatest > 0 ? part.greatest / greatest : 0;
        part = (Part){fmaf(scale, part.sum, product), greatest};
    }
    return part;
}

static double quantized_at(const float *x, const float *v, const int64_t *dims, Wanted wanted) {
    int64_t n = dims[1], most = dims[0] <= 32 && n > 256 ? 256 : n + 1;
    Part parts[8], all = {0, -INFINITY};
    uint32_t n_parts = 0;
    for (int64_t k = 0; k < n; k += most, n_parts++) {
        parts[n_parts] = part_of(x, v, dims[2], k, k + most < n ? k + most : n);
        all.greatest = larger(all.greatest, parts[n_parts].greatest);
    }
    for (uint32_t i = 0; i < n_parts; i++)
        all.sum = fmaf(over(parts[i].greatest, all.greatest), parts[i].sum, all.sum);
    if (n_parts == 1) all = parts[0];
    if (wanted == GREATEST) return all.greatest;
    if (all.greatest == 0 || all.greatest == INFINITY || isnan(all.greatest)) return NAN;
    return all.sum * (all.greatest / 127);
}

/* The sum of P v for a column, in double; or the logarithm of the sum of the powers. */
static double want_at(const float *x, const float *v, const int64_t *dims, Wanted wanted) {
    int64_t n = dims[1], c = dims[2];
    double most = -INFINITY, total = 0, sum = 0;
    if (wanted >= QUANTIZED) return quantized_at(x, v, dims, wanted);
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
        bool is_right = isnan(want)                          ? isnan(y[i])
                        : isinf(want) || wanted >= QUANTIZED ? (double)y[i] == want
                                                             : fabs(y[i] - want) <= 2e-4;
        cr_assert(is_right, "row %lld column %lld of [%lld, %lld] x [%lld]: %g, not %g",
                  (long long)row, (long long)column, (long long)dims[0], (long long)dims[1],
                  (long long)dims[2], (double)y[i], want);
    }
}

static void check_cpu(TargetId target, const char *graph, Wanted wanted, Wanted of_row) {
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_new(source, target);
    Rig rig;
    size_t n;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, graph, &options), "%s", rig.error);
    for (size_t e = 0; e < N_EXTENTS; e++) {
        cr_assert(rig_place(&rig, p.module->dims, extents[e]), "%s", rig.error);
        float *x = (float *)(void *)rig_contents(&rig, "x", &n);
        float *v = (float *)(void *)rig_contents(&rig, "v", &n);
        fill(extents[e], wanted, x, v);
        cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
        expect_results(x, v, (const float *)(const void *)rig_result(&rig, "y", &n), extents[e],
                       extents[e][2], wanted);
        if (!of_row) continue;
        const float *rows = (const float *)(const void *)rig_result(&rig, "l", &n);
        expect_results(x, v, rows, extents[e], 1, of_row);
    }
    rig_close(&rig);
    compile_free(&p);
}

Test(online, cpu, .timeout = 60) {
    check_cpu(TARGET_CPU, "natural", NATURAL, NOTHING);
    check_cpu(TARGET_CPU, "binary", BINARY, NOTHING);
    check_cpu(TARGET_CPU, "logarithm", LOGARITHM, NOTHING);
    check_cpu(TARGET_CPU, "both", NATURAL, LOGARITHM);
    check_cpu(TARGET_CPU, "quantized", QUANTIZED, GREATEST);
    check_cpu(TARGET_CPU_MULTI, "quantized", QUANTIZED, GREATEST);
}

static void run_gpu(EmuKernel *kernel, const Kernel *of, const Plan *plan, const int64_t *dims,
                    Wanted wanted, Wanted of_row) {
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
    fill(dims, wanted, x, v);
    int64_t n_warps = (dims[0] + 3) / 4 * ((dims[2] + 127) / 128);
    EmuLaunch launch = {.n_blocks = (uint32_t)((n_warps + 3) / 4),
                        .n_threads = kernel->n_threads,
                        .params = params,
                        .seed = 1};
    cr_assert(emu_run(kernel, &launch, error, sizeof error), "%s", error);
    expect_results(x, v, y, dims, dims[2], wanted);
    expect_results(x, v, l, dims, 1, of_row);
    free(x), free(v), free(y), free(l);
}

/* With so many rows the keys have no parts. */
#define MANY                                                  \
    "dim M in 33..1000\ndim N in 0..1000\ndim C in 1..1000\n" \
    "graph both(x: f32[M, N], v: f32[N, C]) -> (y: f32[M, C], l: f32[M, 1]) {\n"
static const char softmaxes[] = MANY "  y = softmax_matmul(x, v)\n"
                                     "  l = softmax_lse(x, v)[:, :1]\n}\n";
static const char quantized[] =
    MANY "  fuse must {\n    l = quantize_amax(x, v)[:, :1]\n"
         "    y = quantize_matmul(x, v, scale=127, round=true) * (l / 127)\n  }\n}\n";

static void check_gpu(const char *many, TargetId target, Wanted wanted, Wanted of_row) {
    Compiled p = compiled_new(many, target);
    EmuModule module;
    cr_assert(emu_module_init(&module, p.bytes), "%s", module.error);
    cr_assert(module.kernels.n == 1 && p.plan->kernels.n == 1 &&
              p.plan->kernels.data[0].args.n == 4);
    for (size_t e = 0; e < N_EXTENTS; e++)
        if (extents[e][0] > 32)
            run_gpu(module.kernels.data[0], &p.plan->kernels.data[0], p.plan, extents[e], wanted,
                    of_row);
    emu_module_free(&module);
    compile_free(&p);
}

Test(online, gpu, .timeout = 120) {
    check_gpu(softmaxes, TARGET_SM_80, NATURAL, LOGARITHM);
    check_gpu(quantized, TARGET_SM_80, QUANTIZED, GREATEST);
    check_gpu(quantized, TARGET_SM_90A, QUANTIZED, GREATEST);
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
