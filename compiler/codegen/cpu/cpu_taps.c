/* CPU GEMMs of one row or one column and a short known k, such as depthwise convolutions. See
 * template.h.
 *
 * An output is one chain of fmas in ascending k, as in any CPU GEMM, so the bits are the same. A
 * vector of outputs lies along the lane axis, its chain is in a register, and all taps are emitted
 * one after the other. Operands that are the same along the walked axis are loaded outside its
 * loop.
 * template/cpu_taps.h has the steps along the lane axis. */
#include "codegen/cpu/cpu.h"
#include "template/cpu_taps.h"

#include <string.h>

typedef struct Taps {
    Lower *lower;
    Point unit;
    uint32_t lanes;
    int64_t depth;
    const Point
        *points; /* per tap, in the walked axis's loop around that of the lanes; else NULL */
    PointPiece piece;
    Val begin, end; /* of the walked axis */
} Taps;

static Val operand(Point *point, ScalarId id, Dtype acc) {
    Dtype dtype = scalar_get(point->lower->kernel->scalars, id)->dtype;
    return convert_value(point->lower->k, point_lanes(point, id), dtype, acc);
}

/* Points of all taps inside `outer`, with what no axis of `inner` changes. */
static Point *enter(const Taps *taps, const Point *outer, const Point *before, uint32_t inner) {
    Lower *lower = taps->lower;
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    const ScalarId operands[2] = {reduce->lhs, reduce->rhs};
    Point *points = arena_array(lower->k->arena, Point, (size_t)taps->depth);
    for (int64_t t = 0; t < taps->depth; t++) {
        points[t] = point_inside(before ? &before[t] : outer);
        points[t].lanes = outer->lanes;
        points[t].mask = outer->mask;
        points[t].piece = outer->piece;
        points[t].block = outer->block;
        memcpy(points[t].axis, outer->axis, sizeof points[t].axis);
        points[t].axis[lower->kernel->first_reduced] = lower_index_const(lower, t);
        point_prepare(&points[t], operands, 2, inner);
    }
    return points;
}

/* Computes the outputs of a point, whose taps are inside `before`. */
static void output(const Taps *taps, Point *point, const Point *before) {
    Lower *lower = taps->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    Point *points = enter(taps, point, before, 0);
    Val sum = LLVMConstNull(k_value_type(k, reduce->acc, point->lanes));
    for (int64_t t = 0; t < taps->depth; t++) {
        Val left = operand(&points[t], reduce->lhs, reduce->acc);
        Val right = operand(&points[t], reduce->rhs, reduce->acc);
        sum = math_multiply_add(k, reduce->acc, left, right, sum);
    }
    acc_finish(point, 0, (Acc){.value = sum});
    point_store_all(point, kernel->row_stores.data, kernel->row_stores.n);
}

/* Walks at one place of the lane axis: the outputs are `lanes` of each element of the walked
 * axis. Inside the walked axis's loop they are those of its element. */
static void walk(const Taps *taps, const Point *place) {
    const Codegen *k = taps->lower->k;
    uint32_t walked = taps->lower->variant->sched.cpu_taps.walked;
    if (taps->points) {
        Point point = point_inside(place);
        output(taps, &point, taps->points);
        return;
    }
    const Point *at_place = enter(taps, place, NULL, 1u << walked);
    Loop loop = loop_begin(k, taps->begin, taps->end, 1);
    Point point = point_inside(place);
    point.axis[walked] = loop.index;
    output(taps, &point, at_place);
    loop_end(k, &loop);
}

static void vector_step(void *user, Val at, Val mask) {
    const Taps *taps = user;
    Point point = cpu_lane_point(&taps->unit, taps->lanes, at, mask);
    point.piece = taps->piece;
    point.block = INDEX_ANY_START;
    walk(taps, &point);
}

/* The elements before and after the middle. */
static void ends(const Taps *taps) {
    Lower *lower = taps->lower;
    const Codegen *k = lower->k;
    Val lo = lower_index_const(lower, taps->piece.lo),
        hi = lower_index_const(lower, taps->piece.hi);
    Val middle = k_sub(k, hi, lo), extent = lower_extent(lower, lower->lane_axis);
    Loop loop = loop_begin(k, lower_index_const(lower, 0), k_sub(k, extent, middle), 1);
    Val after = k_add(k, loop.index, middle);
    Point point = point_inside(&taps->unit);
    point.axis[lower->lane_axis] = k_select(k, k_slt(k, loop.index, lo), loop.index, after);
    walk(taps, &point);
    loop_end(k, &loop);
}

/* Sets the unit's axes. Units are numbered by the axes in their order, the walked one by its
 * chunks. */
static void set_unit(Taps *taps, Val number) {
    Lower *lower = taps->lower;
    const Codegen *k = lower->k;
    CpuTapsSched sched = lower->variant->sched.cpu_taps;
    for (uint32_t axis = lower->kernel->n_parallel; axis-- > 0;) {
        DimId extent = kernel_axis_extent(lower->kernel, axis);
        if (axis == lower->lane_axis) continue;
        bool is_walked = axis == sched.walked;
        if (is_walked) extent = dim_ceil_div(lower_dims(lower), extent, sched.chunk);
        Val n = lower_divisor(lower, extent), own = k_urem(k, number, n);
        number = k_udiv(k, number, n);
        if (!is_walked) {
            taps->unit.axis[axis] = own;
            continue;
        }
        taps->begin = k_muli(k, own, sched.chunk);
        Val rest = k_sub(k, lower_extent(lower, axis), taps->begin);
        taps->end = k_add(k, taps->begin, cpu_at_most(lower, rest, sched.chunk));
    }
}

/* Goes along the lane axis. */
static void along_lanes(Taps *taps) {
    Lower *lower = taps->lower;
    CpuTapsSteps steps =
        cpu_taps_steps(lower->k->arena, lower->kernel, lower->lane_axis, taps->lanes);
    Val begin = lower_index_const(lower, 0), n = lower_extent(lower, lower->lane_axis);
    if (steps.has_middle) {
        taps->piece = (PointPiece){true, lower->lane_axis, steps.lo, steps.hi};
        ends(taps);
        begin = lower_index_const(lower, taps->piece.lo);
        n = lower_index_const(lower, taps->piece.hi - taps->piece.lo);
    }
    cpu_each_step(lower, begin, n, taps->lanes, false, vector_step, taps);
}

/* Goes along the lane axis for each element of the walked axis. */
static void along_rows(Taps *taps) {
    const Codegen *k = taps->lower->k;
    uint32_t walked = taps->lower->variant->sched.cpu_taps.walked;
    Loop loop = loop_begin(k, taps->begin, taps->end, 1);
    taps->unit.axis[walked] = loop.index;
    taps->points = enter(taps, &taps->unit, NULL, 1u << taps->lower->lane_axis);
    along_lanes(taps);
    loop_end(k, &loop);
}

void emit_cpu_taps(Lower *lower) {
    const Codegen *k = lower->k;
    Taps taps = {.lower = lower, .unit = point_new(lower, 1), .lanes = cpu_lanes(lower)};
    dim_is_const(lower_dims(lower), kernel_n_reduced(lower->kernel), &taps.depth);
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    set_unit(&taps, units.index);
    if (cpu_taps_go_along_lanes(lower->kernel, lower->lane_axis, taps.lanes))
        along_rows(&taps);
    else
        along_lanes(&taps);
    loop_end(k, &units);
}
