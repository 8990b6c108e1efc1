/* CPU reductions of segments. A unit is a part of the lane axis, if all of it has the same segment
 * and numbers, which are then searched once; or it is one result. See template.h. */
#include "codegen/cpu/cpu.h"
#include "codegen/scalar/segment.h"
#include "machine/tuning.h"

typedef struct Segments {
    Point point; /* of the unit */
    SegmentRun run;
    uint32_t lanes;
} Segments;

static void reduce_step(void *user, Val at, Val mask) {
    const Segments *segments = user;
    Point point = cpu_lane_point(&segments->point, segments->lanes, at, mask);
    segment_reduce(&point, segments->run);
}

static void reduce_unit(Lower *lower, Segments *segments, Val unit) {
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    CpuSpan span = cpu_lane_span(lower, unit, SCHED_CPU_SEGMENT_UNIT, &segments->point);
    segments->run = segment_find(&segments->point);
    cpu_each_step(lower, span.begin, span.n, segments->lanes,
                  cpu_is_multiple(lower, extent, segments->lanes), reduce_step, segments);
}

void emit_cpu_segment(Lower *lower) {
    Segments segments = {.point = point_new(lower, 1), .lanes = cpu_lanes(lower)};
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    if (lower->variant->sched.lanes > 1) {
        reduce_unit(lower, &segments, units.index);
    } else {
        lower_split(lower, units.index, 0, lower->kernel->n_parallel, &segments.point);
        segment_reduce(&segments.point, segment_find(&segments.point));
    }
    loop_end(lower->k, &units);
}
