/* See cpu_taps.h. */
#include "template/cpu_taps.h"

#include "machine/tuning.h"
#include "plan/access.h"

#include <math.h>

bool cpu_taps_may_be(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    uint32_t rank = node->shape.rank;
    int64_t depth;
    if (!graph_is_matmul(graph, id) || rank < 3) return false;
    const Shape *left = &graph_node(graph, node->args[0])->shape;
    bool is_known = dim_is_const(graph->dims, left->dims[left->rank - 1], &depth);
    return is_known && depth >= 1 && depth <= SCHED_CPU_MOST_TAPS &&
           (dim_equals_const(graph->dims, node->shape.dims[rank - 1], 1) ||
            dim_equals_const(graph->dims, node->shape.dims[rank - 2], 1));
}

static const bool *operand_scalars(Arena *arena, const Kernel *kernel) {
    const Reduce *reduce = &kernel->reduces.data[0];
    const ScalarId operands[2] = {reduce->lhs, reduce->rhs};
    return kernel_needed_scalars(arena, kernel, operands, 2);
}

/* Accesses of a vector; `is_near`: at most INDEX_NEAR_STRIDE elements apart. */
static double vector_accesses(const Kernel *kernel, IndexId address, uint32_t axis, uint32_t lanes,
                              bool *is_near) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    *is_near = true;
    if (index_lane_motion(tab, address, axis, INDEX_ANY_START) != LANES_VARYING) return 1;
    int64_t stride = index_stride_const(tab, address, axis);
    *is_near = stride > 0 && stride <= INDEX_NEAR_STRIDE;
    return *is_near ? (double)stride : lanes;
}

CpuTapsAccesses cpu_taps_accesses(Arena *arena, const Kernel *kernel, uint32_t axis,
                                  uint32_t lanes) {
    const bool *live = kernel_live_scalars(arena, kernel);
    const bool *in_tap = operand_scalars(arena, kernel);
    CpuTapsAccesses accesses = {.are_near = true};
    bool is_near;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *load = scalar_get(kernel->scalars, id);
        if (!live[id] || load->kind != SCALAR_LOAD) continue;
        double own = vector_accesses(kernel, load->index, axis, lanes, &is_near);
        accesses.are_near = accesses.are_near && (is_near || !in_tap[id]);
        *(in_tap[id] ? &accesses.tap : &accesses.rest) += own;
    }
    for (uint32_t i = 0; i < kernel->row_stores.n; i++) {
        IndexId address = kernel->row_stores.data[i].address;
        double own = vector_accesses(kernel, address, axis, lanes, &is_near);
        accesses.rest += is_near && own > 1 ? lanes : own;
    }
    return accesses;
}

bool cpu_taps_go_along_lanes(const Kernel *kernel, uint32_t axis, uint32_t lanes) {
    enum { LEAST_VECTORS = 4, MOST_TAPS = 16 };
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t left = scalar_get(kernel->scalars, reduce->lhs)->axes;
    uint32_t right = scalar_get(kernel->scalars, reduce->rhs)->axes;
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    int64_t extent = dim_hi(dims, kernel_axis_extent(kernel, axis));
    return !(left & right & 1u << axis) && dim_hi(dims, kernel_n_reduced(kernel)) <= MOST_TAPS &&
           extent > (LEAST_VECTORS - 1) * (int64_t)lanes;
}

/* Narrows the middle to where the guard holds. False: that is not known. */
static bool add_guard(const Kernel *kernel, GuardId id, uint32_t axis, CpuTapsSteps *steps) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    for (; id; id = guard_get(kernel->scalars, id).next) {
        Guard guard = guard_get(kernel->scalars, id);
        int64_t lo, hi;
        if (!(index_axes(tab, guard.index) >> axis & 1)) continue;
        steps->has_guards = true;
        if (!kernel_guard_holds_in(kernel, guard, axis, &lo, &hi)) return false;
        if (lo > steps->lo) steps->lo = lo;
        if (hi < steps->hi) steps->hi = hi;
    }
    return true;
}

/* Of the scalars `in_tap`. */
static CpuTapsSteps lane_steps(const Kernel *kernel, const bool *in_tap, uint32_t axis,
                               uint32_t lanes) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    CpuTapsSteps steps = {.hi = INT64_MAX};
    int64_t extent = 0, n_lanes = lanes;
    bool is_known = dim_is_const(indextab_dims(tab), kernel_axis_extent(kernel, axis), &extent);
    bool has_vectors = true;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!in_tap[id]) continue;
        is_known = add_guard(kernel, s->guard, axis, &steps) && is_known;
        if (s->kind == SCALAR_LOAD)
            has_vectors = has_vectors && index_is_near(tab, s->index, axis, INDEX_NEAR_STRIDE);
    }
    if (!steps.has_guards || !is_known || extent < 1) return steps;
    if (steps.hi > extent) steps.hi = extent;
    if (steps.lo > steps.hi) steps.lo = steps.hi = 0;
    int64_t inside = steps.hi - steps.lo;
    int64_t apart = extent - inside + (inside + n_lanes - 1) / n_lanes;
    int64_t guarded = CPU_TAPS_GUARDED_STEPS * ((extent + n_lanes - 1) / n_lanes);
    steps.has_middle = !has_vectors || apart < guarded;
    steps.has_guards = !steps.has_middle;
    return steps;
}

CpuTapsSteps cpu_taps_steps(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t lanes) {
    return lane_steps(kernel, operand_scalars(arena, kernel), axis, lanes);
}

CpuTapsSteps cpu_column_steps(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t lanes) {
    return lane_steps(kernel, kernel_live_scalars(arena, kernel), axis, lanes);
}

double cpu_taps_time(CpuTapsSteps steps, double extent, double lanes) {
    double inside = steps.has_middle ? (double)(steps.hi - steps.lo) : extent;
    double n = CPU_TAPS_END_STEPS * (extent - inside) + ceil(inside / lanes);
    return steps.has_guards ? n * CPU_TAPS_GUARDED_STEPS : n;
}

/* The clocks of a tap in place. If both operands differ from lane to lane, one stays in registers
 * along the walked axis, but at the ends of that axis guards choose each address. */
static double tap_clocks(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t walked,
                         double n_accesses) {
    const Reduce *reduce = &kernel->reduces.data[0];
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t left = scalar_get(kernel->scalars, reduce->lhs)->axes;
    uint32_t right = scalar_get(kernel->scalars, reduce->rhs)->axes;
    if (!(left & right & 1u << axis) || walked == NO_AXIS || !((left ^ right) >> walked & 1))
        return COST_TAP_CLOCKS + COST_TAP_ACCESS_CLOCKS * n_accesses;
    CpuTapsSteps steps = cpu_taps_steps(arena, kernel, walked, 1);
    double n = (double)dim_hi(dims, kernel_axis_extent(kernel, walked));
    double inside = steps.has_middle && n > 0 ? (double)(steps.hi - steps.lo) / n : 1;
    return inside * COST_TAP_WALKED_CLOCKS + (1 - inside) * COST_TAP_END_CLOCKS;
}

double cpu_taps_clocks(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t walked,
                       uint32_t lanes, double extent, const CpuPlanes *planes, int64_t n_outputs) {
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    CpuTapsAccesses accesses = cpu_taps_accesses(arena, kernel, axis, lanes);
    double rest = COST_TAP_ACCESS_CLOCKS * accesses.rest;
    if (planes) {
        double vectors = cpu_planes_vectors(planes, lanes);
        double own = cpu_planes_clocks(planes, n_outputs, lanes) / vectors;
        return ceil(extent / lanes) * (own + rest);
    }
    double depth = (double)dim_hi(dims, kernel_n_reduced(kernel));
    double taps = depth * tap_clocks(arena, kernel, axis, walked, accesses.tap);
    CpuTapsSteps steps = cpu_taps_steps(arena, kernel, axis, lanes);
    return cpu_taps_time(steps, extent, lanes) * (COST_TAPS_STEP_CLOCKS + rest + taps);
}
