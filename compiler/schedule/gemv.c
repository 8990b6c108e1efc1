/* Schedules of GEMV on a GPU. See gemm.h.
 *
 * Performance depends on the number of 16-byte loads in flight: about 64 KiB per processor. The
 * engine fixes the order of sums, so every schedule here gives the same bits. */
#include "schedule/scheduler.h"
#include "base/arith.h"
#include "machine/tuning.h"
#include "machine/machine.h"

enum { MAX_LANES = 8, MAX_GROUPS = 64 }; /* groups of chains that a thread joins at the end */

typedef struct GemvGpu {
    const Kernel *kernel;
    const Target *target;
    IndexTab *tab;
    DimTab *dims;
    ScalarId matrix;
    uint32_t axis; /* axis of the outputs: m or n */
    uint32_t n_chains;
} GemvGpu;

/* Bytes of the narrowest element of the matrix that is loaded contiguously along an axis; 0: there
 * is none. Only the matrix depends on both the outputs and k. */
static uint32_t run_bytes(const GemvGpu *g, uint32_t axis) {
    const ScalarTab *scalars = g->kernel->scalars;
    uint32_t bytes = 0, both = 1u << gemm_axis_k(g->kernel);
    if (dim_hi(g->dims, kernel_axis_extent(g->kernel, g->axis)) > 1) both |= 1u << g->axis;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *s = scalar_get(scalars, id);
        if (s->kind != SCALAR_LOAD || (s->axes & both) != both) continue;
        if (index_lane_motion(g->tab, s->index, axis, 2) != LANES_CONTIGUOUS) continue;
        if (!bytes || dtype_bytes(s->dtype) < bytes) bytes = dtype_bytes(s->dtype);
    }
    return bytes;
}

/* Chooses lanes along an axis, and adds their condition to the predicate. 1: no vectors. */
static uint32_t choose_lanes(const GemvGpu *g, uint32_t axis, uint32_t bytes, Variant *variant) {
    uint32_t lanes = bytes ? min_u32(ACCESS_BYTES / bytes, MAX_LANES) : 1;
    DimId extent = kernel_axis_extent(g->kernel, axis);
    int64_t value;
    bool is_const = dim_is_const(g->dims, extent, &value);
    while (lanes > 1 && is_const && value % lanes) lanes /= 2;
    while (lanes > 1 && axis == gemm_axis_k(g->kernel) && lanes > g->n_chains) lanes /= 2;
    if (lanes > 1 && dim_multiple(g->dims, extent) % lanes)
        predicate_require_multiple(&variant->predicate, extent, lanes);
    return lanes;
}

/* The number of rounds of chains in flight, for `loads` loads per thread. */
static uint32_t choose_unroll(const GemvGpu *g, uint32_t loads, uint32_t loads_of_round) {
    int64_t n_rounds =
        dim_hi(g->dims, kernel_axis_extent(g->kernel, gemm_axis_k(g->kernel))) / g->n_chains;
    uint32_t unroll = loads / loads_of_round;
    while (unroll > 1 && unroll > n_rounds) unroll /= 2;
    return unroll ? unroll : 1;
}

static bool has_few_outputs(const GemvGpu *g) {
    DimId n = kernel_n_rows(g->kernel);
    return n && dim_hi(g->dims, n) <= SCHED_GEMV_FEW_OUTPUTS;
}

static void finish(const GemvGpu *g, Variant *variant, uint32_t n_outputs) {
    Sched *sched = &variant->sched;
    bool is_left = g->axis == gemm_axis_m(g->kernel);
    sched->template = TEMPLATE_GPU_GEMV;
    sched->gemv.tile_m = is_left ? n_outputs : 1;
    sched->gemv.tile_n = is_left ? 1 : n_outputs;
    variant->grid = gemm_gpu_grid(g->kernel, sched->gemv.tile_m, sched->gemv.tile_n);
    if (sched->cluster > 1) variant->grid = dim_mul_const(g->dims, variant->grid, sched->cluster);
}

/* Whether twice the threads per output would each still have enough loads. Then they end sooner,
 * and more blocks are in different phases of their work. */
static bool fills_more_threads(const GemvGpu *g, const Sched *sched, uint32_t groups) {
    int64_t n_loads =
        dim_lo(g->dims, kernel_axis_extent(g->kernel, gemm_axis_k(g->kernel))) / sched->lanes;
    return sched->gemv.threads_along_k >= WARP_THREADS &&
           2 * sched->gemv.threads_along_k <= min_u32(groups, SCHED_GEMV_ROW_THREADS) &&
           n_loads >= (int64_t)2 * sched->gemv.threads_along_k * SCHED_GEMV_ROW_LOADS;
}

/* Lanes along k: one warp per output, several outputs per warp if k is short, one block per output
 * if outputs are few. */
static void along_k(const GemvGpu *g, Variant *variant) {
    Sched *sched = &variant->sched;
    uint32_t groups = g->n_chains / sched->lanes, n_outputs = 1;
    sched->gemv.lanes_along_k = true;
    sched->gemv.threads_along_k = min_u32(groups, WARP_THREADS);
    while (groups / sched->gemv.threads_along_k > SCHED_GEMV_ROW_LOADS ||
           (has_few_outputs(g) && groups > sched->gemv.threads_along_k) ||
           fills_more_threads(g, sched, groups))
        sched->gemv.threads_along_k *= 2;
    sched->gemv.slots = groups / sched->gemv.threads_along_k;
    sched->threads = sched->gemv.threads_along_k > SCHED_GEMV_ROW_THREADS
                         ? sched->gemv.threads_along_k
                         : SCHED_GEMV_ROW_THREADS;
    if (!has_few_outputs(g) && sched->gemv.threads_along_k <= WARP_THREADS)
        n_outputs = SCHED_GEMV_ROW_LOADS / sched->gemv.slots;
    sched->unroll = choose_unroll(g, SCHED_GEMV_ROW_LOADS, sched->gemv.slots * n_outputs);
    finish(g, variant, sched->threads / sched->gemv.threads_along_k * n_outputs);
}

/* Bytes of a matrix row per block. Wide strips let all blocks run at once where a second wave would
 * double the time. */
static uint32_t strip_bytes(const GemvGpu *g, uint32_t bytes) {
    if (g->target->max_cluster == 1 || has_few_outputs(g)) return SCHED_GEMV_NARROW_BYTES;
    DimId n = kernel_n_rows(g->kernel);
    int64_t most = n ? dim_hi(g->dims, n) * bytes * g->target->max_cluster : INT64_MAX;
    bool is_wide = most > (int64_t)SCHED_GEMV_WAVE_BLOCKS * SCHED_GEMV_STRIP_BYTES &&
                   most <= (int64_t)SCHED_GEMV_WAVE_BLOCKS * SCHED_GEMV_WIDE_BYTES;
    return is_wide ? SCHED_GEMV_WIDE_BYTES : SCHED_GEMV_STRIP_BYTES;
}

/* The unroll: as many loads per round as an unrolled pass may have, else as a loop wants. */
static uint32_t choose_strip_unroll(const GemvGpu *g, const Variant *variant) {
    Variant tried = *variant;
    for (tried.sched.unroll = SCHED_GEMV_STRIP_LOADS; tried.sched.unroll > 0;
         tried.sched.unroll /= 2)
        if (kernel_gemv_passes(g->kernel, &tried).n_rounds) return tried.sched.unroll;
    return choose_unroll(g, SCHED_GEMV_STRIP_LOADS, variant->sched.gemv.slots);
}

/* Lanes along the outputs: a block has a strip of outputs, and its threads and the other blocks of
 * its cluster share the chains. */
static void along_outputs(const GemvGpu *g, Variant *variant, uint32_t bytes) {
    Sched *sched = &variant->sched;
    uint32_t acc_bytes = dtype_bytes(g->kernel->reduces.data[0].acc);
    uint32_t across = strip_bytes(g, bytes) / (bytes * sched->lanes);
    uint32_t threads =
        g->target->max_cluster > 1 ? SCHED_GEMV_STRIP_THREADS : SCHED_GEMV_LONE_THREADS;
    across = across < 1 ? 1 : min_u32(across, WARP_THREADS);
    sched->gemv.threads_along_k = min_u32(threads / across, g->n_chains);
    while (across * sched->gemv.threads_along_k < WARP_THREADS) across *= 2;
    sched->gemv.slots =
        min_u32(SCHED_GEMV_SUM_BYTES / (sched->lanes * acc_bytes), SCHED_GEMV_STRIP_LOADS);
    while (g->n_chains / (sched->gemv.threads_along_k * sched->gemv.slots) > MAX_GROUPS)
        sched->gemv.slots *= 2;
    sched->gemv.slots = min_u32(sched->gemv.slots, g->n_chains / sched->gemv.threads_along_k);
    sched->threads = across * sched->gemv.threads_along_k;
    sched->cluster = min_u32(g->n_chains / (sched->gemv.threads_along_k * sched->gemv.slots),
                             g->target->max_cluster);
    finish(g, variant, across * sched->lanes);
    sched->unroll = choose_strip_unroll(g, variant);
}

/* A one-block launch: the threads share the chains of as many outputs as the lanes of a warp cover,
 * at most one output per thread. */
static bool walk_along_outputs(const GemvGpu *g, Variant *variant) {
    Sched *sched = &variant->sched;
    int64_t n = dim_hi(g->dims, kernel_axis_extent(g->kernel, g->axis));
    uint32_t most = min_u32(WARP_THREADS, sched->threads / sched->lanes), across = 1;
    while (across < most && (int64_t)across * sched->lanes < n) across *= 2;
    while (across < most && sched->threads / across > g->n_chains) across *= 2;
    sched->gemv.threads_along_k = sched->threads / across;
    if (sched->gemv.threads_along_k > g->n_chains) return false;
    sched->gemv.slots = min_u32(g->n_chains / sched->gemv.threads_along_k, SCHED_GEMV_STRIP_LOADS);
    sched->unroll = choose_unroll(g, SCHED_GEMV_STRIP_LOADS, sched->gemv.slots);
    finish(g, variant, across * sched->lanes);
    return true;
}

static void walk_along_k(const GemvGpu *g, Variant *variant) {
    Sched *sched = &variant->sched;
    int64_t n = dim_hi(g->dims, kernel_axis_extent(g->kernel, g->axis));
    uint32_t groups = g->n_chains / sched->lanes, n_outputs = 1;
    sched->gemv.threads_along_k = min_u32(groups, WARP_THREADS);
    while (groups / sched->gemv.threads_along_k > SCHED_GEMV_STRIP_LOADS)
        sched->gemv.threads_along_k *= 2;
    sched->gemv.slots = groups / sched->gemv.threads_along_k;
    uint32_t n_rows = sched->threads / sched->gemv.threads_along_k;
    while (n_outputs < SCHED_GEMV_ROW_LOADS &&
           n_outputs * sched->gemv.slots < SCHED_GEMV_STRIP_LOADS && n_rows * n_outputs < n)
        n_outputs *= 2;
    sched->unroll = choose_unroll(g, SCHED_GEMV_STRIP_LOADS, sched->gemv.slots * n_outputs);
    finish(g, variant, n_rows * n_outputs);
}

static void add(const GemvGpu *g, Variant *variant, uint32_t bytes_along_k, uint32_t bytes) {
    variant->sched.gemv.n_processors = g->target->n_processors;
    if (bytes_along_k || !bytes)
        along_k(g, variant);
    else
        along_outputs(g, variant, bytes);
}

static GemvGpu gemv_of(const Kernel *kernel, const Target *target, bool is_column) {
    GemvGpu g = {.kernel = kernel, .target = target};
    g.tab = scalartab_indices(kernel->scalars);
    g.dims = indextab_dims(g.tab);
    g.axis = is_column ? gemm_axis_m(kernel) : gemm_axis_n(kernel);
    g.n_chains = gemv_n_chains(g.dims, kernel_axis_extent(g.kernel, gemm_axis_k(kernel)));
    return g;
}

static bool in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    Sched *sched = &variant->sched;
    sched->threads = threads;
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    bool is_column = dim_hi(indextab_dims(tab), index_axis_extent(tab, gemm_axis_n(kernel))) <= 1;
    GemvGpu g = gemv_of(kernel, NULL, is_column);
    sched->cluster = 0;
    if (!sched->gemv.lanes_along_k && walk_along_outputs(&g, variant)) return true;
    if (!sched->gemv.lanes_along_k) sched->lanes = 1;
    sched->gemv.lanes_along_k = true;
    walk_along_k(&g, variant);
    return true;
}

/* Whether the GEMM has one row or one column, in the kernel and in the graph's operands. */
typedef enum { GEMM_SHAPE_MATRIX, GEMM_SHAPE_ROW, GEMM_SHAPE_COLUMN } GemmShape;

static GemmShape gemm_shape(const Plan *plan, const Kernel *kernel) {
    const Graph *graph = plan->graph;
    const Node *node = graph_node(graph, kernel->reduces.data[0].node);
    const Shape *out = &node->shape;
    bool has_rows = false;
    if (dim_hi(graph->dims, out->dims[out->rank - 1]) <= 1) return GEMM_SHAPE_COLUMN;
    for (uint32_t d = gemm_n_batch_axes(graph, node); d + 1 < out->rank; d++)
        has_rows = has_rows || dim_hi(graph->dims, out->dims[d]) > 1;
    return has_rows ? GEMM_SHAPE_MATRIX : GEMM_SHAPE_ROW;
}

bool sched_gemv_may(const Plan *plan, const Kernel *kernel) {
    return !sched_naive_may(plan, kernel) && gemm_shape(plan, kernel) != GEMM_SHAPE_MATRIX;
}

static void list_variants(const Scheduler *s, Candidates *list) {
    const Kernel *kernel = s->kernel;
    bool is_column = gemm_shape(s->plan, kernel) == GEMM_SHAPE_COLUMN;
    GemvGpu g = gemv_of(kernel, s->target, is_column);
    uint32_t k_bytes = run_bytes(&g, gemm_axis_k(kernel)), bytes = run_bytes(&g, g.axis);
    Variant wide = list->base;
    wide.sched.lanes =
        choose_lanes(&g, k_bytes ? gemm_axis_k(kernel) : g.axis, k_bytes ? k_bytes : bytes, &wide);
    if (wide.sched.lanes > 1) {
        predicate_align(&wide.predicate, ACCESS_BYTES, ((uint64_t)1 << kernel->args.n) - 1);
        add(&g, candidate_add(list, wide), k_bytes, bytes);
    }
    add(&g, candidate_always(list), k_bytes, bytes);
}

static bool may(const Scheduler *s) {
    return sched_gemv_may(s->plan, s->kernel);
}

const TemplateSchedule schedule_gpu_gemv = {
    .may = may, .list = list_variants, .in_one_block = in_one_block};
