/* See segment.h. */
#include "codegen/scalar/segment.h"

/* The first reduction; all have the same segments. */
static const Reduce *reduce_of(const Point *point) {
    return &point->lower->kernel->reduces.data[0];
}

/* The number of steps after which a search among n elements, with n + 1 ends, has one: the bits of
 * n. */
static Val count_steps(Lower *lower) {
    const Codegen *k = lower->k;
    Val n = lower_extent(lower, lower->kernel->first_reduced);
    Val steps = lower_index_const(lower, 0);
    int64_t most = variant_row_elems(lower->kernel, lower->variant);
    if (!lower->variant->sched.is_wide && most > INT32_MAX) most = INT32_MAX;
    for (int64_t reach = 1; reach <= most; reach *= 2) {
        Val is_within = k_not(k, k_slt(k, n, lower_index_const(lower, reach)));
        steps = k_add(k, steps, k_zext(k, is_within, lower->index_type));
    }
    return steps;
}

/* The number of the element at `at`: that of its segment. */
static Val number_at(const Point *point, Val at) {
    Point element = point_inside(point);
    element.lanes = 1;
    element.axis[point->lower->kernel->first_reduced] = at;
    return point_value(&element, reduce_of(point)->rhs);
}

/* The first place from `low` on whose number is at least that of the segment, or with `is_past`
 * greater. */
static Val search(Point *point, Val steps, bool is_past, Val low) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    Dtype dtype = scalar_get(lower->kernel->scalars, reduce_of(point)->rhs)->dtype;
    Val segment = point_value(point, reduce_of(point)->arg_index);
    Val n = lower_extent(lower, lower->kernel->first_reduced);
    Val bounds[2] = {low, n}, last = k_subi(k, n, 1);
    Loop loop = loop_over(k, steps, 1);
    loop_carry(k, &loop, bounds, 2);
    Val is_open = k_slt(k, bounds[0], bounds[1]);
    Val middle = k_udivi(k, k_add(k, bounds[0], bounds[1]), 2);
    Val number = number_at(point, k_select(k, k_slt(k, last, middle), last, middle));
    Val is_before = is_past ? k_not(k, math_prim(k, PRIM_LT, dtype, segment, number, NULL))
                            : math_prim(k, PRIM_LT, dtype, number, segment, NULL);
    Val rises = k_and(k, is_open, is_before), falls = k_and(k, is_open, k_not(k, is_before));
    bounds[0] = k_select(k, rises, k_addi(k, middle, 1), bounds[0]);
    bounds[1] = k_select(k, falls, middle, bounds[1]);
    loop_end(k, &loop);
    return bounds[0];
}

SegmentRun segment_find(Point *point) {
    Val steps = count_steps(point->lower);
    SegmentRun run;
    run.begin = search(point, steps, false, lower_index_const(point->lower, 0));
    run.end = search(point, steps, true, run.begin);
    return run;
}

/* The elements of all reductions at `at`; identities, which change no bit, from the run's end on.
 */
static void elements_at(const Point *point, SegmentRun run, Val begin, Val at, Acc *elements) {
    const Lower *lower = point->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    Point element = point_inside(point);
    Val exists = k_slt(k, at, run.end);
    element.axis[kernel->first_reduced] = k_select(k, exists, at, begin);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        Acc own = acc_element(&element, reduce);
        elements[i] = acc_select(lower, exists, own, acc_identity(lower, reduce, point->lanes));
    }
}

/* Reduces the run, several elements a step: all their loads begin before the first is combined. */
static Acc *reduce_run(const Point *point, SegmentRun run) {
    const Lower *lower = point->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    uint32_t unroll = lower->variant->sched.unroll, n = kernel->reduces.n;
    Acc *accs = arena_array(k->arena, Acc, n);
    Acc *elements = arena_array(k->arena, Acc, (size_t)unroll * n);
    for (uint32_t i = 0; i < n; i++)
        accs[i] = acc_identity(lower, &kernel->reduces.data[i], point->lanes);
    Loop loop = loop_begin(k, run.begin, run.end, unroll);
    acc_loop_carry(k, &loop, accs, n);
    for (uint32_t u = 0; u < unroll; u++)
        elements_at(point, run, loop.index, k_addi(k, loop.index, u), elements + u * n);
    for (uint32_t u = 0; u < unroll * n; u++)
        accs[u % n] = acc_take(lower, &kernel->reduces.data[u % n], accs[u % n], elements[u]);
    loop_end(k, &loop);
    return accs;
}

/* Sums start from -0, which changes no sum. A sum of no elements is +0. */
static Acc sum_or_zero(const Lower *lower, const Reduce *reduce, SegmentRun run, Acc acc) {
    const Codegen *k = lower->k;
    if (!dtype_is_float(reduce->acc) || reduce->identity != 0) return acc;
    Acc zero = {k_splat(k, k_number(k, reduce->acc, 0), k_lanes(acc.value)), NULL};
    return acc_select(lower, k_slt(k, run.begin, run.end), acc, zero);
}

void segment_reduce(Point *point, SegmentRun run) {
    const Kernel *kernel = point->lower->kernel;
    uint32_t n = kernel->reduces.n;
    ScalarId *values = arena_array(point->lower->k->arena, ScalarId, n);
    for (uint32_t i = 0; i < n; i++) values[i] = kernel->reduces.data[i].value;
    point_prepare(point, values, n, 1u << kernel->first_reduced);
    const Acc *accs = reduce_run(point, run);
    for (uint32_t i = 0; i < n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        acc_finish(point, i, sum_or_zero(point->lower, reduce, run, accs[i]));
    }
    point_prepare_stores(point, kernel->row_stores.data, kernel->row_stores.n);
    point_store_all(point, kernel->row_stores.data, kernel->row_stores.n);
}
