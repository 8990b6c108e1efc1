/* Schedules of GEMMs by wgmma. See gemm.h.
 *
 * The copy engine must be able to fetch both operands (wgmma_maps.h). For known extents the
 * tile is the fastest by the times below, which only rank tiles; the price of the kernel is that of
 * cost/kernel/wgmma.c. Otherwise there is a variant for each of a few sizes, with a predicted time
 * by which the runtime chooses (wgmma_price.h).
 *
 * Blocks may compute several GEMMs with a common lhs: their rhs tiles are side by side, and one
 * instruction reads them as one wide tile. */
#include "template/wgmma.h"
#include "cost/compare.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "schedule/wgmma/wgmma_maps.h"
#include "schedule/wgmma/wgmma_price.h"

enum {
    STORE_WARPS = WGMMA_GROUP_WARPS - 1,
    MAX_WORKS = 8 /* of a launch */
};

typedef struct Tile {
    uint32_t m, n, cluster;
    uint32_t tail; /* columns of a narrower last tile in a row of tiles; 0: none */
} Tile;

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

/* The columns of a narrower last tile, as wide as the rest. Instructions of integers have widths of
 * 16, others of 8. A cluster's blocks get equal halves, and transposed operands side by side whole
 * blocks. 0: there is none, or it gains nothing.
 * Parallel GEMMs have none, because their blocks have one loop over all tiles. */
static uint32_t tail_of(const Wgmma *g, Tile tile) {
    int64_t n;
    if (g->launch.n_kernels > 1 ||
        !dim_is_const(g->dims, kernel_axis_extent(g->kernel, g->sides[1].axis), &n) || n < tile.n)
        return 0;
    bool has_blocks = g->sides[1].is_mn_major && g->launch.n_gemms > 1;
    uint32_t columns = dtype_is_int(g->dtype) ? 16 : 8 * tile.cluster;
    uint32_t step = has_blocks ? 64 : columns, rest = (uint32_t)(n % tile.n);
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
    while (wgmma_shared_bytes(stage_bytes(g, tile), sched) + row_cache_bytes >
           g->block_shared_bytes)
        sched->gemm.stages--;
    variant->shared_bytes = wgmma_shared_bytes(stage_bytes(g, tile), sched);
    sched->cluster = tile.cluster;
    variant->grid = blocks_of(g->dims, g->kernel, tile);
    variant->is_persistent = true;
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
    bool is_known = dim_multiple(g->dims, n) % GEMM_STORE_LANES == 0;
    if (!is_known && dim_is_const(g->dims, n, &value)) return;
    variant->sched.lanes = GEMM_STORE_LANES;
    Predicate *predicate = &variant->predicate;
    if (!is_known) predicate_require_multiple(predicate, n, GEMM_STORE_LANES);
    predicate_assume(predicate, g->tab);
    uint64_t args = gemm_run_args(g->kernel, gemm_axis_n(g->kernel), GEMM_STORE_LANES, false);
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
        with.tail && price_is_worth(cost(g, with, is_split), cost(g, tile, is_split));
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
                   price_is_no_loss(cost(g, two, is_split), cost(g, tile, is_split))
               ? two
               : tile;
}

/* The columns of the widest tile, of all GEMMs of the launch. A thread has twice the registers for
 * 8-bit floats: for the accumulators and for the sums of the last products. */
static uint32_t most_width(const Wgmma *g) {
    return dtype_in(g->dtype, DTS_STORED) ? WGMMA_MAX_WIDTH / 2 : WGMMA_MAX_WIDTH;
}

/* The columns of the widest tile of each GEMM, in whole blocks for any layout. */
static uint32_t widest(const Wgmma *g) {
    return most_width(g) / g->launch.n_gemms / 64 * 64;
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
        if (width > most_width(g)) continue;
        if (is_split) tile = with_cluster(g, tile, is_split);
        tile = with_tail(g, tile, is_split);
        if (price_is_worth(cost(g, tile, is_split), cost(g, best, is_split))) best = tile;
    }
    return is_split ? best : with_cluster(g, best, is_split);
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

/* Sets the tile of each GEMM for a priced tile. Returns false if the template has no such
 * priced tile here: too many columns for the GEMMs side by side, or fewer rows than it is for. */
static bool find_tile(const Wgmma *g, const WgmmaTile *priced, Tile *tile) {
    uint32_t n_gemms = g->launch.n_gemms;
    bool is_eligible = n_gemms > 1 ? priced->is_for_several : priced->is_for_one;
    is_eligible = is_eligible && (priced->cluster == 1 || !g->sides[0].map.im2col) &&
                  priced->n <= most_width(g);
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

/* Whether the tile also has a variant for results [m, n] where n is no multiple of a vector. Few
 * tiles have such a variant, because code costs load time. */
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
    g.block_shared_bytes = s->target->block_shared_bytes;
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
    bool is_common = wgmma_has_run_pitch(&g, g.sides[1].map.axes[1].stride);
    add_tiles(&g, anywhere, 2, is_common ? is_for_odd_rows : is_one_for_odd_rows, list);
}

/* Lists the variants of wgmma, and those of mma: for few rows, for operands with an extent that is
 * no multiple as the maps need it (one variant with vectors on one of them), and for anything
 * else. */
static void list_variants(const Scheduler *s, Candidates *list) {
    Variant made[MAX_VARIANTS];
    Candidates others = {.dims = s->dims, .base = list->base, .variants = made};
    bool fits = wgmma_maps_fit(s->plan, s->kernel);
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
