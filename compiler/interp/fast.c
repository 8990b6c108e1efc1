/* Bounds of --numerics=fast, which widen those of the interpreter. An element's error comes from
 * its arguments' errors (`errors`), from the error that prims.def allows each primitive of its op's
 * body, and from one last place, because it may be rounded or not. The values stay the
 * interpreter's; the bodies serve only to propagate errors. */
#include "interp/interp_node.h"

#include <float.h>
#include <string.h>

/* A number, and the largest error of a target's value. */
typedef struct Near {
    double value, error;
} Near;

/* Scalar programs (bodies of ops). */

static bool is_comparison(PrimId prim) {
    return prim == PRIM_LT || prim == PRIM_LE || prim == PRIM_EQ || prim == PRIM_NE;
}

static bool is_logic(PrimId prim) {
    return prim == PRIM_AND || prim == PRIM_OR || prim == PRIM_NOT;
}

/* A bool that may have either value has the error 1. */
static double choice_error(PrimId prim, const Near *x) {
    if (x[0].error == 0 && x[1].error == 0) return 0;
    if (is_logic(prim)) return 1;
    if (isnan(x[0].value) || isnan(x[1].value)) return isinf(x[0].error + x[1].error) ? 1 : 0;
    return fabs(x[0].value - x[1].value) > x[0].error + x[1].error ? 0 : 1;
}

static Near select(const Near *x) {
    const Near *chosen = x[0].value != 0 ? &x[1] : &x[2];
    const Near *other = x[0].value != 0 ? &x[2] : &x[1];
    if (x[0].error == 0) return *chosen;
    double apart = chosen->value == other->value ? 0 : fabs(chosen->value - other->value);
    return (Near){chosen->value, isnan(apart) ? INTERP_ANY : apart + chosen->error + other->error};
}

/* The distance of two results; INTERP_ANY if exactly one is not finite. */
static double apart(double a, double b) {
    if (a == b || (isnan(a) && isnan(b))) return 0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : INTERP_ANY;
}

/* The error of a function that is monotonic between its extremes, sampled at the ends and
 * between. */
static double sampled_error(PrimId prim, Dtype dtype, const Near *x, uint32_t arity, double value) {
    static const double steps[] = {-1, -0.5, 0, 0.5, 1};
    double error = 0;
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < (arity > 1 ? 5 : 1); k++) {
            double a = x[0].value + steps[i] * x[0].error;
            double b = x[1].value + (arity > 1 ? steps[k] * x[1].error : 0);
            error = fmax(error, apart(prim_eval(prim, dtype, a, b, 0), value));
        }
    return error * (1 + 1e-6);
}

static double passed_error(PrimId prim, Dtype dtype, const Near *x, uint32_t arity, double value) {
    double a = fabs(x[0].value), b = fabs(x[1].value), ea = x[0].error, eb = x[1].error;
    switch ((int)prim) {
    case PRIM_NEG:
        return ea;
    case PRIM_ADD:
    case PRIM_SUB:
        return ea + eb;
    case PRIM_MUL:
        return a * eb + b * ea + ea * eb;
    case PRIM_REM:
        return INTERP_ANY;
    case PRIM_DIV:
    case PRIM_DIV_22:
        if (b <= eb) return INTERP_ANY;
        break;
    case PRIM_SIN:
    case PRIM_SIN_20:
    case PRIM_COS:
    case PRIM_COS_20:
        return fmin(ea, 2);
    }
    return sampled_error(prim, dtype, x, arity, value);
}

/* The error of a float result. An infinity has an error only if rounding made it infinite. */
static Near float_near(PrimId prim, Dtype dtype, const Near *x, uint32_t arity) {
    Near r = {prim_eval(prim, dtype, x[0].value, x[1].value, 0), 0};
    bool is_known = true, is_exact = true;
    for (uint32_t k = 0; k < arity; k++) {
        is_exact = is_exact && x[k].error == 0;
        is_known = is_known && isfinite(x[k].error) && (isfinite(x[k].value) || x[k].error == 0);
    }
    if (!is_exact) r.error = is_known ? passed_error(prim, dtype, x, arity, r.value) : INTERP_ANY;
    if (isnan(r.error) || (!is_exact && !isfinite(r.value))) r.error = INTERP_ANY;
    /* An fma may use the product before it is rounded. */
    bool is_finite = isfinite(x[0].value) && isfinite(x[1].value);
    if (prim == PRIM_MUL && is_exact && is_finite && isinf(r.value)) r.error = DBL_TRUE_MIN;
    if (isfinite(r.value) && isfinite(r.error))
        r.error += prim_error(prim, dtype, fabs(r.value) + r.error);
    return r;
}

static Near prim_near(const Scalar *s, Dtype dtype, const Near *all) {
    const PrimInfo *info = prim_info(s->prim);
    Near x[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (uint32_t k = 0; k < info->arity; k++) x[k] = all[s->args[k]];
    if (s->prim == PRIM_SELECT) return select(x);
    if (is_comparison(s->prim) || is_logic(s->prim))
        return (Near){prim_eval(s->prim, dtype, x[0].value, x[1].value, 0),
                      choice_error(s->prim, x)};
    return float_near(s->prim, dtype, x, info->arity);
}

typedef struct Body {
    ScalarTab *tab;
    ScalarId root;
    uint32_t n;
    Near *near; /* per ScalarId */
} Body;

static Body body_of(const Eval *e, Dtype data) {
    DimTab *dims = dimtab_new(e->arena);
    Body body = {.tab = scalartab_new(e->arena, indextab_new(e->arena, dims))};
    scalartab_set_fast(body.tab);
    ScalarId args[3];
    for (uint32_t k = 0; k < 3; k++) {
        bool is_choice = k == 0 && e->info->result == RESULT_SELECT;
        args[k] = scalar_stage(body.tab, is_choice ? DT_BOOL : dtype_compute(data), k, 0);
    }
    body.root = e->info->body(body.tab, e->out->dtype, args[0], args[1], args[2]);
    body.n = scalar_count(body.tab);
    body.near = arena_array(e->arena, Near, body.n + (size_t)1);
    return body;
}

static Near run_body(const Body *body, const Near *args) {
    for (ScalarId id = 1; id <= body->n; id++) {
        const Scalar *s = scalar_get(body->tab, id);
        if (s->kind == SCALAR_CONST) body->near[id] = (Near){s->number, 0};
        if (s->kind == SCALAR_STAGE) body->near[id] = args[s->slot];
        if (s->kind != SCALAR_PRIM) continue;
        uint32_t last = prim_info(s->prim)->arity - 1;
        body->near[id] = prim_near(s, scalar_get(body->tab, s->args[last])->dtype, body->near);
    }
    return body->near[body->root];
}

/* Results of nodes. */

/* Widens the bound of an element whose value before rounding may be off by `error`. */
static void widen(const Eval *e, int64_t i, double error) {
    Dtype dtype = e->out->dtype;
    double value = tensor_number(e->out, i);
    if (error == 0 || isinf(e->bounds[i])) return;
    bool is_float = dtype_is_float(dtype);
    if (!(error < DBL_MAX) || !isfinite(value) || dtype_is_bool(dtype)) {
        e->bounds[i] = INTERP_ANY;
        return;
    }
    double place = is_float ? dtype_ulp(dtype, fabs(value) + error) : 0;
    double bound = e->bounds[i] + error + place;
    e->bounds[i] = fabs(value) + bound > dtype_max(dtype) ? INTERP_ANY : bound;
}

static bool has_errors(const Eval *e) {
    bool has = false;
    for (uint32_t k = 0; k < e->node->n_args; k++) has = has || (e->errors && e->errors[k]);
    return has;
}

static double *errors_or_zeros(const Eval *e, uint32_t k) {
    return e->errors && e->errors[k]
               ? (double *)(uintptr_t)e->errors[k]
               : arena_array(e->arena, double, (size_t)tensor_n_elems(&e->args[k]) + 1);
}

static bool widen_eltwise(const Eval *e) {
    Walk walk = walk_over(e->out);
    uint32_t n_args = e->node->n_args;
    const double *errors[WALK_MAX_OPERANDS];
    for (uint32_t k = 0; k < n_args; k++) {
        walk_add_broadcast(&walk, &e->args[k]);
        errors[k] = errors_or_zeros(e, k);
    }
    Dtype data = e->args[e->info->result == RESULT_SELECT ? 1 : 0].dtype;
    bool is_float = dtype_is_float(data);
    Body body = is_float ? body_of(e, data) : (Body){.n = 0};
    Near args[WALK_MAX_OPERANDS] = {{0, 0}, {0, 0}, {0, 0}};
    if (n_args < e->info->max_args) args[n_args].value = dtype_round(data, e->info->default_last);
    int64_t n = tensor_n_elems(e->out);
    for (int64_t i = 0; i < n; i++, walk_next(&walk)) {
        double given = 0;
        for (uint32_t k = 0; k < n_args; k++) {
            int64_t at = walk.offsets[k];
            args[k] = (Near){tensor_number(&e->args[k], at), errors[k][at]};
            given += args[k].error;
        }
        Near result = {0, given > 0 ? INTERP_ANY : 0};
        if (is_float) result = run_body(&body, args);
        bool overflows = given == 0 && isinf(tensor_number(e->out, i)) && result.error > 0;
        if (overflows && fabs(result.value) - 4 * result.error > dtype_max(e->out->dtype))
            e->bounds[i] = DBL_TRUE_MIN; /* infinite only if it is rounded */
        else
            widen(e, i, result.error);
        /* A zero whose exact value may have had either sign. */
        if (given > 0 && e->bounds[i] == 0 && e->out->data[i] == 0) e->bounds[i] = DBL_TRUE_MIN;
    }
    return true;
}

static bool widen_cast(const Eval *e) {
    const double *errors = errors_or_zeros(e, 0);
    Dtype from = e->args[0].dtype, to = e->out->dtype;
    int64_t n = tensor_n_elems(e->out);
    for (int64_t i = 0; i < n; i++) {
        double x = tensor_number(&e->args[0], i), error = errors[i];
        if (error == 0) continue;
        bool is_known = isfinite(error) && isfinite(x) && dtype_is_float(from);
        is_known = is_known && e->node->op == OP_CAST;
        if (dtype_is_bool(to) && is_known)
            e->bounds[i] = fabs(x) > error ? 0 : INTERP_ANY;
        else if (!is_known || fabs(x) + error > dtype_max(to))
            e->bounds[i] = INTERP_ANY;
        else if (dtype_is_float(to))
            e->bounds[i] = interp_rounded_bound(to, x, error);
        else
            e->bounds[i] = fmax(apart(dtype_round(to, x + error), tensor_number(e->out, i)),
                                apart(dtype_round(to, x - error), tensor_number(e->out, i)));
    }
    return true;
}

/* Sets up the evaluation of the node on other numbers, in double, to propagate errors and
 * magnitudes. */

static Eval in_double(const Eval *e, Node *node, Tensor *args, Tensor *out) {
    Eval own = *e;
    *node = *e->node;
    node->attrs.number = 0;
    *out = *e->out;
    out->dtype = DT_F64;
    out->data = arena_array(e->arena, double, (size_t)tensor_n_elems(out) + 1);
    for (uint32_t k = 0; k < e->node->n_args; k++) args[k] = e->args[k];
    own.node = node;
    own.args = args;
    own.out = out;
    own.bounds = NULL;
    return own;
}

/* Whether argument `k` has indices, which stay what they are. */
static bool is_index(const Eval *e, uint32_t k) {
    if (e->info->cls == CLASS_UPDATE) return k == 2;
    return k == 1 && (e->node->op == OP_GATHER || e->info->cls == CLASS_SEGMENT);
}

static bool has_index_errors(const Eval *e) {
    bool has = false;
    for (uint32_t k = 0; k < e->node->n_args; k++) {
        if (!is_index(e, k)) continue;
        const double *errors = errors_or_zeros(e, k);
        int64_t n = tensor_n_elems(&e->args[k]);
        for (int64_t i = 0; i < n; i++) has = has || errors[i] > 0;
    }
    return has;
}

/* A view moves elements, and their errors with them. */
static bool widen_moved(const Eval *e) {
    Node node;
    Tensor out, *args = arena_array(e->arena, Tensor, e->node->n_args);
    Eval moved = in_double(e, &node, args, &out);
    bool is_lost = has_index_errors(e);
    for (uint32_t k = 0; k < e->node->n_args; k++)
        if (!is_index(e, k)) args[k].data = (double *)(uintptr_t)errors_or_zeros(e, k);
    bool is_moved = e->info->cls == CLASS_CONCAT   ? interp_concat(&moved)
                    : e->info->cls == CLASS_UPDATE ? interp_update(&moved)
                                                   : interp_view(&moved);
    if (!is_moved) return false;
    int64_t n = tensor_n_elems(e->out);
    for (int64_t i = 0; i < n; i++) e->bounds[i] = is_lost ? INTERP_ANY : out.data[i];
    return true;
}

static bool reduce_again(const Eval *e) {
    return e->info->cls == CLASS_SCAN      ? interp_scan(e)
           : e->info->cls == CLASS_SEGMENT ? interp_segments(e)
                                           : interp_reduce(e);
}

/* Evaluates the reduction of |x| + by * error, or of x + by * error. */
static bool evaluate(const Eval *e, OpId op, bool is_magnitude, double by, const double **result) {
    Node node;
    Tensor out, *args = arena_array(e->arena, Tensor, e->node->n_args);
    Eval own = in_double(e, &node, args, &out);
    own.info = op_info(op);
    for (uint32_t k = 0; k < e->node->n_args; k++) {
        if (is_index(e, k)) continue;
        const double *errors = errors_or_zeros(e, k);
        int64_t n = tensor_n_elems(&args[k]);
        args[k].dtype = DT_F64;
        args[k].data = arena_array(e->arena, double, (size_t)n + 1);
        for (int64_t i = 0; i < n; i++) {
            double shift = by == 0 ? 0 : by * errors[i];
            double number = tensor_number(&e->args[k], i);
            args[k].data[i] = isinf(shift) ? shift : (is_magnitude ? fabs(number) : number) + shift;
        }
    }
    *result = out.data;
    return reduce_again(&own);
}

/* Computes the sum of the arguments' errors per element of the result. */
static bool sum_errors(const Eval *e, const double **sums) {
    Tensor *args = arena_copy(e->arena, e->args, e->node->n_args * sizeof *args);
    OpId op = e->info->cls == CLASS_SCAN      ? OP_CUMSUM
              : e->info->cls == CLASS_SEGMENT ? OP_SEGMENT_SUM
                                              : OP_SUM;
    Eval own = *e;
    args[0].dtype = DT_F64;
    args[0].data = errors_or_zeros(e, 0);
    own.args = args;
    own.errors = NULL;
    return evaluate(&own, op, true, 0, sums);
}

static bool widen_extremes(const Eval *e) {
    const double *high, *low;
    if (!evaluate(e, e->node->op, false, 1, &high) || !evaluate(e, e->node->op, false, -1, &low))
        return false;
    int64_t n = tensor_n_elems(e->out);
    for (int64_t i = 0; i < n; i++)
        widen(e, i, fmax(apart(high[i], e->out->data[i]), apart(low[i], e->out->data[i])));
    return true;
}

/* The most terms of an element of a scan, or of a segment. */
static double row_terms(const Eval *e) {
    uint32_t axis = 0;
    while (axis + 1 < e->out->rank && !(e->node->attrs.axes >> axis & 1)) axis++;
    return (double)e->args[0].dims[axis];
}

static double n_terms(const Eval *e) {
    if (e->info->cls == CLASS_SCAN || e->info->cls == CLASS_SEGMENT) return row_terms(e);
    int64_t n = tensor_n_elems(&e->args[0]), n_out = tensor_n_elems(e->out);
    return n_out ? (double)(n / n_out) : 0;
}

static bool widen_reduce(const Eval *e) {
    const double *given, *with = NULL, *without = NULL;
    bool is_float = dtype_is_float(e->args[0].dtype);
    bool is_prod = e->info->combine == PRIM_MUL, is_index = e->info->cls == CLASS_ARGREDUCE;
    int64_t n = tensor_n_elems(e->out);
    if (!sum_errors(e, &given)) return false;
    if (is_float && !is_index && !is_prod && e->info->combine != PRIM_ADD) return widen_extremes(e);
    if (is_float && !is_index &&
        (!evaluate(e, e->node->op, true, 1, &with) || !evaluate(e, e->node->op, true, 0, &without)))
        return false;
    double u = (n_terms(e) + 3) * interp_unit_roundoff(dtype_compute(e->out->dtype));
    for (int64_t i = 0; i < n; i++) {
        if (given[i] == 0) continue;
        bool is_known = is_float && !is_index && isfinite(with[i]) && isfinite(given[i]);
        widen(e, i, is_known ? (with[i] - without[i]) * (1 + 1e-9) + u * with[i] : INTERP_ANY);
    }
    return true;
}

/* The errors of an operand's elements as they enter the GEMM: the interpreter rounds them, a target
 * may not. */
static const double *operand_errors(const Eval *e, uint32_t k, bool *is_any) {
    const double *errors = errors_or_zeros(e, k);
    const Tensor *arg = &e->args[k];
    int64_t n = tensor_n_elems(arg);
    bool is_tf32 = e->node->attrs.precision == PRECISION_TF32;
    double *rounded = arena_array(e->arena, double, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) {
        double x = arg->data[i], error = errors[i];
        bool is_known = isfinite(x) && fabs(x) + error <= dtype_max(arg->dtype);
        rounded[i] = error == 0 ? 0 : INTERP_ANY;
        *is_any = *is_any || (error > 0 && !is_known);
        if (error == 0 || !is_known) continue;
        rounded[i] = interp_rounded_bound(arg->dtype, x, error);
        if (is_tf32) rounded[i] += 0x1p-10 * (fabs(x) + error);
    }
    return rounded;
}

/* The error of a dot product from rounding and from the operands' errors. `without` is the sum of
 * the terms' magnitudes, `with` the same with the errors added. */
static double dot_error(const Eval *e, double with, double without, int64_t n, bool is_any) {
    double u = 2 * ((double)n + 2) * interp_unit_roundoff(dtype_compute(e->out->dtype));
    if (dtype_in(e->args[0].dtype, DTS_STORED))
        u += F8_DEPTH / F8_STEP * F8_CUTS * ldexp(1, -F8_BITS);
    if (isfinite(without) ? with == without : !is_any) return 0;
    bool is_known = dtype_is_float(e->out->dtype) && isfinite(with);
    return is_known ? (with - without) * (1 + 1e-9) + u * with : INTERP_ANY;
}

/* A 16-bit sum or product may be used unrounded. If it overflows, only the rounded one is
 * infinite. */
static void widen_unrounded(const Eval *e) {
    Dtype dtype = e->out->dtype;
    int64_t n = tensor_n_elems(e->out);
    if (dtype_compute(dtype) == dtype || !e->info->orders) return;
    for (int64_t i = 0; i < n; i++) {
        if (isinf(e->out->data[i]))
            e->bounds[i] = fmax(e->bounds[i], DBL_TRUE_MIN);
        else if (isfinite(e->bounds[i]) && isfinite(e->out->data[i]))
            e->bounds[i] += dtype_ulp(dtype, e->out->data[i]);
    }
}

/* Widens one matrix of the batch: its elements start at `first`, those of a and b at `offsets`. */
static void widen_matrix(const Eval *e, const double *const *errors, const int64_t *offsets,
                         int64_t first, bool is_any) {
    const Tensor *a = &e->args[0], *b = &e->args[1];
    int64_t n_terms = a->dims[a->rank - 1], n = b->dims[b->rank - 1];
    for (int64_t i = 0; i < a->dims[a->rank - 2] * n; i++) {
        double with = 0, without = 0;
        for (int64_t k = 0; k < n_terms; k++) {
            int64_t at_a = offsets[0] + i / n * n_terms + k, at_b = offsets[1] + k * n + i % n;
            double x = fabs(a->data[at_a]), y = fabs(b->data[at_b]);
            without += x * y;
            with += (x + errors[0][at_a]) * (y + errors[1][at_b]);
        }
        widen(e, first + i, dot_error(e, with, without, n_terms, is_any));
    }
}

/* A CPU's tile registers take subnormal numbers for zeros, as elements of bf16 and as sums of f32.
 * What a row loses so, of elements `b_stride` apart on the right; INTERP_ANY: a zero meets an
 * infinity. */
static double flushed_in_row(const double *a, const double *b, int64_t n, int64_t b_stride) {
    const double least = dtype_ulp(DT_F32, 0) / dtype_ulp(DT_F32, 1);
    double lost = 2 * (double)n * least;
    for (int64_t k = 0; k < n; k++) {
        double x = fabs(a[k]), y = fabs(b[k * b_stride]);
        bool is_flushed = (x < least && x != 0) || (y < least && y != 0);
        if (is_flushed && (isinf(x) || isinf(y))) return INTERP_ANY;
        if (is_flushed && !isnan(x * y)) lost += x * y;
    }
    return lost;
}

/* A sum that is `lost` off is rounded. */
static void widen_by_lost(const Eval *e, int64_t i, double lost) {
    double value = tensor_number(e->out, i), place = dtype_ulp(e->out->dtype, fabs(value));
    if (isinf(lost))
        e->bounds[i] = INTERP_ANY;
    else if (isfinite(value) && isfinite(e->bounds[i]))
        e->bounds[i] += lost + (2 * lost < place ? 0 : place);
}

/* Widens one matrix by what is flushed, see widen_matrix. */
static void widen_flushed(const Eval *e, const int64_t *offsets, int64_t first) {
    const Tensor *a = &e->args[0], *b = &e->args[1];
    int64_t n_terms = a->dims[a->rank - 1], n = b->dims[b->rank - 1];
    for (int64_t i = 0; i < a->dims[a->rank - 2] * n; i++) {
        const double *row = a->data + offsets[0] + i / n * n_terms;
        const double *column = b->data + offsets[1] + i % n;
        widen_by_lost(e, first + i, flushed_in_row(row, column, n_terms, n));
    }
}

static bool widen_matmul(const Eval *e) {
    bool is_any = false, has_wrong = has_errors(e);
    bool may_flush = dtype_is_bfloat(e->args[0].dtype) && dtype_is_bfloat(e->args[1].dtype);
    const double *errors[2] = {NULL, NULL};
    for (uint32_t k = 0; k < 2 && has_wrong; k++) errors[k] = operand_errors(e, k, &is_any);
    Tensor batch = *e->out;
    batch.rank -= 2;
    int64_t n_elems = tensor_n_elems(e->out), n_batches = tensor_n_elems(&batch);
    Walk walk = walk_over(&batch);
    if (!walk_add_batch(&walk, &e->args[0]) || !walk_add_batch(&walk, &e->args[1])) return false;
    for (int64_t i = 0; n_elems > 0 && i < n_batches; i++, walk_next(&walk)) {
        int64_t first = i * (n_elems / n_batches);
        if (may_flush) widen_flushed(e, walk.offsets, first);
        if (has_wrong) widen_matrix(e, errors, walk.offsets, first, is_any);
    }
    return true;
}

/* An order of inexact keys may be any; so may segments of inexact numbers. */
static bool widen_order(const Eval *e) {
    int64_t n = tensor_n_elems(e->out);
    for (int64_t i = 0; i < n; i++) widen(e, i, INTERP_ANY);
    return true;
}

bool interp_widen(const Eval *e) {
    switch (e->info->cls) {
    case CLASS_SOURCE:
    case CLASS_LOOP: /* of which whole graphs are made (interp.c) */
        return true;
    case CLASS_ELTWISE:
        return widen_eltwise(e);
    case CLASS_CAST:
        return widen_cast(e);
    case CLASS_VIEW:
    case CLASS_CONCAT:
    case CLASS_UPDATE:
        return !has_errors(e) || widen_moved(e);
    case CLASS_REDUCE:
    case CLASS_SCAN:
        widen_unrounded(e);
        return !has_errors(e) || widen_reduce(e);
    case CLASS_SEGMENT:
        widen_unrounded(e);
        if (has_index_errors(e)) return widen_order(e);
        return !has_errors(e) || widen_reduce(e);
    case CLASS_ARGREDUCE:
        return !has_errors(e) || widen_reduce(e);
    case CLASS_SCAN_BY: /* whose elements but the first may be any */
    case CLASS_SORT:
        return !has_errors(e) || widen_order(e);
    case CLASS_ONLINE:
        widen_unrounded(e);
        return !has_errors(e) || interp_widen_online(e);
    case CLASS_MATMUL:
        return widen_matmul(e);
    }
    return true;
}
