/* Schedules of GEMMs of fused multiply-adds in tiles on a GPU, as large as still fill the machine.
 * See scheduler.h. */
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "template/simt.h"

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

static uint32_t fill(const Scheduler *s, Variant *variants) {
    const Kernel *kernel = s->kernel;
    GemmGpu g = {.kernel = kernel,
                 .launch = s->launch,
                 .dims = s->dims,
                 .n_processors = s->target->n_processors,
                 .m = kernel_axis_extent(kernel, gemm_axis_m(kernel)),
                 .n = kernel_axis_extent(kernel, gemm_axis_n(kernel)),
                 .k = kernel_axis_extent(kernel, gemm_axis_k(kernel)),
                 .own = kernel_own_args(s->plan, kernel),
                 .variants = variants};
    add_fma(&g, variants[0], kernel->reduces.data[0].acc);
    return g.n_variants;
}

int64_t sched_simt_widest_rows(void) {
    return row_tiles[N_ROW_TILES - 1][0].n;
}

static bool may(const Scheduler *s) {
    return !sched_naive_may(s->plan, s->kernel) && !sched_gemv_may(s->plan, s->kernel) &&
           !gemm_has_tensor_cores(s->kernel);
}

static void propose(Scheduler *s, Access access) {
    if (access == ACCESS_WIDE) sched_add_gemm(s, fill);
}

/* Chooses the arrangement of warps and the tile, with few outputs per thread: 8 by 4 threads per
 * warp, or 1 by 32 for one row. */
static bool in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    Sched *sched = &variant->sched;
    sched->threads = threads;
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t n_warps = threads / WARP_THREADS;
    int64_t m = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)));
    int64_t n = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_n(kernel)));
    GemmSched *gemm = &sched->gemm;
    gemm->warps_m = m <= SCHED_ONE_BLOCK_ROWS ? 1 : n_warps / SCHED_ONE_BLOCK_WARPS < 4 ? 2 : 4;
    gemm->warps_n = n_warps / gemm->warps_m;
    if (m == 1) {
        gemm->tile_m = 1;
        gemm->tile_n = WARP_THREADS * gemm->warps_n;
    } else {
        gemm->tile_m = m <= SCHED_ONE_BLOCK_ROWS ? SCHED_ONE_BLOCK_ROWS : m <= 32 ? 32 : 64;
        gemm->tile_n = 4 * gemm->warps_n;
        while (gemm->tile_n < n && gemm->tile_n < 64) gemm->tile_n *= 2;
    }
    gemm->tile_k = SCHED_ONE_BLOCK_DEPTH;
    uint32_t bytes = 2 * (gemm->tile_m + gemm->tile_n) * dtype_bytes(kernel->reduces.data[0].acc);
    while (gemm->tile_k > 4 && gemm->tile_k * bytes > SCHED_ONE_BLOCK_BYTES) gemm->tile_k /= 2;
    gemm->stages = 2;
    variant->grid = gemm_gpu_grid(kernel, gemm->tile_m, gemm->tile_n);
    return true;
}

const TemplateSchedule schedule_gpu_gemm_simt = {
    .may = may, .propose = propose, .in_one_block = in_one_block};
