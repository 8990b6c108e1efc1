/* See scheduler.h. The rule: tiles wherever a load is uncoalesced, if tiles are full enough, with
 * wide accesses on each side where its extent and all pointers allow them. */
#include "schedule/scheduler.h"
#include "base/arith.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "cost/count/registers.h"
#include "cost/pressure.h"
#include "template/cpu_map_tile.h"
#include "template/map_tile.h"

enum { MAX_LANES = 8 };

typedef struct Tiler {
    Arena *arena;
    const Plan *plan;
    const Kernel *kernel;
    const Target *target;
    IndexTab *indices;
    DimTab *dims;
    uint32_t in, out; /* axes */
    ScalarId staged[MAP_TILE_MAX_STAGED];
    uint32_t n_staged;
} Tiler;

static uint32_t ceil_pow2(int64_t n) {
    uint32_t p = 1;
    while (p < n && p < SCHED_TILE_MOST_EDGE) p *= 2;
    return p;
}

static DimId extent(const Tiler *t, uint32_t axis) {
    return index_axis_extent(t->indices, axis);
}

static const Scalar *staged_load(const Tiler *t, uint32_t i) {
    return scalar_get(t->kernel->scalars, t->staged[i]);
}

/* Axes. */

static bool stores_lie_along(const Tiler *t, uint32_t axis) {
    const Stage *stage = &t->kernel->stages.data[0];
    for (uint32_t i = 0; i < stage->stores.n; i++) {
        DimId stride;
        if (stage->stores.data[i].guard) return false;
        if (!index_stride(t->indices, stage->stores.data[i].address, axis, &stride) ||
            stride == DIM_NONE || !dim_equals_const(t->dims, stride, 1))
            return false;
    }
    return stage->stores.n > 0;
}

static bool is_long(const Tiler *t, uint32_t axis) {
    return dim_hi(t->dims, extent(t, axis)) >= SCHED_TILE_LEAST_EXTENT;
}

static bool find_out(Tiler *t) {
    for (t->out = t->kernel->n_parallel; t->out-- > 0;)
        if (is_long(t, t->out) && stores_lie_along(t, t->out)) return true;
    return false;
}

/* Finds the axis with the most bytes of uncoalesced loads; the innermost one wins a tie. */
static bool find_in(Tiler *t) {
    uint32_t most = 0;
    for (uint32_t axis = t->kernel->n_parallel; axis-- > 0;) {
        ScalarId staged[MAP_TILE_MAX_STAGED];
        if (axis == t->out || !is_long(t, axis)) continue;
        uint32_t bytes = 0, n = map_tile_staged(t->arena, t->kernel, axis, t->out, staged,
                                                MAP_TILE_MAX_STAGED);
        for (uint32_t i = 0; i < n && n <= MAP_TILE_MAX_STAGED; i++)
            bytes += dtype_bytes(scalar_get(t->kernel->scalars, staged[i])->dtype);
        if (bytes <= most) continue;
        most = bytes;
        t->in = axis;
    }
    if (most)
        t->n_staged =
            map_tile_staged(t->arena, t->kernel, t->in, t->out, t->staged, MAP_TILE_MAX_STAGED);
    return most > 0;
}

/* Tiles. */

/* Sets the tile's edges. If an axis is shorter than its edge, the other edge grows. */
static void set_tile(const Tiler *t, uint32_t edge, Sched *sched) {
    uint32_t in = ceil_pow2(dim_hi(t->dims, extent(t, t->in)));
    uint32_t out = ceil_pow2(dim_hi(t->dims, extent(t, t->out)));
    sched->map_tile.tile_m = min_u32(in, edge);
    sched->map_tile.tile_n = min_u32(out, edge * edge / sched->map_tile.tile_m);
    if (sched->map_tile.tile_m == edge) sched->map_tile.tile_n = min_u32(out, edge);
    if (sched->map_tile.tile_n < edge)
        sched->map_tile.tile_m = min_u32(in, edge * edge / sched->map_tile.tile_n);
}

static uint32_t unrolled_prims(const Tiler *t, const Sched *sched) {
    const bool *live = kernel_live_scalars(t->arena, t->kernel);
    uint32_t prims = 0;
    for (ScalarId id = 1; id <= scalar_count(t->kernel->scalars); id++)
        if (live[id]) prims += 1 + scalar_own_cost(t->kernel->scalars, id);
    return prims * map_tile_elems(sched);
}

static bool fits(const Tiler *t, const Sched *sched) {
    return map_tile_bytes(t->arena, t->kernel, sched) <= SCHED_TILE_BYTES &&
           unrolled_prims(t, sched) <= SCHED_TILE_PRIMS &&
           pressure_least(t->arena, t->kernel, sched) <= MAX_THREAD_REGISTERS;
}

/* The number of blocks, one per tile. */
static DimId count_tiles(const Tiler *t, const Sched *sched) {
    DimId in = dim_ceil_div(t->dims, extent(t, t->in), sched->map_tile.tile_m);
    DimId n = dim_ceil_div(t->dims, extent(t, t->out), sched->map_tile.tile_n);
    n = dim_mul(t->dims, in, n);
    for (uint32_t axis = 0; axis < t->kernel->n_parallel && n; axis++)
        if (axis != t->in && axis != t->out) n = dim_mul(t->dims, n, extent(t, axis));
    return n;
}

/* Chooses small tiles if large ones would leave processors idle. */
static bool choose_tile(const Tiler *t, Sched *sched) {
    for (uint32_t edge = SCHED_TILE_EDGE; edge >= SCHED_TILE_SMALL_EDGE; edge /= 2) {
        set_tile(t, edge, sched);
        if (map_tile_elems(sched) < 1 || !fits(t, sched)) continue;
        DimId n = count_tiles(t, sched);
        if (n && (edge == SCHED_TILE_SMALL_EDGE || dim_hi(t->dims, n) >= t->target->n_processors))
            return true;
    }
    return false;
}

/* Requires full tiles, by a condition if it is not known: the capacity of all tiles minus their
 * elements must be at most zero. */
static bool ask_full(const Tiler *t, Variant *variant) {
    const Sched *sched = &variant->sched;
    DimId rows = kernel_n_rows(t->kernel);
    DimId least =
        dim_mul_const(t->dims, variant->grid,
                      (int64_t)sched->map_tile.tile_m * sched->map_tile.tile_n / SCHED_TILE_SHARE);
    if (!rows || !least) return false;
    DimId lacking = dim_sub(t->dims, least, rows);
    if (!lacking || dim_lo(t->dims, lacking) > 0) return false;
    if (dim_hi(t->dims, lacking) <= 0) return true;
    predicate_set_range(&variant->predicate, lacking, INT64_MIN, 0);
    return true;
}

/* Lanes. */

static uint32_t widest_staged(const Tiler *t) {
    uint32_t widest = 1;
    for (uint32_t i = 0; i < t->n_staged; i++) {
        uint32_t own = dtype_bytes(staged_load(t, i)->dtype);
        if (own > widest) widest = own;
    }
    return widest;
}

/* Lanes along an axis for elements of this size, such that every thread has some. */
static uint32_t lanes_along(const Tiler *t, const Sched *sched, uint32_t axis, uint32_t bytes) {
    uint32_t lanes = min_u32(t->target->vector_bytes / bytes, MAX_LANES);
    int64_t value;
    lanes = min_u32(lanes, map_tile_elems(sched));
    lanes = min_u32(lanes, axis == t->in ? sched->map_tile.tile_m : sched->map_tile.tile_n);
    if (dim_is_const(t->dims, extent(t, axis), &value))
        while (lanes > 1 && value % lanes) lanes /= 2;
    return lanes;
}

/* Requires that the axis is a multiple of the lanes, if that is not known. */
static void ask_whole(const Tiler *t, uint32_t axis, uint32_t lanes, Variant *variant) {
    DimId dim = extent(t, axis);
    if (dim_multiple(t->dims, dim) % lanes)
        predicate_require_multiple(&variant->predicate, dim, lanes);
}

/* Bit set with the argument if wide accesses need its alignment. */
static uint64_t wide_argument(const Tiler *t, uint32_t buffer, IndexId index, uint32_t axis,
                              uint32_t lanes) {
    bool is_wide = lanes > 1 &&
                   index_lane_motion(t->indices, index, axis, lanes) == LANES_CONTIGUOUS &&
                   index_is_multiple(t->indices, index, axis, lanes);
    uint32_t arg = kernel_find_arg(t->kernel, buffer);
    return is_wide && arg != NO_ARG ? (uint64_t)1 << arg : 0;
}

static uint64_t wide_arguments(const Tiler *t, const Variant *variant) {
    const Sched *sched = &variant->sched;
    const ScalarTab *scalars = t->kernel->scalars;
    const bool *live = kernel_live_scalars(t->arena, t->kernel);
    const Stage *stage = &t->kernel->stages.data[0];
    uint64_t args = 0;
    predicate_assume(&variant->predicate, t->indices);
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *s = scalar_get(scalars, id);
        if (!live[id] || s->kind != SCALAR_LOAD) continue;
        args |= vec_among(t->staged, t->n_staged, id)
                    ? wide_argument(t, s->buffer, s->index, t->in, sched->map_tile.lanes_in)
                    : wide_argument(t, s->buffer, s->index, t->out, sched->lanes);
    }
    for (uint32_t i = 0; i < stage->stores.n; i++)
        args |= wide_argument(t, stage->stores.data[i].buffer, stage->stores.data[i].address,
                              t->out, sched->lanes);
    predicate_assume(NULL, t->indices);
    return args;
}

static Variant wide_variant(const Tiler *t, Variant variant) {
    Sched *sched = &variant.sched;
    sched->lanes = lanes_along(t, sched, t->out, sched_widest_bytes(t->plan, t->kernel));
    sched->map_tile.lanes_in = lanes_along(t, sched, t->in, widest_staged(t));
    while (sched->lanes > 1 && registers_are_spread(t->arena, t->kernel, sched)) sched->lanes /= 2;
    ask_whole(t, t->out, sched->lanes, &variant);
    ask_whole(t, t->in, sched->map_tile.lanes_in, &variant);
    predicate_align(&variant.predicate, t->target->vector_bytes, wide_arguments(t, &variant));
    return variant;
}

uint32_t sched_map_tiles(Arena *arena, const Plan *plan, const Kernel *kernel, const Target *target,
                         const Variant *base, Variant *variants) {
    Tiler t = {.arena = arena,
               .plan = plan,
               .kernel = kernel,
               .target = target,
               .indices = scalartab_indices(kernel->scalars),
               .dims = plan->graph->dims};
    Variant narrow = *base;
    Sched *sched = &narrow.sched;
    if (kernel->n_parallel < 2 || kernel_updates(kernel) || !find_out(&t) || !find_in(&t)) return 0;
    sched->template = TEMPLATE_GPU_MAP_TILE;
    sched->threads = MAP_TILE_THREADS;
    sched->map_tile.axis_in = t.in;
    sched->map_tile.lanes_out = kernel->n_parallel - 1 - t.out;
    sched->map_tile.lanes_in = sched->lanes = 1;
    if (!choose_tile(&t, sched)) return 0;
    narrow.grid = count_tiles(&t, sched);
    if (!narrow.grid || !ask_full(&t, &narrow)) return 0;
    variants[0] = wide_variant(&t, narrow);
    uint32_t n = predicate_term(&variants[0].predicate, TERM_ALIGNED, 0) != NULL;
    variants[n] = narrow;
    return n + 1;
}

/* Ahead of other variants, where loads are uncoalesced. */
static void propose(Scheduler *s, Access access) {
    Variant base = {.sched = sched_gpu(s, TEMPLATE_GPU_MAP)}, tiles[MAP_TILE_VARIANTS];
    if (access != ACCESS_WIDE) return;
    uint32_t n = sched_map_tiles(s->arena, s->plan, s->kernel, s->target, &base, tiles);
    for (uint32_t i = 0; i < n; i++) sched_add(s, tiles[i]);
}

/* As a map without tiles; one element at a time where lanes lie along another axis than the last.
 */
static bool in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    Sched *sched = &variant->sched;
    if (sched->map_tile.lanes_out) sched->lanes = 1;
    sched->template = TEMPLATE_GPU_MAP;
    sched->threads = threads;
    variant->grid = sched_map_grid(kernel, sched);
    return true;
}

const TemplateSchedule schedule_gpu_map_tile = {.propose = propose, .in_one_block = in_one_block};

/* CPU (template/cpu_map_tile.h): maps whose stores are contiguous along the last axis, and of which
 * a load is contiguous along another one. */

enum { LEAST_LANES = 4 };

static bool is_long_on_cpu(const Scheduler *s, uint32_t axis, uint32_t lanes) {
    return dim_hi(s->dims, index_axis_extent(s->indices, axis)) >= (int64_t)lanes;
}

/* Requires that an extent which may be short is not. */
static void ask_long(const Scheduler *s, uint32_t axis, uint32_t lanes, Variant *variant) {
    DimId extent = index_axis_extent(s->indices, axis);
    if (dim_lo(s->dims, extent) < (int64_t)lanes)
        predicate_require_range(&variant->predicate, extent, lanes, INT64_MAX);
}

static bool all_stores_lie_along(const Scheduler *s, uint32_t axis, uint32_t lanes) {
    const Stage *stage = &s->kernel->stages.data[0];
    for (uint32_t i = 0; i < stage->stores.n; i++)
        if (index_lane_motion(s->indices, stage->stores.data[i].address, axis, lanes) !=
            LANES_CONTIGUOUS)
            return false;
    return stage->stores.n > 0;
}

/* The axis along which the most values are turned; the innermost one wins a tie. */
static uint32_t choose_in(const Scheduler *s, uint32_t lanes) {
    uint32_t best = NO_AXIS, most = 0;
    for (uint32_t axis = s->lane_axis; axis-- > 0;) {
        if (!is_long_on_cpu(s, axis, lanes)) continue;
        uint32_t n = cpu_map_turned(s->arena, s->kernel, axis, s->lane_axis, lanes).n;
        if (n > most) best = axis, most = n;
    }
    return best;
}

static void propose_cpu(Scheduler *s, Access access) {
    Sched sched = sched_cpu(s, TEMPLATE_CPU_MAP_TILE);
    if (access == ACCESS_SINGLE || s->lane_axis == NO_AXIS || kernel_updates(s->kernel) ||
        sched.lanes < LEAST_LANES || !is_long_on_cpu(s, s->lane_axis, sched.lanes) ||
        !all_stores_lie_along(s, s->lane_axis, sched.lanes))
        return;
    uint32_t in = choose_in(s, sched.lanes);
    if (in == NO_AXIS) return;
    sched.map_tile = (MapTileSched){.tile_m = SCHED_CPU_TILE_IN,
                                    .tile_n = SCHED_CPU_TILE_OUT,
                                    .axis_in = in,
                                    .lanes_in = sched.lanes};
    Variant variant = {.sched = sched, .grid = dim_const(s->dims, 1)};
    for (uint32_t axis = 0; axis <= s->lane_axis; axis++) {
        DimId n = index_axis_extent(s->indices, axis);
        if (axis == in) n = dim_ceil_div(s->dims, n, SCHED_CPU_TILE_IN);
        if (axis == s->lane_axis) n = dim_ceil_div(s->dims, n, SCHED_CPU_TILE_OUT);
        variant.grid = dim_mul(s->dims, variant.grid, n);
    }
    ask_long(s, in, sched.lanes, &variant);
    ask_long(s, s->lane_axis, sched.lanes, &variant);
    sched_add(s, variant);
}

const TemplateSchedule schedule_cpu_map_tile = {.propose = propose_cpu};
