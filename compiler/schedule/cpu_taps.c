/* Schedules of batches of GEMMs of one row or one column whose k is short and known, such as the
 * taps of a depthwise convolution. Such a GEMM uses each element of the other operand once, so
 * packing it would cost more than the products. Lanes lie along a parallel axis, even one of the
 * batches, along which elements are contiguous. See scheduler.h. */
#include "base/arith.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "template/cpu_taps.h"

#include <math.h>

/* The lanes along an axis: a short one needs no more than hold it. */
static uint32_t axis_lanes(const Scheduler *s, uint32_t axis) {
    uint32_t lanes = s->target->vector_bytes / dtype_bytes(s->kernel->reduces.data[0].acc);
    int64_t extent = dim_hi(s->dims, index_axis_extent(s->indices, axis));
    while (lanes / 2 >= extent && lanes > 2) lanes /= 2;
    return lanes;
}

/* The axis along which the outputs take the fewest accesses; NO_AXIS: there is none. */
static uint32_t choose_lane_axis(const Scheduler *s) {
    uint32_t best = NO_AXIS;
    double least = 0, depth = (double)dim_hi(s->dims, kernel_n_reduced(s->kernel));
    for (uint32_t axis = 0; axis < s->kernel->n_parallel; axis++) {
        double extent = (double)dim_hi(s->dims, index_axis_extent(s->indices, axis));
        uint32_t lanes = axis_lanes(s, axis);
        CpuTapsAccesses accesses = cpu_taps_accesses(s->arena, s->kernel, axis, lanes);
        if (extent < 2 || !accesses.are_near) continue;
        double vectors = ceil(extent / lanes), own = accesses.tap * depth + accesses.rest;
        own *= vectors / extent;
        if (best == NO_AXIS || own < least) best = axis, least = own;
    }
    return best;
}

/* The longest other axis, if possible one along which an operand stays the same; the innermost one
 * of equal ones, along whose neighbours memory is read in its order. */
static uint32_t choose_walked_axis(const Scheduler *s, uint32_t lane_axis) {
    const Kernel *kernel = s->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t left = scalar_get(kernel->scalars, reduce->lhs)->axes;
    uint32_t right = scalar_get(kernel->scalars, reduce->rhs)->axes, best = NO_AXIS;
    int64_t most = 0;
    bool keeps = false;
    for (uint32_t axis = 0; axis < kernel->n_parallel; axis++) {
        int64_t extent = dim_hi(s->dims, index_axis_extent(s->indices, axis));
        bool own = extent > 1 && !(left & right & 1u << axis);
        if (axis == lane_axis || own < keeps || (own == keeps && extent < most)) continue;
        best = axis, most = extent, keeps = own;
    }
    return best;
}

static bool may(const Scheduler *s) {
    const Kernel *kernel = s->kernel;
    int64_t rows, columns, depth;
    if (!dim_is_const(s->dims, kernel_n_reduced(kernel), &depth) || depth < 1 ||
        depth > SCHED_CPU_MOST_TAPS || kernel->n_reduced != 1 || kernel->segment_axis != NO_AXIS ||
        kernel->panel_columns || s->launch.has_rows || s->launch.n_gemms > 1)
        return false;
    bool is_row = dim_is_const(s->dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)), &rows);
    bool is_column =
        dim_is_const(s->dims, kernel_axis_extent(kernel, gemm_axis_n(kernel)), &columns);
    if (!(is_row && rows == 1) && !(is_column && columns == 1)) return false;
    if (dim_hi(s->dims, gemm_n_batches(kernel)) <= 1) return false; /* one is streamed */
    return choose_lane_axis(s) != NO_AXIS;
}

/* The rows of outputs of a unit. A unit of vectors has one vector along the lane axis. So few rows
 * are work enough, if they are several times the rows that neighbouring units pack as well. */
static int64_t plane_rows(const CpuPlanes *planes, uint32_t lanes, int64_t n, int64_t most) {
    enum { LEAST_SHARE = 4, UNIT = 4 * SCHED_CPU_TAPS_UNIT };
    if (planes->width > 1) {
        int64_t products = planes->n_windows * lanes * planes->along.depth;
        int64_t work = UNIT / products + 1;
        int64_t shared = LEAST_SHARE * cpu_planes_rows(planes, 0) / planes->across.n;
        most = min_i64(most, work > shared ? work : shared);
    }
    int64_t n_units = n > most ? (n + most - 1) / most : 1;
    return n < 1 ? 1 : (n + n_units - 1) / n_units;
}

/* Whether planes take less time than the walked axis in place. Units then have equal parts of
 * another one. */
static bool choose_planes(const Scheduler *s, uint32_t lane_axis, Sched *sched) {
    const Kernel *kernel = s->kernel;
    CpuPlanes planes;
    uint32_t bytes = dtype_bytes(kernel->reduces.data[0].acc);
    if (!cpu_planes_find(s->arena, kernel, lane_axis, sched->lanes, &planes)) return false;
    int64_t n = dim_hi(s->dims, index_axis_extent(s->indices, planes.walked));
    int64_t chunk = plane_rows(&planes, sched->lanes, n, cpu_planes_outputs(&planes, bytes));
    double extent = (double)dim_hi(s->dims, index_axis_extent(s->indices, lane_axis));
    double packed = cpu_taps_clocks(s->arena, kernel, lane_axis, planes.walked, sched->lanes,
                                    extent, &planes, chunk);
    double in_place = cpu_taps_clocks(s->arena, kernel, lane_axis, sched->cpu_taps.walked,
                                      sched->lanes, extent, NULL, 0);
    if (packed >= in_place) return false;
    sched->cpu_taps.has_planes = true;
    sched->cpu_taps.whole = planes.axis;
    sched->cpu_taps.walked = planes.walked;
    sched->cpu_taps.chunk = (uint32_t)chunk;
    return true;
}

static void list_variants(const Scheduler *s, Candidates *list) {
    const Kernel *kernel = s->kernel;
    Variant *variant = candidate_always(list);
    Sched *sched = &variant->sched;
    sched->template = TEMPLATE_CPU_TAPS;
    uint32_t lane_axis = choose_lane_axis(s);
    sched->lanes = axis_lanes(s, lane_axis);
    double extent = (double)dim_hi(s->dims, index_axis_extent(s->indices, lane_axis));
    double row = extent * (double)dim_hi(s->dims, kernel_n_reduced(kernel));
    double chunk = SCHED_CPU_TAPS_UNIT / row;
    sched->cpu_taps.lanes_out = kernel->n_parallel - 1 - lane_axis;
    sched->cpu_taps.whole = lane_axis;
    sched->cpu_taps.walked = choose_walked_axis(s, lane_axis);
    if (!choose_planes(s, lane_axis, sched))
        sched->cpu_taps.chunk = chunk < 1 ? 1 : (uint32_t)chunk;
    uint32_t walked = sched->cpu_taps.walked;
    DimId units = dim_const(s->dims, 1);
    for (uint32_t axis = 0; axis < kernel->n_parallel; axis++) {
        DimId own = index_axis_extent(s->indices, axis);
        if (axis == sched->cpu_taps.whole) continue;
        if (axis == lane_axis) own = dim_ceil_div(s->dims, own, sched->lanes);
        if (axis == walked) own = dim_ceil_div(s->dims, own, sched->cpu_taps.chunk);
        units = dim_mul(s->dims, units, own);
    }
    variant->grid = units;
}

const TemplateSchedule schedule_cpu_taps = {.may = may, .list = list_variants};
