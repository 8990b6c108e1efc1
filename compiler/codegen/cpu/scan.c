/* CPU scans. A unit is a vector of neighbouring rows, which lie side by side along the lane axis,
 * or one row. See template.h. */
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
    Point row = point_inside(&scan->point);
    row.lanes = scan->lanes;
    row.mask = mask;
    row.axis[row.lower->lane_axis] = at;
    scan_rows(&row);
}

/* Sets the axes outside the lane axis, and steps through the unit's part of the lane axis. */
static void scan_unit(Lower *lower, Scan *scan, Val unit) {
    const Codegen *k = lower->k;
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    int64_t n_lanes = lower->variant->sched.lanes;
    Val n_vectors = lower_dim(lower, dim_ceil_div(lower_dims(lower), extent, n_lanes));
    Val outer = k_udiv(k, unit, n_vectors);
    if (lower->lane_axis > 0) lower_split(lower, outer, 0, lower->lane_axis, &scan->point);
    Val from = k_muli(k, k_urem(k, unit, n_vectors), n_lanes);
    Val rest = k_sub(k, lower_dim(lower, extent), from);
    cpu_each_step(lower, from, cpu_at_most(lower, rest, n_lanes), scan->lanes,
                  cpu_is_multiple(lower, extent, scan->lanes), scan_step, scan);
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
