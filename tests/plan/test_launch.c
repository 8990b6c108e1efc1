/* Questions that a plan answers about its launches. */
#include "lib/plans.h"
#include "plan/launch.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>

/* One init kernel and two kernels of a run, a launch each. */
static Plan *plan_with_init(Arena *arena) {
    Module *module = plans_parse(arena, "graph g(x: f32[8, 64]) -> (m: f32[64], n: f32[8]) {\n"
                                        "  param g: f32[64] = \"g\"\n"
                                        "  m = max(x * max(g), axis=0)\n  n = max(x, axis=1)\n}\n");
    Plan *plan = plans_fuse(arena, module, 0, false);
    sched_plan(arena, plan, target_get(TARGET_SM_90));
    return plan;
}

Test(launch, a_run_begins_again_behind_its_last_launch) {
    Arena *arena = arena_new(NULL);
    const Plan *plan = plan_with_init(arena);
    const Launch *launches = plan->launches.data;
    cr_assert(plan->launches.n == 3 && plan_n_init(plan) == 1);
    cr_expect_eq(plan_launch_after(plan, &launches[0]), &launches[1]);
    cr_expect_eq(plan_launch_after(plan, &launches[1]), &launches[2]);
    cr_expect_eq(plan_launch_after(plan, &launches[2]), &launches[1]);
    arena_free(arena);
}

Test(launch, kernels_find_their_launch) {
    Arena *arena = arena_new(NULL);
    Plan *plan = plan_with_init(arena);
    plan->launches.data[1].n = 2;
    plan->launches.n = 2;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        uint32_t at = plan_launch_index(plan, k);
        cr_expect_eq(at, k > 0);
        cr_expect_eq(plan_launch_of(plan, k), &plan->launches.data[at]);
        cr_expect(launch_has(&plan->launches.data[at], k));
        cr_expect(!launch_has(&plan->launches.data[1 - at], k));
    }
    arena_free(arena);
}

/* A concat of many parts takes no longer for each element than one of two. */
Test(launch, a_concat_of_many_parts_is_worth_no_more) {
    Arena *arena = arena_new(NULL);
    int64_t worth[2];
    for (int i = 0; i < 2; i++) {
        int n_parts = i ? 16 : 2;
        Text source = {.arena = arena};
        text_printf(&source,
                    "graph g(x: f32[64, 512]) -> (y: f32[64, 512]) {\n  y = relu(concat([");
        for (int p = 0; p < n_parts; p++)
            text_printf(&source, "%sx[:, %d:%d] * 2.0", p ? ", " : "",
                        512 - (p + 1) * 512 / n_parts, 512 - p * 512 / n_parts);
        text_printf(&source, "], axis=1))\n}\n");
        Plan *plan = plans_fuse(arena, plans_parse(arena, text_str(&source)), 0, false);
        sched_plan(arena, plan, target_get(TARGET_CPU));
        plan_launch_singly(arena, plan);
        cr_assert_eq(plan->launches.n, 1, "%s", text_str(&source));
        DimId dim = launch_worth(arena, plan, &plan->launches.data[0], 0);
        worth[i] = dim_lo(plan->graph->dims, dim);
    }
    cr_expect(worth[0] > 1 && worth[1] >= worth[0] / 2 && worth[1] <= worth[0] * 2,
              "%lld units of 2 parts, %lld of 16", (long long)worth[0], (long long)worth[1]);
    arena_free(arena);
}
