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
    for (uint32_t i = 0; i < map->stage->stores.n; i++)
        point_store(&point, &map->stage->stores.data[i]);
}

/* One unit: a run of unit_elems elements, or what is left of the axis. */
static void map_unit(Lower *lower, Map *map, LLVMValueRef unit_index) {
    LLVMBuilderRef builder = lower->unit->builder;
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    uint32_t axis = lower->lane_axis;
    DimId extent_dim = index_axis_extent(scalartab_indices(kernel->scalars), axis);
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    LLVMValueRef extent = lower_dim(lower, extent_dim), run = unit_index;
    if (axis > 0) {
        LLVMValueRef n_runs = lower_dim(lower, dim_ceil_div(dims, extent_dim, sched->unit_elems));
        run = LLVMBuildURem(builder, unit_index, n_runs, "");
        LLVMValueRef outer = LLVMBuildUDiv(builder, unit_index, n_runs, "");
        lower_split(lower, outer, 0, axis, &map->point);
    }
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
    Loop units = cpu_unit_loop(lower, begin, end);
    if (lower->lane_axis != NO_AXIS) {
        map_unit(lower, &map, units.index);
    } else {
        for (uint32_t i = 0; i < map.stage->stores.n; i++)
            point_store(&map.point, &map.stage->stores.data[i]);
    }
    loop_end(unit, &units);
}
