/* CPU scans. A unit is a step of neighbouring rows, which lie side by side along the lane axis, or
 * one row. A step has a vector, or several of rows whose elements take long. See template.h. */
#include "codegen/cpu/cpu.h"
#include "codegen/scalar/scan.h"

typedef struct Scan {
    Point point; /* of the unit */
    uint32_t lanes;
} Scan;

/* The level above which a row has one part alone, so that nothing comes before it. */
static uint32_t top_level(const Lower *lower) {
    int64_t most = variant_row_elems(lower->kernel, lower->variant), n = SCAN_RUN;
    uint32_t level = 0;
    for (; level < SCAN_LEVELS && n < most; level++) n *= SCAN_RUN;
    return level;
}

static void scan_rows(Point *row) {
    Lower *lower = row->lower;
    scan_prepare(row);
    ScanWalk walk = {.row = row,
                     .begin = lower_index_const(lower, 0),
                     .end = lower_extent(lower, lower->kernel->first_reduced),
                     .level = top_level(lower),
                     .stores = true};
    scan_walk(&walk, scan_identities(lower, row->lanes));
}

static void scan_step(void *user, Val at, Val mask) {
    const Scan *scan = user;
    Point row = cpu_lane_point(&scan->point, scan->lanes, at, mask);
    scan_rows(&row);
}

static void scan_unit(Lower *lower, Scan *scan, Val unit) {
    const Sched *sched = &lower->variant->sched;
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    CpuSpan span = cpu_lane_span(lower, unit, sched->lanes * sched->unroll, &scan->point);
    bool is_whole = cpu_is_multiple(lower, extent, scan->lanes);
    if (sched->unroll > 1) {
        Scan wide = *scan;
        wide.lanes *= sched->unroll;
        span = cpu_whole_steps(lower, span, wide.lanes, scan_step, &wide);
    }
    cpu_each_step(lower, span.begin, span.n, scan->lanes, is_whole, scan_step, scan);
}

void emit_cpu_scan(Lower *lower) {
    Scan scan = {.point = point_new(lower, 1), .lanes = cpu_lanes(lower)};
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    if (lower->lane_axis != NO_AXIS)
        scan_unit(lower, &scan, units.index);
    else
        scan_rows(&scan.point);
    loop_end(lower->k, &units);
}
