/* The interpreter's softmax and product in one op, and the bound of its recurrence.
 * docs/design/attention.md derives the bound; the letters are those of that page.
 *
 * The value is sum(P f v), P being the exact weights over their sum and f their factors, 1 if there
 * are none. A hidden key, of score -inf, has
 * no part in it, whatever its value is. */
#include "interp/interp_node.h"

#include <float.h>

enum { LOG_ULPS = 4 }; /* the bound of the op `log` */

/* The limits of the dtype in which weights are computed. */
typedef struct Limits {
    double u;      /* unit roundoff */
    double power;  /* relative error of a power */
    double spread; /* e^-spread is below the normal numbers */
    double least;  /* the least normal number of the weights that enter the product */
    double round;  /* relative error of rounding a weight */
    double largest;
    double most_factor; /* a factor below this makes no weight infinite */
} Limits;

static Limits limits_of(Dtype values) {
    Dtype compute = dtype_compute(values);
    bool is_double = dtype_is_double(compute), is_short = compute != values;
    Limits l = {.u = interp_unit_roundoff(compute), .largest = dtype_max(compute)};
    l.power = is_double ? 0x1p-50 : is_short ? 0x1p-16 : 0x1p-21;
    l.spread = is_double ? 709 : 88;
    l.least = dtype_ulp(values, 0) / dtype_ulp(values, 1);
    l.round = dtype_ulp(values, 1) / 2;
    l.most_factor = dtype_max(values) / 2;
    return l;
}

/* E: (1 + weight) / (1 - total) minus 1, plus two roundings. Parts of the keys that are joined
 * have two more powers and three more roundings. */
static double total_bound(const Limits *l, double n) {
    double n_blocks = ceil(n / ONLINE_BLOCK) + 2;
    return l->spread * l->u + l->power + n_blocks * (l->power + l->u) + (n + 4) * l->u;
}

static double relative_bound(const Limits *l, double n) {
    double total = total_bound(l, n), weight = total + (n + 4) * l->u + l->round;
    return total < 1 ? expm1(weight + total / (1 - total) + 2 * l->u) : (double)INFINITY;
}

double interp_online_bound(Dtype values, double n) {
    Limits limits = limits_of(values);
    return relative_bound(&limits, n);
}

/* A row of scores. */
typedef struct Row {
    int64_t n;
    const double *x, *factors; /* NULL: all are 1 */
    double *weights;           /* P; 0 of a row that is NaN */
    double greatest, total;    /* the greatest score; of the weights relative to it */
    bool is_nan;
} Row;

static void read_row(const Eval *e, Row *row) {
    double greatest = -INFINITY;
    bool has_nan = false;
    row->total = 0;
    for (int64_t j = 0; j < row->n; j++) {
        has_nan = has_nan || isnan(row->x[j]);
        greatest = fmax(greatest, row->x[j]);
    }
    bool is_empty = greatest == -INFINITY && e->info->row;
    row->is_nan = has_nan || (isinf(greatest) && !is_empty);
    row->greatest = greatest;
    for (int64_t j = 0; j < row->n && !row->is_nan && !is_empty; j++)
        row->total += row->weights[j] =
            prim_eval(e->info->power, DT_F64, row->x[j] - greatest, 0, 0);
    for (int64_t j = 0; j < row->n; j++)
        row->weights[j] = row->is_nan ? 0 : row->weights[j] / row->total;
}

/* Sums over a row for one column of v. */
typedef struct Column {
    double exact, magnitude; /* sums of P v and of P |v| */
    double excess;           /* what tensor cores add for operands below the normal numbers */
    double all;              /* sum of |v| of seen keys */
    double special;          /* of infinities and NaNs */
    bool has_special, is_any;
} Column;

static double factor_of(const Row *row, int64_t j) {
    return row->factors ? row->factors[j] : 1;
}

/* An infinite v times a weight that may have become 0 may be NaN. */
static void add_special(const Limits *l, double weight, double v, Column *sums) {
    sums->is_any = sums->is_any || (!isnan(v) && fabs(weight) < 4 * l->least);
    sums->has_special = true;
    sums->special += weight < 0 ? -v : v;
}

static Column sum_column(const Limits *l, const Row *row, const double *v, int64_t stride) {
    Column sums = {.exact = 0};
    for (int64_t j = 0; j < row->n; j++, v += stride) {
        double factor = factor_of(row, j), size = fabs(factor), weight = row->weights[j] * size;
        if (row->x[j] == -INFINITY) continue;
        /* A weight times a factor may be infinite in the dtype of the operand. */
        sums.is_any = sums.is_any || !(size < l->most_factor);
        if (!isfinite(*v)) {
            add_special(l, row->weights[j] * factor, *v, &sums);
            continue;
        }
        sums.exact += row->weights[j] * factor * *v;
        sums.magnitude += weight * fabs(*v);
        sums.all += fmax(size, 1) * fabs(*v);
        if (*v != 0)
            sums.excess += fmax(weight, l->least) * fmax(fabs(*v), l->least) - weight * fabs(*v);
    }
    return sums;
}

/* E sum(P |v|) + A sum(|v|), and what the product loses below the normal numbers. */
static double error_of(const Limits *l, const Row *row, const Column *sums, Dtype values) {
    /* Factors are rounded once more. */
    double n = (double)row->n + (row->factors ? 1 : 0), tiny = dtype_ulp(values, 0) / 2;
    tiny += l->least * l->u;
    if (!dtype_is_double(values)) tiny += 0x1p-126;
    return relative_bound(l, n) * sums->magnitude + 2 * (n + 1) * l->u * sums->excess +
           tiny * sums->all / row->total + 2 * n * dtype_ulp(dtype_compute(values), 0);
}

/* The greatest score plus the logarithm of the sum of the weights: -inf of a row without keys. */
static void settle_log(const Eval *e, const Limits *l, const Row *row, int64_t at) {
    double of_total = total_bound(l, (double)row->n);
    double log = row->total > 0 ? prim_eval(e->info->row, DT_F64, row->total, 0, 0) : -INFINITY;
    double exact = row->is_nan ? (double)NAN : row->greatest + log;
    e->out->data[at] = dtype_round(e->out->dtype, exact);
    if (!e->bounds || !isfinite(exact)) return;
    Dtype compute = e->args[0].dtype;
    double of_log = of_total < 1 ? of_total / (1 - of_total) : (double)INFINITY;
    of_log += LOG_ULPS * dtype_ulp(compute, log) + dtype_ulp(compute, exact);
    e->bounds[at] = interp_rounded_bound(e->out->dtype, exact, of_log);
}

static void settle(const Eval *e, const Limits *l, const Row *row, const Column *sums, int64_t at) {
    Dtype values = e->args[1].dtype;
    bool overflows = sums->all * (1 + relative_bound(l, (double)row->n)) > l->largest;
    double exact = row->is_nan ? (double)NAN : sums->has_special ? sums->special : sums->exact;
    e->out->data[at] = dtype_round(e->out->dtype, exact);
    if (!e->bounds || row->is_nan) return;
    if (sums->is_any || overflows)
        e->bounds[at] = INTERP_ANY;
    else if (!sums->has_special)
        e->bounds[at] = interp_rounded_bound(e->out->dtype, exact, error_of(l, row, sums, values));
}

/* Factors are as the scores are. */
static bool has_factors(const Eval *e) {
    const Tensor *x = &e->args[0], *f = &e->args[2];
    bool is_same = e->node->n_args > 2 && x->rank == f->rank;
    for (uint32_t k = 0; is_same && k < x->rank; k++) is_same = x->dims[k] == f->dims[k];
    return is_same;
}

bool interp_each_scores(const Eval *e, VisitScores *visit, void *user) {
    const Tensor *x = &e->args[0], *v = &e->args[1];
    Tensor batch = *e->out;
    if (x->rank < 2 || v->rank < 2 || e->out->rank < 2)
        return interp_fail(e, "both arguments need rank 2 or more");
    batch.rank -= 2;
    int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1], c = v->dims[v->rank - 1];
    Walk walk = walk_over(&batch);
    if (v->dims[v->rank - 2] != n || !walk_add_batch(&walk, x) || !walk_add_batch(&walk, v) ||
        (e->node->n_args > 2 && !has_factors(e)))
        return interp_fail(e, "shapes %s and %s do not give %s", tensor_type_str(x, e->arena),
                           tensor_type_str(v, e->arena), tensor_type_str(e->out, e->arena));
    int64_t n_batches = tensor_n_elems(&batch);
    for (int64_t i = 0; m * c > 0 && i < n_batches; i++, walk_next(&walk))
        for (int64_t k = 0; k < m; k++) {
            int64_t at[3] = {walk.offsets[0] + k * n, walk.offsets[1], (i * m + k) * c};
            visit(e, user, at);
        }
    return true;
}

/* The rows of a softmax. */
typedef struct Rows {
    Limits limits;
    Row row;
} Rows;

static Rows rows_new(const Eval *e) {
    const Tensor *x = &e->args[0];
    Rows rows = {.limits = limits_of(e->args[1].dtype)};
    rows.row.n = x->rank ? x->dims[x->rank - 1] : 1;
    rows.row.weights = arena_array(e->arena, double, (size_t)rows.row.n + 1);
    return rows;
}

static Row *row_at(const Eval *e, Rows *rows, const int64_t *at) {
    Row *row = &rows->row;
    row->x = e->args[0].data + at[0];
    row->factors = e->node->n_args > 2 ? e->args[2].data + at[0] : NULL;
    read_row(e, row);
    return row;
}

static void evaluate_row(const Eval *e, void *user, const int64_t *at) {
    Rows *rows = user;
    const Limits *l = &rows->limits;
    const Row *row = row_at(e, rows, at);
    int64_t c = e->args[1].dims[e->args[1].rank - 1];
    for (int64_t column = 0; column < c; column++) {
        if (e->info->row) {
            settle_log(e, l, row, at[2] + column);
            continue;
        }
        Column sums = sum_column(l, row, e->args[1].data + at[1] + column, c);
        settle(e, l, row, &sums, at[2] + column);
    }
}

bool interp_online(const Eval *e) {
    if (!e->info->power) return interp_quantize(e);
    Rows rows = rows_new(e);
    return interp_each_scores(e, evaluate_row, &rows);
}

/* The errors of factors and values in one column: each times what multiplies it. `of_f`, `of_v`:
 * NULL, or the first element's. */
static double given_errors(const Limits *l, const Row *row, const double *v, int64_t stride,
                           const double *of_f, const double *of_v) {
    double given = 0;
    for (int64_t j = 0; j < row->n; j++) {
        double own = 0;
        if (row->x[j] == -INFINITY) continue;
        if (of_f && of_f[j] > 0)
            own += of_f[j] * (fabs(v[j * stride]) + (of_v ? of_v[j * stride] : 0));
        if (of_v && of_v[j * stride] > 0) own += fabs(factor_of(row, j)) * of_v[j * stride];
        if (own > 0) given += fmax(row->weights[j], l->least) * own;
    }
    return given;
}

/* An error d of every score of a row changes the logarithm by at most d. */
static void widen_log(const Eval *e, const Row *row, double most, int64_t at) {
    if (most == 0) return;
    bool is_known = isfinite(most) && !row->is_nan && isfinite(e->out->data[at]);
    e->bounds[at] +=
        is_known ? interp_rounded_bound(e->out->dtype, e->out->data[at], most) : INTERP_ANY;
}

/* An error d of every score of a row changes each weight over their sum by at most e^2d. */
static void widen_row(const Eval *e, void *user, const int64_t *at) {
    Rows *rows = user;
    const Limits *l = &rows->limits;
    const Row *row = row_at(e, rows, at);
    int64_t c = e->args[1].dims[e->args[1].rank - 1];
    const double *of_x = e->errors ? e->errors[0] : NULL, *of_v = e->errors ? e->errors[1] : NULL;
    const double *of_f = e->errors && row->factors ? e->errors[2] : NULL;
    double most = 0;
    for (int64_t j = 0; of_x && j < row->n; j++) {
        double error = of_x[at[0] + j];
        most = fmax(most, error > 0 && !isfinite(row->x[j]) ? INTERP_ANY : error);
    }
    double relative = expm1(2 * most);
    for (int64_t column = 0; column < c; column++) {
        int64_t i = at[2] + column, first = at[1] + column;
        if (e->info->row) {
            widen_log(e, row, most, i);
            continue;
        }
        Column sums = sum_column(l, row, e->args[1].data + first, c);
        double given = given_errors(l, row, e->args[1].data + first, c, of_f ? of_f + at[0] : NULL,
                                    of_v ? of_v + first : NULL);
        if (most == 0 && given == 0) continue;
        double error = relative * sums.magnitude + (1 + relative) * given;
        bool is_known = isfinite(error) && !row->is_nan && !sums.has_special;
        e->bounds[i] += is_known ? interp_rounded_bound(e->out->dtype, e->out->data[i],
                                                        fmax(error, DBL_TRUE_MIN))
                                 : INTERP_ANY;
    }
}

bool interp_widen_online(const Eval *e) {
    if (!e->info->power) return interp_widen_quantize(e);
    Rows rows = rows_new(e);
    return interp_each_scores(e, widen_row, &rows);
}
