/* The interpreter's reductions and matmul. Sums run in twice double precision. Products run with a
 * compensated mantissa and an unbounded exponent. So the value before rounding is practically
 * exact. */
#include "interp/interp_node.h"

#include <float.h>
#include <limits.h>
#include <string.h>

/* Sums. */

static SumAcc sum_start(void) {
    return (SumAcc){.hi = -0.0, .least_bit = INT_MAX};
}

/* A finite number is its significand times 2^exponent, but for the sign. */
static inline uint64_t significand_of(double value, int *exponent) {
    enum { FRACTION_BITS = 52, EXPONENT_MASK = 2047, BIAS = 1075 };
    uint64_t bits, one = 1;
    memcpy(&bits, &value, sizeof bits);
    int field = (int)(bits >> FRACTION_BITS) & EXPONENT_MASK;
    uint64_t fraction = bits & ((one << FRACTION_BITS) - 1);
    *exponent = (field ? field : 1) - BIAS;
    return field ? fraction | one << FRACTION_BITS : fraction;
}

/* Whether a finite nonzero number has a set bit whose exponent is less than `bit`. */
static inline bool has_bit_below(double value, int bit) {
    int exponent;
    uint64_t significand = significand_of(value, &exponent), one = 1;
    if (exponent >= bit) return false;
    return bit >= exponent + DBL_MANT_DIG || (significand & ((one << (bit - exponent)) - 1)) != 0;
}

/* Exponent of the lowest set bit of a finite nonzero number. */
static int lowest_bit(double value) {
    int exponent;
    uint64_t significand = significand_of(value, &exponent);
    for (; (significand & 1) == 0; significand >>= 1) exponent++;
    return exponent;
}

static inline void add_term(SumAcc *sum, double term) {
    if (!isfinite(term)) {
        sum->special += term;
        sum->has_special = true;
        return;
    }
    double total = sum->hi + term;
    double part = total - sum->hi; /* Knuth's two-sum: hi + term = total + the error, exactly */
    sum->lo += (sum->hi - (total - part)) + (term - part);
    sum->hi = total;
    sum->magnitude += fabs(term);
    if (term != 0 && has_bit_below(term, sum->least_bit)) sum->least_bit = lowest_bit(term);
}

void sum_add_term(SumAcc *sum, double term) {
    add_term(sum, term);
}

/* Whether every partial sum, in any order, is a number of the compute type. */
static bool sum_is_exact(const SumAcc *sum, Dtype compute) {
    int precision = dtype_is_double(compute) ? 53 : 24;
    return sum->magnitude == 0 || sum->magnitude <= ldexp(1, sum->least_bit + precision);
}

/* Rounds a sum of n terms, divided by `divisor`, to element `i` of `e->out`, with its bound. */
static void sum_finish(const Eval *e, int64_t i, const SumAcc *sum, int64_t n_terms,
                       double divisor) {
    Dtype compute = dtype_compute(e->out->dtype);
    double u = interp_unit_roundoff(compute), n = (double)n_terms;
    if (sum->magnitude * (1 + 2 * n * u) > dtype_max(compute) && e->bounds) {
        e->out->data[i] = dtype_round(e->out->dtype, (sum->hi + sum->special) / divisor);
        e->bounds[i] = INTERP_ANY;
        return;
    }
    double exact = sum->hi + sum->lo;
    if (sum->lo == 0) exact = sum->hi; /* keeps the sign of -0 */
    if (sum->has_special) exact = sum->special;
    if (n_terms == 0) exact = 0;
    exact /= divisor;
    if (!isfinite(exact)) {
        e->out->data[i] = exact;
        return;
    }
    double error = sum_is_exact(sum, compute) ? 0 : (n + 1) * u * sum->magnitude / divisor;
    error += sum->cut;
    if (divisor != 1) error += 2 * u * fabs(exact) + dtype_ulp(compute, 0);
    interp_settle(e, i, exact, error > 0 ? error : DBL_TRUE_MIN);
}

/* A product as mantissa * 2^exponent, and the logarithms of the largest and smallest partial
 * products. */
typedef struct ProdAcc {
    double hi, lo; /* mantissa */
    int64_t exponent;
    double log2_large, log2_small; /* sums of logarithms of the operands above and below 1 in
                                    * magnitude */
    bool has_zero, has_infinity, has_nan;
} ProdAcc;

static void prod_multiply(ProdAcc *p, double x) {
    if (isnan(x)) p->has_nan = true;
    if (isinf(x)) p->has_infinity = true;
    if (x == 0) p->has_zero = true;
    int exponent = 0;
    double m = isfinite(x) && x != 0 ? frexp(x, &exponent) : copysign(0.5, x);
    double product = p->hi * m;
    double error = fma(p->hi, m, -product);
    p->lo = p->lo * m + error;
    int shift;
    p->hi = frexp(product, &shift);
    p->lo = ldexp(p->lo, -shift);
    p->exponent += exponent + shift;
    if (!isfinite(x) || x == 0) return;
    double log = log2(fabs(x));
    *(log > 0 ? &p->log2_large : &p->log2_small) += log;
}

static void prod_finish(const Eval *e, int64_t i, const ProdAcc *p, int64_t n_terms) {
    Dtype dtype = e->out->dtype, compute = dtype_compute(dtype);
    double least = dtype_ulp(compute, 0), n = (double)n_terms;
    bool overflows = p->log2_large > log2(dtype_max(compute)) - 1e-6 * n - 1e-6;
    bool underflows = p->log2_small < log2(least) + 1;
    if (p->has_nan || (p->has_zero && p->has_infinity)) {
        e->out->data[i] = NAN;
        return;
    }
    int64_t clamped = p->exponent > 4000 ? 4000 : p->exponent < -4000 ? -4000 : p->exponent;
    double exact = ldexp(p->hi + p->lo, (int)clamped);
    if (p->has_zero) exact = copysign(0.0, p->hi);
    if (p->has_infinity) exact = copysign(INFINITY, p->hi);
    if (overflows || (p->has_infinity && underflows)) {
        e->out->data[i] = dtype_round(dtype, exact);
        if (e->bounds) e->bounds[i] = INTERP_ANY;
        return;
    }
    if (isinf(exact)) {
        e->out->data[i] = exact;
        return;
    }
    /* Roundings are relative to each partial product, but absolute below the normal numbers, and
     * later operands enlarge them. */
    double error = n * interp_unit_roundoff(compute) * fabs(exact) * (1 + 1e-6);
    if (n > 1 && !p->has_zero) error += n * least * exp2(p->log2_large);
    if (p->has_zero) error = DBL_TRUE_MIN;
    interp_settle(e, i, exact, error);
}

/* Extremes: NaN if any element is NaN, and -0 below +0. */
static double extreme(PrimId combine, double a, double b) {
    if (isnan(a) || isnan(b)) return NAN;
    bool b_is_larger = a < b || (a == b && signbit(a));
    return (combine == PRIM_MAX) == b_is_larger ? b : a;
}

/* Maps each input element to the output element that it folds into. */

typedef struct Fold {
    Walk walk; /* over the argument; operand 0 is the result */
    int64_t n_in, n_out, n_terms;
} Fold;

static bool fold_over(const Eval *e, Fold *fold) {
    const Tensor *arg = &e->args[0];
    int64_t out_strides[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK] = {0};
    tensor_strides(e->out, out_strides);
    *fold = (Fold){.walk = walk_over(arg), .n_in = tensor_n_elems(arg), .n_terms = 1};
    fold->n_out = tensor_n_elems(e->out);
    uint32_t out_axis = 0;
    for (uint32_t k = 0; k < arg->rank; k++) {
        bool is_folded = e->node->attrs.axes >> k & 1;
        if (is_folded) fold->n_terms *= arg->dims[k];
        if (is_folded && !e->node->attrs.keep) continue;
        if (out_axis >= e->out->rank || e->out->dims[out_axis] != (is_folded ? 1 : arg->dims[k]))
            return interp_fail(e, "axes and shape disagree");
        strides[k] = is_folded ? 0 : out_strides[out_axis];
        out_axis++;
    }
    if (out_axis != e->out->rank) return interp_fail(e, "axes and shape disagree");
    walk_add_strides(&fold->walk, strides, 0);
    return true;
}

static void reduce_sum(const Eval *e, Fold *fold) {
    SumAcc *sums = arena_array(e->arena, SumAcc, (size_t)fold->n_out);
    for (int64_t i = 0; i < fold->n_out; i++) sums[i] = sum_start();
    for (int64_t i = 0; i < fold->n_in; i++, walk_next(&fold->walk))
        sum_add_term(&sums[fold->walk.offsets[0]], e->args[0].data[i]);
    double divisor = e->info->divides_by_count ? (double)fold->n_terms : 1;
    for (int64_t i = 0; i < fold->n_out; i++) sum_finish(e, i, &sums[i], fold->n_terms, divisor);
}

static void reduce_prod(const Eval *e, Fold *fold) {
    ProdAcc *products = arena_array(e->arena, ProdAcc, (size_t)fold->n_out);
    for (int64_t i = 0; i < fold->n_out; i++) products[i] = (ProdAcc){.hi = 1};
    for (int64_t i = 0; i < fold->n_in; i++, walk_next(&fold->walk))
        prod_multiply(&products[fold->walk.offsets[0]], e->args[0].data[i]);
    for (int64_t i = 0; i < fold->n_out; i++) prod_finish(e, i, &products[i], fold->n_terms);
}

static void reduce_extreme_int(const Eval *e, Fold *fold) {
    bool is_max = e->info->combine == PRIM_MAX;
    int64_t start = dtype_saturate(e->out->dtype, is_max ? -INFINITY : INFINITY);
    for (int64_t i = 0; i < fold->n_out; i++) tensor_set_int(e->out, i, start);
    for (int64_t i = 0; i < fold->n_in; i++, walk_next(&fold->walk)) {
        int64_t at = fold->walk.offsets[0];
        int64_t a = tensor_int(e->out, at), b = tensor_int(&e->args[0], i);
        tensor_set_int(e->out, at, is_max == (a < b) ? b : a);
    }
}

static void reduce_extreme(const Eval *e, Fold *fold) {
    PrimId combine = e->info->combine;
    double start = dtype_round(e->out->dtype, combine == PRIM_MAX ? -INFINITY : INFINITY);
    for (int64_t i = 0; i < fold->n_out; i++) e->out->data[i] = start;
    for (int64_t i = 0; i < fold->n_in; i++, walk_next(&fold->walk)) {
        double *result = &e->out->data[fold->walk.offsets[0]];
        *result = extreme(combine, *result, e->args[0].data[i]);
    }
}

/* Sums and products of integers, modulo 2 to the width of the dtype. */
static void reduce_int(const Eval *e, Fold *fold) {
    bool multiplies = e->info->combine == PRIM_MUL;
    uint64_t *results = arena_array(e->arena, uint64_t, (size_t)fold->n_out);
    for (int64_t i = 0; i < fold->n_out; i++) results[i] = multiplies;
    for (int64_t i = 0; i < fold->n_in; i++, walk_next(&fold->walk)) {
        uint64_t *result = &results[fold->walk.offsets[0]];
        uint64_t term = (uint64_t)tensor_int(&e->args[0], i);
        *result = multiplies ? *result * term : *result + term;
    }
    for (int64_t i = 0; i < fold->n_out; i++) tensor_set_int(e->out, i, (int64_t)results[i]);
}

bool interp_reduce(const Eval *e) {
    Fold fold;
    if (!fold_over(e, &fold)) return false;
    PrimId combine = e->info->combine;
    bool is_float = dtype_is_float(e->args[0].dtype);
    bool is_extreme = combine == PRIM_MAX || combine == PRIM_MIN;
    if (is_extreme && is_float)
        reduce_extreme(e, &fold);
    else if (is_extreme)
        reduce_extreme_int(e, &fold);
    else if (combine != PRIM_ADD && combine != PRIM_MUL)
        return interp_fail(e, "no reference for the combine `%s`", prim_info(combine)->name);
    else if (!is_float)
        reduce_int(e, &fold);
    else if (combine == PRIM_ADD)
        reduce_sum(e, &fold);
    else
        reduce_prod(e, &fold);
    return true;
}

/* Whether the argument's element `i` ranks before element `best`: a NaN before every number. */
static bool is_ahead(const Eval *e, int64_t i, int64_t best) {
    const Tensor *arg = &e->args[0];
    bool wants_larger = e->info->combine == PRIM_MAX;
    if (dtype_is_int(arg->dtype)) {
        int64_t a = tensor_int(arg, i), b = tensor_int(arg, best);
        return wants_larger ? a > b : a < b;
    }
    double a = arg->data[i], b = arg->data[best];
    if (isnan(a) || isnan(b)) return !isnan(b);
    return wants_larger ? a > b : a < b;
}

bool interp_argreduce(const Eval *e) {
    Fold fold;
    if (!fold_over(e, &fold)) return false;
    uint32_t axis = 0;
    while (axis < e->args[0].rank && !(e->node->attrs.axes >> axis & 1)) axis++;
    if (axis == e->args[0].rank) return interp_fail(e, "no axis");
    int64_t *best = arena_array(e->arena, int64_t, (size_t)fold.n_out);
    for (int64_t i = 0; i < fold.n_in; i++, walk_next(&fold.walk)) {
        int64_t at = fold.walk.offsets[0], position = fold.walk.index[axis];
        if (position && !is_ahead(e, i, best[at])) continue;
        best[at] = i;
        e->out->data[at] = (double)position;
    }
    return true;
}

/* Scans. */

/* The elements of a row of a scan: n of them from `first`, `stride` apart. */
typedef struct ScanRow {
    int64_t first, stride, n;
} ScanRow;

static void scan_sum(const Eval *e, ScanRow row) {
    SumAcc sum = sum_start();
    for (int64_t k = 0, i = row.first; k < row.n; k++, i += row.stride) {
        sum_add_term(&sum, e->args[0].data[i]);
        sum_finish(e, i, &sum, k + 1, 1);
    }
}

static void scan_prod(const Eval *e, ScanRow row) {
    ProdAcc product = {.hi = 1};
    for (int64_t k = 0, i = row.first; k < row.n; k++, i += row.stride) {
        prod_multiply(&product, e->args[0].data[i]);
        prod_finish(e, i, &product, k + 1);
    }
}

static void scan_extreme(const Eval *e, ScanRow row) {
    double result = dtype_round(e->out->dtype, e->info->identity);
    for (int64_t k = 0, i = row.first; k < row.n; k++, i += row.stride)
        e->out->data[i] = result = extreme(e->info->combine, result, e->args[0].data[i]);
}

/* An error of a partial result weighs at most 1 in the results that are joined from it. */
static void scan_log_sum(const Eval *e, ScanRow row) {
    double u = interp_unit_roundoff(dtype_compute(e->out->dtype));
    double top = -INFINITY, sum = 0, size = 1; /* the sum of e^(x - top); the largest |x|, plus 1 */
    for (int64_t k = 0, i = row.first; k < row.n; k++, i += row.stride) {
        double x = e->args[0].data[i], most = extreme(PRIM_MAX, top, x);
        if (isfinite(most)) sum = sum * exp(top - most) + exp(x - most);
        if (isfinite(x) && fabs(x) + 1 > size) size = fabs(x) + 1;
        top = most;
        double error = 8 * u * (double)(k + 1) * (size + log((double)(k + 1)));
        if (isfinite(top))
            interp_settle(e, i, k ? top + log(sum) : x, k ? error : 0);
        else
            e->out->data[i] = top;
    }
}

static int64_t combine_ints(PrimId combine, int64_t a, int64_t b) {
    if (combine == PRIM_ADD) return (int64_t)((uint64_t)a + (uint64_t)b);
    if (combine == PRIM_MUL) return (int64_t)((uint64_t)a * (uint64_t)b);
    return (combine == PRIM_MAX) == (a < b) ? b : a;
}

static void scan_int(const Eval *e, ScanRow row) {
    PrimId combine = e->info->combine;
    int64_t result = dtype_saturate(e->out->dtype, e->info->identity);
    for (int64_t k = 0, i = row.first; k < row.n; k++, i += row.stride) {
        result = combine_ints(combine, result, tensor_int(&e->args[0], i));
        tensor_set_int(e->out, i, result);
    }
}

/* The rows of a scan or a sort along its axis. */
typedef struct ScanRows {
    int64_t stride, n, n_rows;
} ScanRows;

static bool scan_rows(const Eval *e, ScanRows *rows) {
    const Tensor *arg = &e->args[0];
    uint32_t axis = 0;
    while (axis < arg->rank && !(e->node->attrs.axes >> axis & 1)) axis++;
    if (axis == arg->rank) return interp_fail(e, "no axis");
    *rows = (ScanRows){.stride = 1, .n = arg->dims[axis]};
    for (uint32_t k = axis + 1; k < arg->rank; k++) rows->stride *= arg->dims[k];
    if (rows->n > 0) rows->n_rows = tensor_n_elems(arg) / rows->n;
    return true;
}

static ScanRow scan_row(const ScanRows *rows, int64_t i) {
    int64_t block = rows->n * rows->stride;
    return (ScanRow){i / rows->stride * block + i % rows->stride, rows->stride, rows->n};
}

bool interp_scan(const Eval *e) {
    ScanRows rows;
    PrimId combine = e->info->combine;
    void (*scan)(const Eval *e, ScanRow row) = !dtype_is_float(e->out->dtype) ? scan_int
                                               : combine == PRIM_ADD          ? scan_sum
                                               : combine == PRIM_MUL          ? scan_prod
                                               : combine == PRIM_LOGADDEXP    ? scan_log_sum
                                                                              : scan_extreme;
    if (!scan_rows(e, &rows)) return false;
    for (int64_t i = 0; i < rows.n_rows; i++) scan(e, scan_row(&rows, i));
    return true;
}

/* Sorts. */

/* Whether element `b` comes before element `a`, which has the lower index. */
static bool comes_before(const Eval *e, int64_t b, int64_t a) {
    const Tensor *arg = &e->args[0];
    bool descends = e->info->combine == PRIM_MAX;
    if (!dtype_is_float(arg->dtype)) {
        int64_t x = tensor_int(arg, b), y = tensor_int(arg, a);
        return descends ? x > y : x < y;
    }
    double x = arg->data[b], y = arg->data[a];
    if (isnan(x) || isnan(y)) return descends ? isnan(x) && !isnan(y) : isnan(y) && !isnan(x);
    return descends ? x > y : x < y;
}

/* Merges the orders [begin, middle) and [middle, end) of `from` to `to`. */
static void merge(const Eval *e, ScanRow row, const int64_t *from, int64_t *to, int64_t begin,
                  int64_t middle, int64_t end) {
    int64_t left = begin, right = middle;
    for (int64_t i = begin; i < end; i++) {
        bool takes_right =
            right < end && (left == middle || comes_before(e, row.first + from[right] * row.stride,
                                                           row.first + from[left] * row.stride));
        to[i] = from[takes_right ? right++ : left++];
    }
}

bool interp_sort(const Eval *e) {
    ScanRows rows;
    if (!scan_rows(e, &rows)) return false;
    int64_t n = rows.n, *order = arena_array(e->arena, int64_t, (size_t)n + 1);
    int64_t *next = arena_array(e->arena, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < rows.n_rows; i++) {
        ScanRow row = scan_row(&rows, i);
        for (int64_t k = 0; k < n; k++) order[k] = k;
        for (int64_t run = 1; run < n; run *= 2) {
            for (int64_t k = 0; k < n; k += 2 * run)
                merge(e, row, order, next, k, k + run < n ? k + run : n,
                      k + 2 * run < n ? k + 2 * run : n);
            int64_t *merged = next;
            next = order;
            order = merged;
        }
        for (int64_t k = 0; k < n; k++)
            tensor_set_int(e->out, row.first + k * row.stride, order[k]);
    }
    return true;
}

/* Segments. */

/* The first place of the row, from `low` on, whose number is at least `segment`, or with `is_past`
 * greater. Numbers that do not ascend give the place that this search ends at. */
static int64_t find_number(const Eval *e, ScanRow row, int64_t segment, bool is_past, int64_t low) {
    int64_t high = row.n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int64_t number = tensor_int(&e->args[1], row.first + middle * row.stride);
        if (is_past ? number <= segment : number < segment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Reduces elements [begin, end) of the row to element `out`. */
static void reduce_run(const Eval *e, ScanRow row, int64_t begin, int64_t end, int64_t out) {
    PrimId combine = e->info->combine;
    bool is_float = dtype_is_float(e->out->dtype);
    SumAcc sum = sum_start();
    ProdAcc product = {.hi = 1};
    int64_t whole = dtype_saturate(e->out->dtype, e->info->identity);
    double most = dtype_round(e->out->dtype, e->info->identity);
    for (int64_t k = begin; k < end; k++) {
        int64_t i = row.first + k * row.stride;
        if (!is_float)
            whole = combine_ints(combine, whole, tensor_int(&e->args[0], i));
        else if (combine == PRIM_ADD)
            sum_add_term(&sum, e->args[0].data[i]);
        else if (combine == PRIM_MUL)
            prod_multiply(&product, e->args[0].data[i]);
        else
            most = extreme(combine, most, e->args[0].data[i]);
    }
    int64_t n = end > begin ? end - begin : 0;
    if (!is_float)
        tensor_set_int(e->out, out, whole);
    else if (combine == PRIM_ADD)
        sum_finish(e, out, &sum, n, 1);
    else if (combine == PRIM_MUL)
        prod_finish(e, out, &product, n);
    else
        e->out->data[out] = most;
}

bool interp_segments(const Eval *e) {
    Eval of_out = *e;
    ScanRows rows, results;
    of_out.args = e->out;
    if (!scan_rows(e, &rows) || !scan_rows(&of_out, &results)) return false;
    int64_t n_rows = results.n_rows;
    for (int64_t i = 0; i < n_rows; i++) {
        ScanRow row = scan_row(&rows, i), result = scan_row(&results, i);
        for (int64_t segment = 0; segment < results.n; segment++) {
            int64_t begin = find_number(e, row, segment, false, 0);
            int64_t end = find_number(e, row, segment, true, begin);
            reduce_run(e, row, begin, end, result.first + segment * result.stride);
        }
    }
    return true;
}

/* Matmul. */

bool walk_add_batch(Walk *walk, const Tensor *arg) {
    Tensor batch = *arg;
    batch.rank -= 2;
    uint32_t operand = walk->n_operands;
    if (!walk_add_broadcast(walk, &batch)) return false;
    int64_t matrix = arg->dims[batch.rank] * arg->dims[batch.rank + 1];
    for (uint32_t k = 0; k < walk->rank; k++) walk->strides[operand][k] *= matrix;
    return true;
}

/* The argument's elements as they enter the multiplication: rounded to tf32 if asked for. */
static const double *operand_elems(const Eval *e, const Tensor *arg) {
    if (e->node->attrs.precision != PRECISION_TF32) return arg->data;
    int64_t n = tensor_n_elems(arg);
    double *rounded = arena_array(e->arena, double, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) rounded[i] = dtype_round_tf32(arg->data[i]);
    return rounded;
}

/* What all products of a matmul have in common. */
typedef struct Products {
    bool is_exact;           /* doubles hold them */
    double least_a, least_b; /* normal numbers of operands of 16 bits and less; else 0 */
    bool is_f8;
} Products;

static double least_normal(Dtype dtype) {
    return dtype_bytes(dtype) > 2 ? 0 : dtype_ulp(dtype, 0) / dtype_ulp(dtype, 1);
}

/* A product of two f32 has 48 bits, and that of two narrower numbers fewer. */
static Products products_of(const Eval *e) {
    Dtype a = e->args[0].dtype, b = e->args[1].dtype;
    return (Products){.is_exact = !dtype_is_double(a),
                      .least_a = least_normal(a),
                      .least_b = least_normal(b),
                      .is_f8 = dtype_in(a, DTS_STORED)};
}

/* Tensor cores align products by their operands' exponents, where subnormal operands count as the
 * least exponent, and cut off bits below about 24. This is the amount by which a product is then
 * overestimated. */
static inline double excess(const Products *p, double a, double b, double product) {
    double size_a = fabs(a), size_b = fabs(b);
    if ((size_a >= p->least_a && size_b >= p->least_b) || product == 0 || !isfinite(product))
        return 0;
    return fmax(size_a, p->least_a) * fmax(size_b, p->least_b) - fabs(product);
}

/* The most that they cut off in the step from k on, of `n` products. `sum` is that of the products
 * before, with an error of `before`, and becomes that after the step. */
static double cut_in_step(const Products *p, const double *a, const double *b, int64_t n,
                          int64_t b_stride, double before, double *sum) {
    double most = fabs(*sum), after = *sum;
    int least_bit = *sum != 0 ? lowest_bit(*sum) : INT_MAX;
    for (int64_t k = 0; k < n; k++) {
        double product = a[k] * b[k * b_stride];
        if (product == 0) continue;
        int bit = lowest_bit(product);
        if (bit < least_bit) least_bit = bit;
        after += product;
        most = fmax(most, fabs(product) + excess(p, a[k], b[k * b_stride], product));
        most = fmax(most, fabs(after));
    }
    *sum = after;
    if (most == 0 || (before == 0 && least_bit >= ilogb(most) - F8_BITS)) return 0;
    return F8_CUTS * ldexp(most + before, -F8_BITS);
}

/* The most that they cut off of a dot product of finite elements. Its parts of F8_DEPTH elements
 * are added in f32. */
static double cut_of_f8(const Products *p, const double *a, const double *b, int64_t n,
                        int64_t b_stride) {
    double all = 0;
    for (int64_t part = 0; part < n; part += F8_DEPTH) {
        double cut = 0, sum = 0;
        for (int64_t k = part; k < part + F8_DEPTH && k < n; k += F8_STEP)
            cut += cut_in_step(p, a + k, b + k * b_stride, n - k < F8_STEP ? n - k : F8_STEP,
                               b_stride, cut, &sum);
        all += cut;
    }
    return all;
}

/* One element of a product of integers: n elements of either side, from `at_a` and `at_b`. */
static void dot_int(const Eval *e, int64_t i, int64_t at_a, int64_t at_b, int64_t n,
                    int64_t b_stride) {
    uint64_t total = 0;
    for (int64_t k = 0; k < n; k++)
        total += (uint64_t)tensor_int(&e->args[0], at_a + k) *
                 (uint64_t)tensor_int(&e->args[1], at_b + k * b_stride);
    tensor_set_int(e->out, i, (int64_t)total);
}

/* A dot product of floats. */
typedef struct Dot {
    SumAcc sum;
    bool overflows; /* a product overflows f64; a target's fma may not overflow there */
} Dot;

static inline void dot_add(Dot *dot, const Products *p, double a, double b) {
    double product = a * b;
    add_term(&dot->sum, product);
    dot->sum.magnitude += excess(p, a, b, product);
    if (p->is_exact) return;
    dot->overflows = dot->overflows || (isinf(product) && isfinite(a) && isfinite(b));
    double rest = isfinite(product) ? fma(a, b, -product) : 0;
    if (rest != 0) add_term(&dot->sum, rest);
}

static void dot_finish(const Eval *e, int64_t i, const Dot *dot, int64_t n) {
    /* Tensor cores truncate where others round; where the result is as wide as the accumulator, no
     * later rounding hides this. */
    bool is_cut = e->node->attrs.precision == PRECISION_TF32 || e->out->dtype != e->args[0].dtype;
    sum_finish(e, i, &dot->sum, is_cut ? 2 * n : n, 1);
    /* Each step loses up to the least subnormal number. */
    double least = dtype_ulp(dtype_compute(e->out->dtype), 0);
    if (e->bounds && dot->sum.least_bit <= ilogb(least)) e->bounds[i] += (double)n * least;
    if (dot->overflows && e->bounds) e->bounds[i] = INTERP_ANY;
}

/* Neighbouring elements of a row, which read the rows of `b` together: dot products of n elements.
 */
enum { DOTS = 8 };
static void dots(const Eval *e, int64_t i, const double *a, const double *b, int64_t n,
                 int64_t b_stride, int64_t n_dots) {
    Products products = products_of(e);
    Dot all[DOTS];
    for (int64_t j = 0; j < n_dots; j++) all[j] = (Dot){.sum = sum_start()};
    for (int64_t k = 0; k < n; k++)
        for (int64_t j = 0; j < n_dots; j++) dot_add(&all[j], &products, a[k], b[k * b_stride + j]);
    for (int64_t j = 0; j < n_dots; j++) {
        if (products.is_f8 && !all[j].sum.has_special)
            all[j].sum.cut = cut_of_f8(&products, a, b + j, n, b_stride);
        dot_finish(e, i + j, &all[j], n);
    }
}

bool interp_matmul(const Eval *e) {
    const Tensor *a = &e->args[0], *b = &e->args[1];
    if (a->rank < 2 || b->rank < 2 || e->out->rank < 2)
        return interp_fail(e, "both arguments need rank 2 or more");
    Tensor batch = *e->out;
    batch.rank -= 2;
    int64_t m = a->dims[a->rank - 2], k = a->dims[a->rank - 1], n = b->dims[b->rank - 1];
    Walk walk = walk_over(&batch);
    if (b->dims[b->rank - 2] != k || e->out->dims[batch.rank] != m ||
        e->out->dims[batch.rank + 1] != n || !walk_add_batch(&walk, a) || !walk_add_batch(&walk, b))
        return interp_fail(e, "shapes %s and %s do not give %s", tensor_type_str(a, e->arena),
                           tensor_type_str(b, e->arena), tensor_type_str(e->out, e->arena));
    int64_t n_batches = tensor_n_elems(&batch);
    const double *left = operand_elems(e, a), *right = operand_elems(e, b);
    for (int64_t i = 0; m * n > 0 && i < n_batches; i++, walk_next(&walk))
        for (int64_t row = 0; row < m; row++)
            for (int64_t column = 0; column < n; column += DOTS) {
                int64_t at = (i * m + row) * n + column, at_a = walk.offsets[0] + row * k;
                int64_t at_b = walk.offsets[1] + column, n_dots = n - column;
                if (n_dots > DOTS) n_dots = DOTS;
                if (!dtype_is_int(e->out->dtype))
                    dots(e, at, left + at_a, right + at_b, k, n, n_dots);
                for (int64_t j = 0; j < n_dots && dtype_is_int(e->out->dtype); j++)
                    dot_int(e, at + j, at_a, at_b + j, k, n);
            }
    return true;
}
