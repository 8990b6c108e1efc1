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
