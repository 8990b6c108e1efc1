/* See online_product.h. */
#include "ir/build/online_product.h"

#include "ir/indexmap.h"

enum { MOST_STEPS = 32, MOST_GROUPS = 8, MOST_VISITS = 2000 };

/* Whether the node lies in an online block, or in the block of kernels that is rewritten. */
static bool belongs(const Builder *b, NodeId id) {
    return b->online_of.data[id] || (b->rewrites && b->graph->kernel_of.data[id] == b->block);
}

static bool is_view(const Node *node) {
    return op_info(node->op)->cls == CLASS_VIEW && indexmap_can_pull(node->op);
}

/* Factors of operands. */

/* The way from an operand back to the value without factors. */
typedef struct Factors {
    NodeId value;
    NodeId steps[MOST_STEPS];
    uint32_t n; /* of the steps to `value` */
} Factors;

static bool has_one_element(const Builder *b, NodeId id) {
    const Shape *shape = build_shape_of(b, id);
    bool is = true;
    for (uint32_t k = 0; k < shape->rank; k++)
        is = is && dim_equals_const(b->dims, shape->dims[k], 1);
    return is;
}

/* The argument that the op multiplies or divides by the other one, of one element; else n_args. */
static uint32_t scaled_arg(const Builder *b, const Node *node) {
    uint32_t n = node->op == OP_MUL ? 2 : node->op == OP_DIV;
    for (uint32_t k = 0; k < n; k++)
        if (has_one_element(b, node->args[1 - k]) &&
            shape_equal(build_shape_of(b, node->args[k]), &node->shape))
            return k;
    return node->n_args;
}

/* Whether a value may stand for one of `dtype` times a number: no element of it overflows there. */
static bool may_replace(Dtype value, Dtype dtype) {
    return value == dtype || (dtype_is_float(value) && dtype_bytes(value) < dtype_bytes(dtype));
}

static Factors find_factors(const Builder *b, NodeId operand) {
    const Graph *graph = b->graph;
    Dtype dtype = graph_node(graph, operand)->dtype;
    Factors found = {.value = operand};
    bool is_pending = false;
    NodeId id = operand;
    for (uint32_t n = 0; n < MOST_STEPS; n++) {
        const Node *node = graph_node(graph, id);
        bool is_cast = node->op == OP_CAST && dtype_in(node->dtype, DTS_FLOAT) &&
                       dtype_bytes(node->dtype) >= dtype_bytes(dtype) &&
                       dtype_is_float(graph_node(graph, node->args[0])->dtype);
        uint32_t k = is_view(node) || is_cast ? 0 : scaled_arg(b, node);
        if (node->n_args <= k || !belongs(b, id)) break;
        is_pending = is_pending || node->op == OP_MUL || node->op == OP_DIV;
        found.steps[n] = id;
        id = node->args[k];
        if (!is_pending || !may_replace(graph_node(graph, id)->dtype, dtype)) continue;
        found.value = id;
        found.n = n + 1;
        is_pending = false;
    }
    return found;
}

/* The operand without its factors. */
static NodeId strip(Builder *b, NodeId operand, const Factors *factors) {
    NodeId value = factors->value;
    for (uint32_t i = factors->n; i-- > 0;) {
        Node node = *graph_node(b->graph, factors->steps[i]);
        if (!is_view(&node)) continue;
        node.args = arena_copy(b->arena, &value, sizeof value);
        node.dtype = graph_node(b->graph, value)->dtype;
        node.name = NULL;
        value = build_node(b, (BuildPlace){0}, node);
        if (value == NODE_NONE) return value;
    }
    const Operand stripped = operand_tensor(value);
    return build_cast(b, &stripped, graph_node(b->graph, operand)->dtype);
}

/* Does to the scores what the ops did to the operand. */
static NodeId scale(Builder *b, NodeId scores, const Factors *factors) {
    for (uint32_t i = factors->n; i-- > 0 && scores != NODE_NONE;) {
        const Node node = *graph_node(b->graph, factors->steps[i]);
        if (node.op != OP_MUL && node.op != OP_DIV) continue;
        NodeId number = node.args[1 - scaled_arg(b, &node)];
        Dtype dtype = graph_node(b->graph, scores)->dtype;
        number = build_reshaped(b, number, &(Shape){.rank = 0});
        const Operand narrow = operand_tensor(number);
        bool is_literal = graph_node(b->graph, number)->op == OP_CONST;
        const Operand literal = operand_float(graph_node(b->graph, number)->attrs.number);
        number = is_literal ? build_const(b, &literal, dtype) : build_cast(b, &narrow, dtype);
        scores = build_eltwise(b, node.op, 2,
                               (Operand[]){operand_tensor(scores), operand_tensor(number)});
    }
    return scores;
}

/* Groups. */

/* An element of a node, as in online_find.c. */
typedef struct Place {
    NodeId node;
    IndexId at[MAX_RANK];
} Place;

typedef struct Visit {
    const Graph *graph;
    IndexTab *tab;
    uint32_t axis;   /* whose indices are looked at */
    uint32_t budget; /* of visits */
    DimId groups[MOST_GROUPS];
    uint32_t n_groups;
} Visit;

/* Adds the divisors by which the index divides the axis. */
static void add_groups(Visit *v, IndexId index) {
    IndexExpr expr = index_expr(v->tab, index);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(v->tab, expr.terms[i].atom);
        bool divides = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD;
        if (!divides || !(atom.axes >> v->axis & 1)) continue;
        if (atom.kind == ATOM_DIV && v->n_groups < MOST_GROUPS)
            v->groups[v->n_groups++] = atom.divisor;
        add_groups(v, atom.operand);
    }
}

/* Whether the value changes along the axis. Notes the divisors of its indices. */
static bool varies(Visit *v, Place place) {
    const Node *node = graph_node(v->graph, place.node);
    OpClass cls = op_info(node->op)->cls;
    bool moves = false, is_moved = is_view(node);
    for (uint32_t k = 0; k < node->shape.rank; k++)
        moves = moves || index_axes(v->tab, place.at[k]) >> v->axis & 1;
    if (!moves || !v->budget) return moves;
    v->budget--;
    if (!is_moved && cls != CLASS_ELTWISE && cls != CLASS_CAST) {
        for (uint32_t k = 0; k < node->shape.rank; k++) add_groups(v, place.at[k]);
        return true;
    }
    bool any = false;
    for (uint32_t k = 0; k < (is_moved ? 1 : node->n_args); k++) {
        Place arg = {.node = node->args[k]};
        if (is_moved)
            indexmap_pull(v->tab, v->graph, node, place.at, arg.at);
        else
            indexmap_broadcast(v->tab, &node->shape, place.at,
                               &graph_node(v->graph, arg.node)->shape, arg.at);
        any = varies(v, arg) || any;
    }
    return any;
}

/* An axis as three, the last innermost: parts of `part` elements, groups of `group` in a part, and
 * neighbours in a group. */
typedef struct Grouping {
    DimId part, group;
} Grouping;

/* Visits the operand, whose `axis` has these groups, of which the neighbours are looked at. */
static bool varies_in_groups(const Builder *b, NodeId operand, uint32_t axis, Grouping of,
                             Visit *v) {
    const Shape *shape = build_shape_of(b, operand);
    Place place = {.node = operand};
    *v = (Visit){.graph = b->graph, .tab = indextab_new(b->arena, b->dims), .budget = MOST_VISITS};
    for (uint32_t k = 0; k < shape->rank; k++) {
        DimId extent = k == axis ? dim_exact_div(b->dims, shape->dims[k], of.part) : shape->dims[k];
        place.at[k] = index_axis(v->tab, index_new_axis(v->tab, extent));
    }
    uint32_t in_part = index_new_axis(v->tab, dim_exact_div(b->dims, of.part, of.group));
    v->axis = index_new_axis(v->tab, of.group);
    IndexId parts = index_scale(v->tab, place.at[axis], of.part);
    IndexId groups = index_scale(v->tab, index_axis(v->tab, in_part), of.group);
    place.at[axis] =
        index_add(v->tab, index_add(v->tab, parts, groups), index_axis(v->tab, v->axis));
    return varies(v, place);
}

/* Whether `by` is a constant that divides `extent`. */
static bool divides(const Builder *b, DimId extent, DimId by) {
    return dim_lo(b->dims, by) == dim_hi(b->dims, by) &&
           dim_exact_div(b->dims, extent, by) != DIM_NONE;
}

/* Finds groups of neighbours along the axis that have equal elements of the operand: in the whole
 * axis, or in parts of it. Without any change there are none. */
static bool find_groups(const Builder *b, NodeId operand, uint32_t axis, Grouping *found) {
    DimId extent = build_shape_of(b, operand)->dims[axis];
    Visit whole, split;
    if (!varies_in_groups(b, operand, axis, (Grouping){extent, extent}, &whole)) return false;
    for (uint32_t i = 0; i < whole.n_groups; i++)
        for (uint32_t k = 0; k <= whole.n_groups; k++) {
            *found = (Grouping){k ? whole.groups[k - 1] : extent, whole.groups[i]};
            if (divides(b, extent, found->group) && (!k || divides(b, extent, found->part)) &&
                divides(b, found->part, found->group) &&
                !varies_in_groups(b, operand, axis, *found, &split))
                return true;
        }
    return false;
}

/* The two operands of a product, [.., m, k] and [.., k, n], with the batch axis `axis` of a result
 * of rank `rank`. */
typedef struct Grouped {
    NodeId operands[2];
    uint32_t rank, axis;
    Grouping of;
    bool has_parts;    /* there are several parts */
    uint32_t repeated; /* the operand that has one matrix for each group */
    bool are_rows;     /* the group's rows are one matrix of the left operand */
} Grouped;

/* The operand's own number of the batch axis. Returns false if it has none. */
static bool own_axis(const Builder *b, const Grouped *g, uint32_t side, uint32_t *axis) {
    uint32_t rank = build_shape_of(b, g->operands[side])->rank;
    *axis = g->axis + rank - g->rank;
    return g->axis + rank >= g->rank;
}

/* Whether the operand has several matrices along the axis, or may have. */
static bool has_axis(const Builder *b, const Grouped *g, uint32_t side, uint32_t *axis) {
    return own_axis(b, g, side, axis) &&
           !dim_equals_const(b->dims, build_shape_of(b, g->operands[side])->dims[*axis], 1);
}

/* Groups are of the matrices of the other operand, so it must have some. */
static bool find_repeated(const Builder *b, Grouped *g) {
    for (g->repeated = 2; g->repeated-- > 0;) {
        uint32_t axis;
        if (!has_axis(b, g, !g->repeated, &axis) || !has_axis(b, g, g->repeated, &axis)) continue;
        if (!find_groups(b, g->operands[g->repeated], axis, &g->of)) continue;
        g->has_parts = g->of.part != build_shape_of(b, g->operands[g->repeated])->dims[axis];
        return true;
    }
    return false;
}

/* The operand with an axis of parts before the axis. */
static NodeId split_parts(Builder *b, const Grouped *g, uint32_t side) {
    NodeId x = g->operands[side];
    uint32_t axis;
    if (!own_axis(b, g, side, &axis)) return x;
    const Shape from = *build_shape_of(b, x);
    Shape to = {.rank = from.rank + 1};
    bool is_one = dim_equals_const(b->dims, from.dims[axis], 1);
    for (uint32_t k = 0; k < from.rank; k++) to.dims[k + (k > axis)] = from.dims[k];
    to.dims[axis] = is_one ? from.dims[axis] : dim_exact_div(b->dims, from.dims[axis], g->of.part);
    to.dims[axis + 1] = is_one ? from.dims[axis] : g->of.part;
    return build_reshaped(b, x, &to);
}

/* Whether matrices of the left operand that are one group may be one matrix, of all their rows. A
 * matrix of few rows has parts of the keys, so the rows of a group must be few too: then each row
 * has the same parts. Single rows may be many. A group without matrices has no extent that divides
 * the axis. */
static bool may_be_rows(const Builder *b, const Grouped *g, DimId group) {
    const Shape *left = build_shape_of(b, g->operands[0]);
    uint32_t axis;
    if (g->repeated != 1 || g->axis + 3 != g->rank || !has_axis(b, g, 0, &axis)) return false;
    DimId rows = left->dims[left->rank - 2];
    return dim_lo(b->dims, group) > 0 &&
           (dim_equals_const(b->dims, rows, 1) ||
            dim_hi(b->dims, dim_mul(b->dims, group, rows)) <= ONLINE_FEW_ROWS);
}

/* The operand with one matrix for each group, or for each neighbour. */
static NodeId split_groups_of(Builder *b, const Grouped *g, uint32_t side) {
    NodeId x = g->operands[side];
    uint32_t axis;
    if (!own_axis(b, g, side, &axis)) return x;
    const Shape from = *build_shape_of(b, x);
    bool is_one = dim_equals_const(b->dims, from.dims[axis], 1);
    bool is_repeated = side == g->repeated && !is_one;
    DimId one = dim_const(b->dims, 1);
    DimId n_groups = is_one ? one : dim_exact_div(b->dims, from.dims[axis], g->of.group);
    Shape begin = {.rank = from.rank}, step = begin, some = from, to = {.rank = from.rank + 1};
    for (uint32_t k = 0; k < from.rank; k++) {
        begin.dims[k] = dim_const(b->dims, 0);
        step.dims[k] = k == axis ? g->of.group : one;
        to.dims[k + (k > axis)] = from.dims[k];
    }
    some.dims[axis] = to.dims[axis] = n_groups;
    to.dims[axis + 1] = is_repeated || is_one ? one : g->of.group;
    if (is_repeated)
        x = build_slice(b, x, (DimList){begin.rank, begin.dims}, (DimList){some.rank, some.dims},
                        (DimList){step.rank, step.dims});
    if (x == NODE_NONE) return x;
    if (!g->are_rows) return build_reshaped(b, x, &to);
    to = some;
    if (side != g->repeated) to.dims[axis + 1] = dim_mul(b->dims, g->of.group, to.dims[axis + 1]);
    return build_reshaped(b, x, &to);
}

/* Makes few rows of the whole axis one group if the right operand has the same matrix for all of
 * them. */
static bool find_shared(const Builder *b, Grouped *g) {
    uint32_t axis;
    Visit visit;
    g->repeated = 1;
    if (!own_axis(b, g, 0, &axis)) return false;
    DimId extent = build_shape_of(b, g->operands[0])->dims[axis];
    if (!may_be_rows(b, g, extent)) return false;
    if (own_axis(b, g, 1, &axis)) {
        DimId own = build_shape_of(b, g->operands[1])->dims[axis];
        if (varies_in_groups(b, g->operands[1], axis, (Grouping){own, own}, &visit)) return false;
    }
    g->of = (Grouping){extent, extent};
    g->has_parts = false;
    return true;
}

/* Splits the batch axes that have groups. */
static bool split_groups(Builder *b, NodeId operands[2]) {
    uint32_t left = build_shape_of(b, operands[0])->rank, right;
    right = build_shape_of(b, operands[1])->rank;
    Grouped g = {.operands = {operands[0], operands[1]}, .rank = left > right ? left : right};
    for (g.axis = 0; g.axis + 2 < g.rank && g.rank + 1 < MAX_GIVEN_RANK; g.axis++) {
        if (!find_repeated(b, &g) && !find_shared(b, &g)) continue;
        g.are_rows = !g.has_parts && may_be_rows(b, &g, g.of.group);
        for (uint32_t side = 0; side < 2; side++)
            operands[side] = g.has_parts ? split_parts(b, &g, side) : split_groups_of(b, &g, side);
        if (operands[0] == NODE_NONE || operands[1] == NODE_NONE) return false;
        g.operands[0] = operands[0], g.operands[1] = operands[1];
        if (g.are_rows) break;
        if (!g.has_parts) g.axis++; /* the groups of parts come next */
        g.rank++;
    }
    return true;
}

/* Products. */

NodeId online_make_scores(Builder *b, const Node *matmul, NodeId left, NodeId right) {
    NodeId operands[2] = {left, right};
    Dtype compute = dtype_compute(graph_node(b->graph, left)->dtype), dtype = matmul->dtype;
    Factors factors[2] = {find_factors(b, left), find_factors(b, right)};
    bool is_scaled = factors[0].n || factors[1].n;
    for (uint32_t side = 0; side < 2; side++) {
        if (factors[side].n) operands[side] = strip(b, operands[side], &factors[side]);
        if (operands[side] == NODE_NONE) return NODE_NONE;
    }
    if (!split_groups(b, operands)) return NODE_NONE;
    const Operand x = operand_tensor(operands[0]), y = operand_tensor(operands[1]);
    NodeId scores = build_matmul(b, &x, &y, PRECISION_FULL, is_scaled ? &compute : &dtype);
    if (scores == NODE_NONE) return scores;
    scores = build_reshaped(b, scores, &matmul->shape);
    scores = scale(b, scores, &factors[0]);
    scores = scale(b, scores, &factors[1]);
    if (scores == NODE_NONE) return scores;
    const Operand wide = operand_tensor(scores);
    return build_cast(b, &wide, dtype);
}

NodeId online_make_op(Builder *b, OpId op, NodeId scores, NodeId values, NodeId factor,
                      const QuantizeMap *quantize, Dtype dtype) {
    NodeId operands[2] = {scores, values};
    if (scores == NODE_NONE || values == NODE_NONE) return NODE_NONE;
    Shape whole, x = *build_shape_of(b, scores), v = *build_shape_of(b, values);
    if (!matmul_shape(b->dims, &x, &v, &whole) || !split_groups(b, operands))
        return build_online(b, op, scores, values, factor, quantize, &dtype);
    if (factor != NODE_NONE) factor = build_reshaped(b, factor, build_shape_of(b, operands[0]));
    NodeId result = build_online(b, op, operands[0], operands[1], factor, quantize, &dtype);
    return result == NODE_NONE ? result : build_reshaped(b, result, &whole);
}
