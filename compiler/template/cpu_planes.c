/* See cpu_planes.h. */
#include "template/cpu_planes.h"

#include "base/arith.h"
#include "machine/tuning.h"

#include <math.h>

/* Whether both together have all taps, and the image's elements are used more than once. */
static bool takes_walked(Arena *arena, const Kernel *kernel, uint32_t axis, CpuPlanes *planes) {
    planes->walked = axis;
    return cpu_strips_across(arena, kernel, planes->image, axis, &planes->along, &planes->across);
}

static bool find_walked(Arena *arena, const Kernel *kernel, uint32_t lane_axis, uint32_t weight,
                        CpuPlanes *planes) {
    for (uint32_t axis = kernel->n_parallel; axis-- > 0;)
        if (axis != lane_axis && !(weight >> axis & 1) && takes_walked(arena, kernel, axis, planes))
            return true;
    return false;
}

bool cpu_planes_find(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t lanes,
                     CpuPlanes *planes) {
    const Reduce *reduce = &kernel->reduces.data[0];
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t left = scalar_get(kernel->scalars, reduce->lhs)->axes;
    uint32_t right = scalar_get(kernel->scalars, reduce->rhs)->axes;
    uint32_t weight = left >> axis & 1 ? right : left;
    planes->image = left >> axis & 1 ? reduce->lhs : reduce->rhs;
    bool has_lanes = (left ^ right) >> axis & 1 && lanes > 1 &&
                     dim_is_const(dims, kernel_axis_extent(kernel, axis), &planes->n_windows);
    if (!has_lanes || !dtype_is_float(reduce->acc) ||
        !cpu_strips_along(arena, kernel, planes->image, axis, &planes->along) ||
        !find_walked(arena, kernel, axis, weight, planes))
        return false;
    const CpuStrips *guarded = planes->along.outside ? &planes->along : &planes->across;
    planes->outside = guarded->outside;
    planes->inside = guarded->inside;
    planes->pitch = cpu_strips_pitch(&planes->along, (uint32_t)planes->n_windows, lanes);
    return planes->along.depth > 1 &&
           cpu_planes_outputs(planes, dtype_bytes(reduce->acc)) >= SCHED_CPU_PLANES_LEAST_ROWS;
}

uint32_t cpu_planes_row(const CpuPlanes *planes) {
    return planes->along.n * planes->pitch;
}

int64_t cpu_planes_first(const CpuPlanes *planes, int64_t n_outputs, uint32_t across) {
    int64_t first = 0;
    for (uint32_t i = 0; i < across; i++) first += n_outputs + planes->across.last_shift[i];
    return first;
}

int64_t cpu_planes_rows(const CpuPlanes *planes, int64_t n_outputs) {
    return cpu_planes_first(planes, n_outputs, planes->across.n);
}

int64_t cpu_planes_offset(const CpuPlanes *planes, int64_t n_outputs, int64_t tap) {
    const CpuStrips *along = &planes->along, *across = &planes->across;
    int64_t at = tap / along->run % along->n_taps, row = tap / across->run % across->n_taps;
    int64_t first = cpu_planes_first(planes, n_outputs, across->strip_of[row]);
    return (first + across->shift_of[row]) * cpu_planes_row(planes) +
           (int64_t)along->strip_of[at] * planes->pitch + along->shift_of[at];
}

int64_t cpu_planes_outputs(const CpuPlanes *planes, uint32_t elem_bytes) {
    int64_t rows = SCHED_CPU_PLANES_BYTES / elem_bytes / cpu_planes_row(planes);
    return (rows - cpu_planes_rows(planes, 0)) / planes->across.n;
}

double cpu_planes_clocks(const CpuPlanes *planes, int64_t n_outputs, uint32_t lanes) {
    const CpuStrips *along = &planes->along;
    double packed = ceil((double)(planes->n_windows + along->reach) / lanes);
    double strip = COST_PACK_STRIP_CLOCKS + packed * along->stride * COST_PLANE_VECTOR_CLOCKS;
    double rows = (double)cpu_planes_rows(planes, n_outputs) / (double)n_outputs;
    double vectors = ceil((double)planes->n_windows / lanes);
    double taps = COST_PLANE_TAP_CLOCKS * (double)along->depth;
    return rows * along->n * strip + vectors * (COST_TAPS_STEP_CLOCKS + taps);
}
