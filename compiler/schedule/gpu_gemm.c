/* Schedules of GEMMs on a GPU: tensor cores if the dtype has them, else SIMT tiles as large as
 * still fill the machine. See gemm.h. */
#include "schedule/gemm.h"
#include "machine/tuning.h"
#include "machine/machine.h"

#include "template/simt.h"

#include <math.h>
#include <string.h>

/* `halves`: the tile is chosen if the next larger one would give at most this many blocks, in
 * halves of the processors. It is faster there although it reads more. */
typedef struct GemmTiles {
    uint32_t m, n, k, warps_m, warps_n, threads, stages, halves;
} GemmTiles;

/* Ascending. A thread has at most 64 accumulators. With few concurrent blocks, the latency of
 * memory determines the time of a step, so smaller tiles are deeper. The smallest ones wait for
 * shared memory more than they compute, so half a machine of the next larger is better. */
enum { N_SIZES = 3 };
static const GemmTiles tile_sizes[N_SIZES] = {
    {32, 32, 32, 2, 2, 128, 4, 1}, {64, 64, 16, 2, 2, 128, 2, 2}, {128, 128, 8, 2, 4, 256, 2, 0}};
/* For few rows, at most as many as a tile has: the rhs is streamed once. An output is one chain
 * along k, so no step may wait. The tiles are narrow, so that every processor has one. They keep as
 * much of the rhs in flight as memory needs (some 40 KiB per processor). They have no more
 * multiplying threads than the rows need, because each reads fragments. */
enum { N_FEW = 4 };
static const GemmTiles few_tiles[N_FEW] = {{8, 32, 64, 1, 2, 128, 8, 0},
                                           {16, 32, 64, 1, 4, 128, 8, 0},
                                           {32, 32, 32, 2, 2, 128, 10, 0},
                                           {64, 32, 32, 2, 2, 128, 8, 0}};
enum { FEW_SPARE = 2 }; /* index of the tile for unaligned pointers */
/* Twice as wide, in place of the largest: 8 by 16 accumulators per thread read 6 fragments for 128
 * multiplications, 8 by 8 read 4 for 64. 4096^3 in f32 takes 96 % of the time (2652 and 2775
 * us). */
static const GemmTiles tiles_wide = {128, 256, 8, 2, 4, 256, 2, 0};
/* For whole rows, by their columns. The lower tile is for cases where the higher one would leave
 * processors idle; it also needs little shared memory for passed values. */
static const GemmTiles row_tiles[][2] = {
    {{32, 32, 32, 2, 2, 128, 2, 1}, {64, 32, 16, 2, 2, 128, 2, 0}},
    {{32, 64, 32, 2, 2, 128, 2, 1}, {64, 64, 16, 2, 2, 128, 2, 0}},
    {{32, 128, 32, 1, 4, 128, 2, 1}, {64, 128, 8, 1, 4, 128, 2, 0}},
    {{32, 256, 16, 1, 8, 256, 2, 1}, {64, 256, 8, 1, 8, 256, 2, 0}}};
enum { N_ROW_TILES = sizeof row_tiles / sizeof *row_tiles };
/* One row of many columns: one warp has the outputs, and all threads load for it. */
static const GemmTiles tiles_row = {1, 32, 64, 1, 1, 256, 8, 0};

typedef struct GemmGpu {
    const Kernel *kernel;
    GemmLaunch launch;
    DimTab *dims;
    int64_t n_processors;
    DimId m, n, k;
    uint64_t own; /* bit set of arguments that are always aligned */
    Variant *variants;
    uint32_t n_variants;
} GemmGpu;

DimId gemm_gpu_grid(const Kernel *kernel, uint32_t tile_m, uint32_t tile_n) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId m = index_axis_extent(tab, gemm_axis_m(kernel));
    DimId n = index_axis_extent(tab, gemm_axis_n(kernel));
    DimId rows = dim_ceil_div(dims, m, tile_m), columns = dim_ceil_div(dims, n, tile_n);
    DimId tiles = dim_mul(dims, rows, columns);
    return dim_mul(dims, gemm_n_batches(kernel), tiles);
}

DimId gemm_launch_grid(const GemmLaunch *launch, const Kernel *kernel, uint32_t tile_m,
                       uint32_t tile_n) {
    uint32_t n;
    const Kernel *kernels = gemm_launch_kernels(launch, kernel, &n);
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    DimId all = gemm_gpu_grid(kernels, tile_m, tile_n);
    for (uint32_t i = 1; i < n; i++)
        all = dim_add(dims, all, gemm_gpu_grid(&kernels[i], tile_m, tile_n));
    return all;
}

/* Whether an address, or an axis rounded up to a tile, may need 64 bits. */
static bool is_wide(const Plan *plan, const Kernel *kernel) {
    const int64_t limit = INT64_C(1) << 30;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId rows = kernel_n_rows(kernel), k = kernel_n_reduced(kernel);
    if (!rows || dim_hi(dims, rows) > limit || !k || dim_hi(dims, k) > limit) return true;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        DimId n = shape_n_elems(dims, &plan->buffers.data[kernel->args.data[i]].shape);
        if (!n || dim_hi(dims, n) > limit) return true;
    }
    return false;
}

static void add(GemmGpu *g, Variant variant, const GemmTiles *tiles) {
    Sched *sched = &variant.sched;
    sched->template = TEMPLATE_GPU_GEMM_SIMT;
    sched->gemm.tile_m = tiles->m;
    sched->gemm.tile_n = tiles->n;
    sched->gemm.tile_k = tiles->k;
    sched->gemm.warps_m = tiles->warps_m;
    sched->gemm.warps_n = tiles->warps_n;
    sched->threads = tiles->threads;
    uint32_t acc_bytes = dtype_bytes(g->kernel->reduces.data[0].acc);
    uint32_t stage = simt_stage_bytes(sched, acc_bytes),
             subtile = simt_subtile_bytes(sched, acc_bytes);
    sched->gemm.stages = tiles->stages;
    while (sched->gemm.stages > 2 && (sched->gemm.stages * stage > SCHED_GEMM_STAGES_BYTES ||
                                      (sched->gemm.stages - 1) * tiles->k >= dim_hi(g->dims, g->k)))
        sched->gemm.stages--;
    uint32_t bytes = sched->gemm.stages * stage;
    variant.shared_bytes = sched_gemm_dynamic_bytes(bytes > subtile ? bytes : subtile);
    variant.grid = gemm_gpu_grid(g->kernel, tiles->m, tiles->n);
    g->variants[g->n_variants++] = variant;
}

/* The number of such tiles per processor; for an unknown grid, the tiles of a row; 0: neither is
 * known. */
static int64_t n_rounds(const GemmGpu *g, const GemmTiles *tiles) {
    int64_t n;
    if (dim_is_const(g->dims, gemm_launch_grid(&g->launch, g->kernel, tiles->m, tiles->n), &n))
        return (n + g->n_processors - 1) / g->n_processors;
    return dim_is_const(g->dims, g->n, &n) ? (n + tiles->n - 1) / tiles->n : 0;
}

/* The largest tile. In f64 a thread has no registers for the wide one's accumulators. If one tile
 * could hold whole rows, it leaves shared memory for a row kernel. */
static const GemmTiles *largest_tiles(const GemmGpu *g) {
    const GemmTiles *narrow = &tile_sizes[N_SIZES - 1];
    int64_t wide_tiles = tiles_wide.n / narrow->n * n_rounds(g, &tiles_wide);
    bool may_be_wide =
        dim_hi(g->dims, g->n) > tiles_wide.n && dtype_bytes(g->kernel->reduces.data[0].acc) <= 4;
    return may_be_wide && wide_tiles * SCHED_SIMT_WIDE_PERCENT <= n_rounds(g, narrow) * 100
               ? &tiles_wide
               : narrow;
}

/* The least number of blocks of the launch; of at least `rows` rows if the GEMM is alone. */
static int64_t least_blocks(const GemmGpu *g, const GemmTiles *tiles, int64_t rows) {
    int64_t all = dim_lo(g->dims, gemm_launch_grid(&g->launch, g->kernel, tiles->m, tiles->n));
    DimId line = gemm_gpu_grid(g->kernel, UINT32_MAX, tiles->n); /* tiles side by side */
    int64_t own = dim_lo(g->dims, line) * ((rows + tiles->m - 1) / tiles->m);
    return g->launch.n_kernels <= 1 && own > all ? own : all;
}

/* The most blocks of the next larger tile for which `tiles` is chosen. */
static int64_t most_larger(const GemmGpu *g, const GemmTiles *tiles) {
    return tiles->halves * g->n_processors / 2;
}

/* Adds a variant for every tile size from `first` on that some extents call for. The last one
 * always applies, and none is needlessly larger than an extent. `least`: the least rows where no
 * earlier variant applies. */
static void add_sizes(GemmGpu *g, Variant variant, uint32_t first, int64_t least) {
    for (uint32_t i = first; i < N_SIZES; i++) {
        bool is_last = i + 1 == N_SIZES || dim_hi(g->dims, g->m) <= tile_sizes[i].m ||
                       dim_hi(g->dims, g->n) <= tile_sizes[i].n;
        predicate_drop(&variant.predicate, TERM_RANGE);
        if (!is_last) {
            DimId blocks =
                gemm_launch_grid(&g->launch, g->kernel, tile_sizes[i + 1].m, tile_sizes[i + 1].n);
            if (least_blocks(g, &tile_sizes[i + 1], least) > most_larger(g, &tile_sizes[i]))
                continue;
            is_last = dim_hi(g->dims, blocks) <= most_larger(g, &tile_sizes[i]);
            if (!is_last)
                predicate_set_range(&variant.predicate, blocks, INT64_MIN,
                                    most_larger(g, &tile_sizes[i]));
        }
        add(g, variant, i + 1 < N_SIZES ? &tile_sizes[i] : largest_tiles(g));
        if (is_last) return;
    }
}

/* Adds the variants for few rows, from tile `first` to `end`, if k is long enough for stages.
 * Returns the least rows where none applies; -1: one always applies. */
static int64_t add_few_rows(GemmGpu *g, Variant variant, uint32_t first, uint32_t end) {
    int64_t least = dim_lo(g->dims, g->m), most = dim_hi(g->dims, g->m);
    if (least < 0) least = 0; /* the range of a difference of dims may be negative */
    if (dim_hi(g->dims, g->k) < SCHED_GEMM_STAGED_DEPTH || least > few_tiles[end - 1].m)
        return least;
    for (uint32_t i = first; i < end; i++) {
        bool is_last = most <= few_tiles[i].m;
        if (least > few_tiles[i].m) continue;
        predicate_drop(&variant.predicate, TERM_RANGE);
        if (!is_last) predicate_set_range(&variant.predicate, g->m, INT64_MIN, few_tiles[i].m);
        add(g, variant, &few_tiles[i]);
        if (is_last) return -1;
    }
    return few_tiles[end - 1].m + 1;
}

/* add_few_rows, then the sizes for more rows. */
static void add_all_sizes(GemmGpu *g, Variant variant, uint32_t first_few, uint32_t end_few,
                          uint32_t first) {
    int64_t least = add_few_rows(g, variant, first_few, end_few);
    if (least >= 0) add_sizes(g, variant, first, least);
}

/* Whether a tensor that the kernel reads or writes is contiguous along an axis. */
static bool has_vectors_along(const GemmGpu *g, uint32_t axis, uint32_t lanes) {
    const ScalarTab *scalars = g->kernel->scalars;
    IndexTab *tab = scalartab_indices(scalars);
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *s = scalar_get(scalars, id);
        if (s->kind == SCALAR_LOAD &&
            index_lane_motion(tab, s->index, axis, lanes) == LANES_CONTIGUOUS)
            return true;
    }
    for (uint32_t i = 0; i < g->kernel->row_stores.n; i++)
        if (index_lane_motion(tab, g->kernel->row_stores.data[i].address, axis, lanes) ==
            LANES_CONTIGUOUS)
            return true;
    return false;
}

/* Makes the variant with vectors. Its condition is on the first of k, n, m along which vectors lie
 * and which is not a known multiple of them. Along the other axes it accesses elements. */
static bool make_vector_variant(const GemmGpu *g, Variant *variant, uint32_t lanes) {
    const uint32_t axes[3] = {gemm_axis_k(g->kernel), gemm_axis_n(g->kernel),
                              gemm_axis_m(g->kernel)};
    const DimId extents[3] = {g->k, g->n, g->m};
    bool any = false;
    variant->sched.lanes = lanes;
    predicate_align(&variant->predicate, ACCESS_BYTES, ((uint64_t)1 << g->kernel->args.n) - 1);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t value;
        DimId asked = predicate_dim(&variant->predicate, TERM_MULTIPLE);
        if (!has_vectors_along(g, axes[i], lanes)) continue;
        if (dim_multiple(g->dims, extents[i]) % lanes == 0 || extents[i] == asked) {
            any = true;
        } else if (!asked && !dim_is_const(g->dims, extents[i], &value)) {
            predicate_require_multiple(&variant->predicate, extents[i], lanes);
            any = true;
        }
    }
    return any;
}

/* Adds sizes that hold whole rows. Few rows of a narrow GEMM are streamed. */
static void add_row_sizes(GemmGpu *g, Variant variant) {
    uint32_t i = 0;
    while (i + 1 < N_ROW_TILES && dim_hi(g->dims, g->n) > row_tiles[i][0].n) i++;
    if (i == 0 && add_few_rows(g, variant, 0, 1) < 0) return;
    const GemmTiles *low = &row_tiles[i][0], *high = &row_tiles[i][1];
    DimId blocks = gemm_gpu_grid(g->kernel, high->m, high->n);
    bool is_few = dim_hi(g->dims, blocks) <= most_larger(g, low);
    if (dim_lo(g->dims, blocks) <= most_larger(g, low)) {
        Variant few = variant;
        predicate_drop(&few.predicate, TERM_RANGE);
        if (!is_few) predicate_set_range(&few.predicate, blocks, INT64_MIN, most_larger(g, low));
        add(g, few, low);
    }
    if (!is_few) add(g, variant, high);
}

static void add_fma(GemmGpu *g, Variant variant, Dtype acc) {
    uint32_t lanes = ACCESS_BYTES / dtype_bytes(acc);
    Variant wide = variant;
    bool has_vectors = make_vector_variant(g, &wide, lanes);
    /* This variant takes any pointer, and accesses unaligned runs element by element. */
    variant.sched.lanes = lanes;
    predicate_align(&variant.predicate, ACCESS_BYTES, g->own);
    if (g->launch.has_rows) {
        if (has_vectors) add_row_sizes(g, wide);
        add_row_sizes(g, variant);
        return;
    }
    if (dim_equals_const(g->dims, g->m, 1)) {
        if (has_vectors) add(g, wide, &tiles_row);
        add(g, variant, &tiles_row);
        return;
    }
    if (has_vectors) add_all_sizes(g, wide, 0, N_FEW, 0);
    uint32_t first = has_vectors ? FEW_SPARE : 0, end = has_vectors ? FEW_SPARE + 1 : N_FEW;
    add_all_sizes(g, variant, first, end, 1);
}

/* Naive GEMMs: each output is one chain and nothing is shared. A tile would have at most
 * SCHED_NAIVE_MOST multiply-adds, k is short enough for one thread, and there are many such tiles,
 * or may be. Smaller GEMMs keep tiles, which other kernels can follow in the same launch. */

static bool has_unit_k(const Kernel *kernel) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    return dim_hi(indextab_dims(tab), index_axis_extent(tab, gemm_axis_k(kernel))) <= 1;
}

/* Whether all batches use one rhs, so that batches count as rows. */
static bool shares_right(const Graph *graph, const Shape *right) {
    bool is_shared = true;
    for (uint32_t d = 0; d + 2 < right->rank; d++)
        is_shared = is_shared && dim_equals_const(graph->dims, right->dims[d], 1);
    return is_shared;
}

typedef int64_t Bound(const DimTab *dims, DimId dim);

/* The number of tiles of SCHED_NAIVE_ROWS rows and all columns, from the extents of the graph's
 * matmul; *in_tile: multiply-adds per tile. */
static double n_places(const Plan *plan, const Kernel *kernel, Bound *bound, double *in_tile) {
    const Graph *graph = plan->graph;
    const Node *node = graph_node(graph, kernel->reduces.data[0].node);
    const Shape *out = &node->shape, *right = &graph_node(graph, node->args[1])->shape;
    double batches = 1, rows = (double)bound(graph->dims, out->dims[out->rank - 2]);
    double columns = (double)bound(graph->dims, out->dims[out->rank - 1]);
    double depth = (double)bound(graph->dims, right->dims[right->rank - 2]);
    for (uint32_t d = 0; d + 2 < out->rank; d++)
        batches *= (double)bound(graph->dims, out->dims[d]);
    if (shares_right(graph, right)) {
        rows *= batches;
        batches = 1;
    }
    *in_tile = fmin(rows, SCHED_NAIVE_ROWS) * columns * depth;
    return batches * ceil(rows / SCHED_NAIVE_ROWS);
}

static bool is_tiny(const Plan *plan, const Kernel *kernel) {
    const Graph *graph = plan->graph;
    const Node *node = graph_node(graph, kernel->reduces.data[0].node);
    const Shape *out = &node->shape, *right = &graph_node(graph, node->args[1])->shape;
    bool is_vector = dim_hi(graph->dims, out->dims[out->rank - 1]) <= 1;
    double least, most;
    double n_least = n_places(plan, kernel, dim_lo, &least);
    double n_most = n_places(plan, kernel, dim_hi, &most);
    return !(is_vector && shares_right(graph, right)) && most <= SCHED_NAIVE_MOST &&
           dim_hi(graph->dims, right->dims[right->rank - 2]) <= SCHED_NAIVE_DEPTH &&
           (n_least >= SCHED_NAIVE_LEAST_TILES || n_most >= SCHED_NAIVE_MANY_TILES);
}

static bool is_plain(const Plan *plan, const Kernel *kernel) {
    return has_unit_k(kernel) || is_tiny(plan, kernel);
}

static void add_plain(GemmGpu *g) {
    Variant *variant = &g->variants[g->n_variants++];
    int64_t depth = dim_hi(g->dims, g->k);
    uint32_t unroll = MAP_MAX_UNROLL;
    while (unroll > 1 && unroll * depth > NAIVE_MAX_WRITTEN) unroll /= 2;
    variant->sched.template = TEMPLATE_GPU_GEMM_NAIVE;
    variant->sched.threads = SCHED_NAIVE_THREADS;
    variant->sched.unroll = unroll;
    variant->grid = dim_ceil_div(g->dims, kernel_n_rows(g->kernel), SCHED_NAIVE_THREADS * unroll);
}

/* Whether the GEMM has one row or one column, in the kernel and in the graph's operands. */
typedef enum { GEMM_SHAPE_MATRIX, GEMM_SHAPE_ROW, GEMM_SHAPE_COLUMN } GemmShape;

static GemmShape gemm_shape(const Plan *plan, const Kernel *kernel) {
    const Graph *graph = plan->graph;
    const Node *node = graph_node(graph, kernel->reduces.data[0].node);
    const Shape *out = &node->shape;
    bool has_rows = dim_hi(graph->dims, out->dims[out->rank - 2]) > 1;
    bool is_shared = shares_right(graph, &graph_node(graph, node->args[1])->shape);
    if (dim_hi(graph->dims, out->dims[out->rank - 1]) <= 1) return GEMM_SHAPE_COLUMN;
    for (uint32_t d = 0; d + 2 < out->rank && is_shared; d++)
        has_rows = has_rows || dim_hi(graph->dims, out->dims[d]) > 1;
    return has_rows ? GEMM_SHAPE_MATRIX : GEMM_SHAPE_ROW;
}

bool sched_gemm_has_tensor_cores(Dtype operands, Precision precision) {
    if (dtype_is_single(operands)) return precision == PRECISION_TF32;
    return dtype_info(operands)->mma != MMA_NONE;
}

static bool has_tensor_cores(const Kernel *kernel) {
    const Reduce *reduce = &kernel->reduces.data[0];
    Dtype left = scalar_get(kernel->scalars, reduce->lhs)->dtype;
    Dtype right = scalar_get(kernel->scalars, reduce->rhs)->dtype;
    return left == right && sched_gemm_has_tensor_cores(left, reduce->precision);
}

bool sched_gpu_gemm_copies(const Plan *plan, const Kernel *kernel) {
    return !is_plain(plan, kernel) && gemm_shape(plan, kernel) == GEMM_SHAPE_MATRIX &&
           has_tensor_cores(kernel);
}

int64_t sched_gemm_widest_rows(const Plan *plan, const Kernel *kernel) {
    if (is_plain(plan, kernel) || gemm_shape(plan, kernel) != GEMM_SHAPE_MATRIX) return 0;
    Dtype left = scalar_get(kernel->scalars, kernel->reduces.data[0].lhs)->dtype;
    return has_tensor_cores(kernel) ? sched_mma_widest_rows(left) : row_tiles[N_ROW_TILES - 1][0].n;
}

/* The tiles of one row of tiles, over batches and parallel GEMMs. */
static DimId n_tiles_of_rows(const GemmLaunch *launch, const Kernel *kernel, uint32_t tile_n) {
    uint32_t n;
    const Kernel *kernels = gemm_launch_kernels(launch, kernel, &n);
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    DimId all = dim_const(dims, 0);
    for (uint32_t i = 0; i < n; i++) {
        IndexTab *tab = scalartab_indices(kernels[i].scalars);
        DimId own = dim_ceil_div(dims, index_axis_extent(tab, gemm_axis_n(&kernels[i])), tile_n);
        all = dim_add(dims, all, dim_mul(dims, own, gemm_n_batches(&kernels[i])));
    }
    return all;
}

/* Limits the small mma tiles to the cases where they beat every wgmma tile: few rows, and no more
 * tiles than run at once, or one tile per GEMM. Along a deep k, wgmma's tiles of a small known
 * number of rows are fetched faster than tiles of 32 rows, but not faster than tiles of 16. A load
 * element by element waits for memory at each step; copies for wgmma, and maps, do not. */
static bool limit_to_few_rows(const Kernel *kernel, const GemmLaunch *launch, const Target *target,
                              Variant *few) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId m = index_axis_extent(tab, gemm_axis_m(kernel));
    DimId n = index_axis_extent(tab, gemm_axis_n(kernel));
    DimId n_tiles = dim_ceil_div(dims, n, few->sched.gemm.tile_n);
    bool is_one = dim_hi(dims, n_tiles) <= 1 && dim_hi(dims, m) <= SCHED_GEMM_FEW_ROWS;
    n_tiles = n_tiles_of_rows(launch, kernel, few->sched.gemm.tile_n);
    bool is_deep = dim_lo(dims, kernel_n_reduced(kernel)) >= SCHED_GEMM_DEEP;
    if (is_deep && dim_hi(dims, m) <= SCHED_GEMM_FEW_ROWS &&
        few->sched.gemm.tile_m == SCHED_GEMM_FEW_ROWS)
        return false;
    if (few->sched.gemm.tile_m > SCHED_GEMM_FEW_ROWS || dim_lo(dims, m) > SCHED_GEMM_FEW_ROWS)
        return false;
    if (!sched_mma_copies(kernel, few)) return false;
    if (!is_one && (!n_tiles || dim_hi(dims, n_tiles) > 2 * target->n_processors)) return false;
    predicate_drop(&few->predicate, TERM_RANGE);
    if (dim_hi(dims, m) > SCHED_GEMM_FEW_ROWS)
        predicate_set_range(&few->predicate, m, INT64_MIN, SCHED_GEMM_FEW_ROWS);
    return true;
}

/* Adds the variants after wgmma: for few rows, for operands with an extent that is no multiple as
 * the maps need it (one variant with vectors on one of them), and for anything else. */
static uint32_t add_tensor_cores(const Plan *plan, const Kernel *kernel, GemmLaunch launch,
                                 const Target *target, Variant *variants) {
    Variant others[MAX_VARIANTS], *wgmma = variants;
    const Scalar *left = scalar_get(kernel->scalars, kernel->reduces.data[0].lhs);
    memcpy(others, variants, sizeof others);
    bool is_wgmma = target->has_wgmma && !dtype_is_double(left->dtype);
    bool fits = is_wgmma && sched_wgmma_fits(plan, kernel);
    uint32_t n_others = sched_mma(plan, kernel, launch, target, fits, others), n = 0;
    Variant few = others[0];
    bool has_few = launch.has_rows ? few.sched.gemm.tile_m <= SCHED_GEMM_FEW_ROWS
                                   : limit_to_few_rows(kernel, &launch, target, &few),
         is_always_few = has_few && !predicate_dim(&few.predicate, TERM_RANGE);
    if (has_few) wgmma++;
    if (is_wgmma && !is_always_few) n = sched_wgmma(plan, kernel, launch, target, wgmma);
    if (n == 0) {
        memcpy(variants, others, sizeof others);
        return n_others;
    }
    if (has_few) variants[0] = few;
    DimId whole = predicate_dim(&others[0].predicate, TERM_MULTIPLE);
    if (whole && !fits) {
        bool has_larger = others[0].sched.gemm.tile_m <= SCHED_GEMM_FEW_ROWS &&
                          predicate_dim(&others[1].predicate, TERM_MULTIPLE) == whole;
        wgmma[n] = others[has_larger];
        predicate_drop(&wgmma[n++].predicate, TERM_RANGE);
    }
    wgmma[n++] = others[n_others - 1];
    return n + has_few;
}

uint32_t sched_gpu_gemm(const Plan *plan, const Kernel *kernel, GemmLaunch launch,
                        const Target *target, Variant *variants) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    const Reduce *reduce = &kernel->reduces.data[0];
    GemmGpu g = {.kernel = kernel,
                 .launch = launch,
                 .dims = indextab_dims(tab),
                 .n_processors = target->n_processors,
                 .own = kernel_own_args(plan, kernel),
                 .variants = variants};
    g.m = index_axis_extent(tab, gemm_axis_m(kernel));
    g.n = index_axis_extent(tab, gemm_axis_n(kernel));
    g.k = index_axis_extent(tab, gemm_axis_k(kernel));
    for (uint32_t i = 0; i < MAX_VARIANTS; i++) variants[i].sched.is_wide = is_wide(plan, kernel);
    if (is_plain(plan, kernel)) {
        add_plain(&g);
        return g.n_variants;
    }
    GemmShape kind = gemm_shape(plan, kernel);
    if (kind != GEMM_SHAPE_MATRIX)
        return sched_gemv(kernel, target, kind == GEMM_SHAPE_COLUMN, variants);
    if (has_tensor_cores(kernel)) return add_tensor_cores(plan, kernel, launch, target, variants);
    add_fma(&g, variants[0], reduce->acc);
    return g.n_variants;
}
