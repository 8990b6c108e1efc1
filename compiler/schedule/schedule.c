/* Schedules by rule. See schedule.h. */
#include "schedule/schedule.h"
#include "base/keytab.h"
#include "plan/launch.h"
#include "plan/words.h"
#include "schedule/scheduler.h"
#include "schedule/split_axes.h"
#include "template/cpu_amx.h"

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
static bool adds_code(const Kernel *kernel, bool is_fast, const Target *level, const Target *next) {
    bool multiplies = form_info(kernel->form)->multiplies;
    bool has_dots = multiplies && dtype_is_int(kernel->reduces.data[0].acc) &&
                    dtype_bytes(gemm_operand_dtype(kernel)) == 1;
    bool has_tiles = multiplies && cpu_amx_multiplies(kernel, is_fast);
    return level->vector_bytes != next->vector_bytes ||
           (has_dots && level->has_int_dots != next->has_int_dots) ||
           (has_tiles && level->has_amx != next->has_amx);
}

/* Gives the kernel variants for each level of the target, the best level's first. The last level
 * needs no condition. */
static void schedule(Arena *arena, Arena *kept, const Plan *plan, Kernel *kernel, GemmLaunch launch,
                     const Target *target) {
    uint32_t n_levels = target_n_levels(target), n = 0;
    Variant made[MAX_VARIANTS];
    for (uint32_t i = 0; i < n_levels; i++) {
        const Target *level = target_level(target, i);
        if (i + 1 < n_levels &&
            !adds_code(kernel, plan->graph->is_fast, level, target_level(target, i + 1)))
            continue;
        Scheduler s = scheduler_new(arena, plan, kernel, level);
        s.launch = launch;
        s.made = &made[n];
        s.n_before = n;
        propose(&s, ACCESS_WIDE);
        propose(&s, ACCESS_SINGLE);
        for (uint32_t v = 0; v < s.n_made && i + 1 < n_levels; v++)
            predicate_require_level(&s.made[v].predicate, s.target->name);
        n += s.n_made;
    }
    kernel_set_variants(kept, kernel, made, n);
}

void sched_in_launch(Arena *arena, Arena *scratch, const Plan *plan, Kernel *kernel,
                     GemmLaunch launch, const Target *target) {
    schedule(arena, scratch, plan, kernel, launch, target);
}

static void set_axes(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target) {
    if (target->has->blocks) {
        split_axes_for_tiles(arena, plan, kernel, target);
    } else {
        split_axes_for_lanes(arena, plan, kernel, target);
        join_axes_for_lanes(arena, plan, kernel, target);
    }
}

void sched_kernel(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target) {
    set_axes(arena, plan, kernel, target);
    schedule(arena, arena, plan, kernel, (GemmLaunch){.n_gemms = 1}, target);
}

bool sched_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    const TemplateSchedule *own = template_schedule(variant->sched.template);
    if (kernel->segment_axis != NO_AXIS || variant->shared_bytes) return false;
    return own->in_one_block && own->in_one_block(kernel, threads, variant);
}

/* Whether the kernels are still copies of one, whose accesses and so whose schedules are the same.
 */
static bool are_alike(const Plan *plan, const Kernel *a, const Kernel *b) {
    bool alike = scalartab_indices(a->scalars) == scalartab_indices(b->scalars) &&
                 a->is_init == b->is_init && a->args.n == b->args.n && !a->choice && !b->choice &&
                 a->n_parallel == b->n_parallel;
    for (uint32_t i = 0; i < a->args.n && alike; i++)
        alike = buffer_is_alike(&plan->buffers.data[a->args.data[i]],
                                &plan->buffers.data[b->args.data[i]]);
    return alike;
}

static void copy_schedule(Arena *arena, const Plan *plan, Kernel *kernel, const Kernel *first) {
    kernel_set_variants(arena, kernel, first->variants, first->n_variants);
    for (uint32_t i = 0; i < kernel->n_variants; i++)
        kernel->variants[i].symbol = sched_symbol(arena, plan, kernel, i);
}

/* Per program, the kernel that was scheduled first, plus 1. */
static uint32_t *first_of_program(Arena *arena, const Plan *plan) {
    uint32_t most = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        if (plan->kernels.data[k].program > most) most = plan->kernels.data[k].program;
    return arena_array(arena, uint32_t, most + 1);
}

/* The kernels of the plan that have schedules, by all on which schedules depend. */
typedef struct Scheduled {
    KeyTab keys;
    VecU32 key;       /* that was written last */
    VecU32 kernel_of; /* by key */
} Scheduled;

/* Whether `write_key` writes all on which the kernel's schedules depend. */
static bool has_key(const Plan *plan, const Kernel *kernel) {
    const FormInfo *form = form_info(kernel->form);
    bool has = (!form->reduces || form->reduces_rows || form->reduces_columns) && !kernel->choice &&
               !kernel_updates(kernel);
    for (uint32_t i = 0; i < kernel->reduces.n && has; i++) has = !kernel->reduces.data[i].join;
    for (uint32_t i = 0; i < kernel->args.n && has; i++)
        has = !plan->buffers.data[kernel->args.data[i]].choice;
    return has;
}

static void write_arg(Words *w, const Buffer *buffer) {
    words_put(w, (uint32_t)buffer->kind << 8 | (uint32_t)buffer->space);
    words_put(w, buffer->dtype);
    words_put(w, buffer->inner);
    words_put(w, buffer->pitch);
    words_put_shape(w, &buffer->shape);
}

static void write_key(Arena *arena, const Plan *plan, const Kernel *kernel, VecU32 *key) {
    Words w = {.arena = arena, .key = key, .kernel = kernel};
    key->n = 0;
    words_put(&w, kernel->is_init);
    words_put_axes(&w, scalartab_indices(kernel->scalars));
    words_put(&w, kernel->args.n);
    for (uint32_t i = 0; i < kernel->args.n; i++)
        write_arg(&w, &plan->buffers.data[kernel->args.data[i]]);
    words_put(&w, scalar_count(kernel->scalars));
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        words_put_scalar(&w, scalar_get(kernel->scalars, id));
    words_put_reduces(&w);
    words_put_stages(&w);
}

/* Schedules the kernel as one that is alike. Returns false if no such kernel has been scheduled,
 * and then the kernel is noted as the one. */
static bool schedule_alike(Arena *arena, const Plan *plan, Scheduled *all, uint32_t k) {
    Kernel *kernel = &plan->kernels.data[k];
    if (!has_key(plan, kernel)) return false;
    write_key(arena, plan, kernel, &all->key);
    uint32_t id = keytab_intern(arena, &all->keys, &all->key);
    if (id > all->kernel_of.n) {
        vec_push(arena, &all->kernel_of, k);
        return false;
    }
    copy_schedule(arena, plan, kernel, &plan->kernels.data[all->kernel_of.data[id - 1]]);
    return true;
}

void sched_plan(Arena *arena, Plan *plan, const Target *target) {
    uint32_t *first_of = first_of_program(arena, plan);
    Scheduled all = {.key = {0}};
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        Kernel *kernel = &plan->kernels.data[k];
        uint32_t first = kernel->program ? first_of[kernel->program] : 0;
        if (first && are_alike(plan, kernel, &plan->kernels.data[first - 1])) {
            copy_schedule(arena, plan, kernel, &plan->kernels.data[first - 1]);
            continue;
        }
        set_axes(arena, plan, kernel, target);
        if (!schedule_alike(arena, plan, &all, k))
            schedule(arena, arena, plan, kernel, (GemmLaunch){.n_gemms = 1}, target);
        if (kernel->program && !first) first_of[kernel->program] = k + 1;
    }
    plan_launch_singly(arena, plan);
}

bool schedule_pass(const Planning *p, PlanUnit *unit) {
    sched_plan(p->arena, unit->plan, p->target);
    return true;
}
