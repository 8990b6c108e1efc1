/* Schedules of sorts. See scheduler.h. */
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "template/sort.h"

/* Adds a variant for rows of at most `most` elements. Returns whether all rows are that short. */
static bool add_sort(Scheduler *s, int64_t most, uint32_t threads) {
    DimId n = kernel_n_reduced(s->kernel);
    bool are_all = dim_hi(s->dims, n) <= most;
    Variant variant = {.sched = sched_gpu(s, TEMPLATE_GPU_SORT), .grid = kernel_n_rows(s->kernel)};
    variant.sched.threads = threads;
    variant.sched.row = (RowSched){.threads_per_row = threads, .slots = 1};
    if (!are_all) predicate_set_range(&variant.predicate, n, INT64_MIN, most);
    if (dim_lo(s->dims, n) <= most) sched_add(s, variant);
    return are_all;
}

/* The orders of rows of up to SORT_LOCAL elements are in shared memory. */
static void propose(Scheduler *s, Access access) {
    if (access == ACCESS_WIDE) return;
    bool has_all =
        add_sort(s, SCHED_SORT_SHORT, WARP_THREADS) || add_sort(s, SORT_LOCAL, SCHED_SORT_THREADS);
    if (!has_all) add_sort(s, INT64_MAX, SCHED_SORT_LONG_THREADS);
}

/* Any number of threads sorts a row. */
static bool in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    (void)kernel;
    variant->sched.threads = threads;
    variant->sched.row.threads_per_row = threads;
    return true;
}

const TemplateSchedule schedule_gpu_sort = {.propose = propose, .in_one_block = in_one_block};

static void propose_cpu(Scheduler *s, Access access) {
    DimId n = kernel_n_reduced(s->kernel);
    Variant variant = {.sched = sched_cpu(s, TEMPLATE_CPU_SORT), .grid = kernel_n_rows(s->kernel)};
    variant.sched.lanes = 1;
    if (access == ACCESS_SINGLE) return;
    if (dim_hi(s->dims, n) > SORT_LOCAL && dim_lo(s->dims, n) <= SORT_LOCAL) {
        Variant local = variant;
        predicate_set_range(&local.predicate, n, INT64_MIN, SORT_LOCAL);
        sched_add(s, local);
    }
    sched_add(s, variant);
}

const TemplateSchedule schedule_cpu_sort = {.propose = propose_cpu};
