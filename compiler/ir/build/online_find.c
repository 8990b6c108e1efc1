/* See online_find.h. */
#include "ir/build/online_find.h"

#include "ir/build/online_follow.h"

enum { POWERS_DEPTH = 8 };

/* Exponents. */

static bool is_power(OpId op) {
    return op == OP_EXP || op == OP_EXP2;
}

/* Whether the op multiplies argument `k` by a positive literal. */
static bool scales(const OnlineFinder *f, const OnlinePlace *place, uint32_t k, double *factor) {
    const Node *node = online_node_of(f, place);
    bool is_scale = node->op == OP_MUL || (node->op == OP_DIV && k == 0);
    return is_scale && online_is_literal(f, online_arg_place(f, place, 1 - k), factor) &&
           *factor > 0;
}

/* Whether `shift` is the maximum of the scores, perhaps with a literal in place of infinities; both
 * may be scaled alike. */
static bool is_maximum(const OnlineFinder *f, OnlinePlace shift, OnlinePlace scores) {
    OnlinePlace arg;
    double one, other;
    shift = online_before_moves(f, shift);
    if (online_reduces_keys(f, shift, PRIM_MAX, &arg)) return online_is_same(f, arg, scores);
    for (uint32_t k = 1; online_node_of(f, &shift)->op == OP_WHERE && k < 3; k++)
        if (online_is_literal(f, online_arg_place(f, &shift, 3 - k), &one))
            return is_maximum(f, online_arg_place(f, &shift, k), scores);
    scores = online_before_views(f, scores);
    if (online_node_of(f, &shift)->op != online_node_of(f, &scores)->op) return false;
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < 2; i++)
            if (scales(f, &shift, k, &one) && scales(f, &scores, i, &other) && one == other)
                return is_maximum(f, online_arg_place(f, &shift, k),
                                  online_arg_place(f, &scores, i));
    return false;
}

/* Whether the value is the sum of the powers of `exponent`. */
static bool is_total_of(const OnlineFinder *f, OnlinePlace value, OnlinePlace exponent) {
    OnlinePlace arg;
    if (!online_reduces_keys(f, value, PRIM_ADD, &arg)) return false;
    arg = online_before_moves(f, arg);
    return online_node_of(f, &arg)->op == OP_EXP &&
           online_is_same(f, online_arg_place(f, &arg, 0), exponent);
}

/* Whether `shift` is log(sum(exp(exponent))), or m + log(sum(exp(exponent - m))) with m the maximum
 * of `exponent`. */
static bool is_log_total(const OnlineFinder *f, OnlinePlace shift, OnlinePlace exponent) {
    OnlinePlace arg;
    shift = online_before_moves(f, shift);
    const Node *node = online_node_of(f, &shift);
    if (node->op == OP_LOG) return is_total_of(f, online_arg_place(f, &shift, 0), exponent);
    for (uint32_t k = 0; node->op == OP_ADD && k < 2; k++) {
        OnlinePlace log = online_before_moves(f, online_arg_place(f, &shift, k));
        if (!is_maximum(f, online_arg_place(f, &shift, 1 - k), exponent) ||
            online_node_of(f, &log)->op != OP_LOG ||
            !online_reduces_keys(f, online_arg_place(f, &log, 0), PRIM_ADD, &arg))
            continue;
        arg = online_before_moves(f, arg);
        if (online_node_of(f, &arg)->op != OP_EXP) continue;
        OnlinePlace above = online_before_moves(f, online_arg_place(f, &arg, 0));
        return online_node_of(f, &above)->op == OP_SUB &&
               online_is_same(f, online_arg_place(f, &above, 0), exponent);
    }
    return false;
}

/* If the op takes a shift off argument `k`, sets the shift. */
static bool shifts(const OnlineFinder *f, const OnlinePlace *place, uint32_t k,
                   OnlinePlace *shift) {
    const Node *node = online_node_of(f, place);
    if (node->op != OP_SUB && node->op != OP_ADD) return false;
    *shift = online_arg_place(f, place, 1 - k);
    if (node->op == OP_SUB) return k == 0;
    *shift = online_before_moves(f, *shift);
    if (online_node_of(f, shift)->op != OP_NEG) return false;
    *shift = online_arg_place(f, shift, 0);
    return true;
}

/* Goes from the power's argument back to the scores. Without a shift that is their maximum, the
 * argument itself is the scores: each softmax is that of the scores less any number. */
static bool read_exponent(OnlineFinder *f, OnlinePlace place) {
    OnlinePath *path = &f->found->exponent;
    OnlinePlace shift, first = place;
    double factor;
    for (;;) {
        const Node *node = online_node_of(f, &place);
        uint32_t k = 0;
        bool is_shift = shifts(f, &place, k, &shift) || shifts(f, &place, ++k, &shift);
        OnlinePlace rest = is_shift ? online_arg_place(f, &place, k) : place;
        if (is_shift && is_maximum(f, shift, rest)) {
            if (!online_go_on(path, f, &place, k)) return false;
            f->found->scores = place.node;
            return true;
        }
        if (is_shift && !f->is_divided && f->found->op == OP_SOFTMAX_MATMUL && !path->n &&
            is_log_total(f, shift, rest)) {
            f->is_divided = true;
            if (!online_go_on(path, f, &place, k)) return false;
            first = place;
            continue;
        }
        k = scales(f, &place, 0, &factor) ? 0 : 1;
        bool is_scaled = scales(f, &place, k, &factor);
        if (!is_scaled && !online_is_view(node) && !online_is_float_cast(f->graph, node)) break;
        if (!online_go_on(path, f, &place, is_scaled ? k : 0)) break;
    }
    path->n = f->is_divided && !f->has_total ? 1 : 0;
    f->found->scores = first.node;
    return true;
}

/* Weights. */

/* If the op divides argument `k` by a number of the row, or multiplies by its reciprocal, sets the
 * number. */
static bool divides(const OnlineFinder *f, const OnlinePlace *place, uint32_t k,
                    OnlinePlace *divisor) {
    const Node *node = online_node_of(f, place);
    double one;
    if (node->op == OP_DIV && k == 0) {
        *divisor = online_arg_place(f, place, 1);
        return true;
    }
    if (node->op != OP_MUL) return false;
    OnlinePlace other = online_before_moves(f, online_arg_place(f, place, 1 - k));
    if (online_node_of(f, &other)->op != OP_DIV ||
        !online_is_literal(f, online_arg_place(f, &other, 0), &one) || one != 1)
        return false;
    *divisor = online_arg_place(f, &other, 1);
    return true;
}

/* Whether the value, which elementwise ops and views make, has exponentials along the keys. */
static bool has_powers(const OnlineFinder *f, OnlinePlace place, uint32_t depth) {
    const Node *node = online_node_of(f, &place);
    if (!online_belongs(f, place.node)) return false;
    if (is_power(node->op) || depth == 0) {
        f->found->power = place.node;
        return is_power(node->op) && (online_varies(f, place) || online_is_one(f, f->n_keys));
    }
    for (uint32_t k = 0; (online_is_view(node) || online_is_elementwise(node)) && k < node->n_args;
         k++)
        if (has_powers(f, online_arg_place(f, &place, k), depth - 1)) return true;
    return false;
}

static bool stands_between(OnlineFinder *f, const OnlinePlace *place) {
    if (!has_powers(f, *place, POWERS_DEPTH)) return false;
    return online_fail(f, "Put it before the softmax, or behind the product.",
                       str_format(f->arena, "`%s` stands between the softmax and its product",
                                  op_info(online_node_of(f, place)->op)->name));
}

/* Whether the op multiplies, divides or negates argument `k`, or selects 0 in place of it. */
static bool is_linear(const OnlineFinder *f, const OnlinePlace *place, uint32_t k) {
    double number;
    switch ((int)online_node_of(f, place)->op) {
    case OP_MUL:
        return k < 2;
    case OP_DIV:
    case OP_NEG:
        return k == 0;
    case OP_WHERE:
        return k > 0 && online_is_literal(f, online_arg_place(f, place, 3 - k), &number) &&
               number == 0;
    default:
        return false;
    }
}

/* If the op multiplies weights by a factor, sets the weights' argument and which factor it is. No
 * other argument has exponentials. */
static bool read_factor(const OnlineFinder *f, const OnlinePlace *place, uint32_t *arg,
                        OnlineStep *step) {
    const Node *node = online_node_of(f, place);
    uint32_t n_powers = 0;
    bool varies_by_key = false;
    if (!online_is_elementwise(node)) return false;
    for (uint32_t k = 0; k < node->n_args; k++)
        if (has_powers(f, online_arg_place(f, place, k), POWERS_DEPTH)) n_powers++, *arg = k;
    if (n_powers != 1 || !is_linear(f, place, *arg)) return false;
    for (uint32_t k = 0; k < node->n_args; k++)
        varies_by_key =
            varies_by_key || (k != *arg && online_varies(f, online_arg_place(f, place, k)));
    bool has_key = dim_lo(f->graph->dims, f->n_keys) > 0; /* from which a row's factor is read */
    *step = varies_by_key || !has_key ? STEP_KEY : STEP_ROW;
    return true;
}

/* A softmax whose sum goes along another axis. */
static bool is_other_axis(const OnlineFinder *f, OnlinePlace divisor) {
    const Node *node = online_node_of(f, &divisor);
    return op_info(node->op)->cls == CLASS_REDUCE && online_varies(f, divisor);
}

/* Reads the op that makes weights of argument `k` of its own. */
static bool read_step(OnlineFinder *f, const OnlinePlace *place, uint32_t *k, OnlineStep *step) {
    const Node *node = online_node_of(f, place);
    OnlinePlace divisor, arg;
    *k = 0, *step = STEP_PLAIN;
    if (online_is_view(node) || online_is_float_cast(f->graph, node)) return true;
    bool is_quotient = divides(f, place, 0, &divisor);
    if (!is_quotient && divides(f, place, 1, &divisor)) is_quotient = true, *k = 1;
    if (is_quotient && !f->has_total && !online_varies(f, divisor) &&
        online_reduces_keys(f, divisor, PRIM_ADD, &arg)) {
        f->has_total = f->is_divided = true;
        f->total = divisor;
        return true;
    }
    if (is_quotient && is_other_axis(f, online_before_moves(f, divisor)) &&
        has_powers(f, *place, POWERS_DEPTH))
        return online_fail(
            f, "Let both go along one axis.",
            "a softmax goes along another axis than the one that its product contracts");
    double number;
    f->has_divisor = f->has_divisor || (is_quotient && !online_is_literal(f, divisor, &number));
    return read_factor(f, place, k, step) || stands_between(f, place);
}

static bool read_weights(OnlineFinder *f, OnlinePlace place) {
    OnlinePath *path = &f->found->weights;
    while (!is_power(online_node_of(f, &place)->op)) {
        uint32_t k = 0;
        OnlineStep step;
        if (!online_belongs(f, place.node) || path->n == ONLINE_MOST_STEPS ||
            !read_step(f, &place, &k, &step))
            return false;
        f->weights[path->n] = place;
        online_go_on(path, f, &place, k);
        path->steps[path->n - 1] = step;
    }
    if (!online_belongs(f, place.node) ||
        (!online_varies(f, place) && !online_is_one(f, f->n_keys)))
        return false;
    f->power = place;
    f->found->power = place.node;
    f->found->op = online_node_of(f, &place)->op == OP_EXP ? OP_SOFTMAX_MATMUL : OP_SOFTMAX2_MATMUL;
    return read_exponent(f, online_arg_place(f, &place, 0));
}

/* What a factor that weights share with their sum does: a number nothing, a bool hides keys. */
static bool share_factor(OnlineFinder *f, uint32_t at) {
    OnlinePath *path = &f->found->weights;
    const OnlinePlace *place = &f->weights[at];
    const Node *node = online_node_of(f, place);
    double number = -1;
    if (path->steps[at] == STEP_PLAIN) return true;
    path->steps[at] = node->op == OP_WHERE ? STEP_MASK : STEP_SCALED;
    if (node->op == OP_WHERE || node->op == OP_NEG) return true;
    OnlinePlace other = online_arg_place(f, place, 1 - path->args[at]);
    if (online_is_literal(f, other, &number)) return number != 0;
    other = online_before_moves(f, other);
    const Node *cast = online_node_of(f, &other);
    bool is_mask = node->op == OP_MUL && cast->op == OP_CAST &&
                   dtype_is_bool(graph_node(f->graph, cast->args[0])->dtype);
    path->steps[at] = STEP_MASK;
    return is_mask ||
           online_fail(f, "Add the factor's logarithm to the scores.",
                       str_format(f->arena,
                                  "`%s` changes the weights of a softmax before their sum",
                                  op_info(node->op)->name));
}

/* Whether the divisor is the sum of the weights, as they are at some op of their path. Factors
 * from there back to the power are shared with the sum. */
static bool is_total(OnlineFinder *f) {
    OnlinePlace arg;
    uint32_t n = f->found->weights.n, at = n;
    bool is_found = false;
    if (!online_reduces_keys(f, f->total, PRIM_ADD, &arg)) return false;
    arg = online_before_moves(f, arg);
    is_found = online_is_same(f, arg, f->power);
    while (!is_found && at-- > 0)
        is_found = online_is_same(f, arg, online_before_moves(f, f->weights[at]));
    for (uint32_t i = at; is_found && i < n; i++)
        if (!share_factor(f, i)) return false;
    return is_found;
}

/* Products. */

/* Reads the operand of the matmul on one side; `product` is an element of the matmul. */
static bool read_operand(OnlineFinder *f, const OnlinePlace *product, uint32_t side) {
    return read_weights(f, online_operand(f, product, side));
}

/* Whether the op that does the same takes the operands' dtypes and ranks. */
static bool is_supported(OnlineFinder *f) {
    const Node *matmul = graph_node(f->graph, f->found->matmul);
    const Node *values = graph_node(f->graph, matmul->args[1 - f->found->side]);
    Dtype scores = graph_node(f->graph, f->found->scores)->dtype;
    if (matmul->attrs.precision != PRECISION_FULL)
        return online_fail(f, "Leave out `precision`.", "the product has a precision of its own");
    if (!dtype_in(values->dtype, DTS_FLOAT) ||
        dtype_bytes(scores) > dtype_bytes(dtype_compute(values->dtype)))
        return online_fail(f, "Cast the values, or the scores to f32.",
                           str_format(f->arena, "scores of %s do not go with values of %s",
                                      dtype_name(scores), dtype_name(values->dtype)));
    if (matmul->shape.rank >= MAX_GIVEN_RANK)
        return online_fail(f, "Reshape leading axes to one.",
                           "the product has a rank of 8 or more");
    return true;
}

static bool fail_divisor(OnlineFinder *f) {
    if (f->has_total || f->has_divisor)
        return online_fail(f, "Divide by the sum of the same weights along the contracted axis.",
                           "the weights are divided by something else than their sum");
    return online_fail(f, "Divide them, or the product, by their sum along the axis.",
                       "the weights of a softmax are not divided by their sum");
}

bool online_find_product(const Builder *b, NodeId matmul, OnlineFound *found,
                         OnlineReason *reason) {
    OnlineFound almost = {.matmul = matmul, .power = NODE_NONE};
    *reason = (OnlineReason){NULL, NULL};
    for (uint32_t side = 0; side < 2; side++) {
        OnlinePlace product;
        OnlineFinder f = online_finder_new(b, matmul, found, &product);
        online_begin_keys(&f, matmul);
        bool is_read = read_operand(&f, &product, side);
        bool is_summed = is_read && (f.has_total ? is_total(&f) : f.is_divided);
        if (is_read && !is_summed && !f.message) fail_divisor(&f);
        if (is_summed && is_supported(&f)) return true;
        if (!f.message) continue;
        *reason = (OnlineReason){f.message, f.help};
        almost = *found;
    }
    *found = almost;
    return false;
}

NodeId online_quotient_of(const Graph *graph, NodeId id, uint32_t *arg) {
    const Node *node = graph_node(graph, id);
    for (*arg = 0; *arg < (node->op == OP_MUL ? 2u : node->op == OP_DIV); ++*arg) {
        NodeId from = node->args[*arg];
        while (online_is_view(graph_node(graph, from)) ||
               online_is_float_cast(graph, graph_node(graph, from)))
            from = graph_node(graph, from)->args[0];
        if (graph_is_matmul(graph, from)) return from;
    }
    return NODE_NONE;
}

bool online_find_quotient(const Builder *b, NodeId id, OnlineFound *found, OnlineReason *reason) {
    uint32_t arg;
    NodeId matmul = online_quotient_of(b->graph, id, &arg);
    OnlineFound almost = {.matmul = matmul, .power = NODE_NONE};
    *reason = (OnlineReason){NULL, NULL};
    if (matmul == NODE_NONE) return false;
    for (uint32_t side = 0; side < 2; side++) {
        OnlinePlace quotient, divisor;
        OnlineFinder f = online_finder_new(b, id, found, &quotient);
        online_begin_keys(&f, matmul);
        if (!divides(&f, &quotient, arg, &divisor)) return false;
        OnlinePlace product = online_before_moves(&f, online_arg_place(&f, &quotient, arg));
        bool is_read = read_operand(&f, &product, side) && !f.is_divided;
        f.total = divisor;
        if (is_read && is_total(&f) && is_supported(&f)) return true;
        if (!f.message) continue;
        *reason = (OnlineReason){f.message, f.help};
        almost = *found;
    }
    *found = almost;
    return false;
}

/* Logarithms. */

/* If the value is the logarithm of a sum of exponentials along one axis, sets the sum and what the
 * exponentials are of. */
static bool read_log(OnlineFinder *f, OnlinePlace place, OnlineLog *found, OnlinePlace *exponent) {
    place = online_before_moves(f, place);
    if (online_node_of(f, &place)->op != OP_LOG || !online_belongs(f, place.node)) return false;
    OnlinePlace sum = online_before_moves(f, online_arg_place(f, &place, 0)), arg;
    const Node *node = online_node_of(f, &sum);
    uint32_t axis = 0;
    if (op_info(node->op)->cls != CLASS_REDUCE || !node->attrs.axes) return false;
    while (!(node->attrs.axes >> axis & 1)) axis++;
    const Shape *shape = &graph_node(f->graph, node->args[0])->shape;
    f->n_keys = shape->dims[axis];
    f->key_axis = index_new_axis(f->tab, f->n_keys);
    if (!online_reduces_keys(f, sum, PRIM_ADD, &arg)) return false;
    while (online_is_float_cast(f->graph, online_node_of(f, &arg)))
        arg = online_arg_place(f, &arg, 0);
    if (online_node_of(f, &arg)->op != OP_EXP || !online_belongs(f, arg.node) ||
        !online_belongs(f, sum.node))
        return false;
    found->axis = axis;
    *exponent = online_arg_place(f, &arg, 0);
    return shape_equal(&online_node_of(f, exponent)->shape, shape);
}

/* If the exponent is scores less their maximum, sets the scores and the maximum. */
static bool read_shift(const OnlineFinder *f, OnlinePlace exponent, OnlinePlace *scores,
                       OnlinePlace *shift) {
    uint32_t k = 0;
    bool is_shift = shifts(f, &exponent, k, shift) || shifts(f, &exponent, ++k, shift);
    if (!is_shift) return false;
    *scores = online_arg_place(f, &exponent, k);
    return is_maximum(f, *shift, *scores) &&
           shape_equal(&online_node_of(f, scores)->shape, &online_node_of(f, &exponent)->shape);
}

/* Whether the two have the same rows in the same order: equal indices but for axes of one element
 * and axis `skipped` of either. UINT32_MAX: none. */
static bool has_rows_of(const OnlineFinder *f, const OnlinePlace *a, uint32_t skipped_of_a,
                        const OnlinePlace *b, uint32_t skipped_of_b) {
    const Shape *one = &online_node_of(f, a)->shape, *other = &online_node_of(f, b)->shape;
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < one->rank && (i == skipped_of_a || online_is_one(f, one->dims[i]))) i++;
        while (k < other->rank && (k == skipped_of_b || online_is_one(f, other->dims[k]))) k++;
        if (i == one->rank || k == other->rank) return i == one->rank && k == other->rank;
        if (a->at[i++] != b->at[k++]) return false;
    }
}

/* Whether the logarithm that is argument `k` makes one of an OnlineLog of the op at `of`. */
static bool is_log(OnlineFinder *f, OnlinePlace of, uint32_t k, OnlineLog *found) {
    OnlinePlace exponent, scores, shift;
    OpId op = online_node_of(f, &of)->op;
    if (!read_log(f, op == OP_LOG ? of : online_arg_place(f, &of, k), found, &exponent))
        return false;
    bool has_shift = read_shift(f, exponent, &scores, &shift);
    found->op = OP_SOFTMAX_LSE;
    found->scores = has_shift ? scores.node : exponent.node;
    found->is_taken = op == OP_SUB;
    if (has_shift == (op == OP_LOG)) return false;
    if (op == OP_LOG) return has_rows_of(f, &of, UINT32_MAX, &exponent, found->axis);
    OnlinePlace other = online_arg_place(f, &of, 1 - k);
    if (op == OP_ADD)
        return is_maximum(f, other, scores) &&
               has_rows_of(f, &of, UINT32_MAX, &exponent, found->axis);
    return other.node == exponent.node &&
           has_rows_of(f, &other, found->axis, &exponent, found->axis) &&
           shape_equal(&online_node_of(f, &of)->shape, &online_node_of(f, &exponent)->shape);
}

bool online_find_log(const Builder *b, NodeId id, OnlineLog *found) {
    OpId op = graph_node(b->graph, id)->op;
    bool may[2] = {op == OP_LOG || op == OP_ADD, op == OP_ADD || op == OP_SUB};
    for (uint32_t k = 0; k < 2; k++) {
        OnlineFound none;
        OnlinePlace of;
        if (!may[k]) continue;
        OnlineFinder f = online_finder_new(b, id, &none, &of);
        none.matmul = id;
        if (is_log(&f, of, k, found)) return true;
    }
    return false;
}

NodeId online_summed_powers(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    const OpInfo *info = op_info(node->op);
    if (info->cls != CLASS_REDUCE || info->combine != PRIM_ADD) return NODE_NONE;
    NodeId from = node->args[0];
    while (online_is_view(graph_node(graph, from)) ||
           online_is_float_cast(graph, graph_node(graph, from)))
        from = graph_node(graph, from)->args[0];
    return is_power(graph_node(graph, from)->op) ? from : NODE_NONE;
}
