/* Functions that pick and count without a sort give what the sort gives. */
#include "lib/compiled.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void expect_same(const Rig *rig, const char *a, const char *b, int64_t n) {
    size_t n_bytes, other_bytes;
    const void *x = rig_result(rig, a, &n_bytes), *y = rig_result(rig, b, &other_bytes);
    cr_assert_eq(n_bytes, other_bytes);
    cr_expect_eq(memcmp(x, y, n_bytes), 0, "%s is not %s of %lld elements", a, b, (long long)n);
}

/* Few different values, of which some are -inf and NaN. */
static void fill(float *x, int64_t n, uint32_t n_values) {
    Rng rng = rng_new((uint64_t)n);
    for (int64_t i = 0; i < n; i++) {
        uint32_t value = rng_below(&rng, n_values);
        x[i] = value == 0 ? -INFINITY : value == 1 && i % 1000 == 7 ? NAN : (float)value;
    }
}

static const char picks[] =
    "dim N in 6..20000\n"
    "graph g(x: f32[2, N]) -> (a: i32[2, 6], b: i32[2, 6], c: i32[2, 1], d: i32[2, 1]) {\n"
    "  order = argsort(x, descending=true)\n  b = order[:, :6]\n  d = order[:, :1]\n"
    "  _, a = topk(x, 6)\n  _, c = topk(x, 1)\n}\n";

Test(order, topk_of_long_rows_is_that_of_a_sort, .timeout = 60) {
    static const int64_t extents[] = {6, 100, 4095, 4096, 4097, 4101, 8192, 20000};
    static const uint32_t values[] = {1, 3, 100, 1000000};
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_new(picks, TARGET_CPU);
    Rig rig;
    size_t n_bytes;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            cr_assert(rig_place(&rig, p.module->dims, &extents[e]), "%s", rig.error);
            fill((float *)(void *)rig_contents(&rig, "x", &n_bytes), 2 * extents[e], values[v]);
            cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
            expect_same(&rig, "a", "b", extents[e]);
            expect_same(&rig, "c", "d", extents[e]);
        }
    rig_close(&rig);
    compile_free(&p);
}

static const char counts[] =
    "dim N in 0..20000\n"
    "graph g(x: i32[N], y: i64[N]) -> (a: i32[256], b: i32[256], c: i32[3], d: i32[3]) {\n"
    "  a = bincount(x, 256)\n  b = count_sorted(x, 256)\n"
    "  c = bincount(y, 3)\n  d = count_sorted(y, 3)\n}\n";

Test(order, counts_are_those_of_a_sort, .timeout = 60) {
    static const int64_t extents[] = {0, 1, 255, 1000, 20000};
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_new(counts, TARGET_CPU);
    Rig rig;
    size_t n_bytes;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++) {
        Rng rng = rng_new(e);
        cr_assert(rig_place(&rig, p.module->dims, &extents[e]), "%s", rig.error);
        int32_t *x = (int32_t *)(void *)rig_contents(&rig, "x", &n_bytes);
        int64_t *y = (int64_t *)(void *)rig_contents(&rig, "y", &n_bytes);
        for (int64_t i = 0; i < extents[e]; i++) {
            x[i] = (int32_t)rng_below(&rng, 300) - 20;
            y[i] = (int64_t)rng_below(&rng, 6) - 1 + (i % 9 ? 0 : INT64_C(1) << 32);
        }
        cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
        expect_same(&rig, "a", "b", extents[e]);
        expect_same(&rig, "c", "d", extents[e]);
    }
    rig_close(&rig);
    compile_free(&p);
}
