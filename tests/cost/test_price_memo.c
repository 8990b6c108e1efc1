/* The memo of prices of alike plans. */
#include "cost/price_memo.h"

#include "lib/plans.h"
#include "plan/launch.h"

#include <criterion/criterion.h>
#include <string.h>

/* Kernels 0 and 1 differ in their buffers alone; each other one in one thing more, and the last
 * two in a constant alone. */
static const char source[] =
    "dim B in 1..65536\n"
    "graph g(x: f32[B, 64], z: f32[B, 64], w: f32[B, 32], h: f16[B, 64], m: f32[64, B])"
    " -> (a: f32[B, 64], b: f32[B, 64], c: f32[B, 32], d: f16[B, 64], e: f32[64, B],"
    " f: f32[B, 64], g: f32[B], k: f32[64], p: f32[B, 64], q: f32[B, 64]) {\n"
    "  a = exp(x)\n  b = exp(z)\n  c = exp(w)\n  d = exp(h)\n  e = exp(m)\n  f = tanh(x)\n"
    "  g = sum(x, axis=1)\n  k = sum(x, axis=0)\n  p = x * 0.5\n  q = x * 0.7\n}\n";

typedef struct Fixture {
    Arena *arena, *scratch;
    const Target *target;
    const Plan *plan;
    CostPoints many, few; /* points of large dims, and of small ones */
    PriceMemo *memo;
} Fixture;

static Fixture fixture_of(const char *text, TargetId target) {
    Fixture f = {.arena = arena_new(NULL), .scratch = arena_new(NULL)};
    f.target = target_get(target);
    Module *module = plans_parse(f.arena, text);
    f.plan = plans_price(f.arena, module, 0, true, target, card_of_target(f.target), NULL).plan;
    f.many = cost_points(f.arena, f.plan->graph->dims, f.target->has);
    f.many.n = f.many.n_diagonal = 1;
    int64_t *least = arena_array(f.arena, int64_t, DIM_MAX_SYMBOLS);
    for (uint32_t i = 0; i < DIM_MAX_SYMBOLS; i++) least[i] = 1;
    f.few = f.many;
    f.few.dims[0] = least;
    f.memo = price_memo_new(f.arena);
    return f;
}

static Fixture fixture_new(void) {
    return fixture_of(source, TARGET_SM_80);
}

static double price_of(const Fixture *f, const Plan *plan, const CostPoints *points) {
    return prices_of_plan(f->scratch, plan, f->target, points).us[0];
}

static double known_price_of(const Fixture *f, const Plan *plan, const CostPoints *points) {
    return price_memo_plan(f->memo, f->scratch, plan, f->target, points).us[0];
}

/* A memo holds for one set of points. So a price for other points tells whether it was known. */
Test(price_memo, plans_that_are_alike_share_a_price) {
    Fixture f = fixture_new();
    cr_assert_geq(f.plan->launches.n, 8);
    Plan first = plan_extract(f.arena, f.plan, 0, 1);
    double price = price_of(&f, &first, &f.many);
    cr_expect_eq(known_price_of(&f, &first, &f.many), price);
    for (uint32_t i = 1; i < f.plan->launches.n; i++) {
        Plan other = plan_extract(f.arena, f.plan, i, 1);
        double own = price_of(&f, &other, &f.few);
        cr_assert_neq(own, price, "%u", i);
        cr_expect_eq(known_price_of(&f, &other, &f.few), i == 1 ? price : own, "%u", i);
    }
    arena_free(f.scratch), arena_free(f.arena);
}

/* The same kernels that share a buffer, which the cache then has, are another plan. */
Test(price_memo, shared_buffers_and_schedules_count) {
    Fixture f = fixture_new();
    Plan apart = plan_extract(f.arena, f.plan, 0, 2), shared = plan_extract(f.arena, f.plan, 0, 2);
    Kernel *second = &shared.kernels.data[1];
    *second = kernel_copy(f.arena, &shared.kernels.data[0]);
    double price = known_price_of(&f, &apart, &f.many);
    double own = price_of(&f, &shared, &f.few);
    cr_expect_eq(known_price_of(&f, &shared, &f.few), own);
    Plan scheduled = plan_extract(f.arena, f.plan, 0, 2);
    scheduled.kernels.data[0] = kernel_copy(f.arena, &scheduled.kernels.data[0]);
    scheduled.kernels.data[0].variants[0].sched.threads /= 2;
    own = price_of(&f, &scheduled, &f.few);
    cr_expect_eq(known_price_of(&f, &scheduled, &f.few), own);
    cr_expect_eq(known_price_of(&f, &apart, &f.few), price);
    arena_free(f.scratch), arena_free(f.arena);
}

/* More plans than the memo has room for: each price is right. */
Test(price_memo, the_oldest_plans_are_forgotten) {
    Fixture f = fixture_new();
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < f.plan->launches.n; i++)
            for (uint32_t n = 1; i + n <= f.plan->launches.n; n++) {
                Plan own = plan_extract(f.arena, f.plan, i, n);
                double price = price_of(&f, &own, &f.many);
                cr_expect_eq(known_price_of(&f, &own, &f.many), price, "%u, %u", i, n);
            }
    arena_free(f.scratch), arena_free(f.arena);
}

/* Nor do they where a constant is used twice, unless the other plan uses two. */
Test(price_memo, values_of_constants_do_not_count) {
    Fixture f = fixture_new();
    uint32_t n = f.plan->launches.n;
    Plan first = plan_extract(f.arena, f.plan, n - 2, 1);
    Plan other = plan_extract(f.arena, f.plan, n - 1, 1);
    double price = known_price_of(&f, &first, &f.many);
    cr_assert_neq(price_of(&f, &other, &f.few), price);
    cr_expect_eq(known_price_of(&f, &other, &f.few), price);
    Plan twice = plan_extract(f.arena, f.plan, n - 2, 2);
    Plan same = plan_extract(f.arena, f.plan, n - 2, 2);
    same.kernels.data[1] = kernel_copy(f.arena, &same.kernels.data[0]);
    known_price_of(&f, &twice, &f.many);
    double own = price_of(&f, &same, &f.few);
    cr_expect_eq(known_price_of(&f, &same, &f.few), own);
    arena_free(f.scratch), arena_free(f.arena);
}

/* Kernels that read parts of one buffer share a price if each part begins with a line. */
Test(price_memo, places_of_parts_do_not_count) {
    Fixture f = fixture_of("dim B in 1..65536\n"
                           "graph g(x: f32[4, B, 64], z: f32[4, B, 61])"
                           " -> (a: f32[B, 64], b: f32[B, 64], c: f32[B, 61], d: f32[B, 61]) {\n"
                           "  a = x[1]\n  b = x[2]\n  c = z[1]\n  d = z[2]\n}\n",
                           TARGET_SM_80);
    double first = 0;
    cr_assert_eq(f.plan->launches.n, 8); /* each part is copied twice */
    for (uint32_t i = 0; i < 4; i++) {
        Plan part = plan_extract(f.arena, f.plan, 2 * i, 1);
        part.kernels.data[0] = kernel_copy(f.arena, &part.kernels.data[0]);
        part.kernels.data[0].parts = NULL; /* as before dedup */
        double own = price_of(&f, &part, i % 2 ? &f.few : &f.many);
        double known = known_price_of(&f, &part, i % 2 ? &f.few : &f.many);
        if (i == 0) first = known;
        cr_expect_eq(known, i == 1 ? first : own, "%u", i);
    }
    arena_free(f.scratch), arena_free(f.arena);
}

/* Lines of CPUs are shorter. */
Test(price_memo, lines_are_those_of_the_target) {
    static const TargetId targets[] = {TARGET_SM_80, TARGET_CPU_V4};
    for (int t = 0; t < 2; t++) {
        Fixture f = fixture_of("dim B in 1..65536\n"
                               "graph g(x: f32[4, B, 16]) -> (a: f32[B, 16], b: f32[B, 16]) {\n"
                               "  a = x[1]\n  b = x[2]\n}\n",
                               targets[t]);
        double prices[2];
        for (uint32_t i = 0; i < 2; i++) {
            Plan part = plan_extract(f.arena, f.plan, f.plan->launches.n / 2 * i, 1);
            part.kernels.data[0] = kernel_copy(f.arena, &part.kernels.data[0]);
            part.kernels.data[0].parts = NULL;
            prices[i] = known_price_of(&f, &part, i ? &f.few : &f.many);
        }
        cr_expect_eq(prices[0] == prices[1], t == 1, "%s", f.target->name);
        arena_free(f.scratch), arena_free(f.arena);
    }
}
