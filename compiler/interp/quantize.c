/* The interpreter's quantising and product in one op, and the bound of its recurrence.
 * docs/design/online-quantize.md derives the bound.
 *
 * The value is that of the ops as written: sum(q(y) v), with y = scale * x / M, q the quantising
 * map and M the greatest absolute value of the row. Every target divides and multiplies alike, so
 * what differs is the scale of blocks that come before the greatest value. */
#include "interp/interp_node.h"

#include <float.h>

typedef struct Quantize {
    QuantizeMap map;
    Dtype compute;
    double u;               /* unit roundoff of `compute` */
    double lo, hi;          /* what the dtype holds */
    int64_t n;              /* of keys */
    const double *x;        /* of the row at hand */
    double greatest, error; /* of the row; of that value */
    double divisor;         /* the greatest, and at least what the map says */
    double *ends;           /* per block: the greatest absolute value in it, and at least that */
} Quantize;

static Quantize quantize_new(const Eval *e) {
    const Tensor *x = &e->args[0];
    Quantize q = {.map = e->node->attrs.quantize, .compute = online_compute(e->args[1].dtype)};
    q.u = interp_unit_roundoff(q.compute);
    q.hi = dtype_is_int(q.map.dtype) ? dtype_round(q.map.dtype, 1e300) : (double)INFINITY;
    q.lo = dtype_is_int(q.map.dtype) ? dtype_round(q.map.dtype, -1e300) : -(double)INFINITY;
    q.n = x->rank ? x->dims[x->rank - 1] : 1;
    q.ends = arena_array(e->arena, double, (size_t)(q.n / ONLINE_BLOCK) + 1);
    return q;
}

/* Of the greatest values of blocks a NaN does not count: their row has no bound to find. */
static void read_row(const Eval *e, Quantize *q, const int64_t *at) {
    bool has_nan = false;
    const double *errors = e->errors ? e->errors[0] : NULL;
    q->x = e->args[0].data + at[0];
    q->greatest = -INFINITY;
    q->error = 0;
    for (int64_t j = 0; j < q->n; j++) {
        double *end = &q->ends[j / ONLINE_BLOCK], size = fabs(q->x[j]);
        if (j % ONLINE_BLOCK == 0) *end = q->map.least;
        has_nan = has_nan || isnan(size);
        *end = fmax(*end, size);
        q->greatest = fmax(q->greatest, size);
        if (errors) q->error = fmax(q->error, errors[at[0] + j]);
    }
    q->divisor = has_nan ? (double)NAN : fmax(q->greatest, q->map.least);
    if (has_nan) q->greatest = (double)NAN;
}

/* Whether the row has weights; else all are what the map makes of NaN, or there are none. */
static bool has_weights(const Quantize *q) {
    return q->divisor > 0 && isfinite(q->divisor);
}

static double map_of(const Quantize *q, double y) {
    return dtype_round(q->map.dtype, q->map.rounds ? nearbyint(y) : y);
}

/* y of key j, rounded as every target rounds it. */
static double scaled(const Quantize *q, int64_t j) {
    return dtype_round(q->compute, dtype_round(q->compute, q->x[j] / q->divisor) * q->map.scale);
}

/* By how much the map moves a number of at most this size which the dtype holds. */
static double step_at(const Quantize *q, double size) {
    double whole = q->map.rounds ? 0.5 : 0;
    if (dtype_is_int(q->map.dtype)) return q->map.rounds ? whole : 1;
    return whole + fmax(size * dtype_ulp(q->map.dtype, 1), dtype_ulp(q->map.dtype, 0)) / 2;
}

/* What a block that comes before the greatest value may differ by: a step of its own, and one of
 * the row; and of a `scale` beyond what the dtype holds, what its own scale cuts off less. */
static double early_error(const Quantize *q, double y, double own) {
    double size = fabs(y), limit = y < 0 ? -q->lo : q->hi;
    double early = own > 0 && isfinite(limit)
                       ? limit * fmax(own - q->error, 0) / (q->divisor + q->error)
                       : limit;
    return 2 * step_at(q, size) + fmax(0, fmin(size, limit) - early);
}

/* The error of key j's weight where scores and the greatest value have errors: `of_x` of its score.
 */
static double weight_error(const Quantize *q, int64_t j, double of_x) {
    double y = scaled(q, j), own = q->ends[j / ONLINE_BLOCK], below = q->divisor - q->error;
    if (q->x[j] == 0 && of_x == 0) return 0;
    double moved = q->map.scale * (of_x + fabs(q->x[j]) / q->divisor * q->error);
    if (moved > 0) moved = below > 0 ? moved / below : INFINITY;
    double apart = moved + 8 * q->u * fabs(y), at = map_of(q, y);
    double error = fmax(map_of(q, y + apart) - at, at - map_of(q, y - apart));
    bool is_last = q->n <= ONLINE_BLOCK || (own == q->divisor && q->error == 0);
    if (is_last) return error;
    return error + early_error(q, y < 0 ? y - apart : y + apart, own) + 8 * q->u * fabs(y);
}

/* Sums over a row for one column of v. */
typedef struct Column {
    double exact, magnitude, error;
    bool is_any;
} Column;

/* `of_x`, `of_v`: NULL, or the first element's errors. */
static Column sum_column(const Quantize *q, const double *v, int64_t stride, const double *of_x,
                         const double *of_v) {
    Column sums = {.exact = 0};
    bool has_special = false, is_sure = true;
    for (int64_t j = 0; j < q->n; j++) {
        double weight = map_of(q, scaled(q, j)), value = v[j * stride];
        double error = weight_error(q, j, of_x ? of_x[j] : 0);
        double of_value = of_v ? of_v[j * stride] : 0;
        sums.exact += weight * value;
        is_sure = is_sure && error == 0 && of_value == 0;
        has_special = has_special || !isfinite(value) || !isfinite(weight);
        if (!isfinite(value)) continue;
        sums.error += error * (fabs(value) + of_value) + fabs(weight) * of_value;
        sums.magnitude += (fabs(weight) + error) * (fabs(value) + of_value);
    }
    /* The scale of an early block may be 0. */
    sums.is_any = has_special && (!is_sure || q->n > ONLINE_BLOCK);
    return sums;
}

/* Rounding of sums, in any order, and of the scales of blocks. */
static double sum_error(const Quantize *q, const Column *sums) {
    double n_blocks = ceil((double)q->n / ONLINE_BLOCK) + 2, n = (double)q->n;
    double rounded = (2 * (n + 1) + 4 * n_blocks) * q->u * sums->magnitude;
    return sums->error + rounded + 2 * n * dtype_ulp(q->compute, 0);
}

static void settle(const Eval *e, const Quantize *q, const Column *sums, int64_t i) {
    bool is_none = q->divisor == -INFINITY;
    double exact = has_weights(q) ? sums->exact : is_none ? 0 : dtype_round(q->map.dtype, NAN);
    e->out->data[i] = dtype_round(e->out->dtype, exact);
    if (!e->bounds || !has_weights(q)) return;
    double error = sum_error(q, sums);
    if (sums->is_any || sums->magnitude + error > dtype_max(q->compute) / 2)
        e->bounds[i] = INTERP_ANY;
    else if (isfinite(exact))
        e->bounds[i] = interp_rounded_bound(e->out->dtype, exact, error);
}

static void evaluate_row(const Eval *e, void *user, const int64_t *at) {
    Quantize *q = user;
    int64_t c = e->args[1].dims[e->args[1].rank - 1];
    Eval exact = *e;
    exact.errors = NULL;
    read_row(&exact, q, at);
    for (int64_t column = 0; column < c; column++) {
        int64_t i = at[2] + column;
        if (e->info->row) {
            e->out->data[i] = dtype_round(e->out->dtype, q->greatest);
            continue;
        }
        Column sums = {.exact = 0};
        if (has_weights(q)) sums = sum_column(q, e->args[1].data + at[1] + column, c, NULL, NULL);
        settle(e, q, &sums, i);
    }
}

bool interp_quantize(const Eval *e) {
    Quantize q = quantize_new(e);
    return interp_each_scores(e, evaluate_row, &q);
}

/* What errors of the arguments add to the bound of a column. */
static double widened(const Eval *e, const Quantize *q, const int64_t *at, int64_t column) {
    int64_t c = e->args[1].dims[e->args[1].rank - 1], first = at[1] + column;
    const double *of_x = e->errors[0], *of_v = e->errors[1], *v = e->args[1].data + first;
    if (!has_weights(q) || q->divisor <= q->error) return INTERP_ANY;
    Column with = sum_column(q, v, c, of_x ? of_x + at[0] : NULL, of_v ? of_v + first : NULL);
    return with.is_any ? INTERP_ANY : sum_error(q, &with);
}

static void widen_row(const Eval *e, void *user, const int64_t *at) {
    Quantize *q = user;
    int64_t c = e->args[1].dims[e->args[1].rank - 1];
    read_row(e, q, at);
    if (q->greatest == -INFINITY || (q->error == 0 && !e->errors[1])) return;
    for (int64_t column = 0; column < c; column++) {
        int64_t i = at[2] + column;
        bool is_row = e->info->row;
        double error = is_row ? q->error : widened(e, q, at, column), exact = e->out->data[i];
        if (error == 0) continue;
        e->bounds[i] += isfinite(error) && isfinite(exact)
                            ? interp_rounded_bound(e->out->dtype, exact, error)
                            : INTERP_ANY;
    }
}

bool interp_widen_quantize(const Eval *e) {
    Quantize q = quantize_new(e);
    return !e->errors || interp_each_scores(e, widen_row, &q);
}
