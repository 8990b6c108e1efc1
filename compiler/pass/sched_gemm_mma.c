/* Schedules of contractions on tensor cores. See sched_gemm.h.
 *
 * tile_k is the same for all kernels of a dtype, since k is padded to its multiple and padding is
 * arithmetic too. In bytes everything is alike for all dtypes. */
#include "pass/sched_gemm.h"

enum {
    CHUNK_BYTES = 16, /* one asynchronous copy */
    DEPTH_BYTES = 64,
    WARP_THREADS = 32,
    STORE_LANES = 4,
    SMALL_EXTENT = 64,
    SMALL_GRID = 96 /* large tiles below which a machine of some hundred processors is not filled */
};

typedef struct Tile {
    uint32_t m, n, warps_m, warps_n, stages;
} Tile;

/* 48 KiB of shared memory. A thread has 128 registers of accumulators, in f64 with twice the warps.
 */
static const Tile large_tiles[2] = {{128, 128, 2, 2, 3}, {128, 128, 2, 4, 3}};
static const Tile small_tile = {64, 64, 2, 2, 4};

typedef struct Chooser {
    const Kernel *kernel;
    IndexTab *tab;
    DimTab *dims;
    ScalarId left, right;
    uint32_t elem_bytes, chunk_elems;
    const Tile *large_tile;
} Chooser;

/* What taking a dim for a multiple of a chunk's elements (or none) gives. */
typedef struct Choice {
    DimId condition;
    bool copies_both;
    uint32_t lanes;
    uint32_t score;
} Choice;

static uint32_t store_lanes(const Chooser *c) {
    return c->chunk_elems < STORE_LANES ? c->chunk_elems : STORE_LANES;
}

static DimId extent_of(const Chooser *c, uint32_t axis) {
    return index_axis_extent(c->tab, axis);
}

static bool are_lanes_whole(const Chooser *c, IndexId index, uint32_t axis, uint32_t lanes) {
    return index_lane_motion(c->tab, index, axis, lanes) == LANES_CONTIGUOUS &&
           index_is_multiple(c->tab, index, axis, lanes);
}

/* Whether a factor's tile can be copied: a plain load that k moves by a fixed stride, in chunks
 * along k or along its own axis. */
static bool is_copied(const Chooser *c, ScalarId factor, uint32_t axis) {
    const Scalar *s = scalar_get(c->kernel->scalars, factor);
    uint32_t k = gemm_axis_k(c->kernel);
    if (s->kind != SCALAR_LOAD || s->guard) return false;
    IndexExpr expr = index_expr(c->tab, s->index);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(c->tab, expr.terms[i].atom);
        if ((atom.axes >> k & 1) && atom.kind != ATOM_AXIS) return false;
    }
    return are_lanes_whole(c, s->index, k, c->chunk_elems) ||
           are_lanes_whole(c, s->index, axis, c->chunk_elems);
}

static Choice choose(const Chooser *c, DimId condition) {
    DimId n = extent_of(c, gemm_axis_n(c->kernel));
    index_assume_multiple(c->tab, condition, condition ? c->chunk_elems : 1);
    bool left = is_copied(c, c->left, gemm_axis_m(c->kernel));
    bool right = is_copied(c, c->right, gemm_axis_n(c->kernel));
    index_assume_multiple(c->tab, DIM_NONE, 1);
    uint32_t lanes = store_lanes(c);
    bool is_vector = dim_multiple(c->dims, n) % lanes == 0 || n == condition;
    return (Choice){.condition = condition,
                    .copies_both = left && right,
                    .lanes = is_vector ? lanes : 1,
                    .score = (left ? 2u : 0u) + (right ? 2u : 0u) + (is_vector ? 1u : 0u)};
}

/* The condition that helps most; one on a constant says nothing. */
static Choice best_choice(const Chooser *c) {
    Choice best = choose(c, DIM_NONE);
    const uint32_t axes[3] = {gemm_axis_k(c->kernel), gemm_axis_n(c->kernel),
                              gemm_axis_m(c->kernel)};
    for (int i = 0; i < 3; i++) {
        DimId extent = extent_of(c, axes[i]);
        int64_t value;
        if (dim_is_const(c->dims, extent, &value)) continue;
        Choice choice = choose(c, extent);
        if (choice.score > best.score) best = choice;
    }
    return best;
}

/* Arguments that are accessed in runs along some axis: those alignment is asked of. */
static uint64_t aligned_args(const Chooser *c, const Choice *choice) {
    const Kernel *kernel = c->kernel;
    const uint32_t axes[3] = {gemm_axis_m(kernel), gemm_axis_n(kernel), gemm_axis_k(kernel)};
    uint64_t args = 0;
    uint32_t lanes = store_lanes(c);
    index_assume_multiple(c->tab, choice->condition, choice->condition ? c->chunk_elems : 1);
    for (uint32_t a = 0; a < kernel->args.n; a++)
        for (int i = 0; i < 3; i++) {
            bool has_run = false;
            for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
                const Scalar *s = scalar_get(kernel->scalars, id);
                has_run = has_run || (s->kind == SCALAR_LOAD && s->buffer == kernel->args.data[a] &&
                                      are_lanes_whole(c, s->index, axes[i], lanes));
            }
            for (uint32_t k = 0; k < kernel->row_stores.n; k++) {
                const Store *store = &kernel->row_stores.data[k];
                has_run = has_run || (store->buffer == kernel->args.data[a] &&
                                      are_lanes_whole(c, store->address, axes[i], lanes));
            }
            if (has_run) args |= (uint64_t)1 << a;
        }
    index_assume_multiple(c->tab, DIM_NONE, 1);
    return args;
}

static void set_tile(const Chooser *c, Variant *variant, Tile tile) {
    Sched *sched = &variant->sched;
    sched->engine = CONTRACT_MMA;
    sched->tile_m = tile.m;
    sched->tile_n = tile.n;
    sched->tile_k = DEPTH_BYTES / c->elem_bytes;
    sched->warps_m = tile.warps_m;
    sched->warps_n = tile.warps_n;
    sched->stages = tile.stages;
    sched->threads = tile.warps_m * tile.warps_n * WARP_THREADS;
    variant->grid = gemm_gpu_grid(c->kernel, tile.m, tile.n);
}

/* Small tiles where large ones are few or mostly empty: by what is known, else by a condition. */
static uint32_t add_choice(const Chooser *c, const Choice *choice, Variant *variants) {
    Variant base = variants[0];
    base.sched.lanes = choice->lanes;
    base.align_bytes = CHUNK_BYTES;
    base.align_args = aligned_args(c, choice);
    if (choice->condition) {
        base.multiple_dim = choice->condition;
        base.multiple_of = c->chunk_elems;
    }
    DimId m = extent_of(c, gemm_axis_m(c->kernel)), n = extent_of(c, gemm_axis_n(c->kernel));
    DimId grid = gemm_gpu_grid(c->kernel, c->large_tile->m, c->large_tile->n);
    bool is_small = !choice->copies_both || dim_hi(c->dims, m) <= SMALL_EXTENT ||
                    dim_hi(c->dims, n) <= SMALL_EXTENT || dim_hi(c->dims, grid) <= SMALL_GRID;
    bool may_be_small = is_small || dim_lo(c->dims, grid) <= SMALL_GRID;
    uint32_t n_variants = 0;
    if (may_be_small) {
        variants[n_variants] = base;
        set_tile(c, &variants[n_variants], small_tile);
        if (!is_small) {
            variants[n_variants].limit_dim = grid;
            variants[n_variants].limit = SMALL_GRID;
        }
        n_variants++;
    }
    if (!is_small) {
        variants[n_variants] = base;
        set_tile(c, &variants[n_variants++], *c->large_tile);
    }
    return n_variants;
}

uint32_t sched_gemm_mma(const Plan *plan, const Kernel *kernel, const Target *target,
                        Variant *variants) {
    (void)target;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    const Reduce *reduce = &kernel->reduces.data[0];
    Chooser c = {.kernel = kernel,
                 .tab = tab,
                 .dims = indextab_dims(tab),
                 .left = gemm_unrounded(kernel, reduce->value),
                 .right = gemm_unrounded(kernel, reduce->factor),
                 .elem_bytes = dtype_bytes(scalar_get(kernel->scalars, reduce->value)->dtype)};
    c.chunk_elems = CHUNK_BYTES / c.elem_bytes;
    c.large_tile = &large_tiles[c.elem_bytes == 8];
    Variant anywhere = variants[0];
    Choice plain = choose(&c, DIM_NONE), best = best_choice(&c);
    uint32_t n = 0;
    for (int i = 0; i < 2; i++) {
        const Choice *choice = i == 0 ? &best : &plain;
        bool is_new = i == 0 || best.condition;
        if (!choice->score || !is_new) continue;
        variants[n] = anywhere;
        n += add_choice(&c, choice, variants + n);
    }
    variants[n] = anywhere;
    variants[n].sched.lanes = plain.lanes;
    variants[n].align_args = aligned_args(&c, &plain) & kernel_temp_args(plan, kernel);
    if (variants[n].align_args) variants[n].align_bytes = CHUNK_BYTES;
    set_tile(&c, &variants[n], small_tile);
    return n + 1;
}
