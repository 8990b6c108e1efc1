/* Schedules of softmax and product. See scheduler.h. */
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "template/online.h"

static DimId n_blocks(const Scheduler *s, const Sched *sched) {
    DimId warps = online_n_units(s->dims, s->kernel, sched->unroll, SCHED_ONLINE_COLUMNS);
    return dim_ceil_div(s->dims, warps, sched->threads / WARP_THREADS);
}

/* A warp takes several rows, so that it reads the values once for all of them. */
static void propose(Scheduler *s, Access access) {
    if (access == ACCESS_WIDE) return;
    Variant variant = {.sched = sched_gpu(s, TEMPLATE_GPU_ONLINE)};
    DimId rows = kernel_axis_extent(s->kernel, gemm_axis_m(s->kernel));
    variant.sched.threads = SCHED_ONLINE_THREADS;
    variant.sched.unroll = dim_hi(s->dims, rows) > 1 ? SCHED_ONLINE_ROWS : 1;
    variant.grid = n_blocks(s, &variant.sched);
    sched_add(s, variant);
}

static bool may(const Scheduler *s) {
    return !schedule_gpu_online_wgmma.may(s);
}

const TemplateSchedule schedule_gpu_online = {.may = may, .propose = propose};

/* Half as many rows as two vectors of columns have registers for. */
static void propose_cpu(Scheduler *s, Access access) {
    if (access == ACCESS_SINGLE) return;
    Variant variant = {.sched = sched_cpu(s, TEMPLATE_CPU_ONLINE)};
    variant.sched.unroll = s->target->vector_bytes / 8;
    variant.grid =
        online_n_units(s->dims, s->kernel, SCHED_CPU_ONLINE_ROWS, SCHED_CPU_ONLINE_COLUMNS);
    sched_add(s, variant);
}

const TemplateSchedule schedule_cpu_online = {.propose = propose_cpu};
