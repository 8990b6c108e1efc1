/* Products that are too small for a tile: a chain for each output, by threads. Results are checked
 * by random shapes (template plain). */
#include "lib/compiled.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

static bool is_plain(const Kernel *kernel) {
    return kernel->n_variants == 1 && sched_engine(&kernel->variants[0].sched) == GEMM_NAIVE;
}

/* Microseconds on an H200 as measured, and in tiles. */
static const struct {
    const char *source;
    double us, tiled_us;
} products[] = {
    {"graph g(a: f32[1000000, 3, 3], b: f32[1000000, 3, 3]) -> (y: f32[1000000, 3, 3])", 34, 5668},
    {"graph g(a: bf16[4, 4], b: bf16[1000000, 4, 1]) -> (y: bf16[1000000, 4, 1])", 15.3, 1209},
    {"graph g(a: bf16[1000000, 3], b: bf16[3, 3]) -> (y: bf16[1000000, 3])", 12.2, 115},
    {"graph g(a: f32[100000, 8, 8], b: f32[100000, 8, 8]) -> (y: f32[100000, 8, 8])", 37.2, 272},
    {"graph g(a: bf16[100000, 8, 8], b: bf16[100000, 8, 8]) -> (y: bf16[100000, 8, 8])", 35, 133},
    {"graph g(a: f32[65536, 4, 16], b: f32[65536, 16, 4]) -> (y: f32[65536, 4, 4])", 18.3, 178},
    {"graph g(a: bf16[100000, 1, 32], b: bf16[100000, 32, 8]) -> (y: bf16[100000, 1, 8])", 26, 127},
    {"graph g(a: f64[200000, 4, 4], b: f64[200000, 4, 4]) -> (y: f64[200000, 4, 4])", 24.9, 808},
};

Test(gpu_naive, prices_are_what_was_measured) {
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        char source[256];
        snprintf(source, sizeof source, "%s { y = a @ b }", products[i].source);
        Arena *arena = arena_new(NULL);
        PricedPlan p = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_SM_90A,
                                   card_get(CARD_H200), NULL);
        cr_assert_eq(p.plan->kernels.n, 1, "%s", source);
        cr_expect(is_plain(&p.plan->kernels.data[0]), "%s", source);
        cr_expect(fabs(p.cost->us - products[i].us) < 0.25 * products[i].us, "%s: %.1f us", source,
                  p.cost->us);
        cr_expect_lt(p.cost->us, 0.5 * products[i].tiled_us, "%s", source);
        arena_free(arena);
    }
}

/* What a tile is for, what is few of anything, and a matrix times a vector. */
static const struct {
    const char *source;
    bool is_plain;
} others[] = {
    {"graph g(a: f32[32768, 16, 16], b: f32[32768, 16, 16]) -> (y: f32[32768, 16, 16])", false},
    {"graph g(a: f32[65536, 7], b: f32[7, 64]) -> (y: f32[65536, 64])", false},
    {"graph g(a: bf16[64, 4, 4], b: bf16[64, 4, 4]) -> (y: bf16[64, 4, 4])", false},
    {"graph g(a: f32[1000000, 16], b: f32[16, 1]) -> (y: f32[1000000, 1])", false},
    {"dim B in 1..4096\ngraph g(a: f32[B, 4, 4], b: f32[B, 4, 4]) -> (y: f32[B, 4, 4])", false},
    {"dim B in 1..100000\ngraph g(a: f32[B, 4, 4], b: f32[B, 4, 4]) -> (y: f32[B, 4, 4])", true},
    {"dim B in 4096..8192\ngraph g(a: f32[B, 4, 4], b: f32[B, 4, 4]) -> (y: f32[B, 4, 4])", true},
};

Test(gpu_naive, few_or_large_matmuls_go_in_tiles) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char source[256];
        snprintf(source, sizeof source, "%s { y = a @ b }", others[i].source);
        Compiled c = compiled_new(source, TARGET_SM_90A);
        cr_expect_eq(is_plain(&c.plan->kernels.data[0]), others[i].is_plain, "%s", source);
        cr_expect(compiled_is_in_registers(&c), "%s", source);
        compile_free(&c);
    }
}
