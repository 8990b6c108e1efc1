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

/* A block per row of more than SCHED_SCAN_SHORT elements, else a thread per row. Rows that lie side
 * by side are read best by a thread each, if there are enough of them. */
static void propose(Scheduler *s, Access access) {
    if (access == ACCESS_WIDE) return;
    Variant alone = {.sched = sched_gpu(s, TEMPLATE_GPU_SCAN)}, beside = alone, block = alone;
    DimId n = kernel_n_reduced(s->kernel), rows = kernel_n_rows(s->kernel);
    bool are_beside = rows_are_beside(s, 2);
    bool may_be_short = dim_lo(s->dims, n) <= SCHED_SCAN_SHORT;
    bool may_be_many = are_beside && dim_hi(s->dims, rows) > SCHED_SCAN_FEW_ROWS;
    bool may_be_few = !are_beside || dim_lo(s->dims, rows) <= SCHED_SCAN_FEW_ROWS;
    bool needs_blocks = dim_hi(s->dims, n) > SCHED_SCAN_SHORT && may_be_few;
    if (needs_blocks) {
        predicate_set_range(&alone.predicate, n, INT64_MIN, SCHED_SCAN_SHORT);
        predicate_set_range(&beside.predicate, rows, SCHED_SCAN_FEW_ROWS + 1, INT64_MAX);
    }
    if (may_be_short || !needs_blocks) add_scan(s, alone, 1);
    if (needs_blocks && may_be_many) add_scan(s, beside, 1);
    if (needs_blocks) add_scan(s, block, SCAN_RUN * SCAN_RUN);
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
