/* Work units of a CPU's products of few rows: several threads have some each, and a thread that is
 * alone multiplies all of them as one tile. */
#include "base/arith.h"
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"

#include <criterion/criterion.h>

static const char *product_of(Arena *arena, int m, int n, int k) {
    return str_format(arena,
                      "graph g(x: f32[%d, %d]) -> (y: f32[%d, %d]) {\n"
                      "  param w: f32[%d, %d]\n  y = relu(x @ w)\n}\n",
                      m, k, m, n, k, n);
}

static const Variant *variant_of(const Plan *plan) {
    const Kernel *last = &plan->kernels.data[plan->kernels.n - 1];
    return &last->variants[last->n_variants - 1];
}

Test(cpu_gemm_units, few_rows_have_units_for_several_threads) {
    static const struct {
        int m, n, k;
        int64_t n_units;
        CpuGemmSched sched;
    } cases[] = {
        /* all rows and some columns; 16 rows are four tiles of 4, not three of 6 */
        {16, 256, 300, 4, {.register_m = 4, .register_n = 24, .unit_m = 16, .unit_n = 72}},
        {16, 128, 300, 2, {.register_m = 6, .register_n = 16, .unit_m = 18, .unit_n = 64}},
        {6, 32, 300, 1, {.register_m = 6, .register_n = 16, .unit_m = 6, .unit_n = 32}},
        /* two tiles of 16 columns, not of 24 */
        {4, 32, 300, 1, {.register_m = 4, .register_n = 16, .unit_m = 4, .unit_n = 32}},
        /* some rows and all columns of a tile */
        {64, 128, 300, 11, {.register_m = 6, .register_n = 16, .unit_m = 6, .unit_n = 128}},
        {256, 64, 300, 22, {.register_m = 6, .register_n = 16, .unit_m = 12, .unit_n = 64}},
        {1024, 64, 300, 43, {.register_m = 6, .register_n = 16, .unit_m = 24, .unit_n = 64}},
        /* some of both */
        {36, 256, 300, 12, {.register_m = 6, .register_n = 16, .unit_m = 6, .unit_n = 128}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        const char *source = product_of(arena, cases[i].m, cases[i].n, cases[i].k);
        const Plan *plan = plans_of(arena, TARGET_CPU, source);
        const Variant *variant = variant_of(plan);
        const CpuGemmSched *got = &variant->sched.cpu_gemm, *want = &cases[i].sched;
        int64_t n_units = dim_lo(plan->graph->dims, variant->grid);
        cr_expect_eq(n_units, cases[i].n_units, "%lld units of %u x %u: %s", (long long)n_units,
                     got->unit_m, got->unit_n, source);
        bool is_right = got->register_m == want->register_m &&
                        got->register_n == want->register_n && got->unit_m == want->unit_m &&
                        got->unit_n == want->unit_n;
        cr_expect(is_right, "unit %u x %u, registers %u x %u: %s", got->unit_m, got->unit_n,
                  got->register_m, got->register_n, source);
        cr_expect(got->tile_m >= (uint32_t)min_i64(cases[i].m, 1024) &&
                      got->tile_n >= (uint32_t)cases[i].n,
                  "a tile has %u x %u: %s", got->tile_m, got->tile_n, source);
        arena_free(arena);
    }
}

static bool is_right(const char *source, const Target *target, int32_t n_threads, Text *report) {
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.n_threads = n_threads;
    options.program.no_weights = true;
    return pair_is_right(source, target, &options, NULL, 11, report);
}

/* Calls of 2, 4 and 6 of 12 units, which lie in two lines of 6, and calls of single units. */
Test(cpu_gemm_units, no_bit_depends_on_the_call_that_a_unit_is_in, .timeout = 60) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};
    static const int extents[][3] = {{36, 256, 50},  {36, 256, 60},  {36, 256, 120}, {36, 256, 700},
                                     {33, 250, 120}, {16, 300, 500}, {64, 130, 300}, {4, 500, 900}};
    for (size_t i = 0; i < sizeof extents / sizeof *extents * 6; i++) {
        const Target *target = target_get(targets[i % 2]);
        const int *extent = extents[i / 6];
        if (!compile_target_runs(target)) continue;
        Arena *arena = arena_new(NULL);
        Text report = {.arena = arena};
        const char *source = product_of(arena, extent[0], extent[1], extent[2]);
        int32_t n_threads = 1 + (int32_t)(i / 2 % 3);
        cr_expect(is_right(source, target, n_threads, &report), "%d threads: %s%s", n_threads,
                  text_str(&report), source);
        arena_free(arena);
    }
}

/* Channels of a pixel are runs along k, whose place is computed once. They are longer and shorter
 * than a block of k, and no multiple of the lanes. */
Test(cpu_gemm_units, windows_with_padding_are_packed_in_runs, .timeout = 60) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};
    static const int channels[] = {30, 64, 128, 256, 500};
    for (size_t i = 0; i < sizeof channels / sizeof *channels * 4; i++) {
        const Target *target = target_get(targets[i % 2]);
        int c = channels[i / 4], stride = 1 + (int)(i / 2 % 2), n = stride == 1 ? 5 : 3;
        if (!compile_target_runs(target)) continue;
        Arena *arena = arena_new(NULL);
        Text report = {.arena = arena};
        const char *source =
            str_format(arena,
                       "graph g(x: f32[2, 5, 5, %d]) -> (y: f32[2, %d, %d, 40]) {\n"
                       "  param w: f32[3, 3, %d, 40]\n  fuse must {\n"
                       "    y = conv2d_nhwc(x, w, stride=%d, padding=1)\n  }\n}\n",
                       c, n, n, c, stride);
        cr_expect(is_right(source, target, 2, &report), "%s%s", text_str(&report), source);
        arena_free(arena);
    }
}
