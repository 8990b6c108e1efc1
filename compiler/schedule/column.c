/* Schedules of columns. See scheduler.h; docs/results/scheduling-rules.md has the rules and their
 * measurements. */
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"

enum { CHAINS = 8 };

/* The threads along the columns: no more than there are columns. Where there is room, `n_segments`
 * of a column run side by side, unless a wide tensor would then be read in partial sectors. */
static uint32_t column_threads(const Scheduler *s, uint32_t lanes, int64_t n_segments) {
    int64_t columns = dim_hi(s->dims, kernel_n_rows(s->kernel));
    uint32_t threads_per_row = WARP_THREADS, least = columns < SCHED_WIDE_COLUMNS ? 1 : 4;
    while (threads_per_row > 1 && threads_per_row / 2 * (int64_t)lanes >= columns)
        threads_per_row /= 2;
    while (threads_per_row > least && SCHED_COLUMN_THREADS / CHAINS / threads_per_row < n_segments)
        threads_per_row /= 2;
    return threads_per_row;
}

static void add_column(Scheduler *s, Variant variant) {
    Sched *sched = &variant.sched;
    sched->threads = SCHED_COLUMN_THREADS;
    uint32_t n_groups = SCHED_COLUMN_THREADS / CHAINS / sched->column.threads_along;
    DimId strips = dim_ceil_div(s->dims, kernel_n_rows(s->kernel),
                                (int64_t)sched->lanes * sched->column.threads_along);
    DimId segments = sched_n_segments(s);
    if (s->kernel->segment_axis != NO_AXIS) segments = dim_ceil_div(s->dims, segments, n_groups);
    variant.grid = dim_mul(s->dims, strips, segments);
    sched_add_unrolled(s, variant);
    sched_add(s, variant);
}

/* A kernel over more partial results than a segment, one lane per thread. If there may be fewer, it
 * has variants for those too. */
static void gpu_column_finish(Scheduler *s, Variant variant) {
    int64_t segment = reduce_order(FORM_COLUMN, s->target->device).segment_elems;
    DimId n = kernel_n_reduced(s->kernel);
    int64_t most = dim_hi(s->dims, n);
    Sched *sched = &variant.sched;
    if (dim_lo(s->dims, n) <= segment) {
        Variant one = variant;
        one.sched.column.threads_along = WARP_THREADS;
        predicate_set_range(&one.predicate, n, INT64_MIN, segment);
        add_column(s, one);
    }
    if (sched->lanes > 1) return;
    sched->column.threads_along =
        column_threads(s, sched->lanes, most / segment + (most % segment != 0));
    sched->threads = SCHED_COLUMN_THREADS;
    sched_unroll_finish(s, sched);
    add_column(s, variant);
}

/* Whether processors would be idle if a thread had several columns. A single pass is then better
 * with more blocks. */
static bool has_few_strips(const Scheduler *s, uint32_t lanes) {
    int64_t columns;
    return s->kernel->stages.n == 1 && dim_is_const(s->dims, kernel_n_rows(s->kernel), &columns) &&
           columns < (int64_t)s->target->n_processors * WARP_THREADS * lanes;
}

/* The rows that a thread visits side by side, so that their loads are in flight together. A loop
 * over as many as no chain has would be code that never runs. Rows of long code hide each other's
 * loads in any case. */
static uint32_t rows_at_once(const Scheduler *s, uint32_t lanes) {
    const ScalarTab *scalars = s->kernel->scalars;
    const bool *live = kernel_live_scalars(s->arena, s->kernel);
    uint32_t prims = 0;
    if (dim_hi(s->dims, kernel_n_reduced(s->kernel)) <= (SCHED_UNROLL - 1) * CHAINS) return 1;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++)
        if (live[id]) prims += scalar_own_cost(scalars, id);
    return prims * lanes * SCHED_UNROLL <= SCHED_COLUMN_PRIMS ? SCHED_UNROLL : 1;
}

static void gpu_column(Scheduler *s, Variant variant) {
    bool is_partial = s->kernel->segment_axis != NO_AXIS;
    variant.sched.unroll = rows_at_once(s, variant.sched.lanes);
    if (sched_finishes_split(s)) {
        gpu_column_finish(s, variant);
        return;
    }
    variant.sched.column.threads_along =
        is_partial ? column_threads(s, variant.sched.lanes, 1) : WARP_THREADS;
    if (!is_partial && variant.sched.lanes > 1 && has_few_strips(s, variant.sched.lanes)) return;
    add_column(s, variant);
}

static void propose(Scheduler *s, Access access) {
    Variant variant = {.sched = sched_gpu(s, TEMPLATE_GPU_COLUMN)};
    if (sched_set_access(s, access, &variant)) gpu_column(s, variant);
}

/* A column's block is eight chains of 32 threads, whatever else there is. */
static bool in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    (void)kernel;
    return threads == SCHED_COLUMN_THREADS && variant->sched.threads == SCHED_COLUMN_THREADS;
}

const TemplateSchedule schedule_gpu_column = {.propose = propose, .in_one_block = in_one_block};

/* CPU. */

static void propose_cpu(Scheduler *s, Access access) {
    if (access == ACCESS_SINGLE) return;
    Sched sched = sched_cpu(s, TEMPLATE_CPU_COLUMN);
    sched.cpu_column.chunk_elems = SCHED_CPU_COLUMN_UNIT;
    sched_add(s, (Variant){.sched = sched, .grid = sched_cpu_grid(s, SCHED_CPU_COLUMN_UNIT)});
}

const TemplateSchedule schedule_cpu_column = {.propose = propose_cpu};

/* Rows in lanes. */

/* Whether neighbouring rows are neighbours in memory too. AVX2 loads elements of less than a word
 * under a mask one by one, so these need a whole vector. */
static bool are_near(const Scheduler *s, uint32_t axis) {
    const Kernel *kernel = s->kernel;
    const bool *live = kernel_live_scalars(s->arena, kernel);
    int64_t most = dim_hi(s->dims, index_axis_extent(s->indices, axis));
    bool is_short = most < sched_cpu(s, TEMPLATE_CPU_ROWS_IN_LANES).lanes;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *load = scalar_get(kernel->scalars, id);
        if (!live[id] || load->kind != SCALAR_LOAD) continue;
        bool is_narrow = dtype_bytes(load->dtype) < WORD_BYTES;
        int64_t most_apart = is_narrow ? SCHED_CPU_ROWS_NARROW_STRIDE : SCHED_CPU_ROWS_LOAD_STRIDE;
        if ((is_short && is_narrow) || !index_is_near(s->indices, load->index, axis, most_apart))
            return false;
    }
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        for (uint32_t k = 0; k < stage->stores.n; k++)
            if (!index_is_near(s->indices, stage->stores.data[k].address, axis,
                               SCHED_CPU_ROWS_STORE_STRIDE))
                return false;
    }
    return true;
}

/* Rows of a few elements, such as windows over an image: a vector has an element of each of its
 * rows, and no lanes are joined. */
static bool may_lie_in_lanes(const Scheduler *s) {
    const Kernel *kernel = s->kernel;
    if (!kernel->n_parallel || kernel->segment_axis != NO_AXIS) return false;
    uint32_t axis = kernel->n_parallel - 1;
    return dim_hi(s->dims, index_axis_extent(s->indices, axis)) > 1 &&
           kernel_row_steps(s->arena, kernel, 1, KERNEL_MOST_COLUMN_ROWS) && are_near(s, axis);
}

static void propose_rows(Scheduler *s, Access access) {
    uint32_t reduced = s->lane_axis;
    s->lane_axis = s->kernel->n_parallel - 1;
    if (access != ACCESS_SINGLE) {
        Sched sched = sched_cpu(s, TEMPLATE_CPU_ROWS_IN_LANES);
        sched.cpu_column.chunk_elems = SCHED_CPU_COLUMN_UNIT;
        sched_add(s, (Variant){.sched = sched, .grid = sched_cpu_grid(s, SCHED_CPU_COLUMN_UNIT)});
    }
    s->lane_axis = reduced;
}

const TemplateSchedule schedule_cpu_rows_in_lanes = {.may = may_lie_in_lanes,
                                                     .propose = propose_rows};
