/* Maps, and outer products, that go element by element: a thread has several, since blocks cannot
 * begin faster. Results are checked by random shapes (templates map and plain). */
#include "lib/compiled.h"
#include "lib/plans.h"
#include "machine/tuning.h"

#include <criterion/criterion.h>
#include <math.h>

/* Microseconds on an H200, as measured; and with an element for each thread. */
static const struct {
    const char *source;
    double us, each_us;
} maps[] = {
    {"graph g(y: bf16[257, 3000], j: i32[3000]) -> (v: bf16[3001, 3003]) {\n"
     "  v = pad(gather(y, j, axis=0), low=[0, 1], high=[1, 2]) }",
     16.0, 24.5},
    {"graph g(x: f32[33, 8191], j: i32[2000]) -> (b: f32[2000, 8191]) {\n"
     "  b = gather(x, j, axis=0) }",
     23.5, 45.3},
    {"graph g(x: f32[3301, 3302]) -> (t: f32[3301, 3301]) { t = x[:, 1:] - x[:, :-1] }", 24.5,
     36.8},
    {"graph g(x: bf16[3, 33554433]) -> (t: bf16[33554433, 3]) { t = transpose(x) }", 120, 287},
    {"graph g(x: bf16[8192, 1], w: bf16[1, 8192], b: bf16[8192]) -> (t: bf16[8192, 8192]) {\n"
     "  t = relu(x @ w + b) }",
     76, 319},
};

Test(gpu_map, prices_are_what_was_measured) {
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        Arena *arena = arena_new(NULL);
        Module *module = plans_parse(arena, maps[i].source);
        PricedPlan p =
            plans_price(arena, module, 0, false, TARGET_SM_90A, card_get(CARD_H200), NULL);
        cr_assert_eq(p.plan->kernels.n, 1, "%s", maps[i].source);
        const Sched *sched = &p.plan->kernels.data[0].variants[0].sched;
        cr_expect(sched->lanes == 1 && sched->unroll == SCHED_MAP_UNROLL, "%s", maps[i].source);
        cr_expect(fabs(p.cost->us - maps[i].us) < 0.25 * maps[i].us, "%s: %.1f us", maps[i].source,
                  p.cost->us);
        cr_expect_lt(p.cost->us, 0.75 * maps[i].each_us, "%s", maps[i].source);
        arena_free(arena);
    }
}

/* Behind vectors that nothing but odd addresses keeps from running it has one. */
Test(gpu_map, what_seldom_runs_is_short) {
    Compiled c = compiled_new("graph g(x: f32[4096, 4096]) -> (y: f32[4096, 4096]) { y = relu(x) }",
                              TARGET_SM_90A);
    const Kernel *kernel = &c.plan->kernels.data[0];
    cr_assert_eq(kernel->n_variants, 2);
    for (uint32_t v = 0; v < 2; v++) cr_expect_eq(kernel->variants[v].sched.unroll, 1);
    cr_expect(compiled_is_in_registers(&c));
    compile_free(&c);
}
