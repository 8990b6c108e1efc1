/* All kernels of a plan. See schedule.h. */
#include "schedule/schedule.h"

#include "plan/launch.h"

void sched_plan(Arena *arena, Plan *plan, const Target *target) {
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        sched_kernel(arena, plan, &plan->kernels.data[k], target);
    plan_launch_singly(arena, plan);
}

bool schedule_pass(const Planning *p, PlanUnit *unit) {
    sched_plan(p->arena, unit->plan, p->target);
    return true;
}
