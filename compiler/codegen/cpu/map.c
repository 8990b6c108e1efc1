/* CPU maps: full vectors along the last parallel axis, or along an earlier one if the last is
 * short, then one masked vector. See template.h. */
#include "codegen/cpu/cpu.h"
#include "machine/machine.h"
#include "plan/access.h"

typedef struct Map {
    const Stage *stage;
    Point point; /* of the unit */
    uint32_t lanes;
    bool has_whole_pieces; /* each piece between cuts has whole vectors alone */
} Map;

static void map_step(void *user, Val at, Val mask) {
    const Map *map = user;
    Point point = cpu_lane_point(&map->point, map->lanes, at, mask);
    point_store_all(&point, map->stage->stores.data, map->stage->stores.n);
}

/* The product of the extents of `n` axes. */
static DimId count_of(const Lower *lower, uint32_t first, uint32_t n) {
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    DimId count = dim_const(indextab_dims(tab), 1);
    for (uint32_t k = first; k < first + n; k++)
        count = dim_mul(indextab_dims(tab), count, index_axis_extent(tab, k));
    return count;
}

/* Sets the axes inside the lane axis, which are shorter than a vector. Consecutive units walk over
 * them, so that the units share the cache lines of their elements. Returns the number of the
 * run. */
static Val split_short(Lower *lower, Map *map, Val unit_index) {
    const Codegen *k = lower->k;
    uint32_t first = lower->lane_axis + 1, n = lower->variant->sched.cpu_map.lanes_out;
    if (n == 0) return unit_index;
    Val count = lower_dim(lower, count_of(lower, first, n));
    Val inner = k_urem(k, unit_index, count);
    lower_split(lower, inner, first, n, &map->point);
    return k_udiv(k, unit_index, count);
}

/* Splits a unit's number: sets the outer axes and returns the number of its run. Runs of one row
 * are consecutive, as in memory. Short runs, which a schedule chooses for operands that are strided
 * along the lanes, go down the rows instead, so that consecutive units use the same cache line. */
static Val split_unit(Lower *lower, Map *map, Val unit_index, DimId extent) {
    const Codegen *k = lower->k;
    DimTab *dims = lower_dims(lower);
    int64_t chunk_elems = lower->variant->sched.cpu_map.chunk_elems;
    uint32_t n_outer_axes = lower->lane_axis;
    unit_index = split_short(lower, map, unit_index);
    if (n_outer_axes == 0) return unit_index;
    bool is_down = chunk_elems <= CPU_MAP_SHORT_RUN;
    DimId n_inner = is_down ? count_of(lower, 0, n_outer_axes) : DIM_NONE;
    if (!is_down) n_inner = dim_ceil_div(dims, extent, chunk_elems);
    Val count = lower_dim(lower, n_inner);
    Val inner = k_urem(k, unit_index, count);
    Val outer = k_udiv(k, unit_index, count);
    lower_split(lower, is_down ? inner : outer, 0, n_outer_axes, &map->point);
    return is_down ? outer : inner;
}

/* Whether the machine loads elements of the dtype under a mask in one instruction. */
static bool has_masks(const Lower *lower, Dtype dtype) {
    return dtype_bytes(dtype) >= WORD_BYTES || lower->k->target->vector_bytes >= CPU_LINE_BYTES;
}

/* The lanes of vectors of which the axis and all pieces have whole ones: of full vectors, or of
 * halves; 0: there are rests. */
static uint32_t whole_lanes(const Lower *lower, const CpuCuts *cuts, uint32_t lanes) {
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    for (uint32_t n = lanes; n > 1 && n >= lanes / 2; n /= 2) {
        bool is_whole = cpu_is_multiple(lower, extent, n);
        for (uint32_t i = 0; i < cuts->n; i++) is_whole &= cuts->at[i] % n == 0;
        if (is_whole) return n;
    }
    return 0;
}

/* Cuts along the lane axis if a vector may begin at them, and the pieces are short enough in code
 * and long enough in vectors: a loop without guards has no masked loads, which a CPU does not
 * prefetch, and AVX2 has none of 8 and 16 bits. Without those, pieces of whole half vectors are
 * long enough too; then the map's vectors are halves. */
static CpuCuts worthy_cuts(const Lower *lower, CpuRoots roots, Map *map) {
    enum { MANY_CUTS = 3, LONG = 4, LONG_WITHOUT_MASKS = 2 }; /* in vectors; measured */
    enum { MOST_COST = 1024 };                                /* of code, in primitives; judged */
    bool are_masked = true;
    uint32_t lanes = map->lanes;
    Arena *arena = lower->k->arena;
    const Kernel *kernel = lower->kernel;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    uint32_t axis = lower->lane_axis, cost = 0;
    CpuCuts cuts = cpu_find_cuts(lower, roots.ids, roots.n, axis);
    const bool *live = kernel_live_scalars(arena, kernel);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        bool is_choice =
            s->kind != SCALAR_CVT && (s->kind != SCALAR_PRIM || s->prim == PRIM_SELECT);
        if (live[id] && !is_choice) cost += scalar_own_cost(kernel->scalars, id);
        if (live[id] && s->kind == SCALAR_LOAD) are_masked &= has_masks(lower, s->dtype);
    }
    int64_t mean = cuts.n ? cuts.at[cuts.n - 1] / cuts.n : 0;
    uint32_t n_whole = whole_lanes(lower, &cuts, lanes);
    bool are_long = cuts.n < MANY_CUTS ? mean >= (are_masked ? LONG : LONG_WITHOUT_MASKS) * lanes
                                       : mean >= lanes / 2;
    bool are_worthy = cost * cuts.n <= MOST_COST && (are_long || (!are_masked && n_whole));
    const Stage *stage = &kernel->stages.data[0];
    for (uint32_t i = 0; i < stage->stores.n && are_worthy; i++)
        are_worthy =
            kernel_is_smooth(arena, kernel, stage->stores.data[i].value, axis, INDEX_ANY_START) &&
            index_lane_motion(tab, stage->stores.data[i].address, axis, INDEX_ANY_START) !=
                LANES_VARYING;
    if (!are_worthy || !cuts.n) return (CpuCuts){.n = 0};
    if (!are_long) map->lanes = n_whole;
    map->has_whole_pieces = n_whole == map->lanes;
    return cuts;
}

/* Steps of `unroll` vectors while there are so many, then steps of one. */
static void map_steps(Map *map, CpuSpan span, bool is_whole) {
    Lower *lower = map->point.lower;
    uint32_t unroll = lower->variant->sched.unroll;
    if (unroll > 1) {
        Map wide = *map;
        wide.lanes *= unroll;
        span = cpu_whole_steps(lower, span, wide.lanes, map_step, &wide);
    }
    cpu_each_step(lower, span.begin, span.n, map->lanes, is_whole, map_step, map);
}

static void map_piece(void *user, const PointPiece *piece, CpuSpan span) {
    Map map = *(const Map *)user;
    Lower *lower = map.point.lower;
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    bool is_whole =
        piece->is_any ? map.has_whole_pieces : cpu_is_multiple(lower, extent, map.lanes);
    map.point = point_inside(&map.point);
    map.point.piece = *piece;
    map.point.block = piece->is_any ? INDEX_ANY_START : 0;
    map_steps(&map, span, is_whole);
}

/* Emits one unit: a run of chunk_elems elements, or the rest of the axis. */
static void map_unit(Lower *lower, Map *map, Val unit_index) {
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    uint32_t axis = lower->lane_axis;
    DimId extent_dim = kernel_axis_extent(kernel, axis);
    Val extent = lower_dim(lower, extent_dim);
    Val run = split_unit(lower, map, unit_index, extent_dim);
    Val from = k_muli(k, run, sched->cpu_map.chunk_elems);
    Val rest = k_sub(k, extent, from);
    Val n = cpu_at_most(lower, rest, sched->cpu_map.chunk_elems);
    CpuRoots roots = cpu_stage_roots(lower, map->stage);
    point_prepare(&map->point, roots.ids, roots.n, 1u << axis);
    CpuCuts cuts = worthy_cuts(lower, roots, map);
    cpu_each_piece(lower, &cuts, (CpuSpan){from, n}, map_piece, map);
}

void emit_cpu_map(Lower *lower) {
    Map map = {.stage = &lower->kernel->stages.data[0],
               .point = point_new(lower, 1),
               .lanes = cpu_lanes(lower)};
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    if (lower->lane_axis != NO_AXIS) {
        map_unit(lower, &map, units.index);
    } else {
        point_store_all(&map.point, map.stage->stores.data, map.stage->stores.n);
    }
    loop_end(lower->k, &units);
}
