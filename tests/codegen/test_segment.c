/* Reductions of segments on a CPU and on an emulated GPU against a plain loop, bit by bit; and what
 * the prelude makes of them. */
#include "emulator/emu.h"
#include "lib/compiled.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums of rounded products, so that another order gives other bits. */
static const char source[] = "dim N in 0..100000\ndim M in 1..1000\n"
                             "graph columns(x: f32[N, M], i: i32[N]) -> (y: f32[9, M]) {\n"
                             "  fuse must {\n    j = expand(reshape(i, [N, 1]), [N, M])\n"
                             "    y = sorted_segment_sum(x * 0.3, j, 9)\n  }\n}\n"
                             "graph rows(x: f32[M, N], i: i32[M, N]) -> (y: f32[M, 9]) {\n"
                             "  y = sorted_segment_sum(x * 0.3, i, 9, axis=1)\n}\n";

/* Numbers from -1 to 9 that ascend: the first and the last are no segments; some have no element.
 */
static void fill_ids(int32_t *ids, int64_t n, uint64_t seed) {
    Rng rng = rng_new(seed);
    int32_t id = -1;
    for (int64_t i = 0; i < n; i++) {
        if (rng_below(&rng, (uint32_t)(n / 8 + 1)) == 0 && id < 9)
            id += rng_below(&rng, 10) ? 1 : 2;
        ids[i] = id;
    }
}

static void fill(float *x, int64_t n) {
    Rng rng = rng_new((uint64_t)n);
    for (int64_t i = 0; i < n; i++) x[i] = (float)rng_between(&rng, -1000, 1000) / 7;
}

/* The sum of segment `s` of the n elements that lie `stride` apart. */
static float sum_of(const float *x, const int32_t *ids, int64_t n, int64_t stride, int32_t s,
                    int64_t id_stride) {
    float sum = -0.0F;
    for (int64_t i = 0; i < n; i++)
        if (ids[i * id_stride] == s) sum += x[i * stride] * 0.3F;
    return sum;
}

static void expect_sums(const float *x, const int32_t *ids, const float *y, int64_t n, int64_t m,
                        bool are_rows) {
    for (int64_t k = 0; k < m; k++)
        for (int32_t s = 0; s < 9; s++) {
            float want = are_rows ? sum_of(x + k * n, ids + k * n, n, 1, s, 1)
                                  : sum_of(x + k, ids, n, m, s, 1);
            float got = are_rows ? y[k * 9 + s] : y[s * m + k];
            cr_assert(got == want, "segment %d of %s %lld of [%lld, %lld]: %a, not %a", (int)s,
                      are_rows ? "row" : "column", (long long)k, (long long)n, (long long)m,
                      (double)got, (double)want);
        }
}

static const int64_t extents[][2] = {{0, 3}, {1, 1}, {7, 5}, {64, 16}, {1000, 33}, {3000, 300}};
enum { N_EXTENTS = sizeof extents / sizeof *extents };

static void check_cpu(const char *graph, bool are_rows) {
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_new(source, TARGET_CPU);
    Rig rig;
    size_t n_bytes;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, graph, &options), "%s", rig.error);
    for (size_t e = 0; e < N_EXTENTS; e++) {
        int64_t n = extents[e][0], m = extents[e][1];
        cr_assert(rig_place(&rig, p.module->dims, extents[e]), "%s", rig.error);
        float *x = (float *)(void *)rig_contents(&rig, "x", &n_bytes);
        fill(x, n * m);
        int32_t *ids = (int32_t *)(void *)rig_contents(&rig, "i", &n_bytes);
        for (int64_t k = 0; k < (are_rows ? m : 1); k++)
            fill_ids(ids + k * n, n, (uint64_t)(e + (size_t)k));
        cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
        expect_sums(x, ids, (const float *)(const void *)rig_result(&rig, "y", &n_bytes), n, m,
                    are_rows);
    }
    rig_close(&rig);
    compile_free(&p);
}

Test(segment, cpu, .timeout = 60) {
    check_cpu("columns", false);
    check_cpu("rows", true);
}

static void run_gpu(EmuKernel *kernel, const Kernel *of, const Plan *plan, const int64_t *dims,
                    bool are_rows) {
    int64_t n = dims[0], m = dims[1], by_value[2] = {n, m};
    float *x = calloc((size_t)(n * m + 1), sizeof *x), *y = calloc((size_t)(9 * m), sizeof *y);
    int32_t *ids = calloc((size_t)(n * m + 1), sizeof *ids);
    uint64_t at[3];
    void *params[5] = {&at[0], &at[1], &at[2], &by_value[0], &by_value[1]};
    char error[400];
    for (uint32_t i = 0; i < 3; i++) {
        const Buffer *buffer = &plan->buffers.data[of->args.data[i]];
        at[i] = (uint64_t)(uintptr_t)(buffer->kind == BUFFER_OUTPUT ? (void *)y
                                      : buffer->dtype == DT_F32     ? (void *)x
                                                                    : (void *)ids);
    }
    fill(x, n * m);
    for (int64_t k = 0; k < (are_rows ? m : 1); k++) fill_ids(ids + k * n, n, (uint64_t)k + 7);
    EmuLaunch launch = {.n_blocks = (uint32_t)((9 * m + kernel->n_threads - 1) / kernel->n_threads),
                        .n_threads = kernel->n_threads,
                        .params = params,
                        .seed = 1};
    cr_assert(emu_run(kernel, &launch, error, sizeof error), "%s", error);
    expect_sums(x, ids, y, n, m, are_rows);
    free(x), free(y), free(ids);
}

Test(segment, gpu, .timeout = 120) {
    Compiled p = compiled_new(source, TARGET_SM_80);
    EmuModule module;
    cr_assert(emu_module_init(&module, p.bytes), "%s", module.error);
    cr_assert(module.kernels.n == 2 && p.plan->kernels.n == 1 &&
              p.plan->kernels.data[0].args.n == 3);
    for (size_t e = 0; e + 1 < N_EXTENTS; e++)
        run_gpu(module.kernels.data[0], &p.plan->kernels.data[0], p.plan, extents[e], false);
    emu_module_free(&module);
    compile_free(&p);
}

/* The values of PyTorch's functions of these names; of scatter the last element wins. */
static const char prelude[] =
    "graph g(x: f32[3, 2], i: i32[4, 2], s: f32[4, 2], k: i64[4], r: f32[8]) -> (put: f32[3, 2], "
    "add: f32[3, 2], mul: f32[3, 2], top: f32[3, 2], low: f32[3, 2], mid: f32[3, 2], self: f32[3, "
    "2], plus: f32[3, 2], "
    "copy: f32[3, 2], sums: f32[3, 2], most: f32[3, 2], count: i32[4], hist: i32[4]) {\n"
    "  put = scatter(x, 0, i, s)\n  add = scatter_add(x, 0, i, s)\n"
    "  mul = scatter_reduce(x, 0, i, s, \"prod\")\n  top = scatter_reduce(x, 0, i, s, \"amax\")\n"
    "  low = scatter_reduce(x, -2, i, s, reduce=\"amin\")\n"
    "  mid = scatter_reduce(x, 0, i, s, \"mean\")\n"
    "  self = scatter_reduce(x, 0, i, s, \"mean\", include_self=false)\n  plus = index_add(x, 0, "
    "k, s)\n"
    "  copy = index_copy(x, 0, k, s)\n  sums = segment_sum(s, k, 3)\n"
    "  most = segment_max(s, k, 3)\n  count = bincount(k, 4)\n"
    "  hist = histc(r, 4, 0.0, 2.0)\n}\n";

Test(segment, prelude) {
    static const float x[] = {1, 2, 3, 4, 5, 6}, s[] = {10, 20, 30, 40, 50, 60, 70, 0.5F};
    static const float r[] = {0, 2, 0.5F, 0.49F, 1.99F, -0.1F, NAN, 2.1F};
    static const int32_t i[] = {2, 0, 0, 1, 2, 0, -1, 0};
    static const int64_t k[] = {1, 0, 1, 3};
    Compiled p = compiled_new(prelude, TARGET_CPU);
    Rig rig;
    compiled_open(&p, &rig, "g");
    compiled_set(&rig, "x", x, sizeof x);
    compiled_set(&rig, "s", s, sizeof s);
    compiled_set(&rig, "i", i, sizeof i);
    compiled_set(&rig, "k", k, sizeof k);
    compiled_set(&rig, "r", r, sizeof r);
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    compiled_expect_numbers(&rig, "put", DT_F32, (double[]){30, 0.5, 3, 40, 50, 6});
    compiled_expect_numbers(&rig, "add", DT_F32, (double[]){31, 82.5, 3, 44, 65, 6});
    compiled_expect_numbers(&rig, "mul", DT_F32, (double[]){30, 1200, 3, 160, 2500, 6});
    compiled_expect_numbers(&rig, "top", DT_F32, (double[]){30, 60, 3, 40, 50, 6});
    compiled_expect_numbers(&rig, "low", DT_F32, (double[]){1, 0.5, 3, 4, 5, 6});
    compiled_expect_numbers(&rig, "mid", DT_F32, (double[]){15.5, 20.625, 3, 22, 65. / 3, 6});
    compiled_expect_numbers(&rig, "self", DT_F32, (double[]){30, 80.5 / 3, 3, 40, 30, 6});
    compiled_expect_numbers(&rig, "plus", DT_F32, (double[]){31, 42, 63, 84, 5, 6});
    compiled_expect_numbers(&rig, "copy", DT_F32, (double[]){30, 40, 50, 60, 5, 6});
    compiled_expect_numbers(&rig, "sums", DT_F32, (double[]){30, 40, 60, 80, 0, 0});
    compiled_expect_numbers(&rig, "most", DT_F32,
                            (double[]){30, 40, 50, 60, -(double)INFINITY, -(double)INFINITY});
    compiled_expect_numbers(&rig, "count", DT_I32, (double[]){1, 2, 0, 1});
    compiled_expect_numbers(&rig, "hist", DT_I32, (double[]){2, 1, 0, 2});
    rig_close(&rig);
    compile_free(&p);
}

/* What segments without elements are, and elements without sources: the signs of zeros show in
 * quotients. */
static const char of_none[] =
    "dim N in 0..8\ngraph g(x: f32[2], h: f16[N], i: i32[N]) -> (sums: f16[2], add: f32[2], "
    "self: f32[2], index: f32[2], prod: f16[2], most: f16[2], least: f16[2], mean: f32[2], "
    "top: f32[2], raw: f16[2], whole: i32[2]) {\n  s = cast(h, f32)\n"
    "  sums = 1.0 / segment_sum(h, i, 2)\n  add = 1.0 / scatter_add(x, 0, i, s)\n"
    "  self = 1.0 / scatter_reduce(x, 0, i, s, \"sum\", include_self=false)\n"
    "  index = 1.0 / index_add(x, 0, i, s)\n  prod = segment_prod(h, i, 2)\n"
    "  most = segment_max(h, i, 2)\n  least = segment_min(h, i, 2)\n"
    "  mean = 1.0 / scatter_reduce(x, 0, i, s, \"mean\")\n"
    "  top = 1.0 / scatter_reduce(x, 0, i, s, \"amax\")\n"
    "  raw = 1.0 / sorted_segment_sum(h, i, 2)\n  whole = segment_max(cast(h, i32), i, 2)\n}\n";

static void expect_none(Compiled *p, Rig *rig, int64_t n) {
    static const float x[] = {-0.0F, 4};
    static const uint16_t h[] = {0x8000}; /* -0 */
    static const int32_t i[] = {1};
    double inf = INFINITY;
    cr_assert(rig_place(rig, p->module->dims, &n), "%s", rig->error);
    compiled_set(rig, "x", x, sizeof x);
    compiled_set(rig, "h", h, (size_t)n * sizeof *h);
    compiled_set(rig, "i", i, (size_t)n * sizeof *i);
    cr_assert(rig_run(rig, 0xF5), "%s", rig->error);
    compiled_expect_numbers(rig, "sums", DT_F16, (double[]){inf, n ? -inf : inf});
    compiled_expect_numbers(rig, "add", DT_F32, (double[]){-inf, 0.25});
    compiled_expect_numbers(rig, "self", DT_F32, (double[]){-inf, n ? -inf : 0.25});
    compiled_expect_numbers(rig, "index", DT_F32, (double[]){-inf, 0.25});
    compiled_expect_numbers(rig, "prod", DT_F16, (double[]){1, n ? -0.0 : 1});
    compiled_expect_numbers(rig, "most", DT_F16, (double[]){-inf, n ? -0.0 : -inf});
    compiled_expect_numbers(rig, "least", DT_F16, (double[]){inf, n ? -0.0 : inf});
    compiled_expect_numbers(rig, "mean", DT_F32, (double[]){-inf, n ? 0.5 : 0.25});
    compiled_expect_numbers(rig, "top", DT_F32, (double[]){-inf, 0.25});
    compiled_expect_numbers(rig, "raw", DT_F16, (double[]){inf, n ? -inf : inf});
    compiled_expect_numbers(rig, "whole", DT_I32, (double[]){INT32_MIN, n ? 0 : INT32_MIN});
}

Test(segment, of_none, .timeout = 60) {
    for (int unfused = 0; unfused < 2; unfused++) {
        Compiled p = compiled_as(of_none, TARGET_CPU, unfused ? COMPILE_UNFUSED : COMPILE_FUSED);
        RigOptions options = RIG_OPTIONS_INIT;
        Rig rig;
        cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
        for (int64_t n = 0; n < 2; n++) expect_none(&p, &rig, n);
        rig_close(&rig);
        compile_free(&p);
    }
}

/* Reductions of the same segments share a kernel, unless one reads the other. */
Test(segment, one_of_another, .timeout = 60) {
    Compiled p = compiled_new("graph g(x: u32[1, 1], i: i32[1, 1]) -> (y: i64[1, 1]) {\n"
                              "  a = sorted_segment_max(x, i, 1, axis=0)\n"
                              "  y = sorted_segment_max(cast(a, i64), i, 1, axis=0)\n}\n",
                              TARGET_CPU);
    RigOptions options = RIG_OPTIONS_INIT;
    Rig rig;
    size_t n_bytes;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options) &&
                  rig_place(&rig, p.module->dims, NULL),
              "%s", rig.error);
    memcpy(rig_contents(&rig, "x", &n_bytes), &(uint32_t){7}, 4);
    memcpy(rig_contents(&rig, "i", &n_bytes), &(int32_t){0}, 4);
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    int64_t y;
    memcpy(&y, rig_result(&rig, "y", &n_bytes), sizeof y);
    cr_expect_eq(y, 7);
    cr_expect_eq(p.plan->kernels.n, 2u);
    rig_close(&rig);
    compile_free(&p);
}

/* Parts of values that init steps make and give back have no place in a run. */
Test(segment, means, .timeout = 60) {
    Compiled p =
        compiled_as("graph g(x: f32[3, 2], i: i32[4, 2], s: f32[4, 2]) -> (t: f32[3, 2], "
                    "y: f32[3, 2], z: f32[3, 2]) {\n  t = scatter_reduce(x, 0, i, s, \"amax\")\n"
                    "  y = scatter_reduce(x, 0, i, s, \"mean\")\n"
                    "  z = scatter_reduce(x, 0, i, s, \"mean\", include_self=false)\n}\n",
                    TARGET_CPU, COMPILE_UNFUSED);
    RigOptions options = RIG_OPTIONS_INIT;
    Rig rig;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options) &&
                  rig_place(&rig, p.module->dims, NULL) && rig_run(&rig, 0xF5),
              "%s", rig.error);
    rig_close(&rig);
    compile_free(&p);
}
