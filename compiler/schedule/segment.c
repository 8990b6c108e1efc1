/* Schedules of reductions of segments. See scheduler.h. */
#include "machine/tuning.h"
#include "schedule/scheduler.h"

static void propose(Scheduler *s, Access access) {
    if (access == ACCESS_WIDE) return;
    Variant variant = {.sched = sched_gpu(s, TEMPLATE_GPU_SEGMENT)};
    variant.sched.threads = SCHED_MAP_THREADS;
    variant.sched.unroll = SCHED_SEGMENT_UNROLL;
    variant.grid = dim_ceil_div(s->dims, kernel_n_rows(s->kernel), SCHED_MAP_THREADS);
    sched_add(s, variant);
}

static bool in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    variant->sched.threads = threads;
    variant->grid = dim_ceil_div(dims, kernel_n_rows(kernel), threads);
    return true;
}

const TemplateSchedule schedule_gpu_segment = {.propose = propose, .in_one_block = in_one_block};

/* Whether the segment or the elements' numbers change along the lane axis. */
static bool varies_along_lanes(const Scheduler *s) {
    const Reduce *reduce = &s->kernel->reduces.data[0];
    uint32_t axes = scalar_get(s->kernel->scalars, reduce->rhs)->axes |
                    scalar_get(s->kernel->scalars, reduce->arg_index)->axes;
    return s->lane_axis == NO_AXIS || axes >> s->lane_axis & 1;
}

static void propose_cpu(Scheduler *s, Access access) {
    if (access == ACCESS_SINGLE) return;
    Variant variant = {.sched = sched_cpu(s, TEMPLATE_CPU_SEGMENT)};
    bool is_single = varies_along_lanes(s);
    if (is_single) variant.sched.lanes = 1;
    variant.grid = is_single ? kernel_n_rows(s->kernel) : sched_cpu_grid(s, SCHED_CPU_SEGMENT_UNIT);
    sched_add(s, variant);
}

const TemplateSchedule schedule_cpu_segment = {.propose = propose_cpu};
