/* See online_weights.h. */
#include "ir/build/online_weights.h"

#include <math.h>

static bool is_view(const Node *node) {
    return op_info(node->op)->cls == CLASS_VIEW;
}

/* The view of another value. */
static NodeId move(const OnlineNodes *n, NodeId view, NodeId value) {
    Node node = n->nodes[view];
    if (value == NODE_NONE) return value;
    node.args = arena_copy(n->b->arena, &value, sizeof value);
    node.dtype = graph_node(n->b->graph, value)->dtype;
    node.name = NULL;
    return build_node(n->b, (BuildPlace){0}, node);
}

/* The value as large as the node is. */
static NodeId expand(const OnlineNodes *n, NodeId value, NodeId node) {
    const Shape *shape = &n->nodes[node].shape;
    if (value == NODE_NONE || shape_equal(build_shape_of(n->b, value), shape)) return value;
    return build_expand(n->b, value, (DimList){shape->rank, shape->dims});
}

/* What the path's op number `at` makes of a value in place of the weights, if it is no factor. */
static NodeId follow(const OnlineNodes *n, const OnlinePath *path, uint32_t at, NodeId value) {
    NodeId op = path->ops[at];
    return is_view(&n->nodes[op]) ? move(n, op, value) : expand(n, value, op);
}

/* `value` in place of argument `k` of the op; the other arguments are made again. */
static NodeId redo(const OnlineNodes *n, NodeId op, uint32_t k, Operand value, const NodeId *others,
                   Dtype dtype) {
    const Node *node = &n->nodes[op];
    Operand operands[3];
    for (uint32_t i = 0; i < node->n_args; i++) {
        bool is_condition = node->op == OP_WHERE && i == 0;
        if (i == k) {
            operands[i] = value;
            continue;
        }
        if (others[i] == NODE_NONE) return NODE_NONE;
        operands[i] = operand_tensor(others[i]);
        if (is_condition) continue;
        NodeId same = build_cast(n->b, &operands[i], dtype);
        if (same == NODE_NONE) return same;
        operands[i] = operand_tensor(same);
    }
    return build_eltwise(n->b, node->op, node->n_args, operands);
}

static NodeId constant(const OnlineNodes *n, double number, Dtype dtype) {
    const Operand literal = operand_float(number);
    return build_const(n->b, &literal, dtype);
}

/* Masks. */

/* The bool that views and casts made a factor of. */
static NodeId bool_of(const OnlineNodes *n, NodeId factor) {
    NodeId views[ONLINE_MOST_STEPS];
    uint32_t n_views = 0;
    while (!dtype_is_bool(n->nodes[factor].dtype) && n_views < ONLINE_MOST_STEPS) {
        views[n_views++] = factor;
        factor = n->nodes[factor].args[0];
    }
    NodeId value = n->moved[factor];
    while (n_views-- > 0)
        if (is_view(&n->nodes[views[n_views]])) value = move(n, views[n_views], value);
    return value;
}

static NodeId hide(const OnlineNodes *n, const OnlinePath *path, uint32_t at, NodeId scores) {
    const Node *node = &n->nodes[path->ops[at]];
    uint32_t k = path->args[at];
    if (scores == NODE_NONE) return scores;
    NodeId none = constant(n, -INFINITY, graph_node(n->b->graph, scores)->dtype);
    bool is_select = node->op == OP_WHERE;
    NodeId shown = is_select ? n->moved[node->args[0]] : bool_of(n, node->args[1 - k]);
    if (none == NODE_NONE || shown == NODE_NONE) return NODE_NONE;
    bool is_second = is_select && k == 2;
    NodeId arms[2] = {is_second ? none : scores, is_second ? scores : none};
    return build_eltwise(
        n->b, OP_WHERE, 3,
        (Operand[]){operand_tensor(shown), operand_tensor(arms[0]), operand_tensor(arms[1])});
}

NodeId online_hide(const OnlineNodes *n, const OnlineFound *found, NodeId scores) {
    const OnlinePath *path = &found->weights;
    for (uint32_t at = path->n; at-- > 0;) {
        if (path->steps[at] == STEP_MASK) scores = hide(n, path, at, scores);
        scores = follow(n, path, at, scores);
    }
    return scores;
}

/* A value that views and casts between floats make of another one. */
typedef struct Moves {
    NodeId of, steps[ONLINE_MOST_STEPS];
    uint32_t n;
} Moves;

static Moves moves_to(const OnlineNodes *n, NodeId id) {
    Moves moves = {.of = id};
    while (moves.n < ONLINE_MOST_STEPS) {
        const Node *node = &n->nodes[moves.of];
        bool is_cast = node->op == OP_CAST && dtype_is_float(n->nodes[node->args[0]].dtype);
        if (!is_cast && (!is_view(node) || node->n_args > 1)) break;
        moves.steps[moves.n++] = moves.of;
        moves.of = node->args[0];
    }
    return moves;
}

static NodeId move_all(const OnlineNodes *n, const Moves *moves, NodeId value) {
    value = expand(n, value, moves->of);
    for (uint32_t i = moves->n; i-- > 0;)
        if (is_view(&n->nodes[moves->steps[i]])) value = move(n, moves->steps[i], value);
    return value;
}

static bool is_literal(const OnlineNodes *n, NodeId id, double number) {
    const Node *node = &n->nodes[moves_to(n, id).of];
    return node->op == OP_CONST && dtype_is_float(node->dtype) && node->attrs.number == number;
}

bool online_mask_sum(const OnlineNodes *n, NodeId sum, NodeId *masked) {
    const Node *node = &n->nodes[sum];
    *masked = NODE_NONE;
    for (uint32_t k = 0; k < 2 && node->op == OP_ADD; k++) {
        const Moves moves = moves_to(n, node->args[k]);
        const Node *select = &n->nodes[moves.of];
        if (select->op != OP_WHERE) continue;
        bool hides_true = is_literal(n, select->args[1], -INFINITY);
        if (hides_true == is_literal(n, select->args[2], -INFINITY)) continue;
        NodeId bias = select->args[hides_true ? 2 : 1], scores = n->moved[node->args[1 - k]];
        if (!is_literal(n, bias, 0)) {
            const Operand narrow = operand_tensor(n->moved[bias]);
            bias = move_all(n, &moves, build_cast(n->b, &narrow, node->dtype));
            if (bias == NODE_NONE) return false;
            scores = build_eltwise(n->b, OP_ADD, 2,
                                   (Operand[]){operand_tensor(scores), operand_tensor(bias)});
        }
        NodeId shown = move_all(n, &moves, n->moved[select->args[0]]);
        NodeId none = constant(n, -INFINITY, node->dtype);
        if (scores == NODE_NONE || shown == NODE_NONE || none == NODE_NONE) return false;
        NodeId arms[2] = {hides_true ? none : scores, hides_true ? scores : none};
        *masked = build_eltwise(
            n->b, OP_WHERE, 3,
            (Operand[]){operand_tensor(shown), operand_tensor(arms[0]), operand_tensor(arms[1])});
        return *masked != NODE_NONE;
    }
    return true;
}

/* Factors. */

static Dtype sums_dtype(const OnlineNodes *n, const OnlineFound *found) {
    const Node *matmul = &n->nodes[found->matmul];
    return dtype_compute(n->nodes[matmul->args[1 - found->side]].dtype);
}

bool online_make_factor(const OnlineNodes *n, const OnlineFound *found, NodeId *factor) {
    const OnlinePath *path = &found->weights;
    Dtype dtype = sums_dtype(n, found);
    bool has_any = false;
    *factor = NODE_NONE;
    for (uint32_t at = path->n; at-- > 0;) {
        const Node *node = &n->nodes[path->ops[at]];
        NodeId others[3] = {NODE_NONE, NODE_NONE, NODE_NONE}, value = *factor;
        if (path->steps[at] == STEP_KEY) {
            for (uint32_t k = 0; k < node->n_args; k++) others[k] = n->moved[node->args[k]];
            if (!has_any) value = constant(n, 1, dtype);
            if (value == NODE_NONE) return false;
            bool is_first = !has_any && node->op == OP_MUL;
            const Operand other = operand_tensor(others[1 - path->args[at] % 2]);
            *factor = is_first ? build_cast(n->b, &other, dtype)
                               : redo(n, path->ops[at], path->args[at], operand_tensor(value),
                                      others, dtype);
            *factor = expand(n, *factor, path->ops[at]);
            has_any = true;
        } else if (has_any) {
            *factor = follow(n, path, at, value);
        }
        if (has_any && *factor == NODE_NONE) return false;
    }
    return true;
}

/* Rows. */

bool online_has_rows(const OnlineFound *found) {
    bool has = false;
    for (uint32_t at = 0; at < found->weights.n; at++)
        has = has || found->weights.steps[at] == STEP_ROW;
    return has;
}

/* The value of which op `at` of the path makes a factor of each row, with one element along the
 * keys: [.., m, 1], or [.., 1, m] if the weights are the right operand. */
static NodeId row_value(const OnlineNodes *n, const OnlineFound *found, uint32_t at, NodeId value) {
    const OnlinePath *path = &found->weights;
    Builder *b = n->b;
    if (value == NODE_NONE || build_shape_of(b, value)->rank == 0) return value;
    value = expand(n, value, path->ops[at]);
    while (at-- > 0 && value != NODE_NONE) value = follow(n, path, at, value);
    if (value == NODE_NONE) return value;
    Shape begin = *build_shape_of(b, value), shape = begin, step = begin;
    for (uint32_t k = 0; k < begin.rank; k++) {
        begin.dims[k] = dim_const(b->dims, 0);
        step.dims[k] = dim_const(b->dims, 1);
    }
    shape.dims[shape.rank - (found->side ? 2 : 1)] = dim_const(b->dims, 1);
    return build_slice(b, value, (DimList){begin.rank, begin.dims},
                       (DimList){shape.rank, shape.dims}, (DimList){step.rank, step.dims});
}

NodeId online_scale_rows(const OnlineNodes *n, const OnlineFound *found, NodeId result) {
    const OnlinePath *path = &found->weights;
    for (uint32_t at = path->n; at-- > 0 && result != NODE_NONE;) {
        const Node *node = &n->nodes[path->ops[at]];
        NodeId others[3] = {NODE_NONE, NODE_NONE, NODE_NONE};
        if (path->steps[at] != STEP_ROW) continue;
        for (uint32_t k = 0; k < node->n_args; k++)
            if (k != path->args[at]) others[k] = row_value(n, found, at, n->moved[node->args[k]]);
        result = redo(n, path->ops[at], path->args[at], operand_tensor(result), others,
                      graph_node(n->b->graph, result)->dtype);
    }
    return result;
}
