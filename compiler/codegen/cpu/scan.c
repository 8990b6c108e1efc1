/* CPU scans. A unit is a step of neighbouring rows, which lie side by side along the lane axis, or
 * one row. A step has a vector, or several of rows whose elements take long. See template.h. */
#include "codegen/cpu/cpu.h"
#include "codegen/scalar/point_index.h"
#include "codegen/scalar/scan.h"
#include "plan/access.h"

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

static void walk_row(Point *row) {
    Lower *lower = row->lower;
    scan_prepare(row);
    ScanWalk walk = {.row = row,
                     .begin = lower_index_const(lower, 0),
                     .end = lower_extent(lower, lower->kernel->first_reduced),
                     .level = top_level(lower),
                     .stores = true};
    scan_walk(&walk, scan_identities(lower, row->lanes));
}

/* Whether the conditions of the guard that the scanned axis moves hold at `at`, and `before`. */
static Val guard_holds(const Point *row, GuardId guard, Val at, Val before) {
    const Lower *lower = row->lower;
    const Kernel *kernel = lower->kernel;
    Point point = point_inside(row);
    point.axis[kernel->first_reduced] = at;
    for (; guard; guard = guard_get(kernel->scalars, guard).next) {
        Guard own = guard_get(kernel->scalars, guard);
        uint32_t axes = index_axes(scalartab_indices(kernel->scalars), own.index);
        if (!(axes >> kernel->first_reduced & 1)) continue;
        Val range = point_guard_range(&point, &own);
        before = before ? k_and(lower->k, before, range) : range;
    }
    return before;
}

/* Whether all guards hold at `at`, and `before`. */
static Val guards_hold(const Point *row, Val at, Val before) {
    const Kernel *kernel = row->lower->kernel;
    const bool *live = kernel_live_scalars(row->lower->k->arena, kernel);
    const Stage *stage = scan_stage(kernel);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        if (live[id]) before = guard_holds(row, scalar_get(kernel->scalars, id)->guard, at, before);
    for (uint32_t i = 0; i < stage->stores.n; i++)
        before = guard_holds(row, stage->stores.data[i].guard, at, before);
    return before;
}

/* Walks the rows of a step. Where all guards hold at both ends of the rows, they are walked without
 * guards. */
static void scan_rows(Point *row) {
    Lower *lower = row->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    uint32_t axis = kernel->first_reduced;
    if (!kernel_guards_have_ends(k->arena, kernel, &lower->variant->sched, axis)) {
        walk_row(row);
        return;
    }
    Val last = k_addi(k, lower_extent(lower, axis), -1);
    Val holds = guards_hold(row, lower_index_const(lower, 0), NULL);
    holds = guards_hold(row, last, holds);
    Point inside = point_inside(row), other = point_inside(row);
    inside.piece = (PointPiece){.is_any = true, .axis = axis, .is_inside = true};
    If is_inside = if_begin(k, holds);
    walk_row(&inside);
    if_end(k, &is_inside);
    If is_other = if_begin(k, k_not(k, holds));
    walk_row(&other);
    if_end(k, &is_other);
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
