/* Structurally equal kernels share their code, whatever their tensors are called. */
#include "launch/dedup.h"
#include "lib/plans.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>

static const char source[] =
    "dim B in 1..4096\n"
    "graph a(x: f32[B, 64], w: f32[64]) -> (y: f32[B, 64]) {\n  y = softmax(x * w, axis=1)\n}\n"
    "graph b(p: f32[B, 64], q: f32[64]) -> (r: f32[B, 64]) {\n  r = softmax(p * q, axis=1)\n}\n"
    "graph c(p: f32[B, 64], q: f32[64]) -> (r: f32[B, 64]) {\n  r = softmax(q * p, axis=1)\n}\n"
    "graph d(p: f32[B, 64], q: f32[64]) -> (r: f32[B, 64]) {\n  r = softmax(p + q, axis=1)\n}\n";

static bool has_pdl;

static void schedule(Arena *arena, const char *text, LaunchMode mode, Plan **plans, uint32_t n) {
    Module *module = plans_parse(arena, text);
    for (uint32_t i = 0; i < n; i++) {
        plans[i] = plans_fuse(arena, module, i, false);
        sched_plan(arena, plans[i], target_get(TARGET_SM_80));
        if (mode == LAUNCH_SINGLE) continue;
        plans[i]->launches.n = 1;
        plans[i]->launches.data[0].mode = mode;
        plans[i]->launches.data[0].n = plans[i]->kernels.n;
    }
    dedup_classify(arena, has_pdl, (const Plan *const *)plans, n);
    dedup_functions(arena, (const Plan *const *)plans, n);
}

Test(dedup, only_equal_kernels_share) {
    Arena *arena = arena_new(NULL);
    Plan *plans[4];
    schedule(arena, source, LAUNCH_SINGLE, plans, 4);
    const Variant *variants[4];
    for (int i = 0; i < 4; i++) variants[i] = &plans[i]->kernels.data[0].variants[0];
    cr_expect(!variants[0]->is_shared);
    cr_expect(variants[1]->is_shared && variants[1]->symbol == variants[0]->symbol);
    cr_expect(!variants[2]->is_shared, "arguments in another order are another kernel");
    cr_expect(!variants[3]->is_shared, "another op is another kernel");
    arena_free(arena);
}

/* A subtraction behind two equal kernels, of what they make or the other way round. */
#define TWO_AND(name, difference)                                                              \
    "graph " name "(x: f32[64], z: f32[64]) -> (y: f32[64]) {\n"                               \
    "  fuse never { a = exp(x) }\n  fuse never { b = exp(z) }\n  fuse never { y = " difference \
    " }\n}\n"

Test(dedup, kernels_in_one_launch_share_what_is_handed_on_alike) {
    static const char crosswise[] =
        TWO_AND("a", "a - b") TWO_AND("b", "a - b") TWO_AND("c", "b - a");
    Arena *arena = arena_new(NULL);
    Plan *plans[3];
    schedule(arena, crosswise, LAUNCH_SEQUENCE, plans, 3);
    const Variant *variants[3];
    for (int i = 0; i < 3; i++) {
        const Kernel *kernels = plans[i]->kernels.data;
        cr_assert_eq(plans[i]->kernels.n, 3u);
        cr_expect(kernels[0].code == kernels[1].code);
        cr_expect(kernels[2].code == plans[0]->kernels.data[2].code,
                  "by themselves they are equal");
        variants[i] = &kernels[0].variants[0];
    }
    cr_expect(variants[1]->is_shared && variants[1]->symbol == variants[0]->symbol);
    cr_expect(!variants[2]->is_shared, "what one takes from the other is another");
    arena_free(arena);
}

/* Where launches overlap, a param is loaded otherwise than what the launch before may still write.
 */
Test(dedup, a_param_is_no_temporary_where_launches_overlap) {
    static const char text[] = "graph g(x: f32[64]) -> (y: f32[64], z: f32[64]) {\n"
                               "  param p: f32[64]\n"
                               "  kernel first { t = x * 2.0 }\n"
                               "  kernel second { y = exp(t) }\n"
                               "  kernel third { z = exp(p) }\n}\n";
    for (int overlap = 0; overlap < 2; overlap++) {
        Arena *arena = arena_new(NULL);
        Plan *plan;
        has_pdl = overlap;
        schedule(arena, text, LAUNCH_SINGLE, &plan, 1);
        const Kernel *second = &plan->kernels.data[1], *third = &plan->kernels.data[2];
        cr_assert_eq(plan->kernels.n, 3u);
        cr_expect_eq(second->code == third->code, !overlap, "overlap %d", overlap);
        arena_free(arena);
    }
    has_pdl = false;
}

/* Variants that differ in their work units alone have one function: of a product whose weights are
 * prepared, those for up to 16 rows and for any number have one register tile with AVX2. */
Test(dedup, variants_of_other_units_share) {
    Plan *plan;
    Arena *arena = arena_new(NULL);
    plan = plans_fuse(arena,
                      plans_parse(arena, "dim M in 1..4096\n"
                                         "graph g(x: f32[M, 64], w: f32[64, 64])"
                                         " -> (y: f32[M, 64]) { y = relu(x @ w) }\n"),
                      0, false);
    plan->kernels.data[0].panel_columns = 16;
    sched_plan(arena, plan, target_get(TARGET_CPU));
    dedup_classify(arena, false, (const Plan *const *)&plan, 1);
    dedup_functions(arena, (const Plan *const *)&plan, 1);
    const Kernel *kernel = &plan->kernels.data[0];
    cr_assert_eq(kernel->n_variants, 3u);
    const Variant *few = &kernel->variants[1], *all = &kernel->variants[2];
    cr_expect(!kernel->variants[0].is_shared, "4 rows have another register tile");
    cr_expect(few->is_shared && few->symbol == all->symbol && !all->is_shared);
    cr_expect(few->grid != all->grid);
    arena_free(arena);
}
