/* Sorts on a CPU and on an emulated GPU against a plain one, with many equal elements and NaNs; and
 * what the prelude makes of them. */
#include "emulator/emu.h"
#include "lib/compiled.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One row, for qsort, which has no argument for it. */
static const float *keys;
static int64_t key_stride;
static bool key_descends;

/* Ascending by key, then by index; NaN is the largest. */
static int compare(const void *left, const void *right) {
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    float x = keys[a * key_stride], y = keys[b * key_stride];
    int order = isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
    if (key_descends) order = -order;
    return order ? order : (a > b) - (a < b);
}

static void expect_sorted(const char *what, const float *x, const int32_t *got, int64_t n,
                          int64_t m, int axis) {
    int64_t length = axis ? m : n;
    int32_t *order = calloc((size_t)length + 1, sizeof *order);
    key_stride = axis ? 1 : m;
    for (int64_t row = 0; row < (axis ? n : m); row++) {
        int64_t first = axis ? row * m : row;
        for (int64_t i = 0; i < length; i++) order[i] = (int32_t)i;
        keys = x + first;
        qsort(order, (size_t)length, sizeof *order, compare);
        for (int64_t i = 0; i < length; i++)
            cr_assert_eq(got[first + i * key_stride], order[i], "%s[%lld, %lld], row %lld, at %lld",
                         what, (long long)n, (long long)m, (long long)row, (long long)i);
    }
    free(order);
}

static void fill(float *x, int64_t n) {
    Rng rng = rng_new((uint64_t)n);
    for (int64_t i = 0; i < n; i++) {
        int64_t value = rng_between(&rng, -40, 40);
        x[i] = value == 40 ? NAN : value == -40 ? -0.0F : (float)value / 4;
    }
}

static const int64_t extents[][2] = {{1, 1},  {3, 2},    {2, 127},  {5, 128}, {3, 129},
                                     {70, 4}, {2, 4096}, {2, 4097}, {9000, 3}};
enum { N_EXTENTS = sizeof extents / sizeof *extents };

/* `keys_of`: x, or its elements in another dtype. */
static const char *source_of(char *to, size_t room, int axis, bool descends, const char *keys_of) {
    snprintf(to, room,
             "dim N in 0..100000\ndim M in 0..100000\n"
             "graph g(x: f32[N, M]) -> (y: i32[N, M]) {\n  y = argsort(%s, axis=%d%s)\n}\n",
             keys_of, axis, descends ? ", descending=true" : "");
    return to;
}

static void check_cpu(int axis, bool descends, const char *keys_of) {
    char source[256];
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p =
        compiled_new(source_of(source, sizeof source, axis, descends, keys_of), TARGET_CPU);
    Rig rig;
    size_t n_bytes;
    key_descends = descends;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
    for (size_t e = 0; e < N_EXTENTS; e++) {
        int64_t n = extents[e][0], m = extents[e][1];
        cr_assert(rig_place(&rig, p.module->dims, extents[e]), "%s", rig.error);
        float *x = (float *)(void *)rig_contents(&rig, "x", &n_bytes);
        fill(x, n * m);
        cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
        const void *y = rig_result(&rig, "y", &n_bytes);
        expect_sorted(source, x, y, n, m, axis);
    }
    rig_close(&rig);
    compile_free(&p);
}

Test(sort, cpu, .timeout = 60) {
    for (int axis = 0; axis < 2; axis++) {
        check_cpu(axis, false, "x");
        check_cpu(axis, true, "x");
    }
}

/* Items of 128 bits hold keys of 64 bits; keys of 16 bits are compared as f32. */
Test(sort, cpu_dtypes, .timeout = 60) {
    static const char *const keys_of[] = {"cast(x, f64)", "cast(x, f16)"};
    for (size_t i = 0; i < sizeof keys_of / sizeof *keys_of; i++) {
        check_cpu(1, false, keys_of[i]);
        check_cpu(1, true, keys_of[i]);
    }
}

/* Loads of keys, of which a comparison takes one or two. */
static uint64_t keys_at, keys_bytes, n_loads;

static bool count_loads(uint64_t at, uint32_t n_bytes) {
    n_loads += at >= keys_at && at + n_bytes <= keys_at + keys_bytes;
    return true;
}

/* In proportion to n log n for each row of n elements. */
static void expect_few_loads(const char *source, int64_t n_rows, int64_t length) {
    uint64_t levels = 1, most;
    while (length > 1 << levels) levels++;
    most = (uint64_t)(n_rows * length) * (3 * levels + 1) + 8 * (uint64_t)n_rows;
    cr_expect(n_loads <= most, "%s: %llu loads of keys for %lld rows of %lld, at most %llu", source,
              (unsigned long long)n_loads, (long long)n_rows, (long long)length,
              (unsigned long long)most);
}

/* All variants whose shared memory has room for the row. */
static void check_gpu(int axis, bool descends, const int64_t *dims) {
    char source[256], error[400];
    Compiled p = compiled_new(source_of(source, sizeof source, axis, descends, "x"), TARGET_SM_80);
    EmuModule module;
    int64_t n = dims[0], m = dims[1], by_value[2] = {n, m}, length = axis ? m : n;
    float *x = calloc((size_t)(n * m), sizeof *x);
    int32_t *y = calloc((size_t)(n * m), sizeof *y), *t = calloc((size_t)(2 * n * m), sizeof *t);
    uint64_t at[3];
    void *params[5];
    const Kernel *kernel = &p.plan->kernels.data[0];
    cr_assert(emu_module_init(&module, p.bytes), "%s", module.error);
    cr_assert(module.kernels.n == 3 && kernel->args.n == 3);
    for (uint32_t i = 0; i < 3; i++) {
        BufferKind kind = p.plan->buffers.data[kernel->args.data[i]].kind;
        at[i] = (uint64_t)(uintptr_t)(kind == BUFFER_INPUT    ? (void *)x
                                      : kind == BUFFER_OUTPUT ? (void *)y
                                                              : (void *)t);
        params[i] = &at[i];
    }
    params[3] = &by_value[0], params[4] = &by_value[1];
    fill(x, n * m);
    key_descends = descends;
    for (uint32_t k = length <= 128 ? 0 : length <= 4096 ? 1 : 2; k < module.kernels.n; k++) {
        EmuLaunch launch = {.n_blocks = (uint32_t)(axis ? n : m),
                            .n_threads = module.kernels.data[k]->n_threads,
                            .params = params,
                            .seed = 1,
                            .may_access = count_loads};
        keys_at = (uint64_t)(uintptr_t)x, keys_bytes = (uint64_t)(n * m) * sizeof *x, n_loads = 0;
        memset(y, 0xFF, (size_t)(n * m) * sizeof *y);
        cr_assert(emu_run(module.kernels.data[k], &launch, error, sizeof error), "%s", error);
        expect_sorted(source, x, y, n, m, axis);
        expect_few_loads(source, axis ? n : m, length);
    }
    emu_module_free(&module);
    free(x), free(y), free(t);
    compile_free(&p);
}

Test(sort, gpu, .timeout = 120) {
    static const int64_t some[][2] = {{2, 1}, {3, 100}, {2, 130}, {5, 3}, {2, 4096}, {1, 4500}};
    for (size_t e = 0; e < sizeof some / sizeof *some; e++)
        for (int axis = 0; axis < 2; axis++) check_gpu(axis, axis == 0, some[e]);
}

/* Orders of which the first places alone are read: found by a walk, by rounds, or by merges that
 * drop the other places. */
static void check_first(TargetId target, int64_t kept, bool descends) {
    enum { ROWS = 3 };
    static const int64_t lengths[] = {200, 203, 1000, 4096, 5000};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        char source[256];
        size_t n_bytes;
        int64_t n = lengths[l];
        RigOptions options = RIG_OPTIONS_INIT;
        Rig rig;
        snprintf(source, sizeof source,
                 "dim N in 200..9000\ngraph g(x: f32[%d, N]) -> (y: i32[%d, %lld]) {\n"
                 "  y = argsort(x, axis=1%s)[:, :%lld]\n}\n",
                 ROWS, ROWS, (long long)kept, descends ? ", descending=true" : "", (long long)kept);
        Compiled p = compiled_new(source, target);
        cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
        cr_assert(rig_place(&rig, p.module->dims, &n), "%s", rig.error);
        float *x = (float *)(void *)rig_contents(&rig, "x", &n_bytes);
        fill(x, ROWS * n);
        cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
        const int32_t *got = (const int32_t *)(const void *)rig_result(&rig, "y", &n_bytes);
        int32_t *order = calloc((size_t)n, sizeof *order);
        key_stride = 1, key_descends = descends;
        for (int64_t row = 0; row < ROWS; row++) {
            for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
            keys = x + row * n;
            qsort(order, (size_t)n, sizeof *order, compare);
            for (int64_t i = 0; i < kept; i++)
                cr_assert_eq(got[row * kept + i], order[i], "%s: row %lld of %lld, at %lld", source,
                             (long long)row, (long long)n, (long long)i);
        }
        free(order);
        rig_close(&rig);
        compile_free(&p);
    }
}

Test(sort, first_places, .timeout = 120) {
    static const int64_t kept[] = {1, 2, 8, 9, 16, 17, 64, 65, 150};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        check_first(TARGET_CPU, kept[i], false);
        check_first(TARGET_CPU, kept[i], true);
    }
}

/* The values of PyTorch's functions of these names. */
static const char prelude[] =
    "graph g(x: f32[2, 5], v: f32[2, 4]) -> (s: f32[2, 5], t: f32[2, 2], i: i32[2, 2], "
    "c: f32[1, 5], m: f32[2], l: i32[2, 4], r: i32[2, 4]) {\n"
    "  s, _ = sort(x)\n  t, i = topk(x, 2)\n  c, _ = topk(x, 1, axis=0, largest=false)\n"
    "  m = median(x)\n  l = searchsorted(s, v)\n  r = searchsorted(s, v, right=true)\n}\n";

Test(sort, prelude) {
    static const float x[] = {3, 1, 2, 1, 5, 4, NAN, 0, 4, -1}, v[] = {1, 0, 5, 9, 4, 3, -1, 0};
    Compiled p = compiled_new(prelude, TARGET_CPU);
    Rig rig;
    compiled_open(&p, &rig, "g");
    compiled_set(&rig, "x", x, sizeof x);
    compiled_set(&rig, "v", v, sizeof v);
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    compiled_expect_numbers(&rig, "s", DT_F32, (double[]){1, 1, 2, 3, 5, -1, 0, 4, 4, NAN});
    compiled_expect_numbers(&rig, "t", DT_F32, (double[]){5, 3, NAN, 4});
    compiled_expect_numbers(&rig, "i", DT_I32, (double[]){4, 0, 1, 0});
    compiled_expect_numbers(&rig, "c", DT_F32, (double[]){3, 1, 0, 1, -1});
    compiled_expect_numbers(&rig, "m", DT_F32, (double[]){2, NAN});
    compiled_expect_numbers(&rig, "l", DT_I32, (double[]){0, 0, 4, 5, 2, 2, 0, 1});
    compiled_expect_numbers(&rig, "r", DT_I32, (double[]){2, 0, 5, 5, 4, 2, 1, 2});
    rig_close(&rig);
    compile_free(&p);
}

/* A sort shares its kernel with no reduction of its rows, even where one element of its result is
 * read at a place that the reduction gives. */
Test(sort, beside_a_reduction_that_reads_it) {
    Compiled p = compiled_new("dim B in 1..16\ngraph g(x: i8[B]) -> (y: u32[]) {\n"
                              "  y = gather(cast(argsort_descending(x, axis=0), u32),"
                              " argmin(x, axis=0), axis=0)\n}\n",
                              TARGET_CPU);
    bool has_sort = false;
    for (uint32_t k = 0; k < p.plan->kernels.n; k++)
        has_sort = has_sort || p.plan->kernels.data[k].form == FORM_SORT;
    cr_expect(has_sort);
    compile_free(&p);
}

/* No element along the axis, in other axes, or among the largest: each has code on every target. */
Test(sort, of_no_elements) {
    static const char source[] =
        "graph g(x: f64[0], b: f32[0, 5], c: i32[3, 0, 4], v: f32[6]) -> (y: f64[0], i: i32[0],"
        " d: f32[0, 5], e: i32[3, 0, 4], t: f32[0], u: i32[3, 0, 4], o: i32[0, 5], z: f64[1]) {\n"
        "  y, i = sort(x)\n  d, _ = sort(b, descending=true)\n  e, _ = sort(c, axis=0)\n"
        "  t, _ = topk(v, 0)\n  u, _ = topk(c, 0, axis=1)\n  o = argsort(b, axis=1)\n"
        "  z = reshape(sum(y, axis=0), [1])\n}\n";
    float b = 0, v[6] = {1, 3, 2};
    double x = 0;
    Rig rig;
    for (int target = 0; target < TARGET_COUNT; target++) {
        Compiled p = compiled_new(source, (TargetId)target);
        Compiled unfused = compiled_as(source, (TargetId)target, COMPILE_UNFUSED);
        compile_free(&p), compile_free(&unfused);
    }
    Compiled p = compiled_new(source, TARGET_CPU);
    compiled_open(&p, &rig, "g");
    compiled_set(&rig, "x", &x, 0);
    compiled_set(&rig, "b", &b, 0);
    compiled_set(&rig, "c", &b, 0);
    compiled_set(&rig, "v", v, sizeof v);
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    compiled_expect_numbers(&rig, "z", DT_F64, (double[]){0});
    rig_close(&rig);
    compile_free(&p);
}
