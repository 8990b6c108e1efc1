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
