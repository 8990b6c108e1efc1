/* Schedules by rule. See schedule.h. */
#include "schedule/schedule.h"
#include "plan/launch.h"
#include "schedule/scheduler.h"
#include "schedule/split_axes.h"

static void propose(Scheduler *s, Access access) {
    for (TemplateId id = 0; id < N_TEMPLATES; id++) {
        const TemplateInfo *info = template_info(id);
        const TemplateSchedule *own = template_schedule(id);
        bool is_of = info->form == s->kernel->form && info->device == s->target->device;
        if (!is_of || (own->may && !own->may(s))) continue;
        if (own->propose) own->propose(s, access);
        if (own->list && access == ACCESS_WIDE) sched_add_gemm(s, own);
    }
}

/* Whether the kernel's code for the level is other than for the next. */
static bool adds_code(const Kernel *kernel, const Target *level, const Target *next) {
    bool has_dots = form_info(kernel->form)->multiplies &&
                    dtype_is_int(kernel->reduces.data[0].acc) &&
                    dtype_bytes(gemm_operand_dtype(kernel)) == 1;
    return level->vector_bytes != next->vector_bytes ||
           (has_dots && level->has_int_dots != next->has_int_dots);
}

/* Gives the kernel variants for each level of the target, the best level's first. The last level
 * needs no condition. */
static void schedule(Arena *arena, Arena *kept, const Plan *plan, Kernel *kernel, GemmLaunch launch,
                     const Target *target) {
    uint32_t n_levels = target_n_levels(target), n = 0;
    Variant made[MAX_VARIANTS];
    for (uint32_t i = 0; i < n_levels; i++) {
        const Target *level = target_level(target, i);
        if (i + 1 < n_levels && !adds_code(kernel, level, target_level(target, i + 1))) continue;
        Scheduler s = scheduler_new(arena, plan, kernel, level);
        s.launch = launch;
        s.n_before = n;
        propose(&s, ACCESS_WIDE);
        propose(&s, ACCESS_SINGLE);
        for (uint32_t v = 0; v < s.n_made; v++) {
            made[n] = s.made[v];
            if (i + 1 < n_levels) predicate_require_level(&made[n].predicate, s.target->name);
            n++;
        }
    }
    kernel_set_variants(kept, kernel, made, n);
}

void sched_in_launch(Arena *arena, Arena *scratch, const Plan *plan, Kernel *kernel,
                     GemmLaunch launch, const Target *target) {
    schedule(arena, scratch, plan, kernel, launch, target);
}

static void sched_kernel(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target) {
    if (target->has->blocks)
        split_axes_for_tiles(arena, plan, kernel, target);
    else
        split_axes_for_lanes(arena, plan, kernel, target);
    schedule(arena, arena, plan, kernel, (GemmLaunch){.n_gemms = 1}, target);
}

bool sched_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    const TemplateSchedule *own = template_schedule(variant->sched.template);
    if (kernel->segment_axis != NO_AXIS || variant->shared_bytes) return false;
    return own->in_one_block && own->in_one_block(kernel, threads, variant);
}

void sched_plan(Arena *arena, Plan *plan, const Target *target) {
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        sched_kernel(arena, plan, &plan->kernels.data[k], target);
    plan_launch_singly(arena, plan);
}

bool schedule_pass(const Planning *p, PlanUnit *unit) {
    sched_plan(p->arena, unit->plan, p->target);
    return true;
}
