/* Schedules of GEMMs on tensor cores by mma. See gemm.h.
 *
 * Sizes in bytes are the same for all dtypes. k is always padded to a multiple of
 * SCHED_MMA_DEPTH_BYTES, because padding is part of the arithmetic; tile_k is larger only where it
 * divides k.
 *
 * If tiles of a size are fewer than the processors, smaller tiles read more in total, but from more
 * processors at once. Each then waits for memory, so their pipelines are deep. */
#include "schedule/scheduler.h"
#include "base/arith.h"
#include "machine/machine.h"
#include "machine/tiles.h"
#include "machine/tuning.h"

typedef struct TileChooser {
    const Kernel *kernel;
    GemmLaunch launch;
    Candidates *list;
    IndexTab *tab;
    DimTab *dims;
    ScalarId left, right;
    uint32_t elem_bytes, chunk_elems;
    uint32_t least_depth; /* bytes of k of a tile */
    bool by_groups;       /* warpgroups multiply */
    int64_t n_processors;
    const MmaTile *few, *small, *large; /* `few` may be NULL */
    const MmaTile *computed, *spare;    /* for operands that go through registers; for rare cases */
    bool has_low;                       /* whether tiles for few rows may be used */
    const MmaTile *rows;                /* the only tile for whole rows; NULL: rows need not be
                                         * whole */
} TileChooser;

/* The effect of assuming that a dim is a multiple of a chunk's elements (or of assuming
 * nothing). */
typedef struct OperandChoice {
    DimId condition;
    bool copies_both;
    uint32_t lanes;
    uint32_t score;
} OperandChoice;

static uint32_t store_lanes(const TileChooser *c) {
    return c->chunk_elems < GEMM_STORE_LANES ? c->chunk_elems : GEMM_STORE_LANES;
}

static bool are_lanes_whole(const TileChooser *c, IndexId index, uint32_t axis, uint32_t lanes) {
    return index_lane_motion(c->tab, index, axis, lanes) == LANES_CONTIGUOUS &&
           index_is_multiple(c->tab, index, axis, lanes);
}

/* Whether an operand's tile can be copied: a plain load with a fixed stride in k, contiguous in
 * whole chunks along k or along its own axis. */
static bool is_copied(const TileChooser *c, ScalarId operand, uint32_t axis) {
    const Scalar *s = scalar_get(c->kernel->scalars, operand);
    uint32_t k = gemm_axis_k(c->kernel);
    if (s->kind != SCALAR_LOAD || s->guard) return false;
    IndexExpr expr = index_expr(c->tab, s->index);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(c->tab, expr.terms[i].atom);
        if ((atom.axes >> k & 1) && atom.kind != ATOM_AXIS) return false;
    }
    return are_lanes_whole(c, s->index, k, c->chunk_elems) ||
           (c->elem_bytes > 1 && are_lanes_whole(c, s->index, axis, c->chunk_elems));
}

static OperandChoice choose(const TileChooser *c, DimId condition) {
    DimId n = kernel_axis_extent(c->kernel, gemm_axis_n(c->kernel));
    index_assume_multiple(c->tab, condition, condition ? c->chunk_elems : 1);
    bool left = is_copied(c, c->left, gemm_axis_m(c->kernel));
    bool right = is_copied(c, c->right, gemm_axis_n(c->kernel));
    index_assume_multiple(c->tab, DIM_NONE, 1);
    uint32_t lanes = store_lanes(c);
    bool is_vector = dim_multiple(c->dims, n) % lanes == 0 || n == condition;
    return (OperandChoice){.condition = condition,
                           .copies_both = left && right,
                           .lanes = is_vector ? lanes : 1,
                           .score = (left ? 2u : 0u) + (right ? 2u : 0u) + (is_vector ? 1u : 0u)};
}

/* The condition that helps most. A condition on a constant is useless. */
static OperandChoice best_choice(const TileChooser *c) {
    OperandChoice best = choose(c, DIM_NONE);
    const uint32_t axes[3] = {gemm_axis_k(c->kernel), gemm_axis_n(c->kernel),
                              gemm_axis_m(c->kernel)};
    for (int i = 0; i < 3; i++) {
        DimId extent = kernel_axis_extent(c->kernel, axes[i]);
        int64_t value;
        if (dim_is_const(c->dims, extent, &value)) continue;
        OperandChoice choice = choose(c, extent);
        if (choice.score > best.score) best = choice;
    }
    return best;
}

/* Arguments with contiguous accesses along some axis, whose alignment the variant requires. */
static uint64_t aligned_args(const TileChooser *c, const OperandChoice *choice) {
    const Kernel *kernel = c->kernel;
    const uint32_t axes[3] = {gemm_axis_m(kernel), gemm_axis_n(kernel), gemm_axis_k(kernel)};
    uint64_t args = 0;
    index_assume_multiple(c->tab, choice->condition, choice->condition ? c->chunk_elems : 1);
    for (int i = 0; i < 3; i++) args |= gemm_run_args(kernel, axes[i], store_lanes(c), true);
    index_assume_multiple(c->tab, DIM_NONE, 1);
    return args;
}

/* Gives a candidate its tile, if there is a candidate: as deep as allowed, at most all of k, with
 * stages of equal total size. */
static void set_tile(const TileChooser *c, Variant *variant, const MmaTile *tile) {
    if (!variant) return;
    Sched *sched = &variant->sched;
    DimId k = kernel_axis_extent(c->kernel, gemm_axis_k(c->kernel));
    uint32_t least = c->least_depth / c->elem_bytes, stages = tile->stages;
    uint32_t depth = max_u32(tile->depth_bytes, c->least_depth) / c->elem_bytes;
    while (depth > least && dim_multiple(c->dims, k) % depth) depth /= 2, stages *= 2;
    while (stages > 3 && (int64_t)(stages - 1) * depth >= dim_hi(c->dims, k)) stages--;
    sched->template = TEMPLATE_GPU_GEMM_MMA;
    sched->gemm.tile_m = tile->m;
    sched->gemm.tile_n = tile->n;
    sched->gemm.tile_k = depth;
    sched->gemm.warps_m = tile->warps_m;
    sched->gemm.warps_n = tile->warps_n;
    sched->gemm.stages = stages;
    sched->gemm.by_groups = c->by_groups;
    sched->threads = tile->warps_m * tile->warps_n * WARP_THREADS;
    uint32_t bytes = (tile->m + tile->n) * depth * c->elem_bytes * stages;
    variant->shared_bytes = sched_gemm_dynamic_bytes(bytes);
    variant->grid = gemm_gpu_grid(c->kernel, tile->m, tile->n);
}

/* Shared memory of all stages of the tile. */
static uint32_t tile_bytes(const MmaTile *tile) {
    return (tile->m + tile->n) * tile->depth_bytes * tile->stages;
}

static bool is_extent_at_most(const TileChooser *c, uint32_t axis, int64_t most) {
    return dim_hi(c->dims, kernel_axis_extent(c->kernel, axis)) <= most;
}

/* The constant number of tiles along n or m, over all batches and parallel GEMMs; 0: not
 * constant. */
static int64_t n_tiles_along(const TileChooser *c, bool along_n, uint32_t tile) {
    uint32_t n;
    const Kernel *kernels = gemm_launch_kernels(&c->launch, c->kernel, &n);
    int64_t all = 0, own;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis = along_n ? gemm_axis_n(&kernels[i]) : gemm_axis_m(&kernels[i]);
        DimId extent = kernel_axis_extent(&kernels[i], axis);
        DimId tiles = dim_ceil_div(c->dims, extent, tile);
        tiles = dim_mul(c->dims, tiles, gemm_n_batches(&kernels[i]));
        if (!tiles || !dim_is_const(c->dims, tiles, &own)) return 0;
        all += own;
    }
    return all;
}

/* Adds a size for at most `most` tiles of size `counted`. */
static void add_limited(const TileChooser *c, const MmaTile *tile, const MmaTile *counted,
                        int64_t most) {
    DimId grid = gemm_launch_grid(&c->launch, c->kernel, counted->m, counted->n);
    set_tile(c, candidate_at_most(c->list, grid, most), tile);
}

/* `most`, or the tiles of one row or column of tiles if that is more: such tiles are mostly empty,
 * and more of them share memory bandwidth better. */
static int64_t or_one_line(const TileChooser *c, const MmaTile *tile, int64_t most) {
    int64_t in_row = n_tiles_along(c, true, tile->n);
    int64_t in_column = n_tiles_along(c, false, tile->m);
    if (in_row > most) most = in_row;
    return in_column > most ? in_column : most;
}

static bool fits_tile(const TileChooser *c, const MmaTile *tile, bool both) {
    bool fits_m = is_extent_at_most(c, gemm_axis_m(c->kernel), tile->m);
    bool fits_n = is_extent_at_most(c, gemm_axis_n(c->kernel), tile->n);
    return both ? fits_m && fits_n : fits_m || fits_n;
}

/* Low tiles if higher ones would leave processors idle. */
static void add_row_choice(const TileChooser *c, bool copies_both, bool is_best) {
    if (is_best && copies_both && c->few) add_limited(c, c->few, c->few, c->n_processors);
    const MmaTile *plain = copies_both ? c->small : c->computed;
    set_tile(c, candidate_always(c->list), c->rows ? c->rows : plain);
}

/* Small tiles if larger ones are few or mostly empty: by known extents, else by a condition. */
static void add_tile_choice(const TileChooser *c, bool copies_both, bool is_best) {
    DimId m = kernel_axis_extent(c->kernel, gemm_axis_m(c->kernel));
    for (uint32_t i = MMA_TILE_F64_FEW_32; i <= MMA_TILE_F64_FEW_64 && c->has_low && copies_both;
         i++)
        set_tile(c, candidate_at_most(c->list, m, mma_tiles[i].m), &mma_tiles[i]);
    if (c->list->is_complete) return;
    const MmaTile *only = !copies_both                           ? c->computed
                          : c->few && fits_tile(c, c->few, true) ? c->few
                                                                 : NULL;
    if (!only && is_best && c->few) add_limited(c, c->few, c->few, 2 * c->n_processors);
    if (c->list->is_complete) return;
    if (!only && fits_tile(c, c->small, false)) only = c->small;
    MmaTile half = *c->large; /* counted to decide whether small tiles are better */
    half.m /= 2;
    if (!only) add_limited(c, c->small, &half, or_one_line(c, &half, SCHED_MMA_SMALL_GRID));
    set_tile(c, candidate_always(c->list), only ? only : c->large);
}

static void add_choice(const TileChooser *c, Variant base, const OperandChoice *choice,
                       bool is_best) {
    base.sched.lanes = choice->lanes;
    predicate_align(&base.predicate, ACCESS_BYTES, aligned_args(c, choice));
    if (choice->condition)
        predicate_require_multiple(&base.predicate, choice->condition, c->chunk_elems);
    candidates_for(c->list, base);
    (c->launch.has_rows ? add_row_choice : add_tile_choice)(c, choice->copies_both, is_best);
}

/* The tile of the variant that always applies. Whole rows stay in one tile if possible, so that a
 * row kernel can follow in the same blocks. */
static const MmaTile *spare_of(const TileChooser *c, bool is_spare) {
    uint32_t n = gemm_axis_n(c->kernel);
    if (c->rows) return c->rows;
    bool splits_rows =
        is_extent_at_most(c, n, c->computed->n) && !is_extent_at_most(c, n, c->spare->n);
    return is_spare && !splits_rows ? c->spare : c->computed;
}

/* The low tile for whole rows. NULL: a block has no room for the widest of these tiles, or some
 * threads would have nothing to copy. */
static const MmaTile *low_rows_of(const TileChooser *c, const Target *target) {
    uint32_t i = MMA_TILE_LOW_ROWS_64;
    bool has_room = tile_bytes(&mma_tiles[MMA_TILE_LOW_ROWS_256]) <= target->block_shared_bytes;
    while (i < MMA_TILE_LOW_ROWS_256 &&
           !is_extent_at_most(c, gemm_axis_n(c->kernel), mma_tiles[i].n))
        i++;
    bool is_deep = dim_multiple(c->dims, kernel_axis_extent(c->kernel, gemm_axis_k(c->kernel))) %
                       (mma_tiles[i].depth_bytes / c->elem_bytes) ==
                   0;
    return has_room && is_deep && c->elem_bytes < 8 ? &mma_tiles[i] : NULL;
}

/* The tile for few tiles. NULL: for such wide elements none is better. */
static const MmaTile *few_of(const TileChooser *c, const Target *target) {
    if (c->launch.has_rows) return low_rows_of(c, target);
    if (c->elem_bytes == 8) return NULL;
    int64_t n = c->elem_bytes <= 2 ? n_tiles_along(c, true, mma_tiles[MMA_TILE_FEW_WIDE].n) : 0;
    /* a shallower tile has too few chunks for all threads */
    DimId k = kernel_axis_extent(c->kernel, gemm_axis_k(c->kernel));
    bool is_deep = dim_multiple(c->dims, k) % (2 * SCHED_MMA_DEPTH_BYTES / c->elem_bytes) == 0;
    bool has_few_rows =
        is_deep && is_extent_at_most(c, gemm_axis_m(c->kernel), mma_tiles[MMA_TILE_FEW_ROWS].m);
    if (n < SCHED_MMA_MANY_TILES || n > 2 * c->n_processors) return &mma_tiles[MMA_TILE_FEW];
    if (n > c->n_processors)
        return has_few_rows ? &mma_tiles[MMA_TILE_FEW_ROWS_PAIR] : &mma_tiles[MMA_TILE_FEW];
    if (!has_few_rows) return &mma_tiles[MMA_TILE_FEW_WIDE];
    bool has_room = tile_bytes(&mma_tiles[MMA_TILE_FEW_ROWS_DEEP]) <= target->block_shared_bytes;
    return has_room ? &mma_tiles[MMA_TILE_FEW_ROWS_DEEP] : &mma_tiles[MMA_TILE_FEW_ROWS];
}

/* Whether low tiles may help. Elements are so wide that larger tiles compute longer than memory
 * takes, except for few rows of a deep k. */
static bool has_low(const TileChooser *c) {
    DimId k = kernel_axis_extent(c->kernel, gemm_axis_k(c->kernel));
    bool is_deep = dim_multiple(c->dims, k) % (2 * SCHED_MMA_DEPTH_BYTES / c->elem_bytes) == 0 &&
                   dim_hi(c->dims, k) >= SCHED_MMA_LOW_DEPTH;
    return c->elem_bytes == 8 && !c->launch.has_rows && is_deep;
}

/* The tile for whole rows. NULL: the small or large tiles hold them, or rows need not be whole. */
static const MmaTile *rows_of(const TileChooser *c) {
    uint32_t n = gemm_axis_n(c->kernel);
    if (!c->launch.has_rows || is_extent_at_most(c, n, mma_tiles[MMA_TILE_SMALL].n)) return NULL;
    if (c->elem_bytes == 8) return &mma_tiles[MMA_TILE_F64_ROWS];
    if (c->by_groups) return &mma_tiles[MMA_TILE_GROUP_ROWS];
    return is_extent_at_most(c, n, mma_tiles[MMA_TILE_ROWS_128].n) ? &mma_tiles[MMA_TILE_ROWS_128]
                                                                   : &mma_tiles[MMA_TILE_ROWS_256];
}

int64_t sched_mma_widest_rows(Dtype dtype) {
    if (dtype_in(dtype, DTS_STORED)) return mma_tiles[MMA_TILE_ROWS_128].n;
    return dtype_is_double(dtype) ? mma_tiles[MMA_TILE_F64_ROWS].n : mma_tiles[MMA_TILE_ROWS_256].n;
}

/* Sums of 8-bit floats are joined every GEMM_F8_DEPTH elements of k, so tiles are as deep. */
static TileChooser chooser_of(const Kernel *kernel, GemmLaunch launch) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    const Reduce *reduce = &kernel->reduces.data[0];
    Dtype dtype = scalar_get(kernel->scalars, reduce->lhs)->dtype;
    TileChooser c = {.kernel = kernel,
                     .launch = launch,
                     .tab = tab,
                     .dims = indextab_dims(tab),
                     .left = gemm_unrounded(kernel, reduce->lhs),
                     .right = gemm_unrounded(kernel, reduce->rhs),
                     .elem_bytes = dtype_bytes(dtype)};
    c.chunk_elems = ACCESS_BYTES / c.elem_bytes;
    c.least_depth = dtype_in(dtype, DTS_STORED) ? GEMM_F8_DEPTH : SCHED_MMA_DEPTH_BYTES;
    return c;
}

static void choose_tiles(TileChooser *c, const Target *target) {
    bool is_wide = c->elem_bytes == 8, is_f8 = c->least_depth == GEMM_F8_DEPTH;
    c->by_groups = is_f8 && target->has_wgmma;
    c->few = c->by_groups ? NULL : few_of(c, target);
    c->has_low = has_low(c);
    c->small = &mma_tiles[is_wide        ? MMA_TILE_F64_SMALL
                          : c->by_groups ? MMA_TILE_GROUP_SMALL
                                         : MMA_TILE_SMALL];
    c->large = &mma_tiles[is_wide        ? MMA_TILE_F64_LARGE
                          : c->by_groups ? MMA_TILE_GROUP_LARGE
                          : is_f8        ? MMA_TILE_F8_LARGE
                                         : MMA_TILE_LARGE];
    c->computed = c->by_groups ? c->small : &mma_tiles[MMA_TILE_COMPUTED];
    c->spare = c->by_groups ? c->small : &mma_tiles[MMA_TILE_SPARE];
    c->rows = rows_of(c);
}

/* Whether the variant copies both operands to shared memory, several steps of k ahead. */
static bool copies_operands(const Kernel *kernel, const Variant *variant) {
    TileChooser c = chooser_of(kernel, (GemmLaunch){.n_gemms = 1});
    return choose(&c, predicate_dim(&variant->predicate, TERM_MULTIPLE)).copies_both;
}

void sched_mma(const Scheduler *s, bool is_spare, Candidates *list) {
    TileChooser c = chooser_of(s->kernel, s->launch);
    c.list = list;
    c.n_processors = s->target->n_processors;
    choose_tiles(&c, s->target);
    Variant anywhere = list->base;
    OperandChoice plain = choose(&c, DIM_NONE), best = best_choice(&c);
    if (best.score) add_choice(&c, anywhere, &best, true);
    if (plain.score && best.condition) add_choice(&c, anywhere, &plain, false);
    anywhere.sched.lanes = 1; /* a rare case: the least code */
    predicate_align(&anywhere.predicate, ACCESS_BYTES,
                    aligned_args(&c, &plain) & kernel_own_args(s->plan, s->kernel));
    set_tile(&c, candidate_add(list, anywhere), spare_of(&c, is_spare || plain.copies_both));
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

bool sched_mma_few_rows(const Scheduler *s, Variant *few) {
    const Kernel *kernel = s->kernel;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId m = index_axis_extent(tab, gemm_axis_m(kernel));
    DimId n = index_axis_extent(tab, gemm_axis_n(kernel));
    DimId n_tiles = dim_ceil_div(dims, n, few->sched.gemm.tile_n);
    bool is_one = dim_hi(dims, n_tiles) <= 1 && dim_hi(dims, m) <= SCHED_GEMM_FEW_ROWS;
    n_tiles = n_tiles_of_rows(&s->launch, kernel, few->sched.gemm.tile_n);
    bool is_deep = dim_lo(dims, kernel_n_reduced(kernel)) >= SCHED_GEMM_DEEP;
    if (is_deep && dim_hi(dims, m) <= SCHED_GEMM_FEW_ROWS &&
        few->sched.gemm.tile_m == SCHED_GEMM_FEW_ROWS)
        return false;
    if (few->sched.gemm.tile_m > SCHED_GEMM_FEW_ROWS || dim_lo(dims, m) > SCHED_GEMM_FEW_ROWS)
        return false;
    if (!copies_operands(kernel, few)) return false;
    if (!is_one && (!n_tiles || dim_hi(dims, n_tiles) > 2 * s->target->n_processors)) return false;
    predicate_drop(&few->predicate, TERM_RANGE);
    if (dim_hi(dims, m) > SCHED_GEMM_FEW_ROWS)
        predicate_set_range(&few->predicate, m, INT64_MIN, SCHED_GEMM_FEW_ROWS);
    return true;
}

/* False for GEMMs of wgmma: that template proposes the variants of mma too. */
static bool may(const Scheduler *s) {
    return sched_gpu_gemm_copies(s->plan, s->kernel) &&
           !sched_wgmma_may(s->plan, s->kernel, s->target);
}

static void list_variants(const Scheduler *s, Candidates *list) {
    sched_mma(s, false, list);
}

const TemplateSchedule schedule_gpu_gemm_mma = {.may = may, .list = list_variants};
