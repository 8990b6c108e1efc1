/* Schedules of maps in tiles on a CPU (template/cpu_map_tile.h): maps whose stores are contiguous
 * along the last axis, and of which a load is contiguous along another one. See scheduler.h. */
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "template/cpu_map_tile.h"

enum { LEAST_LANES = 4 };

static bool is_long(const Scheduler *s, uint32_t axis, uint32_t lanes) {
    return dim_hi(s->dims, index_axis_extent(s->indices, axis)) >= (int64_t)lanes;
}

/* Requires that an extent which may be short is not. */
static void ask_long(const Scheduler *s, uint32_t axis, uint32_t lanes, Variant *variant) {
    DimId extent = index_axis_extent(s->indices, axis);
    if (dim_lo(s->dims, extent) < (int64_t)lanes)
        predicate_require_range(&variant->predicate, extent, lanes, INT64_MAX);
}

static bool stores_lie_along(const Scheduler *s, uint32_t axis, uint32_t lanes) {
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
        if (!is_long(s, axis, lanes)) continue;
        uint32_t n = cpu_map_turned(s->arena, s->kernel, axis, s->lane_axis, lanes).n;
        if (n > most) best = axis, most = n;
    }
    return best;
}

static void propose(Scheduler *s, Access access) {
    Sched sched = sched_cpu(s, TEMPLATE_CPU_MAP_TILE);
    if (access == ACCESS_SINGLE || s->lane_axis == NO_AXIS || kernel_updates(s->kernel) ||
        sched.lanes < LEAST_LANES || !is_long(s, s->lane_axis, sched.lanes) ||
        !stores_lie_along(s, s->lane_axis, sched.lanes))
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

const TemplateSchedule schedule_cpu_map_tile = {.propose = propose};
