/* Scans of any associative function: on a CPU to the bit in the order that the prelude states, said
 * plainly here; and what combines lists and matrices. */
#include "emulator/emu.h"
#include "lib/compiled.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The map h -> a * h + b. */
typedef struct Affine {
    float a, b;
} Affine;

static Affine after(Affine first, Affine then) {
    float scaled = first.b * then.a;
    return (Affine){first.a * then.a, scaled + then.b};
}

/* Parts of a row, each the maps so far, or none. */
typedef struct Part {
    bool has_any;
    Affine all;
} Part;

static Part joined(Part before, Part behind) {
    if (!before.has_any || !behind.has_any) return before.has_any ? before : behind;
    return (Part){true, after(before.all, behind.all)};
}

/* The row in the order of scans (lowering/order.h). */
static void scan_whole(Affine *row, int64_t n) {
    const Part none = {0};
    Part tiles = none, groups = none, runs = none, run = none;
    for (int64_t i = 0; i < n; i++) {
        if (i % 16 == 0) runs = joined(runs, run), run = none;
        if (i % 256 == 0) groups = joined(groups, runs), runs = none;
        if (i % 4096 == 0) tiles = joined(tiles, groups), groups = none;
        run = joined(run, (Part){true, row[i]});
        row[i] = joined(joined(joined(tiles, groups), runs), run).all;
    }
}

/* Of more than 4096 elements tiles are scanned, then their totals, which are joined to the
 * elements.
 */
static void scan_row(Affine *row, int64_t n) {
    Affine *totals = calloc((size_t)(n / 4096) + 1, sizeof *totals);
    for (int64_t at = 0; at < n; at += 4096) {
        int64_t end = at + 4096 < n ? at + 4096 : n;
        scan_whole(row + at, end - at);
        totals[at / 4096] = row[end - 1];
    }
    scan_whole(totals, n / 4096);
    for (int64_t i = 4096; i < n; i++) row[i] = after(totals[i / 4096 - 1], row[i]);
    free(totals);
}

static const char recurrence[] =
    "dim B in 1..8\ndim T in 0..100000\n"
    "def affine(first, then) {\n"
    "  return first[0] * then[0], first[1] * then[0] + then[1]\n}\n"
    "graph g(a: f32[B, T], b: f32[B, T]) -> (h: f32[B, T], r: f32[B, T]) {\n"
    "  _, h = scan(affine, [a, b], axis=-1)\n"
    "  _, r = scan(affine, [a, b], axis=1, reverse=true)\n}\n";

static void check_row(const Rig *rig, const char *name, const Affine *row, int64_t n, int64_t at,
                      bool is_reverse) {
    size_t n_bytes;
    const float *got = (const float *)(const void *)rig_result(rig, name, &n_bytes) + at;
    for (int64_t i = 0; i < n; i++) {
        float want = row[is_reverse ? n - 1 - i : i].b;
        cr_assert_eq(memcmp(&got[i], &want, sizeof want), 0, "%s of %lld at %lld: %a, not %a", name,
                     (long long)n, (long long)i, (double)got[i], (double)want);
    }
}

static void check_extents(Rig *rig, const Compiled *p, const int64_t *dims) {
    int64_t n = dims[1];
    size_t n_bytes;
    cr_assert(rig_place(rig, p->module->dims, dims), "%s", rig->error);
    float *a = (float *)(void *)rig_contents(rig, "a", &n_bytes);
    float *b = (float *)(void *)rig_contents(rig, "b", &n_bytes);
    Rng rng = rng_new((uint64_t)n);
    for (int64_t i = 0; i < dims[0] * n; i++) {
        a[i] = (float)rng_uniform(&rng, 0.5, 1.0);
        b[i] = (float)rng_uniform(&rng, -1, 1);
    }
    cr_assert(rig_run(rig, 0xF5), "%s", rig->error);
    Affine *row = calloc((size_t)n + 1, sizeof *row);
    for (int64_t at = 0; at < dims[0] * n; at += n)
        for (int is_reverse = 0; is_reverse < 2; is_reverse++) {
            for (int64_t i = 0; i < n; i++) {
                int64_t from = at + (is_reverse ? n - 1 - i : i);
                row[i] = (Affine){a[from], b[from]};
            }
            scan_row(row, n);
            check_row(rig, is_reverse ? "r" : "h", row, n, at, is_reverse != 0);
        }
    free(row);
}

Test(scan_function, recurrences_join_in_order, .timeout = 60) {
    static const int64_t extents[][2] = {{1, 0},    {2, 1},    {3, 2},    {2, 15},   {2, 16},
                                         {2, 17},   {1, 31},   {2, 255},  {2, 256},  {2, 257},
                                         {1, 4096}, {1, 4097}, {2, 8192}, {1, 70000}};
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_new(recurrence, TARGET_CPU);
    Rig rig;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
        check_extents(&rig, &p, extents[e]);
    rig_close(&rig);
    compile_free(&p);
}

/* Of any extent, and with elementwise ops before and behind. */
Test(scan_function, three_launches) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_SM_80, TARGET_SM_90A};
    static const char source[] = "dim B in 1..64\ndim T in 0..1000000000\n"
                                 "def affine(first, then) {\n"
                                 "  return first[0] * then[0], first[1] * then[0] + then[1]\n}\n"
                                 "graph g(a: f32[B, T], b: f32[B, T]) -> (h: f32[B, T], k: f32[B, "
                                 "T]) {\n"
                                 "  k, y = scan(affine, [a * 2, b - 1], axis=1)\n  h = y * 3\n}\n";
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        Compiled p = compiled_new(source, targets[t]);
        cr_expect_leq(p.plan->launches.n, 3u, "%u launches", p.plan->launches.n);
        compile_free(&p);
    }
}

/* Whether a scan by the function is one kernel, though each op has its own. */
static bool is_one_kernel(const char *function) {
    char source[400];
    snprintf(source, sizeof source,
             "def f(a, b) = %s\ngraph g(x: f32[1000, 2, 2]) -> (y: f32[1000, 2, 2]) {\n"
             "  y = scan(f, x)\n}\n",
             function);
    Compiled p = compiled_as(source, TARGET_CPU, COMPILE_UNFUSED);
    uint32_t n = p.plan->kernels.n;
    compile_free(&p);
    return n == 1;
}

Test(scan_function, functions_of_elements_alone_are_one_kernel) {
    cr_expect(is_one_kernel("a + b - a * b"));
    cr_expect(is_one_kernel("where(isnan(b), a, b)"));
    cr_expect(is_one_kernel("cast(cast(a, f64) + cast(b, f64), f32)"));
    cr_expect(is_one_kernel("b"));
    cr_expect(is_one_kernel("a + b + expand(const(1, f32), a.shape)"));
    cr_expect_not(is_one_kernel("a @ b"));
    cr_expect_not(is_one_kernel("a + transpose(b, perm=[0, 2, 1])"));
    cr_expect_not(is_one_kernel("a + b + cast(iota(a.shape, axis=0), f32)"));
    cr_expect_not(is_one_kernel("maximum(a, b) + max(b) * 0"));
}

/* One kernel of any extent, on an emulated GPU, by one thread for each row and by a block: the bits
 * of the CPU. Function, dtype and extents vary. */
static const char several[] =
    "dim B in 1..64\ndim T in 0..100000\n"
    "def count(a, b) {\n  return a[0] + b[0], where(a[2], b[1], maximum(a[1], b[1])), a[2] != "
    "b[2]\n}\n"
    "graph g(x: bf16[B, T], i: i64[B, T], m: bool[B, T]) -> (y: bf16[B, T], k: i64[B, T], n: "
    "bool[B, T]) {\n"
    "  xs = [x, i, m]\n  y = scan_by(xs, count, 1, 0)\n  k = scan_by(xs, count, 1, 1)\n"
    "  n = scan_by(xs, combine=count, axis=1, result=2)\n}\n";

typedef struct Tensors {
    uint16_t *x, *y;
    int64_t *i, *k;
    uint8_t *m, *n;
} Tensors;

static Tensors tensors_new(int64_t n) {
    Rng rng = rng_new((uint64_t)n);
    size_t room = (size_t)n + 1;
    Tensors t = {calloc(room, 2), calloc(room, 2), calloc(room, 8),
                 calloc(room, 8), calloc(room, 1), calloc(room, 1)};
    for (int64_t at = 0; at < n; at++) {
        t.x[at] = (uint16_t)(0x3F80 + rng_below(&rng, 64));
        t.i[at] = (int64_t)rng_below(&rng, 1000);
        t.m[at] = (uint8_t)rng_below(&rng, 2);
    }
    return t;
}

static void tensors_free(const Tensors *t) {
    free(t->x), free(t->y), free(t->i), free(t->k), free(t->m), free(t->n);
}

static void run_cpu(const Tensors *t, const int64_t *dims) {
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_new(several, TARGET_CPU);
    Rig rig;
    size_t n_bytes;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
    cr_assert(rig_place(&rig, p.module->dims, dims), "%s", rig.error);
    size_t n = (size_t)(dims[0] * dims[1]);
    memcpy(rig_contents(&rig, "x", &n_bytes), t->x, n * 2);
    memcpy(rig_contents(&rig, "i", &n_bytes), t->i, n * 8);
    memcpy(rig_contents(&rig, "m", &n_bytes), t->m, n);
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    memcpy(t->y, rig_result(&rig, "y", &n_bytes), n * 2);
    memcpy(t->k, rig_result(&rig, "k", &n_bytes), n * 8);
    memcpy(t->n, rig_result(&rig, "n", &n_bytes), n);
    rig_close(&rig);
    compile_free(&p);
}

static void expect_equal(const Tensors *want, const Tensors *got, int64_t n, const int64_t *dims) {
    for (int64_t at = 0; at < n; at++)
        cr_assert(want->y[at] == got->y[at] && want->k[at] == got->k[at] &&
                      want->n[at] == got->n[at],
                  "[%lld, %lld] at %lld", (long long)dims[0], (long long)dims[1], (long long)at);
}

static void check_gpu(TargetId target, const int64_t *dims) {
    char error[400];
    int64_t n = dims[0] * dims[1], by_value[2] = {dims[0], dims[1]};
    Tensors want = tensors_new(n), got = tensors_new(n);
    run_cpu(&want, dims);
    Compiled p = compiled_new(several, target);
    EmuModule module;
    cr_assert(emu_module_init(&module, p.bytes), "%s", module.error);
    const Kernel *kernel = &p.plan->kernels.data[0];
    void *places[] = {got.x, got.i, got.m, got.y, got.k, got.n};
    uint64_t at[6];
    void *params[8] = {&at[0], &at[1], &at[2], &at[3], &at[4], &at[5], &by_value[0], &by_value[1]};
    for (int i = 0; i < 6; i++) at[i] = (uint64_t)(uintptr_t)places[i];
    cr_assert_eq(kernel->args.n, 6u);
    cr_assert_eq(module.kernels.n, 2u);
    for (uint32_t v = 0; v < module.kernels.n; v++) {
        int64_t at_once = 256 / kernel->variants[v].sched.row.threads_per_row;
        EmuLaunch launch = {.n_blocks = (uint32_t)((dims[0] + at_once - 1) / at_once),
                            .n_threads = module.kernels.data[v]->n_threads,
                            .params = params,
                            .seed = 1};
        memset(got.y, 0, (size_t)n * 2), memset(got.k, 0, (size_t)n * 8);
        cr_assert(emu_run(module.kernels.data[v], &launch, error, sizeof error), "%s", error);
        expect_equal(&want, &got, n, dims);
    }
    emu_module_free(&module);
    compile_free(&p);
    tensors_free(&want);
    tensors_free(&got);
}

Test(scan_function, gpus_have_the_bits_of_cpus, .timeout = 120) {
    static const int64_t extents[][2] = {{1, 1},    {3, 15},   {2, 16},   {2, 17},
                                         {2, 255},  {2, 256},  {3, 257},  {1, 4095},
                                         {1, 4096}, {2, 4097}, {1, 9000}, {5, 0}};
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++) {
        check_gpu(TARGET_SM_80, extents[e]);
        check_gpu(TARGET_SM_90A, extents[e]);
    }
}

/* Rolled and unrolled, a scan of what a loop carries, and in fixed kernels: fused, unfused, and as
 * the interpreter has it. */
static const char looped[] =
    "dim B in 1..8\ndim T in 0..5000\ndim N in 0..4\n"
    "def affine(first, then) {\n"
    "  return first[0] * then[0], first[1] * then[0] + then[1]\n}\n"
    "graph g(a: f32[B, T], b: f32[B, T], n: i32[N]) -> (r: f32[B, T], u: f32[B, T]) {\n"
    "  r, _ = loop i in 0:N with x = a, y = b {\n"
    "    p, q = scan(affine, [x, y], axis=1)\n    return p * 0.5, q + x\n  }\n"
    "  u = loop i in 0:3 with x = a {\n    return scan(maximum, x - b, axis=0, reverse=true)\n  "
    "}\n}\n";

static float *run_looped(CompileMode mode, const int64_t *dims, const char *output) {
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_as(looped, TARGET_CPU, mode);
    Rig rig;
    size_t n_bytes;
    Rng rng = rng_new(7);
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
    cr_assert(rig_place(&rig, p.module->dims, dims), "%s", rig.error);
    float *a = (float *)(void *)rig_contents(&rig, "a", &n_bytes);
    float *b = (float *)(void *)rig_contents(&rig, "b", &n_bytes);
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        a[i] = (float)rng_uniform(&rng, 0.5, 1.0);
        b[i] = (float)rng_uniform(&rng, -1, 1);
    }
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    const void *result = rig_result(&rig, output, &n_bytes);
    float *copy = malloc(n_bytes + 1);
    memcpy(copy, result, n_bytes);
    rig_close(&rig);
    compile_free(&p);
    return copy;
}

Test(scan_function, loops_around_scans, .timeout = 60) {
    static const int64_t extents[][3] = {
        {1, 0, 2}, {2, 17, 1}, {3, 300, 2}, {2, 4100, 3}, {2, 5, 0}};
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
        for (const char *output = "r"; output; output = *output == 'r' ? "u" : NULL) {
            size_t n_bytes = (size_t)(extents[e][0] * extents[e][1]) * sizeof(float);
            float *fused = run_looped(COMPILE_FUSED, extents[e], output);
            float *unfused = run_looped(COMPILE_UNFUSED, extents[e], output);
            cr_expect_eq(memcmp(fused, unfused, n_bytes), 0, "%s of %zu", output, e);
            free(fused), free(unfused);
        }
}

/* Ops, products of matrices, which do not commute, and tensors of several shapes. */
static const char prelude[] =
    "def last(a, b) = b\n"
    "def pair(a, b) {\n  return a[0] + b[0], maximum(a[1], b[1])\n}\n"
    "graph g(x: f32[5], m: f32[3, 2, 2], i: i32[2, 3]) -> (s: f32[5], p: f32[3, 2, 2], l: i32[2, "
    "3], "
    "u: i32[2, 3], v: f32[2], b: bool[5]) {\n"
    "  s = scan(add, x)\n  p = scan(matmul, m)\n  l = scan(last, i, axis=-1)\n"
    "  u, v = scan(pair, [i, x[:2]])\n  b = scan(logical_and, x < 3.5)\n}\n";

Test(scan_function, ops_lists_and_matrices) {
    static const float x[] = {3, 1, 2, 4, -1}, m[] = {1, 2, 3, 4, 0, 1, 1, 0, 1, 1, 0, 1};
    static const int32_t ids[] = {1, 2, 3, 4, 5, 6};
    Compiled p = compiled_new(prelude, TARGET_CPU);
    Rig rig;
    compiled_open(&p, &rig, "g");
    compiled_set(&rig, "x", x, sizeof x);
    compiled_set(&rig, "m", m, sizeof m);
    compiled_set(&rig, "i", ids, sizeof ids);
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    compiled_expect_numbers(&rig, "s", DT_F32, (double[]){3, 4, 6, 10, 9});
    compiled_expect_numbers(&rig, "p", DT_F32, (double[]){1, 2, 3, 4, 2, 1, 4, 3, 2, 3, 4, 7});
    compiled_expect_numbers(&rig, "l", DT_I32, (double[]){1, 2, 3, 4, 5, 6});
    compiled_expect_numbers(&rig, "u", DT_I32, (double[]){1, 2, 3, 5, 7, 9});
    compiled_expect_numbers(&rig, "v", DT_F32, (double[]){3, 3});
    compiled_expect_numbers(&rig, "b", DT_BOOL, (double[]){1, 1, 1, 0, 0});
    rig_close(&rig);
    compile_free(&p);
}
