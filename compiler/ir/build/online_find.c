/* See online_find.h. Views are followed by the indices of elements: two values are the same if they
 * are read from one node at equal indices. So it does not matter which reshapes, transposes and
 * broadcasts stand between. */
#include "ir/build/online_find.h"

#include "ir/indexmap.h"

/* An element of a node. */
typedef struct Place {
    NodeId node;
    IndexId at[MAX_RANK];
} Place;

enum { MOST_VISITS = 10000, POWERS_DEPTH = 8 };

typedef struct Finder {
    Arena *arena;
    const Graph *graph;
    const Builder *b;
    IndexTab *tab;
    DimId n_keys;
    uint32_t key_axis; /* of `tab`: the axis that the matmul contracts */
    OnlineFound *found;
    Place power, total;
    Place weights[ONLINE_MOST_STEPS]; /* before each op of the path of weights */
    bool has_total, is_divided, has_divisor;
    uint32_t *budget; /* of visits: what takes more is not found */
    const char *message, *help;
} Finder;

/* Whether the node may become part of the op. */
static bool belongs(const Finder *f, NodeId id) {
    const uint32_t *blocks = f->graph->kernel_of.data;
    return f->b->online_of.data[id] || (f->b->rewrites && blocks[id] == blocks[f->found->matmul]);
}

static const Node *node_of(const Finder *f, const Place *place) {
    return graph_node(f->graph, place->node);
}

static bool fail(Finder *f, const char *help, const char *message) {
    f->message = message;
    f->help = help;
    return false;
}

/* Following values. */

static bool is_view(const Node *node) {
    return op_info(node->op)->cls == CLASS_VIEW && indexmap_can_pull(node->op);
}

static bool is_float_cast(const Graph *graph, const Node *node) {
    return node->op == OP_CAST && dtype_is_float(node->dtype) &&
           dtype_is_float(graph_node(graph, node->args[0])->dtype);
}

static bool is_elementwise(const Node *node) {
    OpClass cls = op_info(node->op)->cls;
    return cls == CLASS_ELTWISE || cls == CLASS_CAST;
}

/* The element of argument `k` that an elementwise op or a view reads. */
static Place arg_place(const Finder *f, const Place *place, uint32_t k) {
    const Node *node = node_of(f, place);
    Place arg = {.node = node->args[k]};
    if (is_view(node))
        indexmap_pull(f->tab, f->graph, node, place->at, arg.at);
    else
        indexmap_broadcast(f->tab, &node->shape, place->at, &graph_node(f->graph, arg.node)->shape,
                           arg.at);
    return arg;
}

/* The element before views, or before views and casts between floats. */
static Place before_views(const Finder *f, Place place) {
    while (is_view(node_of(f, &place))) place = arg_place(f, &place, 0);
    return place;
}

static Place before_moves(const Finder *f, Place place) {
    while (is_view(node_of(f, &place)) || is_float_cast(f->graph, node_of(f, &place)))
        place = arg_place(f, &place, 0);
    return place;
}

static bool is_one(const Finder *f, DimId extent) {
    return dim_equals_const(f->graph->dims, extent, 1);
}

static bool spend(const Finder *f) {
    if (*f->budget) --*f->budget;
    return *f->budget > 0;
}

/* Whether the value changes from key to key. */
static bool varies(const Finder *f, Place place) {
    const Node *node = node_of(f, &place);
    bool moves = false;
    for (uint32_t k = 0; k < node->shape.rank; k++)
        moves = moves || ((index_axes(f->tab, place.at[k]) >> f->key_axis & 1) &&
                          !is_one(f, node->shape.dims[k]));
    if (moves && !spend(f)) return true;
    if (!moves || (!is_view(node) && !is_elementwise(node))) return moves;
    for (uint32_t k = 0; k < (is_view(node) ? 1 : node->n_args); k++)
        if (varies(f, arg_place(f, &place, k))) return true;
    return false;
}

/* Whether the two are elements of one node at equal indices. An axis of one element has no index.
 */
static bool is_same_element(const Finder *f, const Place *a, const Place *b) {
    const Shape *shape = &node_of(f, a)->shape;
    bool is = a->node == b->node;
    for (uint32_t k = 0; is && k < shape->rank; k++)
        is = a->at[k] == b->at[k] || is_one(f, shape->dims[k]);
    return is;
}

static bool is_same(const Finder *f, Place a, Place b) {
    a = before_views(f, a), b = before_views(f, b);
    const Node *one = node_of(f, &a), *other = node_of(f, &b);
    if (a.node == b.node || !spend(f)) return is_same_element(f, &a, &b);
    if (one->op != other->op || one->dtype != other->dtype || !is_elementwise(one)) return false;
    for (uint32_t k = 0; k < one->n_args; k++)
        if (!is_same(f, arg_place(f, &a, k), arg_place(f, &b, k))) return false;
    return true;
}

static bool is_literal(const Finder *f, Place place, double *number) {
    place = before_moves(f, place);
    *number = node_of(f, &place)->attrs.number;
    return node_of(f, &place)->op == OP_CONST && dtype_is_float(node_of(f, &place)->dtype);
}

/* If the value is a reduction over the keys by `combine`, sets the element of its argument. */
static bool reduces_keys(const Finder *f, Place place, PrimId combine, Place *arg) {
    place = before_moves(f, place);
    const Node *node = node_of(f, &place);
    const OpInfo *info = op_info(node->op);
    if (info->cls != CLASS_REDUCE || info->combine != combine || info->divides_by_count)
        return false;
    const Shape *shape = &graph_node(f->graph, node->args[0])->shape;
    *arg = (Place){.node = node->args[0]};
    uint32_t n = 0, n_reduced = 0;
    for (uint32_t k = 0; k < shape->rank; k++) {
        bool is_reduced = node->attrs.axes >> k & 1;
        n_reduced += is_reduced;
        if (is_reduced && shape->dims[k] != f->n_keys) return false;
        arg->at[k] = is_reduced ? index_axis(f->tab, f->key_axis) : place.at[n];
        n += !is_reduced || node->attrs.keep;
    }
    return n_reduced == 1;
}

/* Exponents. */

static bool is_power(OpId op) {
    return op == OP_EXP || op == OP_EXP2;
}

/* Whether the op multiplies argument `k` by a positive literal. */
static bool scales(const Finder *f, const Place *place, uint32_t k, double *factor) {
    const Node *node = node_of(f, place);
    bool is_scale = node->op == OP_MUL || (node->op == OP_DIV && k == 0);
    return is_scale && is_literal(f, arg_place(f, place, 1 - k), factor) && *factor > 0;
}

/* Whether `shift` is the maximum of the scores, perhaps with a literal in place of infinities; both
 * may be scaled alike. */
static bool is_maximum(const Finder *f, Place shift, Place scores) {
    Place arg;
    double one, other;
    shift = before_moves(f, shift);
    if (reduces_keys(f, shift, PRIM_MAX, &arg)) return is_same(f, arg, scores);
    for (uint32_t k = 1; node_of(f, &shift)->op == OP_WHERE && k < 3; k++)
        if (is_literal(f, arg_place(f, &shift, 3 - k), &one))
            return is_maximum(f, arg_place(f, &shift, k), scores);
    scores = before_views(f, scores);
    if (node_of(f, &shift)->op != node_of(f, &scores)->op) return false;
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < 2; i++)
            if (scales(f, &shift, k, &one) && scales(f, &scores, i, &other) && one == other)
                return is_maximum(f, arg_place(f, &shift, k), arg_place(f, &scores, i));
    return false;
}

/* Whether the value is the sum of the powers of `exponent`. */
static bool is_total_of(const Finder *f, Place value, Place exponent) {
    Place arg;
    if (!reduces_keys(f, value, PRIM_ADD, &arg)) return false;
    arg = before_moves(f, arg);
    return node_of(f, &arg)->op == OP_EXP && is_same(f, arg_place(f, &arg, 0), exponent);
}

/* Whether `shift` is log(sum(exp(exponent))), or m + log(sum(exp(exponent - m))) with m the maximum
 * of `exponent`. */
static bool is_log_total(const Finder *f, Place shift, Place exponent) {
    Place arg;
    shift = before_moves(f, shift);
    const Node *node = node_of(f, &shift);
    if (node->op == OP_LOG) return is_total_of(f, arg_place(f, &shift, 0), exponent);
    for (uint32_t k = 0; node->op == OP_ADD && k < 2; k++) {
        Place log = before_moves(f, arg_place(f, &shift, k));
        if (!is_maximum(f, arg_place(f, &shift, 1 - k), exponent) ||
            node_of(f, &log)->op != OP_LOG ||
            !reduces_keys(f, arg_place(f, &log, 0), PRIM_ADD, &arg))
            continue;
        arg = before_moves(f, arg);
        if (node_of(f, &arg)->op != OP_EXP) continue;
        Place above = before_moves(f, arg_place(f, &arg, 0));
        return node_of(f, &above)->op == OP_SUB && is_same(f, arg_place(f, &above, 0), exponent);
    }
    return false;
}

static bool go_on(OnlinePath *path, const Finder *f, Place *place, uint32_t arg) {
    if (path->n == ONLINE_MOST_STEPS) return false;
    path->ops[path->n] = place->node;
    path->steps[path->n] = STEP_PLAIN;
    path->args[path->n++] = arg;
    *place = arg_place(f, place, arg);
    return true;
}

/* If the op takes a shift off argument `k`, sets the shift. */
static bool shifts(const Finder *f, const Place *place, uint32_t k, Place *shift) {
    const Node *node = node_of(f, place);
    if (node->op != OP_SUB && node->op != OP_ADD) return false;
    *shift = arg_place(f, place, 1 - k);
    if (node->op == OP_SUB) return k == 0;
    *shift = before_moves(f, *shift);
    if (node_of(f, shift)->op != OP_NEG) return false;
    *shift = arg_place(f, shift, 0);
    return true;
}

/* Goes from the power's argument back to the scores. Without a shift that is their maximum, the
 * argument itself is the scores: each softmax is that of the scores less any number. */
static bool read_exponent(Finder *f, Place place) {
    OnlinePath *path = &f->found->exponent;
    Place shift, first = place;
    double factor;
    for (;;) {
        const Node *node = node_of(f, &place);
        uint32_t k = 0;
        bool is_shift = shifts(f, &place, k, &shift) || shifts(f, &place, ++k, &shift);
        Place rest = is_shift ? arg_place(f, &place, k) : place;
        if (is_shift && is_maximum(f, shift, rest)) {
            if (!go_on(path, f, &place, k)) return false;
            f->found->scores = place.node;
            return true;
        }
        if (is_shift && !f->is_divided && f->found->op == OP_SOFTMAX_MATMUL && !path->n &&
            is_log_total(f, shift, rest)) {
            f->is_divided = true;
            if (!go_on(path, f, &place, k)) return false;
            first = place;
            continue;
        }
        k = scales(f, &place, 0, &factor) ? 0 : 1;
        bool is_scaled = scales(f, &place, k, &factor);
        if (!is_scaled && !is_view(node) && !is_float_cast(f->graph, node)) break;
        if (!go_on(path, f, &place, is_scaled ? k : 0)) break;
    }
    path->n = f->is_divided && !f->has_total ? 1 : 0;
    f->found->scores = first.node;
    return true;
}

/* Weights. */

/* If the op divides argument `k` by a number of the row, or multiplies by its reciprocal, sets the
 * number. */
static bool divides(const Finder *f, const Place *place, uint32_t k, Place *divisor) {
    const Node *node = node_of(f, place);
    double one;
    if (node->op == OP_DIV && k == 0) {
        *divisor = arg_place(f, place, 1);
        return true;
    }
    if (node->op != OP_MUL) return false;
    Place other = before_moves(f, arg_place(f, place, 1 - k));
    if (node_of(f, &other)->op != OP_DIV || !is_literal(f, arg_place(f, &other, 0), &one) ||
        one != 1)
        return false;
    *divisor = arg_place(f, &other, 1);
    return true;
}

/* Whether the value, which elementwise ops and views make, has exponentials along the keys. */
static bool has_powers(const Finder *f, Place place, uint32_t depth) {
    const Node *node = node_of(f, &place);
    if (!belongs(f, place.node)) return false;
    if (is_power(node->op) || depth == 0) {
        f->found->power = place.node;
        return is_power(node->op) && (varies(f, place) || is_one(f, f->n_keys));
    }
    for (uint32_t k = 0; (is_view(node) || is_elementwise(node)) && k < node->n_args; k++)
        if (has_powers(f, arg_place(f, &place, k), depth - 1)) return true;
    return false;
}

static bool stands_between(Finder *f, const Place *place) {
    if (!has_powers(f, *place, POWERS_DEPTH)) return false;
    return fail(f, "Put it before the softmax, or behind the product.",
                str_format(f->arena, "`%s` stands between the softmax and its product",
                           op_info(node_of(f, place)->op)->name));
}

/* Whether the op multiplies, divides or negates argument `k`, or selects 0 in place of it. */
static bool is_linear(const Finder *f, const Place *place, uint32_t k) {
    double number;
    switch ((int)node_of(f, place)->op) {
    case OP_MUL:
        return k < 2;
    case OP_DIV:
    case OP_NEG:
        return k == 0;
    case OP_WHERE:
        return k > 0 && is_literal(f, arg_place(f, place, 3 - k), &number) && number == 0;
    default:
        return false;
    }
}

/* If the op multiplies weights by a factor, sets the weights' argument and which factor it is. No
 * other argument has exponentials. */
static bool read_factor(const Finder *f, const Place *place, uint32_t *arg, OnlineStep *step) {
    const Node *node = node_of(f, place);
    uint32_t n_powers = 0;
    bool varies_by_key = false;
    if (!is_elementwise(node)) return false;
    for (uint32_t k = 0; k < node->n_args; k++)
        if (has_powers(f, arg_place(f, place, k), POWERS_DEPTH)) n_powers++, *arg = k;
    if (n_powers != 1 || !is_linear(f, place, *arg)) return false;
    for (uint32_t k = 0; k < node->n_args; k++)
        varies_by_key = varies_by_key || (k != *arg && varies(f, arg_place(f, place, k)));
    bool has_key = dim_lo(f->graph->dims, f->n_keys) > 0; /* from which a row's factor is read */
    *step = varies_by_key || !has_key ? STEP_KEY : STEP_ROW;
    return true;
}

/* A softmax whose sum goes along another axis. */
static bool is_other_axis(const Finder *f, Place divisor) {
    const Node *node = node_of(f, &divisor);
    return op_info(node->op)->cls == CLASS_REDUCE && varies(f, divisor);
}

/* Reads the op that makes weights of argument `k` of its own. */
static bool read_step(Finder *f, const Place *place, uint32_t *k, OnlineStep *step) {
    const Node *node = node_of(f, place);
    Place divisor, arg;
    *k = 0, *step = STEP_PLAIN;
    if (is_view(node) || is_float_cast(f->graph, node)) return true;
    bool is_quotient = divides(f, place, 0, &divisor);
    if (!is_quotient && divides(f, place, 1, &divisor)) is_quotient = true, *k = 1;
    if (is_quotient && !f->has_total && !varies(f, divisor) &&
        reduces_keys(f, divisor, PRIM_ADD, &arg)) {
        f->has_total = f->is_divided = true;
        f->total = divisor;
        return true;
    }
    if (is_quotient && is_other_axis(f, before_moves(f, divisor)) &&
        has_powers(f, *place, POWERS_DEPTH))
        return fail(f, "Let both go along one axis.",
                    "a softmax goes along another axis than the one that its product contracts");
    double number;
    f->has_divisor = f->has_divisor || (is_quotient && !is_literal(f, divisor, &number));
    return read_factor(f, place, k, step) || stands_between(f, place);
}

static bool read_weights(Finder *f, Place place) {
    OnlinePath *path = &f->found->weights;
    while (!is_power(node_of(f, &place)->op)) {
        uint32_t k = 0;
        OnlineStep step;
        if (!belongs(f, place.node) || path->n == ONLINE_MOST_STEPS ||
            !read_step(f, &place, &k, &step))
            return false;
        f->weights[path->n] = place;
        go_on(path, f, &place, k);
        path->steps[path->n - 1] = step;
    }
    if (!belongs(f, place.node) || (!varies(f, place) && !is_one(f, f->n_keys))) return false;
    f->power = place;
    f->found->power = place.node;
    f->found->op = node_of(f, &place)->op == OP_EXP ? OP_SOFTMAX_MATMUL : OP_SOFTMAX2_MATMUL;
    return read_exponent(f, arg_place(f, &place, 0));
}

/* What a factor that weights share with their sum does: a number nothing, a bool hides keys. */
static bool share_factor(Finder *f, uint32_t at) {
    OnlinePath *path = &f->found->weights;
    const Place *place = &f->weights[at];
    const Node *node = node_of(f, place);
    double number = -1;
    if (path->steps[at] == STEP_PLAIN) return true;
    path->steps[at] = node->op == OP_WHERE ? STEP_MASK : STEP_SCALED;
    if (node->op == OP_WHERE || node->op == OP_NEG) return true;
    Place other = arg_place(f, place, 1 - path->args[at]);
    if (is_literal(f, other, &number)) return number != 0;
    other = before_moves(f, other);
    const Node *cast = node_of(f, &other);
    bool is_mask = node->op == OP_MUL && cast->op == OP_CAST &&
                   dtype_is_bool(graph_node(f->graph, cast->args[0])->dtype);
    path->steps[at] = STEP_MASK;
    return is_mask ||
           fail(f, "Add the factor's logarithm to the scores.",
                str_format(f->arena, "`%s` changes the weights of a softmax before their sum",
                           op_info(node->op)->name));
}

/* Whether the divisor is the sum of the weights, as they are at some op of their path. Factors
 * from there back to the power are shared with the sum. */
static bool is_total(Finder *f) {
    Place arg;
    uint32_t n = f->found->weights.n, at = n;
    bool is_found = false;
    if (!reduces_keys(f, f->total, PRIM_ADD, &arg)) return false;
    arg = before_moves(f, arg);
    is_found = is_same(f, arg, f->power);
    while (!is_found && at-- > 0) is_found = is_same(f, arg, before_moves(f, f->weights[at]));
    for (uint32_t i = at; is_found && i < n; i++)
        if (!share_factor(f, i)) return false;
    return is_found;
}

/* Products. */

/* Reads the operand of the matmul on one side; `product` is an element of the matmul. */
static bool read_operand(Finder *f, const Place *product, uint32_t side) {
    const Node *node = node_of(f, product);
    Place operand = {.node = node->args[side]};
    const Shape *shape = &graph_node(f->graph, operand.node)->shape;
    uint32_t rank = node->shape.rank;
    Shape batch = node->shape, own = *shape;
    batch.rank -= 2, own.rank -= 2;
    indexmap_broadcast(f->tab, &batch, product->at, &own, operand.at);
    IndexId key = index_axis(f->tab, f->key_axis);
    operand.at[own.rank] = side ? key : product->at[rank - 2];
    operand.at[own.rank + 1] = side ? product->at[rank - 1] : key;
    f->found->matmul = product->node;
    f->found->side = side;
    return read_weights(f, operand);
}

/* Whether the op that does the same takes the operands' dtypes and ranks. */
static bool is_supported(Finder *f) {
    const Node *matmul = graph_node(f->graph, f->found->matmul);
    const Node *values = graph_node(f->graph, matmul->args[1 - f->found->side]);
    Dtype scores = graph_node(f->graph, f->found->scores)->dtype;
    if (matmul->attrs.precision != PRECISION_FULL)
        return fail(f, "Leave out `precision`.", "the product has a precision of its own");
    if (!dtype_in(values->dtype, DTS_FLOAT) ||
        dtype_bytes(scores) > dtype_bytes(dtype_compute(values->dtype)))
        return fail(f, "Cast the values, or the scores to f32.",
                    str_format(f->arena, "scores of %s do not go with values of %s",
                               dtype_name(scores), dtype_name(values->dtype)));
    if (matmul->shape.rank >= MAX_GIVEN_RANK)
        return fail(f, "Reshape leading axes to one.", "the product has a rank of 8 or more");
    return true;
}

static Finder finder_new(const Builder *b, NodeId id, OnlineFound *found, Place *first) {
    const Graph *graph = b->graph;
    Finder f = {.arena = b->arena, .graph = graph, .b = b, .found = found};
    f.budget = arena_array(b->arena, uint32_t, 1);
    *f.budget = MOST_VISITS;
    const Shape *shape = &graph_node(graph, id)->shape;
    f.tab = indextab_new(b->arena, graph->dims);
    *first = (Place){.node = id};
    for (uint32_t k = 0; k < shape->rank; k++) {
        uint32_t axis = index_new_axis(f.tab, shape->dims[k]);
        first->at[k] = dim_equals_const(graph->dims, shape->dims[k], 1)
                           ? index_dim(f.tab, dim_const(graph->dims, 0))
                           : index_axis(f.tab, axis);
    }
    *found = (OnlineFound){.matmul = NODE_NONE, .power = NODE_NONE};
    return f;
}

static void begin_keys(Finder *f, NodeId matmul) {
    const Shape *left = &graph_node(f->graph, graph_node(f->graph, matmul)->args[0])->shape;
    f->n_keys = left->dims[left->rank - 1];
    f->key_axis = index_new_axis(f->tab, f->n_keys);
}

static bool fail_divisor(Finder *f) {
    if (f->has_total || f->has_divisor)
        return fail(f, "Divide by the sum of the same weights along the contracted axis.",
                    "the weights are divided by something else than their sum");
    return fail(f, "Divide them, or the product, by their sum along the axis.",
                "the weights of a softmax are not divided by their sum");
}

bool online_find_product(const Builder *b, NodeId matmul, OnlineFound *found,
                         OnlineReason *reason) {
    OnlineFound almost = {.matmul = matmul, .power = NODE_NONE};
    *reason = (OnlineReason){NULL, NULL};
    for (uint32_t side = 0; side < 2; side++) {
        Place product;
        Finder f = finder_new(b, matmul, found, &product);
        begin_keys(&f, matmul);
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
        while (is_view(graph_node(graph, from)) || is_float_cast(graph, graph_node(graph, from)))
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
        Place quotient, divisor;
        Finder f = finder_new(b, id, found, &quotient);
        begin_keys(&f, matmul);
        if (!divides(&f, &quotient, arg, &divisor)) return false;
        Place product = before_moves(&f, arg_place(&f, &quotient, arg));
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
static bool read_log(Finder *f, Place place, OnlineLog *found, Place *exponent) {
    place = before_moves(f, place);
    if (node_of(f, &place)->op != OP_LOG || !belongs(f, place.node)) return false;
    Place sum = before_moves(f, arg_place(f, &place, 0)), arg;
    const Node *node = node_of(f, &sum);
    uint32_t axis = 0;
    if (op_info(node->op)->cls != CLASS_REDUCE || !node->attrs.axes) return false;
    while (!(node->attrs.axes >> axis & 1)) axis++;
    const Shape *shape = &graph_node(f->graph, node->args[0])->shape;
    f->n_keys = shape->dims[axis];
    f->key_axis = index_new_axis(f->tab, f->n_keys);
    if (!reduces_keys(f, sum, PRIM_ADD, &arg)) return false;
    while (is_float_cast(f->graph, node_of(f, &arg))) arg = arg_place(f, &arg, 0);
    if (node_of(f, &arg)->op != OP_EXP || !belongs(f, arg.node) || !belongs(f, sum.node))
        return false;
    found->axis = axis;
    *exponent = arg_place(f, &arg, 0);
    return shape_equal(&node_of(f, exponent)->shape, shape);
}

/* If the exponent is scores less their maximum, sets the scores and the maximum. */
static bool read_shift(const Finder *f, Place exponent, Place *scores, Place *shift) {
    uint32_t k = 0;
    bool is_shift = shifts(f, &exponent, k, shift) || shifts(f, &exponent, ++k, shift);
    if (!is_shift) return false;
    *scores = arg_place(f, &exponent, k);
    return is_maximum(f, *shift, *scores) &&
           shape_equal(&node_of(f, scores)->shape, &node_of(f, &exponent)->shape);
}

/* Whether the two have the same rows in the same order: equal indices but for axes of one element
 * and axis `skipped` of either. UINT32_MAX: none. */
static bool has_rows_of(const Finder *f, const Place *a, uint32_t skipped_of_a, const Place *b,
                        uint32_t skipped_of_b) {
    const Shape *one = &node_of(f, a)->shape, *other = &node_of(f, b)->shape;
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < one->rank && (i == skipped_of_a || is_one(f, one->dims[i]))) i++;
        while (k < other->rank && (k == skipped_of_b || is_one(f, other->dims[k]))) k++;
        if (i == one->rank || k == other->rank) return i == one->rank && k == other->rank;
        if (a->at[i++] != b->at[k++]) return false;
    }
}

/* Whether the logarithm that is argument `k` makes one of an OnlineLog of the op at `of`. */
static bool is_log(Finder *f, Place of, uint32_t k, OnlineLog *found) {
    Place exponent, scores, shift;
    OpId op = node_of(f, &of)->op;
    if (!read_log(f, op == OP_LOG ? of : arg_place(f, &of, k), found, &exponent)) return false;
    bool has_shift = read_shift(f, exponent, &scores, &shift);
    found->scores = has_shift ? scores.node : exponent.node;
    found->is_taken = op == OP_SUB;
    if (has_shift == (op == OP_LOG)) return false;
    if (op == OP_LOG) return has_rows_of(f, &of, UINT32_MAX, &exponent, found->axis);
    Place other = arg_place(f, &of, 1 - k);
    if (op == OP_ADD)
        return is_maximum(f, other, scores) &&
               has_rows_of(f, &of, UINT32_MAX, &exponent, found->axis);
    return other.node == exponent.node &&
           has_rows_of(f, &other, found->axis, &exponent, found->axis) &&
           shape_equal(&node_of(f, &of)->shape, &node_of(f, &exponent)->shape);
}

bool online_find_log(const Builder *b, NodeId id, OnlineLog *found) {
    OpId op = graph_node(b->graph, id)->op;
    bool may[2] = {op == OP_LOG || op == OP_ADD, op == OP_ADD || op == OP_SUB};
    for (uint32_t k = 0; k < 2; k++) {
        OnlineFound none;
        Place of;
        if (!may[k]) continue;
        Finder f = finder_new(b, id, &none, &of);
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
    while (is_view(graph_node(graph, from)) || is_float_cast(graph, graph_node(graph, from)))
        from = graph_node(graph, from)->args[0];
    return is_power(graph_node(graph, from)->op) ? from : NODE_NONE;
}
