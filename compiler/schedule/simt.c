/* Schedules of GEMMs of fused multiply-adds in tiles on a GPU, as large as still fill the machine.
 * See scheduler.h. */
#include "machine/machine.h"
#include "machine/tiles.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "template/simt.h"

typedef struct GemmGpu {
    const Kernel *kernel;
    GemmLaunch launch;
    DimTab *dims;
    int64_t n_processors;
    DimId m, n, k;
    Candidates *list;
} GemmGpu;

/* Gives a candidate its tile, if there is a candidate. */
static void set_tile(const GemmGpu *g, Variant *variant, const SimtTile *tiles) {
    if (!variant) return;
    Sched *sched = &variant->sched;
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
    variant->shared_bytes = sched_gemm_dynamic_bytes(bytes > subtile ? bytes : subtile);
    variant->grid = gemm_gpu_grid(g->kernel, tiles->m, tiles->n);
}

/* The number of such tiles per processor; for an unknown grid, the tiles of a row; 0: neither is
 * known. */
static int64_t n_rounds(const GemmGpu *g, const SimtTile *tiles) {
    int64_t n;
    if (dim_is_const(g->dims, gemm_launch_grid(&g->launch, g->kernel, tiles->m, tiles->n), &n))
        return (n + g->n_processors - 1) / g->n_processors;
    return dim_is_const(g->dims, g->n, &n) ? (n + tiles->n - 1) / tiles->n : 0;
}

/* The largest tile. In f64 a thread has no registers for the wide one's accumulators. If one tile
 * could hold whole rows, it leaves shared memory for a row kernel. */
static const SimtTile *largest_tiles(const GemmGpu *g) {
    const SimtTile *narrow = &simt_tiles[SIMT_TILE_LARGE], *wide = &simt_tiles[SIMT_TILE_WIDE];
    int64_t wide_tiles = wide->n / narrow->n * n_rounds(g, wide);
    bool may_be_wide =
        dim_hi(g->dims, g->n) > wide->n && dtype_bytes(g->kernel->reduces.data[0].acc) <= 4;
    return may_be_wide && wide_tiles * SCHED_SIMT_WIDE_PERCENT <= n_rounds(g, narrow) * 100
               ? wide
               : narrow;
}

/* The least number of blocks of the launch; of at least `rows` rows if the GEMM is alone. */
static int64_t least_blocks(const GemmGpu *g, const SimtTile *tiles, int64_t rows) {
    int64_t all = dim_lo(g->dims, gemm_launch_grid(&g->launch, g->kernel, tiles->m, tiles->n));
    DimId line = gemm_gpu_grid(g->kernel, UINT32_MAX, tiles->n); /* tiles side by side */
    int64_t own = dim_lo(g->dims, line) * ((rows + tiles->m - 1) / tiles->m);
    return g->launch.n_kernels <= 1 && own > all ? own : all;
}

/* The most blocks of the next larger tile for which `tiles` is chosen. */
static int64_t most_larger(const GemmGpu *g, const SimtTile *tiles) {
    return tiles->halves * g->n_processors / 2;
}

/* Adds a candidate for every tile size from `first` on. None is needlessly larger than an extent.
 * `least`: the least rows where no earlier variant applies. */
static void add_sizes(const GemmGpu *g, uint32_t first, int64_t least) {
    for (uint32_t i = first; i <= SIMT_TILE_LARGE && !g->list->is_complete; i++) {
        const SimtTile *tiles = &simt_tiles[i], *larger = tiles + 1;
        if (i == SIMT_TILE_LARGE)
            set_tile(g, candidate_always(g->list), largest_tiles(g));
        else if (dim_hi(g->dims, g->m) <= tiles->m || dim_hi(g->dims, g->n) <= tiles->n)
            set_tile(g, candidate_always(g->list), tiles);
        else if (least_blocks(g, larger, least) <= most_larger(g, tiles))
            set_tile(g,
                     candidate_at_most(
                         g->list, gemm_launch_grid(&g->launch, g->kernel, larger->m, larger->n),
                         most_larger(g, tiles)),
                     tiles);
    }
}

/* Adds candidates for few rows, from tile `first` to `last`, if k is long enough for stages.
 * Returns the least rows where none applies. */
static int64_t add_few_rows(const GemmGpu *g, uint32_t first, uint32_t last) {
    int64_t least = dim_lo(g->dims, g->m);
    if (least < 0) least = 0; /* the range of a difference of dims may be negative */
    if (dim_hi(g->dims, g->k) < SCHED_GEMM_STAGED_DEPTH || least > simt_tiles[last].m) return least;
    for (uint32_t i = first; i <= last; i++)
        set_tile(g, candidate_at_most(g->list, g->m, simt_tiles[i].m), &simt_tiles[i]);
    return simt_tiles[last].m + 1;
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
        if (!gemm_run_args(g->kernel, axes[i], lanes, false)) continue;
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
static void add_row_sizes(const GemmGpu *g) {
    uint32_t i = SIMT_TILE_ROWS_32_LOW;
    while (i < SIMT_TILE_ROWS_256_LOW && dim_hi(g->dims, g->n) > simt_tiles[i].n) i += 2;
    if (i == SIMT_TILE_ROWS_32_LOW) add_few_rows(g, SIMT_TILE_FEW_8, SIMT_TILE_FEW_8);
    if (g->list->is_complete) return;
    const SimtTile *low = &simt_tiles[i], *high = low + 1;
    DimId blocks = gemm_gpu_grid(g->kernel, high->m, high->n);
    set_tile(g, candidate_at_most(g->list, blocks, most_larger(g, low)), low);
    set_tile(g, candidate_always(g->list), high);
}

/* Adds few rows by the tiles from `first_few` to `last_few`, and more by the sizes from `first` on.
 */
static void add_all(const GemmGpu *g, uint32_t first_few, uint32_t last_few, uint32_t first) {
    if (g->launch.has_rows) {
        add_row_sizes(g);
    } else if (dim_equals_const(g->dims, g->m, 1)) {
        set_tile(g, candidate_always(g->list), &simt_tiles[SIMT_TILE_ONE_ROW]);
    } else {
        add_sizes(g, first, add_few_rows(g, first_few, last_few));
    }
}

static void list_variants(const Scheduler *s, Candidates *list) {
    const Kernel *kernel = s->kernel;
    GemmGpu g = {.kernel = kernel,
                 .launch = s->launch,
                 .dims = s->dims,
                 .n_processors = s->target->n_processors,
                 .m = kernel_axis_extent(kernel, gemm_axis_m(kernel)),
                 .n = kernel_axis_extent(kernel, gemm_axis_n(kernel)),
                 .k = kernel_axis_extent(kernel, gemm_axis_k(kernel)),
                 .list = list};
    uint32_t lanes = ACCESS_BYTES / dtype_bytes(kernel->reduces.data[0].acc);
    Variant any = list->base, wide = any;
    bool has_vectors = make_vector_variant(&g, &wide, lanes);
    if (has_vectors) {
        candidates_for(list, wide);
        add_all(&g, SIMT_TILE_FEW_8, SIMT_TILE_FEW_64, SIMT_TILE_SMALL);
    }
    /* This one takes any pointer, and accesses unaligned runs element by element. */
    any.sched.lanes = lanes;
    predicate_align(&any.predicate, ACCESS_BYTES, kernel_own_args(s->plan, kernel));
    candidates_for(list, any);
    if (has_vectors)
        add_all(&g, SIMT_TILE_FEW_32, SIMT_TILE_FEW_32, SIMT_TILE_MEDIUM);
    else
        add_all(&g, SIMT_TILE_FEW_8, SIMT_TILE_FEW_64, SIMT_TILE_MEDIUM);
}

int64_t sched_simt_widest_rows(void) {
    return simt_tiles[SIMT_TILE_ROWS_256].n;
}

static bool may(const Scheduler *s) {
    return !sched_naive_may(s->plan, s->kernel) && !sched_gemv_may(s->plan, s->kernel) &&
           !gemm_has_tensor_cores(s->kernel);
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
    .may = may, .list = list_variants, .in_one_block = in_one_block};
