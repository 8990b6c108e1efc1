/* CPU maps: full vectors along the last parallel axis, then one masked vector. See template.h. */
#include "back/cpu_common.h"

typedef struct Map {
    const Stage *stage;
    Point point; /* of the unit */
    uint32_t lanes;
} Map;

static void map_step(void *user, LLVMValueRef at, LLVMValueRef mask) {
    const Map *map = user;
    Point point = point_inside(&map->point);
    point.lanes = map->lanes;
    point.mask = mask;
    point.axis[point.lower->lane_axis] = at;
    point_store_all(&point, map->stage->stores.data, map->stage->stores.n);
}

/* Splits a unit's number: sets the outer axes, returns the number of its run. Runs of one row
 * follow each other, as in memory. Short runs (a schedule has them for operands that lie across the
 * lanes) instead go down the rows, so that a line of such an operand serves one unit after the
 * other. */
static LLVMValueRef split_unit(Lower *lower, Map *map, LLVMValueRef unit_index, DimId extent) {
    LLVMBuilderRef builder = lower->unit->builder;
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    int64_t unit_elems = lower->variant->sched.unit_elems;
    uint32_t n_outer_axes = lower->lane_axis;
    if (n_outer_axes == 0) return unit_index;
    bool is_down = unit_elems <= CPU_MAP_SHORT_RUN;
    DimId n_inner = dim_const(dims, 1);
    for (uint32_t k = 0; k < n_outer_axes && is_down; k++)
        n_inner = dim_mul(dims, n_inner, index_axis_extent(tab, k));
    if (!is_down) n_inner = dim_ceil_div(dims, extent, unit_elems);
    LLVMValueRef count = lower_dim(lower, n_inner);
    LLVMValueRef inner = LLVMBuildURem(builder, unit_index, count, "");
    LLVMValueRef outer = LLVMBuildUDiv(builder, unit_index, count, "");
    lower_split(lower, is_down ? inner : outer, 0, n_outer_axes, &map->point);
    return is_down ? outer : inner;
}

/* One unit: a run of unit_elems elements, or what is left of the axis. */
static void map_unit(Lower *lower, Map *map, LLVMValueRef unit_index) {
    LLVMBuilderRef builder = lower->unit->builder;
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    uint32_t axis = lower->lane_axis;
    DimId extent_dim = index_axis_extent(scalartab_indices(kernel->scalars), axis);
    LLVMValueRef extent = lower_dim(lower, extent_dim);
    LLVMValueRef run = split_unit(lower, map, unit_index, extent_dim);
    LLVMValueRef unit_elems = lower_index_const(lower, sched->unit_elems);
    LLVMValueRef from = LLVMBuildMul(builder, run, unit_elems, "");
    LLVMValueRef rest = LLVMBuildSub(builder, extent, from, "");
    LLVMValueRef n = cpu_at_most(lower, rest, sched->unit_elems);
    CpuRoots roots = cpu_stage_roots(lower, map->stage);
    point_prepare(&map->point, roots.ids, roots.n, 1u << axis);
    cpu_each_step(lower, from, n, map->lanes, cpu_is_multiple(lower, extent_dim, map->lanes),
                  map_step, map);
}

void template_cpu_map(Lower *lower, LLVMValueRef begin, LLVMValueRef end) {
    const Unit *unit = lower->unit;
    Map map = {.stage = &lower->kernel->stages.data[0],
               .point = point_new(lower, 1),
               .lanes = cpu_lanes(lower)};
    Loop units = cpu_unit_loop(lower, begin, end, 1);
    if (lower->lane_axis != NO_AXIS) {
        map_unit(lower, &map, units.index);
    } else {
        point_store_all(&map.point, map.stage->stores.data, map.stage->stores.n);
    }
    loop_end(unit, &units);
}
