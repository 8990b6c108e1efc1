/* See online.h. */
#include "codegen/scalar/online.h"

#include <math.h>

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

Val online_multiplied(Point *point, Val weight) {
    const Codegen *k = point->lower->k;
    const Reduce *reduce = reduce_of(point->lower);
    if (!reduce->factor) return weight;
    weight = k_fmul(k, weight, point_lanes(point, reduce->factor));
    /* -0 is the weight of hidden keys. */
    return k_fadd(k, weight, k_splat(k, k_number(k, reduce->acc, 0), k_lanes(weight)));
}

Val online_rounded(const Lower *lower, Val score, Val weight) {
    const Codegen *k = lower->k;
    Dtype acc = reduce_of(lower)->acc, values = values_dtype(lower);
    uint32_t lanes = k_lanes(score);
    Val is_hidden = k_fcmp(k, LLVMRealOEQ, score, k_splat(k, k_number(k, acc, -INFINITY), lanes));
    if (acc != values)
        weight = convert_value(k, convert_value(k, weight, acc, values), values, acc);
    return k_select(k, is_hidden, k_splat(k, k_number(k, acc, -0.0), lanes), weight);
}

Val online_value(Point *point) {
    const Lower *lower = point->lower;
    Val value = point_lanes(point, reduce_of(lower)->rhs);
    return convert_value(lower->k, value, values_dtype(lower), reduce_of(lower)->acc);
}

/* Whether the float (one lane) is -0: i1. */
static Val is_minus_zero(const Codegen *k, Dtype dtype, Val value) {
    LLVMTypeRef bits = dtype_is_double(dtype) ? k->i64 : k->i32;
    Val minus_zero = k_bitcast(k, k_number(k, dtype, -0.0), bits);
    return k_eq(k, k_bitcast(k, value, bits), minus_zero);
}

Val online_seen_value(const Lower *lower, Val weight, Val value) {
    const Codegen *k = lower->k;
    Dtype acc = reduce_of(lower)->acc;
    uint32_t lanes = k_lanes(value);
    Val zero = k_splat(k, k_number(k, acc, 0), lanes), product = k_fmul(k, value, zero);
    Val is_infinite = k_fcmp(k, LLVMRealUNO, product, product);
    Val is_hidden = k_splat(k, is_minus_zero(k, acc, weight), lanes);
    return k_select(k, k_and(k, is_hidden, is_infinite), zero, value);
}

Val online_has_nan(const Codegen *k, const Val *sums, uint32_t n) {
    Val any = k_fcmp(k, LLVMRealUNO, sums[0], sums[n - 1]);
    for (uint32_t i = 1; i < n; i += 2)
        any = k_or(k, any, k_fcmp(k, LLVMRealUNO, sums[i], sums[i - 1]));
    uint32_t lanes = k_lanes(sums[0]);
    if (lanes == 1) return any;
    LLVMTypeRef bits = LLVMIntTypeInContext(k->context, lanes);
    return k_ne(k, k_bitcast(k, any, bits), LLVMConstNull(bits));
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
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    Val part = lower_dim(lower, online_part_keys(dims, kernel_n_reduced(kernel)));
    Val begin = k_mul(k, point->axis[kernel->segment_axis], part);
    return (OnlineKeys){begin, k_umin(k, k_add(k, begin, part), n)};
}

Val online_log(const Lower *lower, uint32_t slot, Val greatest, Val total) {
    const Codegen *k = lower->k;
    const Reduce *reduce = &lower->kernel->reduces.data[slot];
    return k_fadd(k, greatest, math_prim(k, reduce->log, reduce->acc, total, NULL, NULL));
}

Val online_result(const Lower *lower, Val sum, Val greatest, Val total) {
    const Reduce *reduce = reduce_of(lower);
    uint32_t lanes = k_lanes(sum);
    if (lower->kernel->segment_axis != NO_AXIS) return sum;
    Val log = reduce->log ? online_log(lower, 0, greatest, total) : NULL;
    Val result = log ? k_splat(lower->k, log, lanes)
                     : math_div(lower->k, sum, k_splat(lower->k, total, lanes));
    return convert_value(lower->k, result, reduce->acc, reduce->result);
}

bool online_stores_rows(const Kernel *kernel) {
    return kernel->stages.data[0].stores.n > 0;
}

void online_store_row(Point *point, Val greatest, Val total) {
    const Lower *lower = point->lower;
    const Kernel *kernel = lower->kernel;
    const Stage *stage = &kernel->stages.data[0];
    if (!online_stores_rows(kernel)) return;
    point->axis[gemm_axis_n(kernel)] = lower_index_const(lower, 0);
    if (kernel->segment_axis != NO_AXIS) {
        point->results[1] = greatest;
        point->results[2] = total;
    } else {
        const Reduce *log = &kernel->reduces.data[1];
        point->results[1] =
            convert_value(lower->k, online_log(lower, 1, greatest, total), log->acc, log->result);
    }
    point_store_all(point, stage->stores.data, stage->stores.n);
}
