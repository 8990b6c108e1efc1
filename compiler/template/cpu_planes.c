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

/* `taken`: bit set of the axes on which the weight depends or that already have a use. */
static bool find_walked(Arena *arena, const Kernel *kernel, uint32_t taken, CpuPlanes *planes) {
    for (uint32_t axis = kernel->n_parallel; axis-- > 0;)
        if (!(taken >> axis & 1) && takes_walked(arena, kernel, axis, planes)) return true;
    return false;
}

/* Whether the rows of outputs may lie along the axis. */
static bool takes_row(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t taken,
                      CpuPlanes *planes) {
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    bool is_far = planes->width > 1;
    planes->axis = axis;
    return dim_is_const(dims, kernel_axis_extent(kernel, axis), &planes->n_windows) &&
           cpu_strips_along(arena, kernel, planes->image, axis, is_far, &planes->along) &&
           find_walked(arena, kernel, taken | 1u << axis, planes);
}

/* Rows along the lane axis, if the weight is the same in all lanes; else along another axis on
 * which it is. */
static bool find_row(Arena *arena, const Kernel *kernel, uint32_t lane_axis, uint32_t lanes,
                     CpuPlanes *planes) {
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t left = scalar_get(kernel->scalars, reduce->lhs)->axes;
    uint32_t right = scalar_get(kernel->scalars, reduce->rhs)->axes, lane = 1u << lane_axis;
    planes->width = left & right & lane ? lanes : 1;
    bool is_left = planes->width == 1 ? left & lane : (left & ~right) != 0;
    uint32_t taken = (is_left ? right : left) | lane;
    planes->image = is_left ? reduce->lhs : reduce->rhs;
    if (planes->width == 1)
        return (left ^ right) & lane && takes_row(arena, kernel, lane_axis, taken, planes);
    for (uint32_t axis = kernel->n_parallel; axis-- > 0;)
        if (!(taken >> axis & 1) && takes_row(arena, kernel, axis, taken, planes)) return true;
    return false;
}

bool cpu_planes_find(Arena *arena, const Kernel *kernel, uint32_t lane_axis, uint32_t lanes,
                     CpuPlanes *planes) {
    Dtype acc = kernel->reduces.data[0].acc;
    if (lanes <= 1 || !dtype_is_float(acc) || !find_row(arena, kernel, lane_axis, lanes, planes))
        return false;
    const CpuStrips *guarded = planes->along.outside ? &planes->along : &planes->across;
    planes->outside = guarded->outside;
    planes->inside = guarded->inside;
    planes->pitch =
        cpu_strips_pitch(&planes->along, (uint32_t)planes->n_windows, lanes / planes->width);
    return planes->along.depth > 1 &&
           cpu_planes_outputs(planes, dtype_bytes(acc)) >= SCHED_CPU_PLANES_LEAST_ROWS;
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
    int64_t bytes = planes->width > 1 ? SCHED_CPU_WIDE_PLANES_BYTES : SCHED_CPU_PLANES_BYTES;
    int64_t rows = bytes / (elem_bytes * planes->width) / cpu_planes_row(planes);
    return (rows - cpu_planes_rows(planes, 0)) / planes->across.n;
}

double cpu_planes_clocks(const CpuPlanes *planes, int64_t n_outputs, uint32_t lanes) {
    const CpuStrips *along = &planes->along;
    double packed = ceil((double)(planes->n_windows + along->reach) * planes->width / lanes);
    if (planes->width == 1) packed *= along->stride;
    double strip = COST_PACK_STRIP_CLOCKS + packed * COST_PLANE_VECTOR_CLOCKS;
    double rows = (double)cpu_planes_rows(planes, n_outputs) / (double)n_outputs;
    double taps = COST_PLANE_TAP_CLOCKS * (double)along->depth;
    return rows * along->n * strip +
           cpu_planes_vectors(planes, lanes) * (COST_TAPS_STEP_CLOCKS + taps);
}

double cpu_planes_vectors(const CpuPlanes *planes, uint32_t lanes) {
    return ceil((double)planes->n_windows * planes->width / lanes);
}
