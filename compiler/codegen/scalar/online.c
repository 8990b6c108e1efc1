/* See online.h. */
#include "codegen/scalar/online.h"

#include <math.h>

static const Reduce *reduce_of(const Lower *lower) {
    return &lower->kernel->reduces.data[0];
}

static Dtype values_dtype(const Lower *lower) {
    return scalar_get(lower->kernel->scalars, reduce_of(lower)->rhs)->dtype;
}

double online_no_score(const Reduce *reduce) {
    return reduce->power ? -INFINITY : 0;
}

bool online_weighs(const Reduce *reduce) {
    return reduce->power || !reduce->row;
}

Val online_size(const Lower *lower, Val score) {
    const Reduce *reduce = reduce_of(lower);
    return reduce->power ? score : math_prim(lower->k, PRIM_ABS, reduce->acc, score, NULL, NULL);
}

/* The greatest absolute value of a row, and at least what the quantising map says. */
static Val divisor(const Lower *lower, Val greatest) {
    const Codegen *k = lower->k;
    const Reduce *reduce = reduce_of(lower);
    Val least = k_splat(k, k_number(k, reduce->acc, reduce->quantize.least), k_lanes(greatest));
    if (reduce->quantize.least == -INFINITY) return greatest;
    return math_prim(k, PRIM_MAX, reduce->acc, greatest, least, NULL);
}

/* x / by, or 0 where `by` is not above 0. */
static Val quotient(const Lower *lower, Val x, Val by) {
    const Codegen *k = lower->k;
    Val zero = k_number(k, reduce_of(lower)->acc, 0);
    Val is_above = k_splat(k, k_fcmp(k, LLVMRealOGT, by, zero), k_lanes(x));
    Val result = math_div(k, x, k_splat(k, by, k_lanes(x)));
    return k_select(k, is_above, result, k_splat(k, zero, k_lanes(x)));
}

/* The power of x - greatest, which is at most 0. */
static Val power(const Lower *lower, Val x, Val greatest) {
    const Codegen *k = lower->k;
    Val below = k_fsub(k, x, k_splat(k, greatest, k_lanes(x)));
    PrimId prim = reduce_of(lower)->power;
    if (prim == PRIM_EXP) return math_unary(k, "exp_below_0", below);
    return math_prim(k, prim, reduce_of(lower)->acc, below, NULL, NULL);
}

/* Where parts of the keys are joined, the scores are the greatest values of the parts. */
static bool joins_parts(const Reduce *reduce) {
    return reduce->count != SCALAR_NONE;
}

Val online_weight(const Lower *lower, Val x, Val greatest) {
    const Codegen *k = lower->k;
    const Reduce *reduce = reduce_of(lower);
    if (reduce->power) return power(lower, x, greatest);
    if (joins_parts(reduce)) return online_scale(lower, x, greatest);
    Val weight = quotient(lower, x, divisor(lower, greatest));
    Val scale = k_number(k, reduce->acc, reduce->quantize.scale);
    weight = k_fmul(k, weight, k_splat(k, scale, k_lanes(x)));
    return reduce->quantize.rounds ? math_prim(k, PRIM_RINT, reduce->acc, weight, NULL, NULL)
                                   : weight;
}

Val online_scale(const Lower *lower, Val before, Val greatest) {
    if (reduce_of(lower)->power) return power(lower, before, greatest);
    const Codegen *k = lower->k;
    uint32_t lanes = k_lanes(before);
    Val zero = k_splat(k, k_number(k, reduce_of(lower)->acc, 0), lanes);
    before = divisor(lower, before);
    Val result = math_div(k, before, k_splat(k, divisor(lower, greatest), lanes));
    return k_select(k, k_fcmp(k, LLVMRealOGT, before, zero), result, zero);
}

Val online_multiplied(Point *point, Val weight) {
    const Codegen *k = point->lower->k;
    const Reduce *reduce = reduce_of(point->lower);
    if (!reduce->factor) return weight;
    weight = k_fmul(k, weight, point_lanes(point, reduce->factor));
    /* -0 is the weight of hidden keys. */
    return k_fadd(k, weight, k_splat(k, k_number(k, reduce->acc, 0), k_lanes(weight)));
}

/* The weight, which is no -0. */
static Val quantized(const Lower *lower, Val weight) {
    const Codegen *k = lower->k;
    const Reduce *reduce = reduce_of(lower);
    Dtype acc = reduce->acc, dtype = joins_parts(reduce) ? acc : reduce->quantize.dtype;
    if (acc != dtype) weight = convert_value(k, convert_value(k, weight, acc, dtype), dtype, acc);
    return k_fadd(k, weight, k_splat(k, k_number(k, acc, 0), k_lanes(weight)));
}

Val online_rounded(const Lower *lower, Val score, Val weight) {
    const Codegen *k = lower->k;
    const Reduce *reduce = reduce_of(lower);
    Dtype acc = reduce->acc, values = values_dtype(lower);
    uint32_t lanes = k_lanes(score);
    if (!reduce->power) return quantized(lower, weight);
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
    if (!joins_parts(reduce)) return weight;
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

Val online_of_row(const Lower *lower, uint32_t slot, Val greatest, Val total) {
    const Codegen *k = lower->k;
    const Reduce *reduce = &lower->kernel->reduces.data[slot];
    if (!reduce->power) return greatest;
    return k_fadd(k, greatest, math_prim(k, reduce->row, reduce->acc, total, NULL, NULL));
}

/* What the quantising map makes of NaN, in place of the sum where that is a row of NaNs. */
static Val settled(const Lower *lower, Val sum, Val greatest) {
    const Codegen *k = lower->k;
    const Reduce *reduce = reduce_of(lower);
    greatest = divisor(lower, greatest);
    double of_nan = dtype_round(reduce->quantize.dtype, NAN);
    Val is_zero = k_fcmp(k, LLVMRealOEQ, greatest, k_number(k, reduce->acc, 0));
    Val is_many = k_fcmp(k, LLVMRealUGE, greatest, k_number(k, reduce->acc, INFINITY));
    Val has_nan = k_splat(k, k_or(k, is_zero, is_many), k_lanes(sum));
    return k_select(k, has_nan, k_splat(k, k_number(k, reduce->acc, of_nan), k_lanes(sum)), sum);
}

static Val result_of(const Lower *lower, Val sum, Val greatest, Val total) {
    const Reduce *reduce = reduce_of(lower);
    uint32_t lanes = k_lanes(sum);
    if (lower->kernel->segment_axis != NO_AXIS) return sum;
    Val result = NULL;
    if (reduce->row)
        result = k_splat(lower->k, online_of_row(lower, 0, greatest, total), lanes);
    else if (reduce->power)
        result = math_div(lower->k, sum, k_splat(lower->k, total, lanes));
    else
        result = settled(lower, sum, greatest);
    return convert_value(lower->k, result, reduce->acc, reduce->result);
}

static void set_of_row(Point *point, Val greatest, Val total) {
    const Lower *lower = point->lower;
    const Reduce *row = &lower->kernel->reduces.data[1];
    Val value = online_of_row(lower, 1, greatest, total);
    value = convert_value(lower->k, value, row->acc, row->result);
    point->results[1] = k_splat(lower->k, value, point->lanes);
}

void online_set_results(Point *point, Val sum, Val greatest, Val total) {
    const Kernel *kernel = point->lower->kernel;
    point->results[0] = result_of(point->lower, sum, greatest, total);
    bool has_row = kernel->segment_axis == NO_AXIS && kernel->reduces.n > 1;
    if (has_row && !kernel->reduces.data[0].power) set_of_row(point, greatest, total);
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
        set_of_row(point, greatest, total);
    }
    point_store_all(point, stage->stores.data, stage->stores.n);
}
