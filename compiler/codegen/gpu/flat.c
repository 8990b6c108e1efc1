/* Flat maps, whose vectors run across the ends of rows. See gpu.h and template/flat.h.
 *
 * Each thread has one vector. The elements after the last whole vector, fewer than the lanes, go to
 * the next threads, one each. A loop over them in one thread would wait for memory once per
 * element. */
#include "codegen/gpu/gpu.h"

#include "template/flat.h"

/* The outermost axis of the bit set; n if it is empty. */
static uint32_t first_axis(uint32_t axes, uint32_t n) {
    uint32_t axis = 0;
    while (axis < n && !(axes >> axis & 1)) axis++;
    return axis;
}

/* Computes the coordinates of lane 0 for the axes from `first` on. No element needs the earlier
 * ones. */
static void split_first(Point *point, uint32_t first) {
    Lower *lower = point->lower;
    const Kernel *kernel = lower->kernel;
    const Codegen *k = lower->k;
    Val rest = point->flat;
    for (uint32_t j = kernel->n_parallel; j-- > first;) {
        Val extent = lower_divisor(lower, kernel_axis_extent(kernel, j));
        point->axis[j] = j ? k_urem(k, rest, extent) : rest;
        if (j > first) rest = k_udiv(k, rest, extent);
    }
}

/* Steps the coordinates to the next lane: the last axis increases by one, and an axis that reaches
 * its end becomes 0 and carries. */
static void step_lane(const Point *point, uint32_t first, Val *at) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    Val one = lower_index_const(lower, 1), zero = lower_index_const(lower, 0);
    Val carry = NULL; /* NULL: the carry into the last axis is 1 */
    for (uint32_t j = lower->kernel->n_parallel; j-- > first;) {
        Val extent = lower_dim(lower, kernel_axis_extent(lower->kernel, j));
        Val next = k_add(k, at[j], one);
        Val ends = k_eq(k, next, extent);
        if (j) next = k_select(k, ends, zero, next);
        at[j] = carry ? k_select(k, carry, next, at[j]) : next;
        carry = carry ? k_and(k, carry, ends) : ends;
    }
}

static void find_coordinates(Point *point) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    uint32_t n = lower->kernel->n_parallel;
    uint32_t first = first_axis(flat_coordinates(k->arena, lower->kernel), n);
    Val at[MAX_AXES];
    point->coordinates = arena_array(k->arena, Val, n);
    split_first(point, first);
    for (uint32_t j = first; j < n; j++) {
        at[j] = point->axis[j];
        point->coordinates[j] = LLVMGetPoison(k_vector_of(lower->index_type, point->lanes));
    }
    for (uint32_t lane = 0; lane < point->lanes; lane++) {
        if (lane) step_lane(point, first, at);
        for (uint32_t j = first; j < n; j++)
            point->coordinates[j] = k_insert(k, point->coordinates[j], at[j], lane);
    }
}

/* Emits the loads, then the stores, because no load may move past a store. */
static void compute(Point *point) {
    const Stage *stage = &point->lower->kernel->stages.data[0];
    point_prepare_stores(point, stage->stores.data, stage->stores.n);
    point_store_all(point, stage->stores.data, stage->stores.n);
}

/* Emits the rest: elements from `begin` on, one for each thread without a vector. This thread is
 * number `own` of those. */
static void compute_rest(Lower *lower, Val begin, Val own, Val total) {
    const Codegen *k = lower->k;
    Val n = k_sub(k, total, begin);
    If exists = if_begin(k, k_ult(k, own, n));
    Point point = point_new(lower, 1);
    Val element = k_add(k, begin, own);
    lower_split(lower, element, 0, lower->kernel->n_parallel, &point);
    compute(&point);
    if_end(k, &exists);
}

void emit_gpu_map_flat(Lower *lower) {
    const Codegen *k = lower->k;
    const Sched *sched = &lower->variant->sched;
    gpu_stream(lower);
    Val step = gpu_step(lower, 1);
    Val lanes = lower_index_const(lower, sched->lanes);
    Val total = lower_dim(lower, kernel_n_rows(lower->kernel));
    Val n_steps = k_udiv(k, total, lanes);
    If exists = if_begin(k, k_ult(k, step, n_steps));
    Point point = point_new(lower, sched->lanes);
    point.flat = k_mul(k, step, lanes);
    find_coordinates(&point);
    compute(&point);
    if_end(k, &exists);
    if (flat_is_whole(lower->kernel, sched->lanes)) return;
    /* For a thread with a vector the unsigned difference wraps to a large number, so it has no
     * element. */
    Val own = k_sub(k, step, n_steps);
    compute_rest(lower, k_mul(k, n_steps, lanes), own, total);
}
