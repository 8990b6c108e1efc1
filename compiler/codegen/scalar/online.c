/* See online.h. */
#include "codegen/scalar/online.h"

static const Reduce *reduce_of(const Lower *lower) {
    return &lower->kernel->reduces.data[0];
}

static Dtype values_dtype(const Lower *lower) {
    return scalar_get(lower->kernel->scalars, reduce_of(lower)->rhs)->dtype;
}

Val online_power(const Lower *lower, Val x, Val greatest) {
    const Codegen *k = lower->k;
    Val below = k_fsub(k, x, k_splat(k, greatest, k_lanes(x)));
    PrimId power = reduce_of(lower)->power;
    if (power == PRIM_EXP) return math_unary(k, "exp_below_0", below);
    return math_prim(k, power, reduce_of(lower)->acc, below, NULL, NULL);
}

Val online_rounded(const Lower *lower, Val weight) {
    const Codegen *k = lower->k;
    Dtype acc = reduce_of(lower)->acc, values = values_dtype(lower);
    if (acc == values) return weight;
    return convert_value(k, convert_value(k, weight, acc, values), values, acc);
}

Val online_value(Point *point) {
    const Lower *lower = point->lower;
    Val value = point_lanes(point, reduce_of(lower)->rhs);
    return convert_value(lower->k, value, values_dtype(lower), reduce_of(lower)->acc);
}

Val online_counted(Point *point, Val weight) {
    const Reduce *reduce = reduce_of(point->lower);
    if (!reduce->count) return weight;
    return k_fmul(point->lower->k, weight, point_lanes(point, reduce->count));
}

OnlineKeys online_keys(const Point *point) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    Val n = lower_extent(lower, gemm_axis_k(kernel));
    if (kernel->segment_axis == NO_AXIS) return (OnlineKeys){lower_index_const(lower, 0), n};
    Val begin = k_muli(k, point->axis[kernel->segment_axis], ONLINE_PART_KEYS);
    return (OnlineKeys){begin, k_umin(k, k_addi(k, begin, ONLINE_PART_KEYS), n)};
}

Val online_result(const Lower *lower, Val sum, Val total) {
    const Reduce *reduce = reduce_of(lower);
    if (lower->kernel->segment_axis != NO_AXIS) return sum;
    return convert_value(lower->k, math_div(lower->k, sum, total), reduce->acc, reduce->result);
}

void online_store_row(Point *point, Val greatest, Val total) {
    const Kernel *kernel = point->lower->kernel;
    const Stage *stage = &kernel->stages.data[0];
    if (kernel->segment_axis == NO_AXIS) return;
    point->results[1] = greatest;
    point->results[2] = total;
    point_store_all(point, stage->stores.data, stage->stores.n);
}
