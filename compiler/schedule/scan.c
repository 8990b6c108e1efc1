/* Schedules of scans. See scheduler.h. */
#include "machine/tuning.h"
#include "schedule/scheduler.h"

/* Whether rows lie side by side in memory: some store is contiguous along the lane axis. */
static bool rows_are_beside(const Scheduler *s, uint32_t lanes) {
    const Stage *stage = &s->kernel->stages.data[0];
    bool is_any = false;
    for (uint32_t i = 0; i < stage->stores.n && s->lane_axis != NO_AXIS; i++)
        is_any = is_any || index_lane_motion(s->indices, stage->stores.data[i].address,
                                             s->lane_axis, lanes) == LANES_CONTIGUOUS;
    return is_any;
}

static void add_scan(Scheduler *s, Variant variant, uint32_t threads_per_row) {
    variant.sched.threads = SCAN_RUN * SCAN_RUN;
    variant.sched.row = (RowSched){.threads_per_row = threads_per_row, .slots = 1};
    variant.grid =
        dim_ceil_div(s->dims, kernel_n_rows(s->kernel), variant.sched.threads / threads_per_row);
    sched_add(s, variant);
}

/* A thread per row, if neighbouring rows lie side by side or rows are short; else a block. */
static void propose(Scheduler *s, Access access) {
    if (access == ACCESS_WIDE) return;
    Variant variant = {.sched = sched_gpu(s, TEMPLATE_GPU_SCAN)};
    DimId n = kernel_n_reduced(s->kernel);
    bool are_long = !rows_are_beside(s, 2) && dim_hi(s->dims, n) > SCHED_SCAN_SHORT;
    Variant alone = variant;
    if (are_long) predicate_set_range(&alone.predicate, n, INT64_MIN, SCHED_SCAN_SHORT);
    if (dim_lo(s->dims, n) <= SCHED_SCAN_SHORT || !are_long) add_scan(s, alone, 1);
    if (are_long) add_scan(s, variant, SCAN_RUN * SCAN_RUN);
}

/* Rows of a thread each, as the elements of a map. */
static bool in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    if (variant->sched.row.threads_per_row > 1) return false;
    variant->sched.threads = threads;
    variant->grid = dim_ceil_div(dims, kernel_n_rows(kernel), threads);
    return true;
}

const TemplateSchedule schedule_gpu_scan = {.propose = propose, .in_one_block = in_one_block};

/* Vectors of rows that lie side by side, or single rows. */
static void propose_cpu(Scheduler *s, Access access) {
    if (access == ACCESS_SINGLE) return;
    Sched sched = sched_cpu(s, TEMPLATE_CPU_SCAN);
    if (!rows_are_beside(s, sched.lanes)) sched.lanes = 1;
    if (sched.lanes > 1) sched.unroll = sched_cpu_unroll(s, sched.lanes);
    sched_add(s, (Variant){.sched = sched, .grid = sched_cpu_grid(s, sched.lanes * sched.unroll)});
}

const TemplateSchedule schedule_cpu_scan = {.propose = propose_cpu};
