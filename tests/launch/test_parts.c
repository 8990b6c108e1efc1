/* Kernels that differ in the place where they begin to read get parts of buffers, those that differ
 * in constants get these, and they share their code. */
#include "launch/dedup.h"
#include "launch/part.h"
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>

static Plan *plan_of(Arena *arena, const char *text) {
    Plan *plan = plans_fuse(arena, plans_parse(arena, text), 0, false);
    sched_plan(arena, plan, target_get(TARGET_SM_80));
    const Planning planning = {
        .target = target_get(TARGET_SM_80), .arena = arena, .scratch = arena};
    parts_classify(&planning, (const Plan *const *)&plan, 1);
    dedup_functions(arena, (const Plan *const *)&plan, 1);
    return plan;
}

static uint32_t n_functions(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        n += !plan->kernels.data[k].variants[0].is_shared;
    return n;
}

static uint32_t n_parts(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++)
            n += kernel_part_begin(&plan->kernels.data[k], i) != DIM_NONE;
    return n;
}

/* Three products, `row` elements apart in w. */
static const char *steps(Arena *arena, int row) {
    return str_format(arena,
                      "graph g(x: f32[8, %d], w: f32[4, %d]) -> (y: f32[3, 8]) {\n"
                      "  a = sum(x * w[1], axis=1)\n  b = sum(x * w[2], axis=1)\n"
                      "  c = sum(x * w[3], axis=1)\n"
                      "  fuse never { d = sum(exp(a)) }\n  fuse never { e = sum(exp(b)) }\n"
                      "  fuse never { f = sum(exp(c)) }\n"
                      "  y = stack([a + d, b + e, c + f])\n}\n",
                      row, row);
}

Test(parts, steps_over_rows_share_a_function) {
    Arena *arena = arena_new(NULL);
    const char *text = "dim B in 1..64\n"
                       "graph g(x: f32[B, 64], w: f32[6, 64, 64]) -> (y: f32[B, 64]) {\n"
                       "  y = loop i in 0:6 with h = x { return relu(h @ w[i]) }\n}\n";
    const Plan *plan = plan_of(arena, text);
    cr_expect_eq(plan->kernels.n, 6u);
    cr_expect_eq(n_functions(plan), 3u, "the first and the last have other variants");
    cr_expect_eq(n_parts(plan), 4u, "%u parts", n_parts(plan));
    arena_free(arena);
}

Test(parts, symbolic_rows_are_parts_too) {
    Arena *arena = arena_new(NULL);
    const char *text = "dim B in 1..64 mult 4\n"
                       "graph g(x: f32[3, B]) -> (a: f32[B], b: f32[B], c: f32[B]) {\n"
                       "  kernel first { a = exp(x[0]) }\n  kernel second { b = exp(x[1]) }\n"
                       "  kernel third { c = exp(x[2]) }\n}\n";
    const Plan *plan = plan_of(arena, text);
    cr_expect_eq(plan->kernels.n, 3u);
    cr_expect_eq(n_functions(plan), 1u, "%u functions", n_functions(plan));
    cr_expect_eq(n_parts(plan), 2u, "%u parts", n_parts(plan));
    arena_free(arena);
}

/* Pointers stay as aligned as they were: rows of 40 bytes begin at multiples of 8 bytes, which are
 * multiples of 16 in every second step. */
Test(parts, a_part_is_aligned_as_its_buffer_is) {
    Arena *arena = arena_new(NULL);
    static const int rows[] = {8, 10, 9};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Plan *plan = plan_of(arena, steps(arena, rows[i]));
        for (uint32_t k = 0; k < plan->kernels.n; k++)
            for (uint32_t a = 0; a < plan->kernels.data[k].args.n; a++) {
                DimId begin = kernel_part_begin(&plan->kernels.data[k], a);
                cr_expect(!begin || dim_multiple(plan->graph->dims, begin) % 4 == 0,
                          "rows of %d: kernel %u", rows[i], k);
            }
    }
    arena_free(arena);
}

Test(parts, a_kernel_without_twins_keeps_its_buffers) {
    Arena *arena = arena_new(NULL);
    const char *text = "graph g(x: f32[4, 64]) -> (a: f32[64], b: f32[64]) {\n"
                       "  kernel first { a = exp(x[1]) }\n  kernel second { b = log(x[2]) }\n}\n";
    cr_expect_eq(n_parts(plan_of(arena, text)), 0u);
    arena_free(arena);
}

static uint32_t n_given(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) n += kernel_n_given(&plan->kernels.data[k]);
    return n;
}

/* Two kernels of one op each, of which the constants differ or not. */
Test(parts, constants_that_differ_are_given) {
    static const struct {
        const char *first, *second;
        uint32_t n_functions, n_given;
    } pairs[] = {{"a * 3", "b * 5", 1, 2},
                 {"a * 3 + 0.25", "b * 5 + 0.25", 1, 2},
                 {"a * 3 + 0.25", "b * 5 + 0.75", 1, 4},
                 {"where(a < 3, a, 1.0)", "where(b < -2.5, b, 4.0)", 1, 4},
                 {"a * 3", "b * 3", 1, 0},
                 {"a * 3", "b + 5", 2, 0},
                 {"a * 3 * 3", "b * 3 * 5", 2, 0}, /* one has one constant, which it reads twice */
                 {"a / 3", "b / 5", 2, 0}, /* the code of a quotient may follow from its divisor */
                 {"pow(a, 2.5)", "pow(b, 3.5)", 2, 0}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = plan_of(
            arena, str_format(arena,
                              "graph g(a: f32[64], b: f32[64]) -> (c: f32[64], d: f32[64]) {\n"
                              "  kernel one { c = %s }\n  kernel two { d = %s }\n}\n",
                              pairs[i].first, pairs[i].second));
        cr_expect_eq(n_functions(plan), pairs[i].n_functions, "%s: %u functions", pairs[i].first,
                     n_functions(plan));
        cr_expect_eq(n_given(plan), pairs[i].n_given, "%s: %u given", pairs[i].first,
                     n_given(plan));
        arena_free(arena);
    }
}

/* Params, inputs, prepared operands and temporaries, in runs and in init steps. */
static const char loops[] =
    "dim B in 1..64\n"
    "graph g(x: f32[5, B, 16], w: f32[3, 32, 32]) -> (y: f32[5, B, 32], z: f32[B, 32]) {\n"
    "  param v: f32[4, 16, 32]\n  param u: f32[4, 32]\n"
    "  xs = x @ v[0] + u[1]\n"
    "  h0 = x[4] @ v[2] + u[0]\n"
    "  _, ys = loop t in 0:5 with h = h0 {\n    n = tanh(xs[t] + h @ w[1])\n    return n, n\n  }\n"
    "  y = stack(ys)\n"
    "  z = loop i in 0:4 with h = x[0] { return (h[:, :16] @ v[i] + u[i]) * 0.5 }\n}\n";

/* Floats and integers, in maps, rows, products and what follows them. */
static const char scales[] =
    "dim B in 1..64\n"
    "graph g(x: f32[B, 32], k: i64[B, 32], w: f32[32, 32]) -> (y: f32[B, 32], n: i64[B, 32],\n"
    "    p: f32[B, 32], q: f32[B, 32]) {\n"
    "  y = loop i in 1:5 with h = x { return softmax((h * i) @ w) * (0.25 * i) + x }\n"
    "  n = loop i in 1:4 with h = k { return cumsum((h ^ (i * 77)) - i, axis=1) }\n"
    "  kernel one { p = maximum(x * -3.5, 0.5) * 2 }\n"
    "  kernel two { q = maximum(x * 0.75, -0.5) * 2 }\n}\n";

static void expect_same(const char *source, uint32_t least_parts, uint32_t least_given) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    static const int64_t sizes[] = {1, 2, 33};
    Pair pair;
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    cr_assert(pair_compile(&pair, source, target_get(TARGET_CPU), &report), "%s",
              text_str(&report));
    const Plan *plans[] = {pair.fused.plan, pair.exposed.plan};
    for (int i = 0; i < 2; i++) {
        cr_expect(n_parts(plans[i]) >= least_parts, "%u parts", n_parts(plans[i]));
        cr_expect(n_given(plans[i]) >= least_given, "%u constants", n_given(plans[i]));
    }
    for (uint32_t i = 0; i < 6; i++) {
        options.is_unaligned = i >= 3;
        bool is_right = pair_open(&pair, 0, &options, &report) &&
                        pair_place(&pair, &sizes[i % 3], &report) &&
                        pair_run(&pair, &(PairData){.seed = i}, &counts, &report);
        cr_expect(is_right, "%s", text_str(&report));
    }
    pair_free(&pair);
    arena_free(arena);
}

Test(parts, results_are_the_same_to_the_bit) {
    expect_same(loops, 8, 0);
    expect_same(scales, 0, 8);
}

/* Steps of several products, which share launches: in the same blocks, and side by side. */
static const char gates[] =
    "graph g(x: f32[12, 8, 64]) -> (y: f32[12, 8, 64]) {\n"
    "  param u: f32[3, 64, 64]\n  param w: f32[3, 64, 64]\n  param b: f32[64]\n"
    "  r = x @ u[0]\n  z = x @ u[1]\n  n = x @ u[2]\n"
    "  _, ys = loop t in 0:12 with h = x[0] {\n"
    "    keeps = sigmoid(z[t] + h @ w[1])\n    resets = sigmoid(r[t] + h @ w[0])\n"
    "    new = tanh(n[t] + resets * (h @ w[2] + b))\n"
    "    next = (1.0 - keeps) * new + keeps * h\n    return next, next\n  }\n"
    "  y = stack(ys)\n}\n";

static uint32_t n_launch_functions(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t l = 0; l < plan->launches.n; l++)
        n += !plan->kernels.data[plan->launches.data[l].first].variants[0].is_shared;
    return n;
}

Test(parts, launches_of_several_kernels_share_functions) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_SM_80, TARGET_SM_90A};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        Compiled p;
        cr_assert(compile_source(&p, gates, target_get(targets[i]), COMPILE_FUSED), "%s",
                  p.messages);
        bool has_several = false;
        for (uint32_t l = 0; l < p.plan->launches.n; l++)
            has_several = has_several || p.plan->launches.data[l].n > 1;
        cr_expect(has_several);
        cr_expect_leq(n_launch_functions(p.plan), 12u, "%u functions of %u launches",
                      n_launch_functions(p.plan), p.plan->launches.n);
        compile_free(&p);
    }
}

Test(parts, launches_of_several_kernels_give_the_same_bits) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    cr_assert(pair_compile(&pair, gates, target_get(TARGET_CPU), &report), "%s", text_str(&report));
    for (uint32_t i = 0; i < 2; i++) {
        options.is_unaligned = i;
        bool is_right = pair_open(&pair, 0, &options, &report) &&
                        pair_place(&pair, NULL, &report) &&
                        pair_run(&pair, &(PairData){.seed = i}, &counts, &report);
        cr_expect(is_right, "%s", text_str(&report));
    }
    pair_free(&pair);
    arena_free(arena);
}
