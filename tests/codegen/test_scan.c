/* The order of scans: on a CPU to the bit that of lowering/order.h, said plainly here, along either
 * axis; and on an emulated GPU the same bits. */
#include "emulator/emu.h"
#include "lib/compiled.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static float add(float a, float b) {
    return a + b;
}
static float multiply(float a, float b) {
    return a * b;
}
typedef float Combine(float a, float b);

static const struct {
    const char *name;
    Combine *combine;
    float identity;
} scans[] = {{"cumsum", add, -0.0F}, {"cumprod", multiply, 1}};

/* A row of n elements, `stride` apart. */
typedef struct Row {
    int64_t n, stride;
    const float *x;
    float *y;
} Row;

static void scan_row(Combine *combine, float identity, Row row) {
    float tiles = identity, groups = identity, runs = identity, run = identity;
    for (int64_t i = 0; i < row.n; i++) {
        if (i && i % 16 == 0) {
            runs = combine(runs, run);
            run = identity;
        }
        if (i && i % 256 == 0) {
            groups = combine(groups, runs);
            runs = identity;
        }
        if (i && i % 4096 == 0) {
            tiles = combine(tiles, groups);
            groups = identity;
        }
        run = combine(run, row.x[i * row.stride]);
        row.y[i * row.stride] = combine(combine(combine(tiles, groups), runs), run);
    }
}

/* What a scan of x [n,m] along `axis` is. */
static float *expected(size_t scan, int axis, const float *x, int64_t n, int64_t m) {
    float *y = calloc((size_t)(n * m) + 1, sizeof *y);
    for (int64_t i = 0; i < (axis ? n : m); i++) {
        int64_t first = axis ? i * m : i;
        scan_row(scans[scan].combine, scans[scan].identity,
                 (Row){axis ? m : n, axis ? 1 : m, x + first, y + first});
    }
    return y;
}

static const int64_t extents[][2] = {{1, 1},    {3, 15},   {2, 16},   {5, 17},    {64, 65},
                                     {33, 257}, {2, 5000}, {5000, 3}, {2, 70000}, {8200, 9}};
enum { N_EXTENTS = sizeof extents / sizeof *extents };

static void check(const char *what, const float *want, const void *got, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        cr_assert_eq(((const uint32_t *)want)[i], ((const uint32_t *)got)[i],
                     "%s at %lld: %a, not %a", what, (long long)i, (double)((const float *)got)[i],
                     (double)want[i]);
}

static const char *source_of(char *to, size_t room, size_t scan, int axis) {
    snprintf(to, room,
             "dim N in 0..100000\ndim M in 0..100000\n"
             "graph g(x: f32[N, M]) -> (y: f32[N, M]) {\n  y = %s(x, axis=%d)\n}\n",
             scans[scan].name, axis);
    return to;
}

static void fill(float *x, int64_t n) {
    Rng rng = rng_new((uint64_t)n);
    for (int64_t i = 0; i < n; i++) x[i] = (float)rng_uniform(&rng, 0.9, 1.1);
}

static void check_cpu(TargetId target, size_t scan, int axis) {
    char source[256];
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_new(source_of(source, sizeof source, scan, axis), target);
    Rig rig;
    size_t n_bytes;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
    for (size_t e = 0; e < N_EXTENTS; e++) {
        int64_t n = extents[e][0], m = extents[e][1];
        cr_assert(rig_place(&rig, p.module->dims, extents[e]), "%s", rig.error);
        float *x = (float *)(void *)rig_contents(&rig, "x", &n_bytes);
        fill(x, n * m);
        float *want = expected(scan, axis, x, n, m);
        cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
        check(source, want, rig_result(&rig, "y", &n_bytes), n * m);
        free(want);
    }
    rig_close(&rig);
    compile_free(&p);
}

Test(scan, cpu_sums_in_order, .timeout = 60) {
    for (size_t scan = 0; scan < 2; scan++)
        for (int axis = 0; axis < 2; axis++) {
            check_cpu(TARGET_CPU, scan, axis);
            if (compile_target_runs(target_get(TARGET_CPU_V4)))
                check_cpu(TARGET_CPU_V4, scan, axis);
        }
}

/* Every variant that takes the extents. Threads that do not know their row's length from the
 * variant's condition are right about it all the same. */
static void check_gpu(TargetId target, size_t scan, int axis, const int64_t *dims) {
    char source[256], error[400];
    Compiled p = compiled_new(source_of(source, sizeof source, scan, axis), target);
    EmuModule module;
    cr_assert(emu_module_init(&module, p.bytes), "%s", module.error);
    int64_t n = dims[0], m = dims[1], rows = axis ? n : m;
    float *x = calloc((size_t)(n * m), sizeof *x), *y = calloc((size_t)(n * m), sizeof *y);
    fill(x, n * m);
    float *want = expected(scan, axis, x, n, m);
    uint64_t x_at = (uint64_t)(uintptr_t)x, y_at = (uint64_t)(uintptr_t)y;
    int64_t by_value[2] = {n, m};
    void *params[] = {&x_at, &y_at, &by_value[0], &by_value[1]};
    const Kernel *kernel = &p.plan->kernels.data[0];
    cr_assert_eq(module.kernels.n, kernel->n_variants);
    for (uint32_t k = 0; k < module.kernels.n; k++) {
        const RowSched *row = &kernel->variants[k].sched.row;
        int64_t at_once = 256 / row->threads_per_row;
        EmuLaunch launch = {.n_blocks = (uint32_t)((rows + at_once - 1) / at_once),
                            .n_threads = module.kernels.data[k]->n_threads,
                            .params = params,
                            .seed = 1};
        cr_assert(emu_run(module.kernels.data[k], &launch, error, sizeof error), "%s", error);
        check(source, want, y, n * m);
    }
    emu_module_free(&module);
    free(x), free(y), free(want);
    compile_free(&p);
}

Test(scan, gpu_sums_in_the_same_order, .timeout = 120) {
    static const int64_t some[][2] = {{1, 1}, {3, 17}, {2, 257}, {2, 5000}, {300, 3}};
    for (int axis = 0; axis < 2; axis++)
        for (size_t e = 0; e < sizeof some / sizeof *some; e++)
            check_gpu(TARGET_SM_80, (size_t)axis, axis, some[e]);
}
