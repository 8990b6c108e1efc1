/* Schedules by rule. See schedule.h; docs/results/scheduling-rules.md has the rules and their
 * measurements. */
#include "schedule/schedule.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "cost/pressure.h"
#include "cost/kernel/prims.h"
#include "schedule/flat.h"
#include "schedule/gemm.h"
#include "schedule/map_tile.h"
#include "schedule/row.h"
#include "schedule/row_cache.h"
#include "schedule/split_axes.h"
#include "plan/launch.h"

#include <string.h>

enum { COLUMN_CHAINS = 8 };

typedef struct Scheduler {
    Arena *arena;
    const Plan *plan;
    const Target *target;
    Kernel *kernel;
    DimTab *dims;
    IndexTab *indices;
    uint32_t lane_axis; /* NO_AXIS when there is none */
    Variant made[MAX_VARIANTS];
    uint32_t n_made;
} Scheduler;

static int64_t min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* The widest element among the kernel's arguments, in bytes. */
static uint32_t widest_bytes(const Scheduler *s) {
    uint32_t widest = 1;
    for (uint32_t i = 0; i < s->kernel->args.n; i++) {
        uint32_t bytes = dtype_bytes(s->plan->buffers.data[s->kernel->args.data[i]].dtype);
        if (bytes > widest) widest = bytes;
    }
    return widest;
}

static bool computes_in_f64(const Scheduler *s) {
    const ScalarTab *scalars = s->kernel->scalars;
    bool *live = kernel_live_scalars(s->arena, s->kernel);
    for (ScalarId id = 1; id <= scalar_count(scalars); id++)
        if (live[id] && dtype_is_double(scalar_get(scalars, id)->dtype)) return true;
    return false;
}

/* Whether a number of elements or an address may need 64 bits. Half the range is left for the
 * overshoot of the last step. */
static bool is_wide(const Scheduler *s) {
    const int64_t limit = INT64_C(1) << 30;
    DimId rows = kernel_n_rows(s->kernel);
    DimId visits = dim_mul(s->dims, rows, kernel_n_reduced(s->kernel));
    if (!visits || dim_hi(s->dims, visits) > limit) return true;
    for (uint32_t i = 0; i < s->kernel->args.n; i++) {
        const Buffer *buffer = &s->plan->buffers.data[s->kernel->args.data[i]];
        DimId elems = shape_n_elems(s->dims, &buffer->shape);
        if (!elems || dim_hi(s->dims, elems) > limit) return true;
    }
    return false;
}

static DimId lane_extent(const Scheduler *s) {
    return s->lane_axis == NO_AXIS ? dim_const(s->dims, 1)
                                   : index_axis_extent(s->indices, s->lane_axis);
}

/* Arguments that neighbouring lanes access contiguously, so that one wide access serves them. */
static uint64_t wide_arguments(const Scheduler *s, uint32_t lanes) {
    uint64_t args = 0;
    const ScalarTab *scalars = s->kernel->scalars;
    bool *live = kernel_live_scalars(s->arena, s->kernel);
    for (uint32_t i = 0; i < s->kernel->args.n; i++) {
        uint32_t buffer = s->kernel->args.data[i];
        bool is_wide_access = false;
        for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
            const Scalar *load = scalar_get(scalars, id);
            if (!live[id] || load->kind != SCALAR_LOAD || load->buffer != buffer) continue;
            is_wide_access = is_wide_access ||
                             (index_lane_motion(s->indices, load->index, s->lane_axis, lanes) ==
                                  LANES_CONTIGUOUS &&
                              index_is_multiple(s->indices, load->index, s->lane_axis, lanes));
        }
        for (uint32_t k = 0; k <= s->kernel->stages.n; k++) {
            bool last = k == s->kernel->stages.n;
            const Store *stores =
                last ? s->kernel->row_stores.data : s->kernel->stages.data[k].stores.data;
            uint32_t n = last ? s->kernel->row_stores.n : s->kernel->stages.data[k].stores.n;
            for (uint32_t j = 0; j < n; j++)
                is_wide_access =
                    is_wide_access || (stores[j].buffer == buffer &&
                                       index_lane_motion(s->indices, stores[j].address,
                                                         s->lane_axis, lanes) == LANES_CONTIGUOUS);
        }
        if (is_wide_access) args |= (uint64_t)1 << i;
    }
    return args;
}

static DimId n_segments(const Scheduler *s) {
    return s->kernel->segment_axis == NO_AXIS
               ? dim_const(s->dims, 1)
               : index_axis_extent(s->indices, s->kernel->segment_axis);
}

/* Adds a variant, unless the one before it always applies and is not merely compared by price. */
static void add_variant(Scheduler *s, Variant variant) {
    uint32_t n = s->n_made;
    const Variant *before = n ? &s->made[n - 1] : NULL;
    bool are_compared = before && before->price.group && before->price.group == variant.price.group;
    if (before && !variant_has_conditions(s->plan, s->kernel, before) && !are_compared) return;
    const char *graph = s->plan->graph->name;
    bool has_prefix = strncmp(s->kernel->name, graph, strlen(graph)) == 0;
    variant.grid = choice_scale(s->dims, s->kernel->choice, s->kernel->version, variant.grid);
    variant.symbol = str_format(s->arena, "%s%s%s", has_prefix ? "" : graph, has_prefix ? "" : "_",
                                s->kernel->name);
    if (n) variant.symbol = str_format(s->arena, "%s_v%u", variant.symbol, n);
    s->made[s->n_made++] = variant;
}

/* GPU. */

static bool has_registers(const Scheduler *s, const Sched *sched) {
    return pressure_least(s->arena, s->kernel, sched) <= MAX_THREAD_REGISTERS;
}

/* The unroll of single elements: several per thread, if registers suffice. If variants with vectors
 * come first, this one is left with odd addresses only and stays small. */
static uint32_t map_unroll(const Scheduler *s, const Variant *variant) {
    uint32_t n = s->n_made;
    const Variant *before = n ? &s->made[n - 1] : NULL;
    bool is_rare = before && !predicate_dim(&before->predicate, TERM_MULTIPLE);
    Sched sched = variant->sched;
    sched.lanes = MAP_MAX_UNROLL;
    bool has_several = variant->sched.lanes == 1 && !is_rare;
    return has_several ? pressure_lanes(s->arena, s->kernel, sched) : 1;
}

static void gpu_map(Scheduler *s, Variant variant) {
    variant.sched.threads = SCHED_MAP_THREADS;
    if (variant.sched.template == TEMPLATE_GPU_MAP) variant.sched.unroll = map_unroll(s, &variant);
    variant.grid = sched_map_grid(s->kernel, &variant.sched);
    add_variant(s, variant);
}

/* Whether the kernel adds up the partial results of a split: a few blocks, which loop over segments
 * of them. */
static bool finishes_split(const Scheduler *s) {
    const Kernel *kernel = s->kernel;
    return kernel->segment_axis == NO_AXIS && kernel->stages.n == 1 &&
           kernel->stages.data[0].stores.n == 0 &&
           dim_hi(s->dims, kernel_n_reduced(kernel)) >
               reduce_order(kernel->form, DEVICE_GPU).segment_elems;
}

/* Starts as many loads as a segment has steps. */
static void hurry(const Scheduler *s, Sched *sched) {
    sched->unroll = SCHED_FINISH_UNROLL;
    while (sched->unroll > 4 && !has_registers(s, sched)) sched->unroll /= 2;
    sched->min_blocks =
        sched->threads < SCHED_FINISH_THREADS ? SCHED_FINISH_THREADS / sched->threads : 1;
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
    uint32_t registers = pressure_least(s->arena, s->kernel, sched);
    bool keeps_many = sched->row.resident * sched->lanes > SCHED_FEW_RESIDENT_ELEMS;
    if (keeps_many && sched->threads == SCHED_MANY_ROW_THREADS / 2)
        return registers <= SCHED_MANY_REGISTERS && widest_bytes(s) <= 2 ? 3 : 2;
    if (sched->threads < SCHED_MANY_ROW_THREADS) return 0;
    bool has_room = 2 * (registers + 8) * sched->threads <= PROCESSOR_REGISTERS;
    return has_room && sched->threads == SCHED_MANY_ROW_THREADS ? 2 : 1;
}

/* The number of loads that differ per lane and depend on all of these axes (bit set; 0: any). */
static uint32_t n_loads(const Scheduler *s, uint32_t of_axes) {
    const ScalarTab *scalars = s->kernel->scalars;
    const bool *live = kernel_live_scalars(s->arena, s->kernel);
    uint32_t n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *load = scalar_get(scalars, id);
        bool is_of = !of_axes || (load->axes & of_axes);
        n += live[id] && load->kind == SCALAR_LOAD && (load->axes >> s->lane_axis & 1) && is_of;
    }
    return n;
}

static RowUse row_use(const Scheduler *s, int64_t length) {
    RowUse use = {.length = length,
                  .rows = dim_hi(s->dims, kernel_n_rows(s->kernel)),
                  .elem_bytes = widest_bytes(s),
                  .n_loads = n_loads(s, kernel_parallel_axes(s->kernel)),
                  .most_steps = SCHED_ROW_STEPS,
                  .n_processors = s->target->n_processors};
    for (uint32_t k = 0; k < s->kernel->stages.n; k++)
        use.n_stores += s->kernel->stages.data[k].stores.n;
    return use;
}

static bool has_room(const Scheduler *s, Sched *sched) {
    return sched->row.resident * sched->lanes <= SCHED_RESIDENT_ELEMS &&
           sched->row.resident <= SCHED_ROW_STEPS && has_registers(s, sched) &&
           pressure_least(s->arena, s->kernel, sched) * sched->threads <= SCHED_BLOCK_REGISTERS;
}

/* Whether single elements of several tensors stay in registers, so that few blocks fit on a
 * processor. */
static bool keeps_many(const Scheduler *s, const Sched *sched) {
    uint32_t most = SCHED_SINGLE_REGISTERS + (sched->is_wide ? sched->row.resident : 0);
    return sched->lanes == 1 && pressure_least(s->arena, s->kernel, sched) > most;
}

/* The most steps of a row. Many steps take long to compile, so rows that may leave half of them
 * empty have fewer. In a cluster, where steps are masked, weights beside many steps would spill. */
static uint32_t most_steps(const Scheduler *s, const RowUse *use, bool is_cluster,
                           bool may_be_short) {
    if (may_be_short) return SCHED_MANY_STEPS;
    bool has_weights = is_cluster && n_loads(s, 0) > use->n_loads;
    return has_weights ? SCHED_ROW_STEPS / 2 : SCHED_ROW_STEPS;
}

/* Makes rows of `least` to `length` elements resident in registers over all stages. Rows longer
 * than a segment use the registers of a cluster, which shorter rows would waste. A segment of
 * partial results need not be resident, but rows of one segment may be. False: they do not fit. */
static bool reside(const Scheduler *s, Sched *sched, int64_t least, int64_t length) {
    int64_t segment = reduce_order(FORM_ROW, DEVICE_GPU).segment_elems;
    int64_t n_blocks = length > segment ? (length + segment - 1) / segment : 1;
    if (length <= 0 || (s->kernel->segment_axis != NO_AXIS && length == segment)) return false;
    if (n_blocks > s->target->max_cluster || (n_blocks > 1 && least <= segment)) return false;
    sched->cluster = n_blocks > 1 ? (uint32_t)n_blocks : 0;
    if (n_blocks > 1) length = least = segment;
    bool may_be_short = least <= length / 2;
    RowUse use = row_use(s, length);
    use.most_steps = most_steps(s, &use, n_blocks > 1, may_be_short);
    sched->row.resident = (uint32_t)sched_row_few(sched, &use);
    while (sched->lanes > 1 && is_crowded(sched, least == length)) {
        sched->lanes /= 2;
        sched->row.resident = (uint32_t)sched_row_few(sched, &use);
    }
    while (!has_room(s, sched))
        if (!sched_row_widen(sched, 2 * sched->row.threads_per_row)) return false;
    while (keeps_many(s, sched))
        if (!sched_row_widen(sched, 2 * sched->row.threads_per_row)) break;
    bool is_wasteful = may_be_short && sched->row.threads_per_row > SCHED_MANY_ROW_THREADS;
    return sched->row.resident <= use.most_steps && !is_wasteful;
}

/* Partial results by few blocks: each has more loads in flight, if they read few tensors. */
static void add_deep(Scheduler *s, Variant variant) {
    uint32_t n = n_loads(s, 0), unroll = n == 1 ? 4 * SCHED_UNROLL : n == 2 ? 2 * SCHED_UNROLL : 0;
    bool is_partial = s->kernel->segment_axis != NO_AXIS;
    if (!is_partial || predicate_dim(&variant.predicate, TERM_RANGE) ||
        variant.sched.unroll != SCHED_UNROLL || !unroll ||
        dim_lo(s->dims, variant.grid) > s->target->n_processors)
        return;
    variant.sched.unroll = unroll;
    if (dim_hi(s->dims, variant.grid) > s->target->n_processors)
        predicate_set_range(&variant.predicate, variant.grid, INT64_MIN, s->target->n_processors);
    add_variant(s, variant);
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
        sched.unroll = sched_row_all(&sched, &use) > SCHED_UNROLL ? SCHED_UNROLL : 1;
    }
    sched.min_blocks = large_blocks(s, &sched);
    if (!is_resident && finishes_split(s)) hurry(s, &sched);
    variant.sched = sched;
    DimId rows = kernel_n_rows(s->kernel);
    rows = dim_mul(s->dims, rows, n_segments(s));
    variant.grid = dim_ceil_div(s->dims, rows, sched.threads / sched.row.threads_per_row);
    if (sched.cluster) variant.grid = dim_mul_const(s->dims, rows, sched.cluster);
    add_deep(s, variant);
    add_variant(s, variant);
    return true;
}

/* Adds variants for rows of symbolic length that give at least half of a cluster's blocks a
 * segment. Returns the least length of the rest, if that is longer. */
static int64_t gpu_cluster_rows(Scheduler *s, Variant variant, int64_t least, int64_t length) {
    int64_t segment = reduce_order(FORM_ROW, DEVICE_GPU).segment_elems;
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
    ReduceOrder order = reduce_order(FORM_ROW, DEVICE_GPU);
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
    int64_t segment = reduce_order(FORM_ROW, DEVICE_GPU).segment_elems, lengths[MAX_SHORT_ROWS];
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

/* The threads along the columns: no more than there are columns. Where there is room, `n_segments`
 * of a column run side by side, unless a wide tensor would then be read in partial sectors. */
static uint32_t column_threads(const Scheduler *s, uint32_t lanes, int64_t n_segments) {
    int64_t columns = dim_hi(s->dims, kernel_n_rows(s->kernel));
    uint32_t threads_per_row = WARP_THREADS, least = columns < SCHED_WIDE_COLUMNS ? 1 : 4;
    while (threads_per_row > 1 && threads_per_row / 2 * (int64_t)lanes >= columns)
        threads_per_row /= 2;
    while (threads_per_row > least &&
           SCHED_COLUMN_THREADS / COLUMN_CHAINS / threads_per_row < n_segments)
        threads_per_row /= 2;
    return threads_per_row;
}

static void add_column(Scheduler *s, Variant variant) {
    Sched *sched = &variant.sched;
    sched->threads = SCHED_COLUMN_THREADS;
    uint32_t n_groups = SCHED_COLUMN_THREADS / COLUMN_CHAINS / sched->column.threads_along;
    DimId strips = dim_ceil_div(s->dims, kernel_n_rows(s->kernel),
                                (int64_t)sched->lanes * sched->column.threads_along);
    DimId segments = n_segments(s);
    if (s->kernel->segment_axis != NO_AXIS) segments = dim_ceil_div(s->dims, segments, n_groups);
    variant.grid = dim_mul(s->dims, strips, segments);
    add_deep(s, variant);
    add_variant(s, variant);
}

/* A kernel over more partial results than a segment, one lane per thread. If there may be fewer, it
 * has variants for those too. */
static void gpu_column_finish(Scheduler *s, Variant variant) {
    int64_t segment = reduce_order(FORM_COLUMN, DEVICE_GPU).segment_elems;
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
    hurry(s, sched);
    add_column(s, variant);
}

/* Whether processors would be idle if a thread had several columns. A single pass is then better
 * with more blocks. */
static bool has_few_strips(const Scheduler *s, uint32_t lanes) {
    int64_t columns;
    return s->kernel->stages.n == 1 && dim_is_const(s->dims, kernel_n_rows(s->kernel), &columns) &&
           columns < (int64_t)s->target->n_processors * WARP_THREADS * lanes;
}

static void gpu_column(Scheduler *s, Variant variant) {
    bool is_partial = s->kernel->segment_axis != NO_AXIS;
    variant.sched.unroll = SCHED_UNROLL;
    if (finishes_split(s)) {
        gpu_column_finish(s, variant);
        return;
    }
    variant.sched.column.threads_along =
        is_partial ? column_threads(s, variant.sched.lanes, 1) : WARP_THREADS;
    if (!is_partial && variant.sched.lanes > 1 && has_few_strips(s, variant.sched.lanes)) return;
    add_column(s, variant);
}

static void gpu_variant(Scheduler *s, Variant variant) {
    static void (*const by_form[])(Scheduler *, Variant) = {
        [FORM_MAP] = gpu_map, [FORM_ROW] = gpu_row, [FORM_COLUMN] = gpu_column};
    by_form[s->kernel->form](s, variant);
}

/* Variants in tiles come first, where loads are uncoalesced. */
static void gpu_map_tiles(Scheduler *s, Sched sched) {
    Variant base = {.sched = sched}, tiles[MAP_TILE_VARIANTS];
    if (s->kernel->form != FORM_MAP) return;
    uint32_t n = sched_map_tiles(s->arena, s->plan, s->kernel, s->target, &base, tiles);
    for (uint32_t i = 0; i < n; i++) add_variant(s, tiles[i]);
}

/* The flat variant, for rows that are no known multiple of `row_lanes`; lanes 1: flat vectors would
 * be no better. *replaces: vectors within rows are of no use beside it. */
static Variant flat_variant(const Scheduler *s, Sched sched, uint32_t row_lanes, bool *replaces) {
    DimId extent = lane_extent(s);
    int64_t value, known = dim_multiple(s->dims, extent);
    bool is_const = dim_is_const(s->dims, extent, &value);
    sched.template = TEMPLATE_GPU_MAP_FLAT;
    sched.lanes = pressure_lanes(s->arena, s->kernel, sched);
    FlatUse use = sched_flat_use(s->arena, s->kernel, sched.lanes);
    bool is_enough =
        use.has_others && is_const && row_lanes * widest_bytes(s) >= SCHED_MAP_ROW_BYTES;
    if (!use.may || known % sched.lanes == 0 || is_enough) sched.lanes = 1;
    *replaces = sched.lanes > 1 && (is_const || !use.has_others);
    Variant variant = {.sched = sched};
    predicate_align(&variant.predicate, s->target->vector_bytes, use.wide_args);
    return variant;
}

/* Vectors along the lane axis, under conditions on pointers and on the multiple of a symbolic
 * extent. */
static void gpu_row_vectors(Scheduler *s, Sched sched) {
    DimId extent = lane_extent(s);
    Variant variant = {.sched = sched};
    if (dim_multiple(s->dims, extent) % sched.lanes)
        predicate_require_multiple(&variant.predicate, extent, sched.lanes);
    predicate_assume(&variant.predicate, s->indices);
    uint64_t wide = wide_arguments(s, sched.lanes);
    predicate_assume(NULL, s->indices);
    predicate_align(&variant.predicate, s->target->vector_bytes, wide);
    if (wide) gpu_variant(s, variant);
}

/* Vector accesses where possible, then single elements, which always apply. */
static void schedule_gpu(Scheduler *s) {
    static const TemplateId of_form[] = {[FORM_MAP] = TEMPLATE_GPU_MAP,
                                         [FORM_ROW] = TEMPLATE_GPU_ROW,
                                         [FORM_COLUMN] = TEMPLATE_GPU_COLUMN};
    Sched sched = {.template = of_form[s->kernel->form],
                   .lanes = 1,
                   .unroll = 1,
                   .is_wide = is_wide(s),
                   .pairs_bf16 = s->target->has_bf16};
    gpu_map_tiles(s, sched);
    Sched vectors = sched;
    vectors.lanes = s->target->vector_bytes / widest_bytes(s);
    if (vectors.lanes > 8) vectors.lanes = 8;
    int64_t value;
    bool is_const = dim_is_const(s->dims, lane_extent(s), &value), replaces = false;
    Sched wide = vectors;
    while (vectors.lanes > 1 && is_const && value % vectors.lanes) vectors.lanes /= 2;
    vectors.lanes = pressure_lanes(s->arena, s->kernel, vectors);
    Variant flat = flat_variant(s, wide, vectors.lanes, &replaces);
    bool has_vectors = vectors.lanes > 1 && !(is_const && value == 0) && s->lane_axis != NO_AXIS;
    if (has_vectors && !replaces) gpu_row_vectors(s, vectors);
    if (flat.sched.lanes > 1) gpu_variant(s, flat);
    gpu_variant(s, (Variant){.sched = sched});
}

/* CPU: one variant for all pointers and extents, with masked tails, unless rows may be too long for
 * a row cache. */

static DimId cpu_grid(const Scheduler *s, int64_t unit) {
    DimId rows = kernel_n_rows(s->kernel), segments = n_segments(s);
    if (s->kernel->form == FORM_ROW || s->lane_axis == NO_AXIS)
        return dim_mul(s->dims, rows, segments);
    DimId extent = lane_extent(s), blocks = dim_ceil_div(s->dims, extent, unit);
    DimId outer = dim_const(s->dims, 1);
    for (uint32_t k = 0; k < s->kernel->n_parallel; k++)
        if (k != s->lane_axis) outer = dim_mul(s->dims, outer, index_axis_extent(s->indices, k));
    return dim_mul(s->dims, segments, dim_mul(s->dims, outer, blocks));
}

/* The work per element of a map. */
typedef struct MapWork {
    double prims; /* without accesses */
    uint32_t n_accesses;
    uint32_t n_strided; /* accesses whose lanes are neither contiguous nor equal */
} MapWork;

static void count_access(const Scheduler *s, IndexId address, uint32_t lanes, MapWork *work) {
    work->n_accesses++;
    work->n_strided += index_lane_motion(s->indices, address, s->lane_axis, lanes) == LANES_VARYING;
}

static MapWork map_work(const Scheduler *s, uint32_t lanes) {
    const ScalarTab *scalars = s->kernel->scalars;
    const bool *live = kernel_live_scalars(s->arena, s->kernel);
    const Stage *stage = &s->kernel->stages.data[0];
    const Card *card = card_of_target(s->target);
    MapWork work = {0};
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        if (!live[id]) continue;
        if (scalar_get(scalars, id)->kind == SCALAR_LOAD)
            count_access(s, scalar_get(scalars, id)->index, lanes, &work);
        else
            work.prims += scalar_prims(card, s->kernel, id);
    }
    for (uint32_t i = 0; i < stage->stores.n; i++)
        count_access(s, stage->stores.data[i].address, lanes, &work);
    return work;
}

static int64_t cpu_unit(const Scheduler *s, uint32_t lanes) {
    if (s->kernel->form == FORM_COLUMN) return SCHED_CPU_COLUMN_UNIT;
    bool is_strided =
        s->kernel->form == FORM_MAP && s->lane_axis != NO_AXIS && map_work(s, lanes).n_strided > 0;
    return is_strided ? SCHED_CPU_MAP_STRIDED_UNIT : SCHED_CPU_MAP_UNIT;
}

/* Variants for rows that run in groups, and for rows short enough for a cache, if others may be
 * longer. A kernel that is the version for long rows has none. */
static void cpu_short_rows(Scheduler *s, Variant variant) {
    DimId n = kernel_n_reduced(s->kernel);
    const int64_t limits[] = {KERNEL_GROUP_ELEMS / variant.sched.lanes,
                              SCHED_ROW_CACHE_BYTES / (computes_in_f64(s) ? 8 : 4)};
    for (uint32_t i = 0; i < 2 && !kernel_is_alternative(s->kernel); i++) {
        predicate_set_range(&variant.predicate, n, INT64_MIN, limits[i]);
        if (dim_hi(s->dims, n) <= limits[i] || dim_lo(s->dims, n) > limits[i]) continue;
        variant.row_cache = row_cache_choose(s->arena, s->kernel, &variant);
        if (variant.row_cache.n || kernel_has_groups(s->kernel, &variant)) add_variant(s, variant);
    }
}

/* The axis for a map's lanes if the last axis is shorter than a vector: the nearest one that may be
 * long; or NO_AXIS. */
static uint32_t long_axis(const Scheduler *s, uint32_t lanes) {
    for (uint32_t axis = s->lane_axis; axis-- > 0;)
        if (dim_hi(s->dims, index_axis_extent(s->indices, axis)) > 2 * (int64_t)lanes) return axis;
    return NO_AXIS;
}

/* The largest row length for which lanes along another axis, with strided accesses one by one, beat
 * one masked step along the row. In clocks, roughly: see docs/results/scheduling-rules.md. */
static int64_t longest_short(MapWork last, MapWork out, uint32_t lanes) {
    double row = SCHED_CPU_ROW_CLOCKS + last.prims + last.n_accesses - last.n_strided;
    double more = out.prims / lanes + SCHED_CPU_STRIDED_CLOCKS * out.n_strided -
                  SCHED_CPU_STRIDED_CLOCKS * last.n_strided;
    return more * (lanes - 1) < row ? lanes - 1 : (int64_t)(row / more);
}

/* A variant for maps of short rows, with lanes across the rows. */
static void cpu_short_map(Scheduler *s, Variant variant) {
    uint32_t last = s->lane_axis, lanes = variant.sched.lanes;
    uint32_t axis = last == NO_AXIS ? NO_AXIS : long_axis(s, lanes);
    if (axis == NO_AXIS) return;
    DimId extent = lane_extent(s);
    MapWork along = map_work(s, lanes);
    s->lane_axis = axis;
    int64_t most = longest_short(along, map_work(s, lanes), lanes);
    if (dim_hi(s->dims, extent) > most)
        predicate_set_range(&variant.predicate, extent, INT64_MIN, most);
    variant.sched.cpu_map.lanes_out = last - axis;
    variant.sched.cpu_map.chunk_elems = SCHED_CPU_MAP_OUT_UNIT;
    variant.grid = cpu_grid(s, SCHED_CPU_MAP_OUT_UNIT);
    if (dim_lo(s->dims, extent) <= most) add_variant(s, variant);
    s->lane_axis = last;
}

/* Narrower vectors if they cover a whole row: a processor has more of them in flight. */
static uint32_t row_lanes(const Scheduler *s, uint32_t lanes) {
    int64_t most = dim_hi(s->dims, kernel_n_reduced(s->kernel));
    while (lanes > SCHED_CPU_ROW_LANES && most <= lanes / 2) lanes /= 2;
    return lanes;
}

static void schedule_cpu(Scheduler *s) {
    static const TemplateId of_form[] = {[FORM_MAP] = TEMPLATE_CPU_MAP,
                                         [FORM_ROW] = TEMPLATE_CPU_ROW,
                                         [FORM_COLUMN] = TEMPLATE_CPU_COLUMN};
    Sched sched = {.template = of_form[s->kernel->form],
                   .lanes = s->target->vector_bytes / 4,
                   .unroll = 1,
                   .threads = 1};
    if (computes_in_f64(s)) sched.lanes /= 2;
    if (s->lane_axis == NO_AXIS) sched.lanes = 1;
    if (s->kernel->form == FORM_ROW) sched.lanes = row_lanes(s, sched.lanes);
    sched.is_wide = is_wide(s);
    int64_t unit = cpu_unit(s, sched.lanes);
    if (s->kernel->form == FORM_MAP) sched.cpu_map.chunk_elems = unit;
    if (s->kernel->form == FORM_COLUMN) sched.cpu_column.chunk_elems = unit;
    Variant variant = {.sched = sched, .grid = cpu_grid(s, unit)};
    if (s->kernel->form == FORM_MAP) cpu_short_map(s, variant);
    if (s->kernel->form == FORM_ROW) cpu_short_rows(s, variant);
    if (s->kernel->form == FORM_ROW)
        variant.row_cache = row_cache_choose(s->arena, s->kernel, &variant);
    add_variant(s, variant);
}

/* GEMMs have their own schedulers. */
static void schedule_contract(Scheduler *s, GemmLaunch launch) {
    Variant variants[MAX_VARIANTS];
    Variant base = {.sched = {.lanes = 1, .unroll = 1, .threads = 1, .is_wide = is_wide(s)}};
    for (uint32_t i = 0; i < MAX_VARIANTS; i++) variants[i] = base;
    uint32_t n = s->target->has->blocks
                     ? sched_gpu_gemm(s->plan, s->kernel, launch, s->target, variants)
                     : sched_cpu_gemm(s->kernel, launch, s->target, variants);
    for (uint32_t i = 0; i < n; i++) add_variant(s, variants[i]);
}

static Scheduler scheduler_new(Arena *arena, const Plan *plan, Kernel *kernel,
                               const Target *target) {
    Scheduler s = {.arena = arena,
                   .plan = plan,
                   .target = target,
                   .kernel = kernel,
                   .dims = plan->graph->dims,
                   .indices = scalartab_indices(kernel->scalars),
                   .lane_axis = NO_AXIS};
    if (kernel->form == FORM_ROW)
        s.lane_axis = kernel->first_reduced + kernel->n_reduced - 1;
    else if (kernel->n_parallel)
        s.lane_axis = kernel->n_parallel - 1;
    return s;
}

void sched_in_launch(Arena *arena, Arena *scratch, const Plan *plan, Kernel *kernel,
                     GemmLaunch launch, const Target *target) {
    Scheduler s = scheduler_new(arena, plan, kernel, target);
    schedule_contract(&s, launch);
    kernel_set_variants(scratch, kernel, s.made, s.n_made);
}

void sched_kernel(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target) {
    if (target->has->blocks) split_axes_for_tiles(arena, plan, kernel, target);
    Scheduler s = scheduler_new(arena, plan, kernel, target);
    if (kernel->form == FORM_GEMM)
        schedule_contract(&s, (GemmLaunch){.n_gemms = 1});
    else if (target->has->blocks)
        schedule_gpu(&s);
    else
        schedule_cpu(&s);
    kernel_set_variants(arena, kernel, s.made, s.n_made);
}
