/* Finds rewrites and computes their bounds. See rewrite.h. */
#include "plan/rewrite.h"
#include "plan/launch.h"

#include <float.h>

/* Finding. */

/* The GEMM whose lhs the row kernel stores; NULL if there is none. */
static const Kernel *product_of(const Plan *plan, const Kernel *rows) {
    const Stage *last = &rows->stages.data[rows->stages.n - 1];
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        if (!form_info(kernel->form)->multiplies) continue;
        const Scalar *left = scalar_get(kernel->scalars, kernel->reduces.data[0].value);
        if (left->kind == SCALAR_LOAD && left->buffer == last->stores.data[0].buffer) return kernel;
    }
    return NULL;
}

/* The least columns of a tile, over all variants. */
static uint32_t least_width(const Kernel *result) {
    uint32_t width = UINT32_MAX;
    for (uint32_t v = 0; v < result->n_variants; v++) {
        uint32_t own = result->variants[v].sched.gemm.tile_k;
        if (own < width) width = own;
    }
    return width;
}

bool rewrite_of(const Plan *plan, uint32_t k, Rewrite *rewrite) {
    const Kernel *rows = &plan->kernels.data[k];
    if (!kernel_is_rewritten(plan, k)) return false;
    const OnlineSoftmax *online_softmax = &plan_launch_of(plan, k)->online_softmax;
    const Kernel *result = product_of(plan, rows);
    if (!result) return false;
    bool by_groups = engine_info(sched_engine(&result->variants[0].sched))->uses_warp_groups;
    NodeId greatest = rows->reduces.data[online_softmax->shift].node;
    NodeId gemm = result->reduces.data[0].node;
    *rewrite =
        (Rewrite){.rows = k,
                  .result = (uint32_t)(result - plan->kernels.data),
                  .exponents = graph_node(plan->graph, greatest)->args[0],
                  .gemm = gemm,
                  .power = online_softmax->power,
                  .has_short_weights = scalar_get(rows->scalars, online_softmax->weight)->prim !=
                                       online_softmax->power,
                  .weights = gemm_operand_dtype(result),
                  .rounded = graph_node(plan->graph, gemm)->dtype,
                  .width = least_width(result),
                  .is_limited = online_softmax->is_limited || by_groups,
                  .folds_scale = by_groups};
    return true;
}

uint32_t rewrite_count(const Plan *plan) {
    Rewrite ignored;
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) n += rewrite_of(plan, k, &ignored);
    return n;
}

/* Bounds. The letters are those of docs/design/online-softmax.md. */

enum { MOST_SPREAD = 88 /* e^-88 is below 2^-126 */ };
static const double u = 0x1p-24;
static const double power_error = 0x1p-21;       /* 4 ULP of f32 */
static const double short_power_error = 0x1p-16; /* of powers that are rounded to 16 bits */

/* The relative error of rounding to the dtype, and the absolute error below its normal numbers. */
static double rounding(Dtype dtype) {
    return dtype_ulp(dtype, 1) / 2;
}

static double tiny(Dtype dtype) {
    return dtype_ulp(dtype, 0) / 2 + 0x1p-126;
}

/* Tensor cores truncate where others round: adds the error of a sum of n terms once more. */
static double cut(double n) {
    return (n + 1) * u;
}

/* (1 + weight) / (1 - total) minus 1, plus two roundings. */
static double quotient(double weight, double total) {
    return total < 1 ? expm1(weight + total / (1 - total) + 2 * u) : (double)INFINITY;
}

RewriteBound rewrite_bound(const Rewrite *r, double n, double size) {
    double n_tiles = r->width ? ceil(n / r->width) : 1;
    double power = r->has_short_weights ? short_power_error : power_error;
    double scaling = r->folds_scale ? (size + 2 * MOST_SPREAD) * u : 0;
    double total = MOST_SPREAD * u + scaling + power + n_tiles * (power_error + u) + (n + 1) * u;
    return (RewriteBound){quotient(total + cut(n) + rounding(r->weights), total), tiny(r->weights)};
}

/* The bound for three separate kernels. */
static RewriteBound plain_bound(const Rewrite *r, double n) {
    double total = MOST_SPREAD * u + power_error + (n + 1) * u;
    return (RewriteBound){quotient(total + cut(n) + rounding(r->weights) + u, total),
                          tiny(r->weights)};
}

/* Judging. */

typedef struct RowSums {
    double greatest, total; /* of x, of w */
    bool is_nan;
} RowSums;

static double power_of(const Rewrite *r, double x) {
    return prim_eval(r->power, DT_F64, x, 0, 0);
}

static RowSums sum_row(const RewriteCase *c, const double *x) {
    RowSums sums = {.greatest = -INFINITY};
    for (int64_t j = 0; j < c->n; j++) {
        sums.is_nan = sums.is_nan || isnan(x[j]);
        if (x[j] > sums.greatest) sums.greatest = x[j];
    }
    sums.is_nan = sums.is_nan || isinf(sums.greatest);
    for (int64_t j = 0; j < c->n && !sums.is_nan; j++)
        sums.total += power_of(&c->rewrite, x[j] - sums.greatest);
    return sums;
}

/* Sums over a row for one column of v. */
typedef struct ColumnSums {
    double exact, magnitude, excess; /* sums of P v, of P |v|, and of v below the normal numbers */
    double all;                      /* sum of |v| where a weight is not 0 */
    double special;                  /* of infinities and NaNs */
    bool has_special, is_any;
} ColumnSums;

/* Adds a v that is infinite or NaN. If it meets a weight that may have become 0, or lies in a tile
 * that may be skipped, the result may be anything. */
static void add_special(const RewriteCase *c, double weight, bool is_masked, double v,
                        ColumnSums *sums) {
    const Rewrite *r = &c->rewrite;
    double least_normal = dtype_ulp(r->weights, 0) / dtype_ulp(r->weights, 1);
    bool is_certain = is_masked ? !r->is_limited : isnan(v) || weight >= 4 * least_normal;
    sums->is_any = sums->is_any || !is_certain;
    sums->has_special = true;
    sums->special += is_masked ? (double)NAN : v;
}

static void add_element(const RewriteCase *c, double weight, bool is_masked, double v,
                        ColumnSums *sums) {
    if (!isfinite(v)) {
        add_special(c, weight, is_masked, v, sums);
        return;
    }
    if (is_masked || v == 0) return;
    Dtype dtype = c->rewrite.weights;
    double least_normal = dtype_ulp(dtype, 0) / dtype_ulp(dtype, 1);
    sums->exact += weight * v;
    sums->magnitude += weight * fabs(v);
    sums->excess += fmax(weight, least_normal) * fmax(fabs(v), least_normal) - weight * fabs(v);
    sums->all += fabs(v);
}

static double bound_of(const RewriteCase *c, const ColumnSums *sums, RewriteBound bound,
                       double tiny_sum) {
    double n = (double)c->n;
    double error = bound.relative * sums->magnitude + 2 * cut(n) * sums->excess +
                   bound.absolute * tiny_sum + 2 * n * 0x1p-149;
    return interp_rounded_bound(c->rewrite.rounded, sums->exact, error);
}

static RewriteElement judge_column(const RewriteCase *c, const ColumnSums *sums, double total,
                                   RewriteBound bound, RewriteBound plain) {
    RewriteElement e = {.exact = dtype_round(c->rewrite.rounded, sums->exact)};
    /* A weight relative to a shift that is not yet the greatest is at most 1. */
    bool overflows = isinf(bound.relative) || sums->all * (1 + bound.relative) > dtype_max(DT_F32);
    if (sums->has_special) e.exact = sums->special;
    if (sums->is_any || overflows)
        e.bound = e.plain_bound = INTERP_ANY;
    else if (!sums->has_special) {
        e.bound = bound_of(c, sums, bound, sums->all / total);
        e.plain_bound = bound_of(c, sums, plain, sums->all);
    }
    return e;
}

void rewrite_judge(const RewriteCase *c, const double *x, const double *v, Arena *scratch,
                   RewriteElement *row) {
    RowSums sums = sum_row(c, x);
    RewriteBound bound = rewrite_bound(&c->rewrite, (double)c->n, fabs(sums.greatest));
    RewriteBound plain = plain_bound(&c->rewrite, (double)c->n);
    ArenaMark mark = arena_mark(scratch);
    double *weights = arena_array(scratch, double, (size_t)c->n);
    for (int64_t j = 0; j < c->n && !sums.is_nan; j++)
        weights[j] = power_of(&c->rewrite, x[j] - sums.greatest) / sums.total;
    for (int64_t column = 0; column < c->n_columns; column++) {
        ColumnSums of = {.exact = 0};
        for (int64_t j = 0; j < c->n && !sums.is_nan; j++)
            add_element(c, weights[j], isinf(x[j]), v[j * c->n_columns + column], &of);
        row[column] = sums.is_nan ? (RewriteElement){.exact = NAN}
                                  : judge_column(c, &of, sums.total, bound, plain);
    }
    arena_rewind(scratch, mark);
}
