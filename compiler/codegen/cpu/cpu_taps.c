/* CPU GEMMs of one row or one column and a short known k, such as depthwise convolutions. See
 * template.h.
 *
 * An output is one chain of fmas in ascending k, as in any CPU GEMM, so the bits are the same. A
 * vector of outputs lies along the lane axis, its chain is in a register, and all taps are emitted
 * one after the other. Operands that are the same along the walked axis are loaded outside its
 * loop. An fma waits for the one before, so several elements of the walked axis have their chains
 * side by side.
 * template/cpu_taps.h has the steps along the lane axis. */
#include "codegen/cpu/taps.h"
#include "template/cpu_taps.h"

#include <string.h>

/* Chains side by side, and fmas that are emitted for them. */
enum { MOST_CHAINS = 4, MOST_PRODUCTS = 256 };

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

/* Computes the outputs of `n` points, whose taps are inside `before`. */
static void outputs(const Taps *taps, Point *points, uint32_t n, const Point *before) {
    Lower *lower = taps->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    Point *at_tap[MOST_CHAINS];
    Val sums[MOST_CHAINS];
    for (uint32_t i = 0; i < n; i++) {
        at_tap[i] = enter(taps, &points[i], before, 0);
        sums[i] = LLVMConstNull(k_value_type(k, reduce->acc, points[i].lanes));
    }
    for (int64_t t = 0; t < taps->depth; t++)
        for (uint32_t i = 0; i < n; i++) {
            Val left = cpu_value(&at_tap[i][t], reduce->lhs, reduce->acc);
            Val right = cpu_value(&at_tap[i][t], reduce->rhs, reduce->acc);
            sums[i] = math_multiply_add(k, reduce->acc, left, right, sums[i]);
        }
    for (uint32_t i = 0; i < n; i++) {
        acc_finish(&points[i], 0, (Acc){.value = sums[i]});
        point_store_all(&points[i], kernel->row_stores.data, kernel->row_stores.n);
    }
}

/* Computes the outputs of `n` elements of the walked axis from `at` on. */
static void walk_step(const Taps *taps, const Point *place, const Point *at_place, Val at,
                      uint32_t n) {
    uint32_t walked = taps->lower->variant->sched.cpu_taps.walked;
    Point points[MOST_CHAINS];
    for (uint32_t i = 0; i < n; i++) {
        points[i] = point_inside(place);
        points[i].axis[walked] = k_addi(taps->lower->k, at, i);
    }
    outputs(taps, points, n, at_place);
}

/* The part of the walked axis in which no guard on it fails: [begin, end) of this unit. */
static PointPiece walked_middle(const Taps *taps, Val *begin, Val *end) {
    Lower *lower = taps->lower;
    const Codegen *k = lower->k;
    uint32_t walked = lower->variant->sched.cpu_taps.walked;
    CpuTapsSteps steps = cpu_taps_steps(k->arena, lower->kernel, walked, 1);
    PointPiece piece = {steps.has_middle, walked, steps.lo, steps.hi, false};
    *begin = taps->begin, *end = taps->end;
    if (!steps.has_middle) return piece;
    Val lo = lower_index_const(lower, steps.lo), hi = lower_index_const(lower, steps.hi);
    *begin = k_select(k, k_slt(k, *begin, lo), lo, *begin);
    *end = k_select(k, k_slt(k, hi, *end), hi, *end);
    *begin = k_select(k, k_slt(k, *begin, taps->end), *begin, taps->end);
    *end = k_select(k, k_slt(k, *begin, *end), *end, *begin);
    return piece;
}

/* Walks the middle with several chains, and the elements before and after it with one. */
static void walk_in_chains(const Taps *taps, const Point *place) {
    Lower *lower = taps->lower;
    const Codegen *k = lower->k;
    uint32_t walked = lower->variant->sched.cpu_taps.walked;
    const Point *at_place = enter(taps, place, NULL, 1u << walked);
    Taps middle = *taps;
    Val from, to;
    middle.piece = walked_middle(taps, &from, &to);
    Val n = k_sub(k, to, from);
    to = k_sub(k, to, k_uremi(k, n, taps->n_chains));
    Point inside = point_inside(place);
    inside.piece = middle.piece;
    Loop loop = loop_begin(k, from, to, taps->n_chains);
    walk_step(&middle, &inside, enter(&middle, &inside, at_place, 1u << walked), loop.index,
              taps->n_chains);
    loop_end(k, &loop);
    Val before = k_sub(k, from, taps->begin), after = k_sub(k, taps->end, to);
    Loop rest = loop_begin(k, lower_index_const(lower, 0), k_add(k, before, after), 1);
    Val behind = k_add(k, to, k_sub(k, rest.index, before));
    Val in_front = k_add(k, taps->begin, rest.index);
    Val at = k_select(k, k_slt(k, rest.index, before), in_front, behind);
    walk_step(taps, place, at_place, at, 1);
    loop_end(k, &rest);
}

/* Walks at one place of the lane axis: the outputs are `lanes` of each element of the walked
 * axis. Inside the walked axis's loop they are those of its element. */
static void walk(const Taps *taps, const Point *place) {
    const Codegen *k = taps->lower->k;
    uint32_t walked = taps->lower->variant->sched.cpu_taps.walked;
    if (taps->points) {
        Point point = point_inside(place);
        outputs(taps, &point, 1, taps->points);
        return;
    }
    if (taps->n_chains > 1 && place->lanes > 1 && !place->piece.is_any) {
        walk_in_chains(taps, place);
        return;
    }
    const Point *at_place = enter(taps, place, NULL, 1u << walked);
    Loop loop = loop_begin(k, taps->begin, taps->end, 1);
    walk_step(taps, place, at_place, loop.index, 1);
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
 * chunks, and the lane axis, if a unit has not all of it, by its vectors. */
static void set_unit(Taps *taps, Val number) {
    Lower *lower = taps->lower;
    const Codegen *k = lower->k;
    CpuTapsSched sched = lower->variant->sched.cpu_taps;
    for (uint32_t axis = lower->kernel->n_parallel; axis-- > 0;) {
        DimId extent = kernel_axis_extent(lower->kernel, axis);
        if (axis == sched.whole) continue;
        bool is_walked = axis == sched.walked;
        if (is_walked) extent = dim_ceil_div(lower_dims(lower), extent, sched.chunk);
        if (axis == lower->lane_axis) extent = dim_ceil_div(lower_dims(lower), extent, taps->lanes);
        Val n = lower_divisor(lower, extent), own = k_urem(k, number, n);
        number = k_udiv(k, number, n);
        if (axis == lower->lane_axis) own = k_muli(k, own, taps->lanes);
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
        taps->piece = (PointPiece){true, lower->lane_axis, steps.lo, steps.hi, false};
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
    taps.n_chains = MOST_CHAINS;
    while (taps.n_chains > 1 && taps.n_chains * taps.depth > MOST_PRODUCTS) taps.n_chains /= 2;
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    set_unit(&taps, units.index);
    if (lower->variant->sched.cpu_taps.has_planes)
        taps_from_planes(&taps);
    else if (cpu_taps_go_along_lanes(lower->kernel, lower->lane_axis, taps.lanes))
        along_rows(&taps);
    else
        along_lanes(&taps);
    loop_end(k, &units);
}
