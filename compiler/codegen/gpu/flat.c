/* Maps whose vectors go on from row to row. See gpu.h and template/flat.h.
 *
 * A thread has one vector. The elements after the last whole vector, fewer than it has lanes, are
 * taken by the next threads, one each: a loop over them would wait for memory once for each. */
#include "codegen/gpu/gpu.h"

#include "template/flat.h"

/* The outermost of the axes; n where there is none. */
static uint32_t first_axis(uint32_t axes, uint32_t n) {
    uint32_t axis = 0;
    while (axis < n && !(axes >> axis & 1)) axis++;
    return axis;
}

/* Coordinates of lane 0 along the axes from `first` on: the ones before nobody needs. */
static void split_first(Point *point, uint32_t first) {
    Lower *lower = point->lower;
    const Kernel *kernel = lower->kernel;
    LLVMBuilderRef builder = lower->unit->builder;
    LLVMValueRef rest = point->flat;
    for (uint32_t k = kernel->n_parallel; k-- > first;) {
        LLVMValueRef extent = lower_divisor(lower, kernel_axis_extent(kernel, k));
        point->axis[k] = k ? LLVMBuildURem(builder, rest, extent, "") : rest;
        if (k > first) rest = LLVMBuildUDiv(builder, rest, extent, "");
    }
}

/* The coordinates of the next lane: one more along the last axis, and where that ends 0, and one
 * more along the axis before. */
static void step_lane(const Point *point, uint32_t first, LLVMValueRef *at) {
    Lower *lower = point->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    LLVMValueRef one = lower_index_const(lower, 1), zero = lower_index_const(lower, 0);
    LLVMValueRef carry = NULL; /* NULL: there always is one */
    for (uint32_t k = lower->kernel->n_parallel; k-- > first;) {
        LLVMValueRef extent = lower_dim(lower, kernel_axis_extent(lower->kernel, k));
        LLVMValueRef next = LLVMBuildAdd(builder, at[k], one, "");
        LLVMValueRef ends = LLVMBuildICmp(builder, LLVMIntEQ, next, extent, "");
        if (k) next = LLVMBuildSelect(builder, ends, zero, next, "");
        at[k] = carry ? LLVMBuildSelect(builder, carry, next, at[k], "") : next;
        carry = carry ? LLVMBuildAnd(builder, carry, ends, "") : ends;
    }
}

static void find_coordinates(Point *point) {
    Lower *lower = point->lower;
    const Unit *unit = lower->unit;
    uint32_t n = lower->kernel->n_parallel;
    uint32_t first = first_axis(flat_coordinates(unit->arena, lower->kernel), n);
    LLVMValueRef at[MAX_AXES];
    point->coordinates = arena_array(unit->arena, LLVMValueRef, n);
    split_first(point, first);
    for (uint32_t k = first; k < n; k++) {
        at[k] = point->axis[k];
        point->coordinates[k] = LLVMGetPoison(unit_vector_of(lower->index_type, point->lanes));
    }
    for (uint32_t lane = 0; lane < point->lanes; lane++) {
        if (lane) step_lane(point, first, at);
        for (uint32_t k = first; k < n; k++)
            point->coordinates[k] = LLVMBuildInsertElement(unit->builder, point->coordinates[k],
                                                           at[k], unit_i32(unit, lane), "");
    }
}

/* Everything at the point; no load moves past a store. */
static void compute(Point *point) {
    const Stage *stage = &point->lower->kernel->stages.data[0];
    point_prepare_stores(point, stage->stores.data, stage->stores.n);
    point_store_all(point, stage->stores.data, stage->stores.n);
}

/* The elements from `begin` on, where there are any, by the threads that have no vector: this one
 * is number `own` of those. */
static void compute_rest(Lower *lower, LLVMValueRef begin, LLVMValueRef own, LLVMValueRef total) {
    const Unit *unit = lower->unit;
    LLVMValueRef n = LLVMBuildSub(unit->builder, total, begin, "");
    If exists =
        if_begin(unit, lower->function, LLVMBuildICmp(unit->builder, LLVMIntULT, own, n, ""));
    Point point = point_new(lower, 1);
    LLVMValueRef element = LLVMBuildAdd(unit->builder, begin, own, "");
    lower_split(lower, element, 0, lower->kernel->n_parallel, &point);
    compute(&point);
    if_end(unit, &exists);
}

void gpu_flat_map(Lower *lower) {
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Sched *sched = &lower->variant->sched;
    LLVMValueRef thread = gpu_index(lower, gpu_thread(unit));
    LLVMValueRef first =
        LLVMBuildMul(builder, gpu_block(lower), lower_index_const(lower, sched->threads), "");
    LLVMValueRef step = LLVMBuildAdd(builder, first, thread, "");
    LLVMValueRef lanes = lower_index_const(lower, sched->lanes);
    LLVMValueRef total = lower_dim(lower, kernel_n_rows(lower->kernel));
    LLVMValueRef n_steps = LLVMBuildUDiv(builder, total, lanes, "");
    If exists =
        if_begin(unit, lower->function, LLVMBuildICmp(builder, LLVMIntULT, step, n_steps, ""));
    Point point = point_new(lower, sched->lanes);
    point.flat = LLVMBuildMul(builder, step, lanes, "");
    find_coordinates(&point);
    compute(&point);
    if_end(unit, &exists);
    if (flat_is_whole(lower->kernel, sched->lanes)) return;
    /* Of a thread that had a vector the difference is no number of elements: it is too large. */
    LLVMValueRef own = LLVMBuildSub(builder, step, n_steps, "");
    compute_rest(lower, LLVMBuildMul(builder, n_steps, lanes, ""), own, total);
}
