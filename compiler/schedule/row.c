/* Schedules of rows. See scheduler.h; docs/results/scheduling-rules.md has the rules and their
 * measurements. On a GPU any choice of the threads that share a row gives the same sums. */
#include "base/arith.h"
#include "cost/pressure.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/row_cache.h"
#include "schedule/scheduler.h"

typedef struct RowUse {
    int64_t length, rows; /* upper bounds of elements per row and of rows */
    uint32_t elem_bytes;  /* of the widest argument */
    uint32_t n_loads;     /* per element; tensors with elements of each row */
    uint32_t n_stores;    /* per element */
    uint32_t most_steps;  /* limit per thread */
    uint32_t n_chains;    /* of a row's sum: the most threads and lanes that share it */
    uint32_t n_processors;
} RowUse;

static int64_t row_steps(const Sched *sched, uint32_t threads_per_row, int64_t length) {
    int64_t stride = (int64_t)threads_per_row * sched->lanes;
    return (length + stride - 1) / stride;
}

static int64_t machine_threads(const RowUse *use) {
    return (int64_t)use->n_processors * SCHED_PROCESSOR_THREADS;
}

/* Bytes of the rows in a block of `threads`. */
static int64_t block_bytes(const RowUse *use, uint32_t threads, uint32_t threads_per_row) {
    return threads / threads_per_row * use->length * use->elem_bytes *
           (use->n_loads + use->n_stores);
}

static int64_t set_threads_per_row(Sched *sched, const RowUse *use, uint32_t threads_per_row,
                                   uint32_t slots) {
    sched->row.threads_per_row = threads_per_row;
    sched->row.slots = slots;
    sched->threads = threads_per_row > WARP_THREADS ? threads_per_row : SCHED_ROW_BLOCK_THREADS;
    bool is_queued =
        threads_per_row <= WARP_THREADS && use->rows > machine_threads(use) / threads_per_row;
    while (is_queued && sched->threads < SCHED_ROW_MOST_THREADS &&
           block_bytes(use, sched->threads, threads_per_row) < SCHED_ROW_BLOCK_BYTES)
        sched->threads *= 2;
    return row_steps(sched, threads_per_row, use->length);
}

/* One thread for each chain with elements, in a loop. Like row_few it sets threads per row, slots
 * and threads, and returns the steps of a thread. */
static int64_t row_all(Sched *sched, const RowUse *use) {
    uint32_t most = use->n_chains / sched->lanes, threads_per_row = 1;
    while (threads_per_row < most && row_steps(sched, threads_per_row, use->length) > 1)
        threads_per_row *= 2;
    return set_threads_per_row(sched, use, threads_per_row, 1);
}

/* Whether a thread has too many steps of a row, whatever the other work is. */
static bool has_many_steps(const Sched *sched, const RowUse *use, uint32_t threads_per_row) {
    int64_t steps = row_steps(sched, threads_per_row, use->length);
    bool is_wide = use->n_stores && sched->lanes * use->elem_bytes >= ACCESS_BYTES;
    uint32_t few = !use->n_stores ? SCHED_ROW_LOADED_STEPS : is_wide ? 1 : SCHED_ROW_STORED_STEPS;
    int64_t words = steps * sched->lanes * (use->elem_bytes > WORD_BYTES ? 2 : 1);
    if (steps > use->most_steps || words > SCHED_FEW_RESIDENT_ELEMS) return true;
    if (threads_per_row >= WARP_THREADS) return false;
    if (is_wide &&
        (threads_per_row < SCHED_ROW_WIDE_THREADS ||
         block_bytes(use, SCHED_ROW_BLOCK_THREADS, 2 * threads_per_row) >= SCHED_ROW_WIDE_BYTES))
        return true;
    return steps > few && steps * use->n_loads > threads_per_row;
}

/* Whether machine and row have room for twice as many threads. */
static bool is_lone(const Sched *sched, const RowUse *use, uint32_t threads_per_row) {
    int64_t steps = row_steps(sched, threads_per_row, use->length);
    if (threads_per_row >= SCHED_ROW_LONE_THREADS ||
        use->rows > machine_threads(use) / (2 * threads_per_row))
        return false;
    if (sched->lanes > 1) return steps > 1 && threads_per_row != WARP_THREADS;
    return steps >
           (threads_per_row == WARP_THREADS ? SCHED_ROW_LONE_WARP_STEPS : SCHED_ROW_LONE_STEPS);
}

/* Few threads per row, which keep their elements. */
static int64_t row_few(Sched *sched, const RowUse *use) {
    row_all(sched, use);
    uint32_t all = sched->row.threads_per_row, threads_per_row = 1;
    while (threads_per_row < all &&
           (has_many_steps(sched, use, threads_per_row) || is_lone(sched, use, threads_per_row)))
        threads_per_row *= 2;
    return set_threads_per_row(sched, use, threads_per_row, all / threads_per_row);
}

/* More threads for a resident row; false: its slots cannot be shared by so many. */
static bool row_widen(Sched *sched, uint32_t threads_per_row) {
    uint32_t by = threads_per_row / sched->row.threads_per_row;
    if (!sched->row.resident || threads_per_row % sched->row.threads_per_row ||
        sched->row.slots % by)
        return false;
    sched->row.threads_per_row = threads_per_row;
    sched->row.slots /= by;
    sched->row.resident = (sched->row.resident + by - 1) / by;
    if (threads_per_row > WARP_THREADS) sched->threads = threads_per_row;
    return true;
}

/* Whether a thread should have fewer elements, with narrower accesses and more threads. Up to 256
 * threads that is faster; beyond, it compiles faster. */
static bool is_crowded(const Sched *sched, bool is_known) {
    uint32_t most = is_known ? SCHED_MANY_ROW_THREADS / 2 : SCHED_MANY_ROW_THREADS;
    return sched->row.resident * sched->lanes > SCHED_FEW_RESIDENT_ELEMS && sched->threads < most;
}

/* The number of large blocks that should fit on a processor, in different stages. Otherwise ptxas
 * spills to fit one more, or fits one less. 0: no bound. Elements wider than 16 bits take longer to
 * load, and spill. */
static uint32_t large_blocks(const Scheduler *s, Sched *sched) {
    bool keeps_many = sched->row.resident * sched->lanes > SCHED_FEW_RESIDENT_ELEMS;
    bool is_half = keeps_many && sched->threads == SCHED_MANY_ROW_THREADS / 2;
    if (!is_half && sched->threads < SCHED_MANY_ROW_THREADS) return 0;
    if (is_half && sched_widest_bytes(s->plan, s->kernel) > 2) return 2;
    uint32_t registers = pressure_least(s->arena, s->kernel, sched);
    if (is_half) return registers <= SCHED_MANY_REGISTERS ? 3 : 2;
    bool has_room = 2 * (registers + 8) * sched->threads <= PROCESSOR_REGISTERS;
    return has_room && sched->threads == SCHED_MANY_ROW_THREADS ? 2 : 1;
}

static RowUse row_use(const Scheduler *s, int64_t length) {
    RowUse use = {.length = length,
                  .n_chains = reduce_order(FORM_ROW, s->target->device).n_chains,
                  .rows = dim_hi(s->dims, kernel_n_rows(s->kernel)),
                  .elem_bytes = sched_widest_bytes(s->plan, s->kernel),
                  .n_loads = sched_n_loads(s, kernel_parallel_axes(s->kernel)),
                  .most_steps = SCHED_ROW_STEPS,
                  .n_processors = s->target->n_processors};
    for (uint32_t k = 0; k < s->kernel->stages.n; k++)
        use.n_stores += s->kernel->stages.data[k].stores.n;
    return use;
}

/* Sets the registers of a thread, unless the row is too long for any. */
static bool has_room(const Scheduler *s, const Sched *sched, uint32_t *registers) {
    if (sched->row.resident * sched->lanes > SCHED_RESIDENT_ELEMS ||
        sched->row.resident > SCHED_ROW_STEPS)
        return false;
    *registers = pressure_least(s->arena, s->kernel, sched);
    return *registers <= MAX_THREAD_REGISTERS &&
           *registers * sched->threads <= SCHED_BLOCK_REGISTERS;
}

/* Whether single elements of several tensors stay in registers, so that few blocks fit on a
 * processor. */
static bool keeps_many(const Sched *sched, uint32_t registers) {
    uint32_t most = SCHED_SINGLE_REGISTERS + (sched->is_wide ? sched->row.resident : 0);
    return sched->lanes == 1 && registers > most;
}

/* The most steps of a row. Many steps take long to compile, so rows that may leave half of them
 * empty have fewer. In a cluster, where steps are masked, weights beside many steps would spill. */
static uint32_t most_steps(const Scheduler *s, const RowUse *use, bool is_cluster,
                           bool may_be_short) {
    if (may_be_short) return SCHED_MANY_STEPS;
    bool has_weights = is_cluster && sched_n_loads(s, 0) > use->n_loads;
    return has_weights ? SCHED_ROW_STEPS / 2 : SCHED_ROW_STEPS;
}

/* Makes rows of `least` to `length` elements resident in registers over all stages. Rows longer
 * than a segment use the registers of a cluster, which shorter rows would waste. A segment of
 * partial results need not be resident, but rows of one segment may be. False: they do not fit. */
static bool reside(const Scheduler *s, Sched *sched, int64_t least, int64_t length) {
    int64_t segment = reduce_order(FORM_ROW, s->target->device).segment_elems;
    int64_t n_blocks = length > segment ? (length + segment - 1) / segment : 1;
    if (length <= 0 || (s->kernel->segment_axis != NO_AXIS && length == segment)) return false;
    if (n_blocks > s->target->max_cluster || (n_blocks > 1 && least <= segment)) return false;
    sched->cluster = n_blocks > 1 ? (uint32_t)n_blocks : 0;
    if (n_blocks > 1) length = least = segment;
    bool may_be_short = least <= length / 2;
    RowUse use = row_use(s, length);
    use.most_steps = most_steps(s, &use, n_blocks > 1, may_be_short);
    sched->row.resident = (uint32_t)row_few(sched, &use);
    while (sched->lanes > 1 && is_crowded(sched, least == length)) {
        sched->lanes /= 2;
        sched->row.resident = (uint32_t)row_few(sched, &use);
    }
    uint32_t registers = 0;
    while (!has_room(s, sched, &registers))
        if (!row_widen(sched, 2 * sched->row.threads_per_row)) return false;
    while (keeps_many(sched, registers) && row_widen(sched, 2 * sched->row.threads_per_row))
        registers = pressure_least(s->arena, s->kernel, sched);
    bool is_wasteful = may_be_short && sched->row.threads_per_row > SCHED_MANY_ROW_THREADS;
    return sched->row.resident <= use.most_steps && !is_wasteful;
}

/* Adds a variant for rows of `least` to `length` elements; if it has a limit, only a resident one.
 * False: none was added. */
static bool gpu_row_of(Scheduler *s, Variant variant, int64_t least, int64_t length) {
    Sched sched = variant.sched;
    bool is_resident = reside(s, &sched, least, length);
    if (!is_resident && predicate_dim(&variant.predicate, TERM_RANGE)) return false;
    if (!is_resident) {
        sched = variant.sched;
        RowUse use = row_use(s, length);
        sched.unroll = row_all(&sched, &use) > SCHED_UNROLL ? SCHED_UNROLL : 1;
    }
    sched.min_blocks = large_blocks(s, &sched);
    if (!is_resident && sched_finishes_split(s)) sched_unroll_finish(s, &sched);
    variant.sched = sched;
    DimId rows = kernel_n_rows(s->kernel);
    rows = dim_mul(s->dims, rows, sched_n_segments(s));
    variant.grid = dim_ceil_div(s->dims, rows, sched.threads / sched.row.threads_per_row);
    if (sched.cluster) variant.grid = dim_mul_const(s->dims, rows, sched.cluster);
    sched_add_unrolled(s, variant);
    sched_add(s, variant);
    return true;
}

/* Adds variants for rows of symbolic length that give at least half of a cluster's blocks a
 * segment. Returns the least length of the rest, if that is longer. */
static int64_t gpu_cluster_rows(Scheduler *s, Variant variant, int64_t least, int64_t length) {
    int64_t segment = reduce_order(FORM_ROW, s->target->device).segment_elems;
    uint32_t n_blocks = variant.sched.lanes > 1 ? 2 : MAX_CLUSTER;
    for (; n_blocks <= s->target->max_cluster; n_blocks *= 2) {
        int64_t from = n_blocks * segment / 2 + 1, most = min_i64(length, n_blocks * segment);
        bool are_all = least >= from && length == most;
        if (from > most || least > most || are_all) continue;
        Variant cluster = variant;
        predicate_set_range(&cluster.predicate, kernel_n_reduced(s->kernel),
                            from > least ? from : INT64_MIN, most);
        if (gpu_row_of(s, cluster, from > least ? from : least, most) && from <= least)
            least = most + 1;
    }
    return least;
}

/* The row lengths that get variants of their own: one step of a few threads, the same for a single
 * pass of one thread, one or several steps of a warp, and with several passes or single elements
 * the rows that a block keeps. Returns their number. */
enum {
    MAX_SHORT_ROWS = 11,
};
static uint32_t short_rows(const Scheduler *s, const Variant *variant,
                           int64_t lengths[MAX_SHORT_ROWS]) {
    uint32_t lanes = variant->sched.lanes, n = 0;
    ReduceOrder order = reduce_order(FORM_ROW, s->target->device);
    if (s->kernel->stages.n == 1) lengths[n++] = lanes;
    for (int64_t threads = 2; threads <= WARP_THREADS; threads *= 4) lengths[n++] = threads * lanes;
    if (lengths[n - 1] * SCHED_WARP_STEPS < order.n_chains) lengths[n++] = 256;
    if (lanes > 1) lengths[n++] = order.n_chains;
    if (s->kernel->stages.n == 1 && lanes > 1) return n;
    for (int64_t length = lanes > 1 ? 4096 : 512; length <= order.segment_elems; length *= 2)
        lengths[n++] = length;
    return n;
}

/* If rows may be long or short, short ones get resident variants, and long ones variants for
 * clusters. */
static void gpu_row(Scheduler *s, Variant variant) {
    int64_t segment = reduce_order(FORM_ROW, s->target->device).segment_elems,
            lengths[MAX_SHORT_ROWS];
    DimId n = kernel_n_reduced(s->kernel);
    int64_t length = dim_hi(s->dims, n), least = dim_lo(s->dims, n);
    bool is_whole = s->kernel->segment_axis == NO_AXIS;
    if (!is_whole) length = min_i64(length, segment);
    uint32_t n_lengths = kernel_is_alternative(s->kernel) ? 0 : short_rows(s, &variant, lengths);
    for (uint32_t i = 0; i < n_lengths; i++) {
        bool is_near = length < lengths[i] * 2 && (variant.sched.lanes > 1 || lengths[i] < 1024);
        if (is_near || length <= lengths[i] || least > lengths[i]) continue;
        Variant resident = variant;
        predicate_set_range(&resident.predicate, n, INT64_MIN, lengths[i]);
        if (gpu_row_of(s, resident, least, lengths[i])) least = lengths[i] + 1;
    }
    if (is_whole) least = gpu_cluster_rows(s, variant, least, length);
    gpu_row_of(s, variant, least, length);
}

static void propose(Scheduler *s, Access access) {
    Variant variant = {.sched = sched_gpu(s, TEMPLATE_GPU_ROW)};
    if (sched_set_access(s, access, &variant)) gpu_row(s, variant);
}

/* Rows with threads of several warps use the block's barriers. Clusters are not possible. */
static bool in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    Sched *sched = &variant->sched;
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t own = sched->row.threads_per_row;
    sched->threads = threads;
    if (sched->cluster > 1 || (own > WARP_THREADS && own != threads && !row_widen(sched, threads)))
        return false;
    variant->grid = dim_ceil_div(dims, kernel_n_rows(kernel), threads / sched->row.threads_per_row);
    return true;
}

const TemplateSchedule schedule_gpu_row = {.propose = propose, .in_one_block = in_one_block};

/* CPU. */

/* Variants for rows that run in groups, and for rows short enough for a cache, if others may be
 * longer. A kernel that is the version for long rows has none. */
static void add_short(Scheduler *s, Variant variant) {
    DimId n = kernel_n_reduced(s->kernel);
    const int64_t limits[] = {PLAN_GROUP_ELEMS / variant.sched.lanes,
                              SCHED_ROW_CACHE_BYTES / (sched_computes_in_f64(s) ? 8 : 4)};
    for (uint32_t i = 0; i < 2 && !kernel_is_alternative(s->kernel); i++) {
        predicate_set_range(&variant.predicate, n, INT64_MIN, limits[i]);
        if (dim_hi(s->dims, n) <= limits[i] || dim_lo(s->dims, n) > limits[i]) continue;
        variant.row_cache = row_cache_choose(s->arena, s->kernel, &variant);
        if (variant.row_cache.n || kernel_has_groups(s->kernel, &variant)) sched_add(s, variant);
    }
}

/* Narrower vectors if they cover a whole row: a processor has more of them in flight. A vector does
 * not cross the end of the last of several reduced axes. */
static uint32_t row_lanes(const Scheduler *s, uint32_t lanes) {
    int64_t most = dim_hi(s->dims, kernel_n_reduced(s->kernel));
    IndexId innermost = index_dim(s->indices, sched_lane_extent(s));
    if (s->kernel->n_reduced > 1 && !index_is_multiple(s->indices, innermost, NO_AXIS, lanes))
        return 1;
    while (lanes > SCHED_CPU_ROW_LANES && most <= lanes / 2) lanes /= 2;
    return lanes;
}

/* Any pointer and any extent, unless rows may be too long to keep values of. */
static void propose_cpu(Scheduler *s, Access access) {
    if (access == ACCESS_SINGLE) return;
    Sched sched = sched_cpu(s, TEMPLATE_CPU_ROW);
    sched.lanes = row_lanes(s, sched.lanes);
    DimId rows = kernel_n_rows(s->kernel);
    Variant variant = {.sched = sched, .grid = dim_mul(s->dims, rows, sched_n_segments(s))};
    add_short(s, variant);
    variant.row_cache = row_cache_choose(s->arena, s->kernel, &variant);
    sched_add(s, variant);
}

const TemplateSchedule schedule_cpu_row = {.propose = propose_cpu};
