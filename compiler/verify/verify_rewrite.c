/* Comparisons within the bound of a rewrite. See verify_rewrite.h. */
#include "verify/verify_rewrite.h"

#include "verify/verify.h"

enum { MOST_GEMMS = 1 << 25 };

typedef struct Judge {
    const RewriteCase *c;
    const RewriteValue *value;
    Arena *scratch;
    RewriteCounts *counts;
    /* The number of wrong elements, and the first of them. */
    int64_t n_wrong, element;
    double actual, expected, bound;
    bool is_beside_plain;
} Judge;

static double load(const Judge *j, const uint8_t *bytes, int64_t element) {
    Dtype dtype = j->c->rewrite.rounded;
    return dtype_load(dtype, bytes + (size_t)element * dtype_bytes(dtype));
}

static void note_wrong(Judge *j, int64_t element, double actual, double expected, double bound,
                       bool is_beside_plain) {
    if (j->n_wrong++) return;
    j->element = element;
    j->actual = actual;
    j->expected = expected;
    j->bound = bound;
    j->is_beside_plain = is_beside_plain;
}

static void judge_element(Judge *j, int64_t element, double actual, const RewriteElement *e) {
    Dtype dtype = j->c->rewrite.rounded;
    const uint8_t *plain = j->value->plain;
    double beside = plain ? load(j, plain, element) : NAN;
    j->counts->n_elems++;
    if (!verify_within(dtype, e->exact, actual, e->bound)) {
        note_wrong(j, element, actual, e->exact, e->bound, false);
        return;
    }
    double share = dtype_distance(dtype, e->exact, actual) / e->bound;
    if (share > j->counts->worst) j->counts->worst = share;
    if (plain && !verify_within(dtype, beside, actual, e->bound + e->plain_bound))
        note_wrong(j, element, actual, beside, e->bound + e->plain_bound, true);
}

/* False: the row depends on an unknown value. */
static bool judge_row(Judge *j, int64_t row, const double *v, double *x, RewriteElement *judged,
                      double *evaluated) {
    const RewriteCase *c = j->c;
    const RewriteValue *value = j->value;
    rewrite_load_exponents(c, row, x);
    rewrite_judge(c, x, v, j->scratch, judged);
    if (!value->actual && !rewrite_evaluate(c, row, v, j->scratch, evaluated)) return false;
    j->counts->n_rows++;
    for (int64_t k = 0; k < c->n_columns; k++) {
        int64_t element = row * c->n_columns + k;
        if (value->is_there && !value->is_there[element]) continue;
        double actual = value->actual ? load(j, value->actual, element) : evaluated[k];
        judge_element(j, element, actual, &judged[k]);
    }
    return true;
}

static bool judge_rows(Judge *j) {
    const RewriteCase *c = j->c;
    size_t n = (size_t)c->n, n_columns = (size_t)c->n_columns;
    double *x = arena_array(j->scratch, double, n);
    double *v = arena_array(j->scratch, double, n *n_columns);
    double *evaluated = arena_array(j->scratch, double, n_columns);
    RewriteElement *judged = arena_array(j->scratch, RewriteElement, n_columns);
    int64_t most = MOST_GEMMS / (c->n * c->n_columns) + 1, matrix = -1;
    int64_t n_judged = c->n_rows < most ? c->n_rows : most;
    for (int64_t i = 0; i < n_judged; i++) {
        int64_t row = n_judged > 1 ? i * (c->n_rows - 1) / (n_judged - 1) : 0;
        if (row / c->matrix_rows != matrix) rewrite_load_values(c, row, v);
        matrix = row / c->matrix_rows;
        if (!judge_row(j, row, v, x, judged, evaluated)) return false;
    }
    return true;
}

static void complain(const Judge *j, Text *report) {
    const RewriteCase *c = j->c;
    const Plan *plan = c->plan;
    const char *error = NULL;
    Tensor type;
    verify_name_node(plan->graph, c->rewrite.gemm, report);
    text_printf(report,
                ", kernel %s, rewritten: %s%s: ", plan->kernels.data[c->rewrite.result].name,
                ONLINE_NAME, j->value->actual ? "" : ", evaluated on the host");
    if (!interp_shape(plan->graph, c->rewrite.gemm, c->symbol_values, &type, report->arena, &error))
        return;
    text_printf(report, "%lld of %lld elements are out of the bound; ", (long long)j->n_wrong,
                (long long)j->counts->n_elems);
    verify_describe(&type, j->element, j->actual, j->expected, report);
    text_printf(report, " as %s, the bound %.3g\n",
                j->is_beside_plain ? "without the rewrite" : "the reference has it", j->bound);
}

bool verify_rewrite(const RewriteCase *c, const RewriteValue *value, Arena *scratch,
                    RewriteCounts *counts, Text *report) {
    ArenaMark mark = arena_mark(scratch);
    Judge j = {.c = c, .value = value, .scratch = scratch, .counts = counts};
    if (c->n_rows > 0 && c->n_columns > 0 && !judge_rows(&j)) counts->is_unknown = true;
    if (j.n_wrong) complain(&j, report);
    arena_rewind(scratch, mark);
    return j.n_wrong == 0;
}
