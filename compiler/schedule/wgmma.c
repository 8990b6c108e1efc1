/* Schedules of GEMMs by wgmma. See gemm.h.
 *
 * Both operands must be plain loads with fixed strides, contiguous along k or along their own axis.
 * For known extents a cost model chooses a tile. Otherwise there is a variant for each of a few
 * sizes, with a predicted time by which the runtime chooses (wgmma_price.h).
 *
 * Blocks may compute several GEMMs with a common lhs: their rhs tiles are side by side, and one
 * instruction reads them as one wide tile. */
#include "template/wgmma.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "schedule/wgmma_price.h"
#include "template/find_im2col.h"

#include <string.h>

enum {
    STORE_LANES = 4,
    STORE_WARPS = WGMMA_GROUP_WARPS - 1,
    MAX_WORKS = 8 /* of a launch */
};

typedef struct Side {
    ScalarId value;
    uint32_t axis; /* m or n */
    bool is_mn_major;
    TensorMap map; /* without the box */
} Side;

typedef struct Wgmma {
    const Plan *plan;
    const Kernel *kernel;
    IndexTab *tab;
    DimTab *dims;
    Dtype dtype; /* of the operands in memory */
    Side sides[2];
    GemmLaunch launch;
    int64_t n_processors; /* over which the blocks of a launch are spread */
} Wgmma;

typedef struct Tile {
    uint32_t m, n, cluster;
    uint32_t tail; /* columns of a narrower last tile in a row of tiles; 0: none */
} Tile;

/* Whether the elements may be a multiple of the maps' alignment; if unknown, the runtime checks. */
static bool may_be_aligned(const Wgmma *g, DimId elems) {
    int64_t value;
    return !dim_is_const(g->dims, elems, &value) ||
           value * dtype_bytes(g->dtype) % MAP_STEP_BYTES == 0;
}

/* The stride of the load along `axis`; DIM_NONE: it does not depend on the axis. */
static DimId stride_along(const Wgmma *g, IndexExpr expr, uint32_t axis) {
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(g->tab, expr.terms[i].atom);
        if (atom.axis == axis) return expr.terms[i].coefficient;
    }
    return DIM_NONE;
}

static bool add_axis(const Wgmma *g, TensorMap *map, uint32_t axis, DimId stride) {
    if (map->rank == MAX_MAP_RANK || !may_be_aligned(g, stride)) return false;
    map->axes[map->rank++] = (MapAxis){.axis = axis, .stride = stride, .box = 1};
    return true;
}

/* Whether every term is an axis with a non-negative stride, and none belongs to the other
 * operand. */
static bool steps_evenly(const Wgmma *g, IndexExpr expr, uint32_t own_axis) {
    uint32_t m = gemm_axis_m(g->kernel), k = gemm_axis_k(g->kernel);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(g->tab, expr.terms[i].atom);
        bool is_good = atom.kind == ATOM_AXIS && dim_lo(g->dims, expr.terms[i].coefficient) >= 0;
        if (!is_good || !(atom.axis < m || atom.axis == own_axis || atom.axis == k)) return false;
    }
    return may_be_aligned(g, expr.offset);
}

static bool map_side(const Wgmma *g, Side *side) {
    const Scalar *s = scalar_get(g->kernel->scalars, side->value);
    uint32_t k = gemm_axis_k(g->kernel);
    if (s->kind != SCALAR_LOAD || s->guard) return false;
    IndexExpr expr = index_expr(g->tab, s->index);
    if (!steps_evenly(g, expr, side->axis)) return false;
    DimId own = stride_along(g, expr, side->axis), along_k = stride_along(g, expr, k);
    if (!own || !along_k) return false;
    side->is_mn_major = !dim_equals_const(g->dims, along_k, 1);
    bool may_be_mn_major = dtype_bytes(g->dtype) == 2;
    if (side->is_mn_major && (!may_be_mn_major || !dim_equals_const(g->dims, own, 1))) return false;
    TensorMap *map = &side->map;
    *map = (TensorMap){.arg = kernel_find_arg(g->kernel, s->buffer),
                       .swizzle_bytes = WGMMA_SWIZZLE_BYTES,
                       .is_tf32 = dtype_is_single(g->dtype),
                       .offset = expr.offset,
                       .rank = 1};
    map->axes[0] = (MapAxis){.axis = side->is_mn_major ? side->axis : k,
                             .stride = side->is_mn_major ? own : along_k,
                             .box = wgmma_depth(g->dtype)};
    if (!add_axis(g, map, side->is_mn_major ? k : side->axis, side->is_mn_major ? along_k : own))
        return false;
    for (uint32_t axis = 0; axis < gemm_axis_m(g->kernel); axis++) {
        DimId stride = stride_along(g, expr, axis);
        if (stride && !add_axis(g, map, axis, stride)) return false;
    }
    return true;
}

/* Makes the map of an im2col lhs. The GEMM must be alone in its launch, because the copy engine
 * needs more facts than parallel or joined GEMMs have in common. */
static bool map_windows(const Wgmma *g, Side *side) {
    bool is_alone = g->launch.n_gemms <= 1 && g->launch.n_kernels <= 1;
    const Im2col *windows =
        is_alone ? im2col_find(g->kernel, g->plan->buffers.data, wgmma_depth(g->dtype)) : NULL;
    if (!windows) return false;
    DimId channels = dim_const(g->dims, windows->n_channels);
    side->map = (TensorMap){.arg = kernel_find_arg(g->kernel, windows->buffer),
                            .im2col = windows,
                            .swizzle_bytes = WGMMA_SWIZZLE_BYTES,
                            .is_tf32 = dtype_is_single(g->dtype),
                            .offset = dim_const(g->dims, 0),
                            .rank = 2};
    side->map.axes[0] = (MapAxis){.axis = gemm_axis_k(g->kernel),
                                  .stride = dim_const(g->dims, 1),
                                  .box = wgmma_depth(g->dtype)};
    side->map.axes[1] = (MapAxis){.axis = side->axis, .stride = channels, .box = 1};
    return may_be_aligned(g, channels);
}

/* False: the operands cannot have tensor maps. */
static bool wgmma_init(Wgmma *g, const Plan *plan, const Kernel *kernel, GemmLaunch launch) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    const Reduce *reduce = &kernel->reduces.data[0];
    *g = (Wgmma){
        .plan = plan, .kernel = kernel, .tab = tab, .dims = indextab_dims(tab), .launch = launch};
    g->dtype = scalar_get(kernel->scalars, reduce->lhs)->dtype;
    g->sides[0] = (Side){.value = gemm_unrounded(kernel, reduce->lhs), .axis = gemm_axis_m(kernel)};
    g->sides[1] = (Side){.value = gemm_unrounded(kernel, reduce->rhs), .axis = gemm_axis_n(kernel)};
    return (map_side(g, &g->sides[0]) || map_windows(g, &g->sides[0])) && map_side(g, &g->sides[1]);
}

/* Variants. */

static uint32_t stage_bytes(const Wgmma *g, Tile tile) {
    return wgmma_tile_bytes(tile.m, g->sides[0].is_mn_major) +
           g->launch.n_gemms * wgmma_tile_bytes(tile.n, g->sides[1].is_mn_major);
}

static DimId blocks_of(DimTab *dims, const Kernel *kernel, Tile tile) {
    DimId clusters = gemm_gpu_grid(kernel, tile.m * tile.cluster, tile.n);
    return dim_mul_const(dims, clusters, tile.cluster);
}

/* The blocks of all parallel GEMMs. */
static DimId n_blocks(const Wgmma *g, Tile tile) {
    DimId clusters = gemm_launch_grid(&g->launch, g->kernel, tile.m * tile.cluster, tile.n);
    return dim_mul_const(g->dims, clusters, tile.cluster);
}

/* The columns of a narrower last tile, as wide as the rest; a cluster's blocks get equal halves,
 * and transposed operands side by side whole blocks. 0: there is none, or it gains nothing.
 * Parallel GEMMs have none, because their blocks have one loop over all tiles. */
static uint32_t tail_of(const Wgmma *g, Tile tile) {
    int64_t n;
    if (g->launch.n_kernels > 1 ||
        !dim_is_const(g->dims, kernel_axis_extent(g->kernel, g->sides[1].axis), &n) || n < tile.n)
        return 0;
    bool has_blocks = g->sides[1].is_mn_major && g->launch.n_gemms > 1;
    uint32_t step = has_blocks ? 64 : 8 * tile.cluster, rest = (uint32_t)(n % tile.n);
    uint32_t tail = (rest + step - 1) / step * step;
    return tail < tile.n ? tail : 0;
}

static Tile narrow_tile(Tile tile) {
    return (Tile){.m = tile.m, .n = tile.tail, .cluster = tile.cluster};
}

/* The rows of the lhs that are fetched for a tile. Zero rows beyond the matrix would take as long
 * to fill as to fetch, so the box leaves them out. */
static uint32_t rows_of_left(const Wgmma *g, Tile tile) {
    const int64_t whole = 8; /* rows of the swizzle */
    int64_t most = (dim_hi(g->dims, kernel_axis_extent(g->kernel, g->sides[0].axis)) + whole - 1) /
                   whole * whole;
    if (most < whole) most = whole; /* a box is never empty, even if the lhs may be */
    return most < tile.m ? (uint32_t)most : tile.m;
}

static double n_waves(const Wgmma *g, Tile tile) {
    int64_t blocks = dim_hi(g->dims, n_blocks(g, tile));
    return (double)((blocks + g->n_processors - 1) / g->n_processors);
}

/* The steps of k per tile, averaged over the parallel GEMMs. */
static double n_steps(const Wgmma *g, Tile tile) {
    uint32_t n;
    const Kernel *kernels = gemm_launch_kernels(&g->launch, g->kernel, &n);
    double steps = 0, tiles = 0;
    for (uint32_t i = 0; i < n; i++) {
        double own = (double)dim_hi(g->dims, blocks_of(g->dims, &kernels[i], tile));
        int64_t k = dim_hi(g->dims, kernel_n_reduced(&kernels[i])), depth = wgmma_depth(g->dtype);
        steps += own * (double)((k + depth - 1) / depth);
        tiles += own;
    }
    return tiles > 0 ? steps / tiles : 0;
}

/* The columns of a tile, of all GEMMs of the launch, in units of 256. */
static double width_of(const Wgmma *g, Tile tile) {
    return g->launch.n_gemms * tile.n / 256.0;
}

/* The time of a step of k. A tile of 64 rows has one consumer warpgroup. */
static double step_us(const Wgmma *g, Tile tile) {
    double width = width_of(g, tile);
    return tile.m == WGMMA_ROWS ? SCHED_WGMMA_LOW_STEP_US + SCHED_WGMMA_LOW_WIDTH_US * width
                                : SCHED_WGMMA_STEP_US + SCHED_WGMMA_WIDTH_US * width;
}

/* The time that consumer warps need to store a tile. For GEMMs that share blocks it is
 * estimated, not measured: their epilogues run together. */
static double epilogue_us(const Wgmma *g, Tile tile) {
    const Kernel *kernel = g->kernel;
    const ScalarTab *scalars = kernel->scalars;
    bool *seen = scalar_marks(scalars);
    uint32_t sides = 1u << g->sides[0].axis | 1u << g->sides[1].axis;
    double us = g->launch.n_gemms > 1 ? SCHED_WGMMA_PAIR_US : SCHED_WGMMA_STORE_US;
    for (uint32_t i = 0; i < kernel->row_stores.n && g->launch.n_gemms <= 1; i++)
        us += SCHED_WGMMA_PRIM_US * scalar_cost(scalars, kernel->row_stores.data[i].value, seen);
    for (ScalarId id = 1; id <= scalar_count(scalars) && g->launch.n_gemms <= 1; id++) {
        const Scalar *s = scalar_get(scalars, id);
        if (seen[id] && s->kind == SCALAR_LOAD && (s->axes & sides) == sides)
            us += SCHED_WGMMA_LOAD_US;
    }
    return us * width_of(g, tile);
}

/* The number of operands whose rows begin inside a cache line. */
static uint32_t n_split_lines(const Wgmma *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2; i++)
        n += dim_multiple(g->dims, g->sides[i].map.axes[1].stride) % wgmma_depth(g->dtype) != 0;
    return n;
}

/* Whether STORE_WARPS store a tile while the consumers multiply the next one, and take no longer
 * than consumers that multiply and then store. If the rows of both operands begin inside cache
 * lines, the copies need the stage that the results would take: 4000 x 4104 x 4072 took 235 us
 * instead of 213. */
static bool stores_beside(const Wgmma *member, Tile tile) {
    const Reduce *reduce = &member->kernel->reduces.data[0];
    int64_t k;
    if (dtype_bytes(reduce->result) != 2 || n_split_lines(member) == 2 ||
        !dim_is_const(member->dims, kernel_n_reduced(member->kernel), &k))
        return false;
    double multiplying = n_steps(member, tile) * step_us(member, tile);
    double storing = epilogue_us(member, tile);
    double slower = (double)tile.m / WGMMA_ROWS * WGMMA_GROUP_WARPS / STORE_WARPS;
    return slower * storing < multiplying + storing;
}

/* The number of store warps: idle producer warps store each tile but a block's last while the next
 * is multiplied. All parallel GEMMs must agree on it. */
static uint32_t store_warps(const Wgmma *g, Tile tile) {
    if (g->launch.has_rows || n_waves(g, tile) < 2) return 0;
    uint32_t n;
    const Kernel *kernels = gemm_launch_kernels(&g->launch, g->kernel, &n);
    bool do_all = true;
    for (uint32_t i = 0; i < n && do_all; i++) {
        Wgmma member = *g;
        do_all = n == 1 || wgmma_init(&member, g->plan, &kernels[i], g->launch);
        member.launch.n_kernels = 0;
        do_all = do_all && stores_beside(&member, tile);
    }
    return do_all ? STORE_WARPS : 0;
}

/* Gives a candidate its tile, if there is a candidate. */
static void set_tile(const Wgmma *g, Variant *variant, Tile tile) {
    if (!variant) return;
    Sched *sched = &variant->sched;
    sched->template = TEMPLATE_GPU_GEMM_WGMMA;
    sched->gemm.tile_m = tile.m;
    sched->gemm.tile_n = tile.n;
    sched->gemm.tile_k = wgmma_depth(g->dtype);
    sched->gemm.n_gemms = g->launch.n_gemms;
    sched->gemm.tail_n = tile.tail;
    sched->gemm.warps_m = tile.m / WGMMA_ROWS * WGMMA_GROUP_WARPS;
    sched->gemm.warps_n = 1;
    sched->gemm.store_warps = store_warps(g, tile);
    sched->threads = (sched->gemm.warps_m + WGMMA_GROUP_WARPS) * WARP_THREADS;
    sched->gemm.stages = WGMMA_MAX_STAGES;
    uint32_t row_cache_bytes = sched_epilogue_rows(sched) * g->launch.row_bytes;
    while (wgmma_shared_bytes(stage_bytes(g, tile), sched) + row_cache_bytes > WGMMA_SHARED_BYTES)
        sched->gemm.stages--;
    variant->shared_bytes = wgmma_shared_bytes(stage_bytes(g, tile), sched);
    sched->cluster = tile.cluster;
    variant->grid = blocks_of(g->dims, g->kernel, tile);
    variant->is_resident = true;
    variant->n_maps = 2;
    for (uint32_t i = 0; i < 2; i++) {
        const Side *side = &g->sides[i];
        variant->maps[i] = side->map;
        uint32_t rows = side->is_mn_major ? wgmma_depth(g->dtype)
                        : i               ? tile.n
                                          : rows_of_left(g, tile);
        variant->maps[i].axes[1].box = i ? rows / tile.cluster : rows;
    }
    if (!tile.tail) return;
    TensorMap *tail = &variant->maps[variant->n_maps++];
    *tail = variant->maps[1];
    if (!g->sides[1].is_mn_major) tail->axes[1].box = tile.tail / tile.cluster;
}

/* Four results per access if the row length is a multiple of four; a symbolic extent gets a
 * condition. */
static void set_lanes(const Wgmma *g, Variant *variant) {
    DimId n = kernel_axis_extent(g->kernel, gemm_axis_n(g->kernel));
    int64_t value;
    bool is_known = dim_multiple(g->dims, n) % STORE_LANES == 0;
    if (!is_known && dim_is_const(g->dims, n, &value)) return;
    variant->sched.lanes = STORE_LANES;
    Predicate *predicate = &variant->predicate;
    if (!is_known) predicate_require_multiple(predicate, n, STORE_LANES);
    predicate_assume(predicate, g->tab);
    uint64_t args = gemm_run_args(g->kernel, gemm_axis_n(g->kernel), STORE_LANES, false);
    predicate_assume(NULL, g->tab);
    predicate_align(predicate, MAP_STEP_BYTES, args);
}

/* Whether the rows of some operand begin inside a cache line. Each row of a box is then two lines,
 * and a cluster, which reads shared data once, pays more. */
static bool has_split_lines(const Wgmma *g) {
    uint32_t n;
    const Kernel *kernels = gemm_launch_kernels(&g->launch, g->kernel, &n);
    Wgmma member;
    for (uint32_t i = 0; i < n; i++)
        if (wgmma_init(&member, g->plan, &kernels[i], (GemmLaunch){.n_gemms = 1}) &&
            n_split_lines(&member))
            return true;
    return false;
}

/* The time in microseconds of fetching such a stage during its multiplication, fitted to tiles of
 * 128 to 256 columns of 4000 x 4104 x 4072: a cost per row of 128 bytes that the block fetches, and
 * the multiplication's use of shared memory. */
static double split_step(const Wgmma *g, Tile tile) {
    uint32_t bytes =
        wgmma_tile_bytes(tile.m, g->sides[0].is_mn_major) +
        g->launch.n_gemms * wgmma_tile_bytes(tile.n, g->sides[1].is_mn_major) / tile.cluster;
    return SCHED_WGMMA_SPLIT_ROW_US * bytes / WGMMA_SWIZZLE_BYTES +
           SCHED_WGMMA_SPLIT_WIDTH_US * g->launch.n_gemms * tile.n / 256.0;
}

/* The time of one tile. */
static double tile_us(const Wgmma *g, Tile tile, bool is_split) {
    double width = width_of(g, tile), step = step_us(g, tile);
    double fetched = is_split ? split_step(g, tile) : 0;
    if (g->sides[0].map.im2col) fetched = wgmma_windows_us(tile.m, tile.n);
    if (fetched > step) step = fetched;
    return SCHED_WGMMA_STORE_US * width + n_steps(g, tile) * step;
}

/* The time of all tiles. Judged: a narrow tile waits for its loads as if cache lines were split,
 * because much is in flight beside little multiplication. */
static double cost(const Wgmma *g, Tile tile, bool is_split) {
    if (!tile.tail) return n_waves(g, tile) * tile_us(g, tile, is_split);
    DimId n = kernel_axis_extent(g->kernel, g->sides[1].axis);
    DimId columns = dim_ceil_div(g->dims, n, tile.n);
    double n_tiles = (double)dim_hi(g->dims, n_blocks(g, tile));
    double n_narrow = n_tiles / (double)dim_hi(g->dims, columns);
    return wgmma_waves_us(n_tiles - n_narrow, tile_us(g, tile, is_split), n_narrow,
                          tile_us(g, narrow_tile(tile), true), (double)g->n_processors);
}

/* The tile with narrower last tiles, where they pay. */
static Tile with_tail(const Wgmma *g, Tile tile, bool is_split) {
    Tile with = tile;
    with.tail = tail_of(g, tile);
    bool is_worth_it =
        with.tail && cost(g, with, is_split) < SCHED_WGMMA_WORTH * cost(g, tile, is_split);
    return is_worth_it ? with : tile;
}

/* The tile with a cluster of two, where it pays. A cluster reads less, but its blocks start and end
 * together, so it is for many waves or split cache lines. im2col copies arrive too unevenly for it:
 * 64 images of 56 x 56 x 64 take 45.6 us instead of 38.4. */
static Tile with_cluster(const Wgmma *g, Tile tile, bool is_split) {
    Tile two = {.m = tile.m, .n = tile.n, .cluster = 2};
    if (tile.tail) two.tail = tail_of(g, two);
    bool is_worth_it =
        (n_waves(g, tile) >= SCHED_WGMMA_MANY_WAVES || is_split) && !g->sides[0].map.im2col;
    return is_worth_it && tile.m == 128 &&
                   cost(g, two, is_split) <= SCHED_WGMMA_CLUSTER_LOSS * cost(g, tile, is_split)
               ? two
               : tile;
}

/* The columns of the widest tile of each GEMM, in whole blocks for any layout. */
static uint32_t widest(const Wgmma *g) {
    return WGMMA_MAX_WIDTH / g->launch.n_gemms / 64 * 64;
}

static Tile cheapest_tile(const Wgmma *g) {
    bool is_split = has_split_lines(g);
    int64_t columns = dim_hi(g->dims, kernel_axis_extent(g->kernel, g->sides[1].axis));
    Tile best = {128, widest(g), 1, 0};
    if (is_split) best = with_cluster(g, best, is_split);
    best = with_tail(g, best, is_split);
    for (uint32_t i = 0; i < 2 * N_WGMMA_WIDTHS; i++) {
        Tile tile = {i % 2 ? 64 : 128, wgmma_widths[i / 2], 1, 0};
        uint32_t width = g->launch.n_gemms * tile.n;
        /* A transposed operand is fetched in whole blocks: some for nothing, and between tiles side
         * by side the instruction would read them. */
        bool may_waste = is_split && g->launch.n_gemms == 1;
        if (tile.n % 64 && g->sides[1].is_mn_major && !may_waste) continue;
        if (tile.m > width && columns > width)
            continue; /* it waits for copies: 64 x 128 reads as much and is faster */
        if (width > WGMMA_MAX_WIDTH) continue;
        if (is_split) tile = with_cluster(g, tile, is_split);
        tile = with_tail(g, tile, is_split);
        if (cost(g, tile, is_split) < SCHED_WGMMA_WORTH * cost(g, best, is_split)) best = tile;
    }
    return is_split ? best : with_cluster(g, best, is_split);
}

/* Whether the elements are a multiple of a dynamic pitch. */
static bool has_run_pitch(const Wgmma *g, DimId elems) {
    for (uint32_t i = 0; i < dim_n_symbols(g->dims); i++)
        if (dim_symbol_info(g->dims, i)->rule &&
            dim_exact_div(g->dims, elems, dim_symbol(g->dims, i)) != DIM_NONE)
            return true;
    return false;
}

/* Prices for unknown extents. */

static PricedRows rows_of(const Wgmma *g, const Side *side) {
    return (PricedRows){.pitch = side->map.axes[1].stride,
                        .elem_bytes = dtype_bytes(g->dtype),
                        .is_along_k = !side->is_mn_major};
}

/* The work of the launch's blocks: one entry per parallel GEMM, as many as are known. */
static uint32_t works_of(const Wgmma *g, PricedWork works[MAX_WORKS]) {
    uint32_t n, n_works = 0;
    const Kernel *kernels = gemm_launch_kernels(&g->launch, g->kernel, &n);
    for (uint32_t i = 0; i < n && n_works < MAX_WORKS; i++) {
        Wgmma member;
        if (!wgmma_init(&member, g->plan, &kernels[i], (GemmLaunch){.n_gemms = 1})) continue;
        works[n_works++] =
            (PricedWork){.steps = dim_ceil_div(g->dims, kernel_n_reduced(&kernels[i]),
                                               wgmma_depth(member.dtype)),
                         .left = rows_of(&member, &member.sides[0]),
                         .right = rows_of(&member, &member.sides[1])};
    }
    return n_works;
}

/* Whether `narrow` does the same as `wide` for all extents: with equal rows, as many columns of
 * tiles, or one. */
static bool does_as_well(const Wgmma *g, Tile narrow, Tile wide) {
    DimId n = kernel_axis_extent(g->kernel, g->sides[1].axis);
    int64_t columns;
    if (narrow.m != wide.m || narrow.cluster != wide.cluster || narrow.n > wide.n) return false;
    if (dim_is_const(g->dims, n, &columns))
        return (columns + narrow.n - 1) / narrow.n == (columns + wide.n - 1) / wide.n;
    return dim_hi(g->dims, n) <= narrow.n;
}

/* The tile of each GEMM. False: no extents need it. */
static bool find_tile(const Wgmma *g, const WgmmaTile *priced, Tile *tile) {
    uint32_t n_gemms = g->launch.n_gemms;
    bool is_eligible = n_gemms > 1 ? priced->is_for_several : priced->is_for_one;
    is_eligible = is_eligible && (priced->cluster == 1 || !g->sides[0].map.im2col);
    int64_t rows = dim_hi(g->dims, kernel_axis_extent(g->kernel, g->sides[0].axis));
    *tile = (Tile){priced->m, priced->n / n_gemms, priced->cluster, 0};
    /* GEMMs that share blocks have whole blocks of columns, and one for few rows. */
    bool has_blocks = n_gemms == 1 || (priced->n % (n_gemms * 64) == 0 &&
                                       (priced->m > WGMMA_ROWS || tile->n == 64));
    int64_t rows_below = (int64_t)(priced->m / 2) * (priced->m > WGMMA_ROWS ? priced->cluster : 0);
    return is_eligible && has_blocks && rows > rows_below;
}

/* Adds a variant for each size that some extents call for and that `is_wanted` selects; the runtime
 * compares their prices. The largest comes first, because it is taken if prices overflow. */
static void add_tiles(const Wgmma *g, Variant base, uint32_t group, bool is_wanted(Tile),
                      Candidates *list) {
    PricedWork works[MAX_WORKS];
    uint32_t n_works = works_of(g, works), n_before = list->n;
    const WgmmaTile *tiles = wgmma_priced_tiles;
    bool is_priced = true;
    for (uint32_t i = 0; i < N_WGMMA_TILES && is_priced; i++) {
        Tile tile, other;
        bool is_good = find_tile(g, &tiles[i], &tile) && is_wanted(tile);
        for (uint32_t k = i + 1; k < N_WGMMA_TILES && is_good; k++)
            is_good = !(find_tile(g, &tiles[k], &other) && is_wanted(other) &&
                        does_as_well(g, other, tile));
        if (!is_good) continue;
        Variant variant = base;
        set_tile(g, &variant, tile);
        Price *price = &variant.price;
        *price = (Price){.group = group, .blocks = n_blocks(g, tile), .per_wave = g->n_processors};
        is_priced =
            price->blocks != DIM_NONE && set_tile_price(g->dims, &tiles[i], works, n_works, price);
        if (is_priced || list->n == n_before) candidate_add(list, variant);
    }
    if (list->n == n_before + 1) list->variants[n_before].price = (Price){0};
}

static bool is_any(Tile tile) {
    return tile.m > 0;
}

/* If the rows of the rhs are as long as those of the result, its map has stricter conditions: then
 * other variants do not apply, although a map could be made. */
static bool is_for_odd_rows(Tile tile) {
    return tile.cluster == 1 && (tile.n == WGMMA_MAX_WIDTH || tile.n <= tile.m);
}

static bool is_one_for_odd_rows(Tile tile) {
    return is_for_odd_rows(tile) && tile.n <= tile.m && tile.m > WGMMA_ROWS;
}

/* Adds tiles of whole rows: low ones where high ones would leave processors idle. */
static void add_row_tiles(const Wgmma *g, Candidates *list) {
    const uint32_t step = g->sides[1].is_mn_major ? 64 : 16; /* columns of one copy */
    uint32_t n = (uint32_t)dim_hi(g->dims, kernel_axis_extent(g->kernel, g->sides[1].axis));
    uint32_t width = (n + step - 1) / step * step;
    const Tile low = {64, width, 1, 0}, high = {128, width, 1, 0};
    set_tile(g, candidate_at_most(list, n_blocks(g, high), g->n_processors / 2), low);
    set_tile(g, candidate_always(list), high);
}

static bool is_same_map(const TensorMap *a, const TensorMap *b) {
    bool is_same = a->rank == b->rank && a->offset == b->offset && !a->im2col && !b->im2col;
    for (uint32_t i = 0; i < a->rank && is_same; i++)
        is_same = a->axes[i].axis == b->axes[i].axis && a->axes[i].stride == b->axes[i].stride;
    return is_same;
}

bool sched_wgmma_goes_with(const Plan *plan, const Kernel *a, const Kernel *b) {
    Wgmma first, next;
    const GemmLaunch alone = {.n_gemms = 1};
    if (!wgmma_init(&first, plan, a, alone) || !wgmma_init(&next, plan, b, alone)) return false;
    const TensorMap *left = &first.sides[0].map, *other = &next.sides[0].map;
    return a->args.data[left->arg] == b->args.data[other->arg] && is_same_map(left, other) &&
           kernel_axis_extent(first.kernel, gemm_axis_k(a)) ==
               kernel_axis_extent(next.kernel, gemm_axis_k(b)) &&
           first.sides[1].is_mn_major == next.sides[1].is_mn_major;
}

/* Whether the extents of all parallel GEMMs are known. */
static bool are_extents_known(const Wgmma *g) {
    uint32_t n;
    const Kernel *kernels = gemm_launch_kernels(&g->launch, g->kernel, &n);
    int64_t value;
    bool are_known = true;
    for (uint32_t i = 0; i < n && are_known; i++)
        are_known = dim_is_const(g->dims, gemm_gpu_grid(&kernels[i], WGMMA_ROWS, 64), &value) &&
                    dim_is_const(g->dims, kernel_n_reduced(&kernels[i]), &value);
    return are_known;
}

/* Adds variants that need tensor maps. None: the copy engine cannot fetch operands of this
 * layout. */
static void add_wgmma(const Scheduler *s, Candidates *list) {
    Wgmma g;
    if (!wgmma_init(&g, s->plan, s->kernel, s->launch)) return;
    g.n_processors = s->target->n_processors;
    Variant anywhere = list->base, base = anywhere;
    set_lanes(&g, &base);
    candidates_for(list, base);
    if (s->launch.has_rows) {
        add_row_tiles(&g, list);
        return;
    }
    if (are_extents_known(&g)) {
        set_tile(&g, candidate_always(list), cheapest_tile(&g));
        return;
    }
    add_tiles(&g, base, 1, is_any, list);
    DimId whole = predicate_dim(&base.predicate, TERM_MULTIPLE);
    bool may_be_odd = !g.sides[1].is_mn_major || g.sides[1].map.axes[1].stride != whole;
    if (!whole || !may_be_odd) return;
    bool is_common = has_run_pitch(&g, g.sides[1].map.axes[1].stride);
    add_tiles(&g, anywhere, 2, is_common ? is_for_odd_rows : is_one_for_odd_rows, list);
}

/* Whether the elements are a multiple of the maps' alignment, or a pass makes them so where it
 * pays. */
static bool is_seen_to(const Wgmma *g, DimId elems) {
    return dim_multiple(g->dims, elems) * dtype_bytes(g->dtype) % MAP_STEP_BYTES == 0 ||
           has_run_pitch(g, elems);
}

/* Whether the maps can be made whenever pointers are aligned and the GEMM is not small. */
static bool maps_fit(const Plan *plan, const Kernel *kernel) {
    Wgmma g;
    if (!wgmma_init(&g, plan, kernel, (GemmLaunch){.n_gemms = 1})) return false;
    for (uint32_t i = 0; i < 2; i++) {
        const TensorMap *map = &g.sides[i].map;
        if (!is_seen_to(&g, map->offset)) return false;
        for (uint32_t k = 1; k < map->rank; k++)
            if (!is_seen_to(&g, map->axes[k].stride)) return false;
    }
    return true;
}

/* Lists the variants of wgmma, and those of mma: for few rows, for operands with an extent that is
 * no multiple as the maps need it (one variant with vectors on one of them), and for anything
 * else. */
static void list_variants(const Scheduler *s, Candidates *list) {
    Variant made[MAX_VARIANTS];
    Candidates others = {.dims = s->dims, .base = list->base, .variants = made};
    bool fits = maps_fit(s->plan, s->kernel);
    sched_mma(s, fits, &others);
    Variant few = made[0];
    bool has_few = s->launch.has_rows ? few.sched.gemm.tile_m <= SCHED_GEMM_FEW_ROWS
                                      : sched_mma_few_rows(s, &few);
    if (has_few) candidate_add(list, few);
    if (!has_few || predicate_dim(&few.predicate, TERM_RANGE)) add_wgmma(s, list);
    if (list->n == has_few) {
        list->n = 0;
        for (uint32_t i = 0; i < others.n; i++) candidate_add(list, made[i]);
        return;
    }
    DimId whole = predicate_dim(&made[0].predicate, TERM_MULTIPLE);
    if (whole && !fits) {
        bool has_larger = made[0].sched.gemm.tile_m <= SCHED_GEMM_FEW_ROWS &&
                          predicate_dim(&made[1].predicate, TERM_MULTIPLE) == whole;
        Variant *odd = candidate_add(list, made[has_larger]);
        predicate_drop(&odd->predicate, TERM_RANGE);
    }
    candidate_add(list, made[others.n - 1]);
}

bool sched_wgmma_may(const Plan *plan, const Kernel *kernel, const Target *target) {
    return target->has_wgmma && sched_gpu_gemm_copies(plan, kernel) &&
           !dtype_is_double(gemm_operand_dtype(kernel));
}

static bool may(const Scheduler *s) {
    return sched_wgmma_may(s->plan, s->kernel, s->target);
}

const TemplateSchedule schedule_gpu_gemm_wgmma = {.may = may, .list = list_variants};
