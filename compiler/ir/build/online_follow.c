/* See online_follow.h. */
#include "ir/build/online_follow.h"

#include "ir/indexmap.h"

enum { MOST_VISITS = 10000 };

bool online_belongs(const OnlineFinder *f, NodeId id) {
    const uint32_t *blocks = f->graph->kernel_of.data;
    return f->b->online_of.data[id] || (f->b->rewrites && blocks[id] == blocks[f->found->matmul]);
}

const Node *online_node_of(const OnlineFinder *f, const OnlinePlace *place) {
    return graph_node(f->graph, place->node);
}

bool online_fail(OnlineFinder *f, const char *help, const char *message) {
    f->message = message;
    f->help = help;
    return false;
}

bool online_is_view(const Node *node) {
    return op_info(node->op)->cls == CLASS_VIEW && indexmap_can_pull(node->op);
}

bool online_is_float_cast(const Graph *graph, const Node *node) {
    return node->op == OP_CAST && dtype_is_float(node->dtype) &&
           dtype_is_float(graph_node(graph, node->args[0])->dtype);
}

bool online_is_elementwise(const Node *node) {
    OpClass cls = op_info(node->op)->cls;
    return cls == CLASS_ELTWISE || cls == CLASS_CAST;
}

OnlinePlace online_arg_place(const OnlineFinder *f, const OnlinePlace *place, uint32_t k) {
    const Node *node = online_node_of(f, place);
    OnlinePlace arg = {.node = node->args[k]};
    if (online_is_view(node))
        indexmap_pull(f->tab, f->graph, node, place->at, arg.at);
    else
        indexmap_broadcast(f->tab, &node->shape, place->at, &graph_node(f->graph, arg.node)->shape,
                           arg.at);
    return arg;
}

OnlinePlace online_before_views(const OnlineFinder *f, OnlinePlace place) {
    while (online_is_view(online_node_of(f, &place))) place = online_arg_place(f, &place, 0);
    return place;
}

OnlinePlace online_before_moves(const OnlineFinder *f, OnlinePlace place) {
    while (online_is_view(online_node_of(f, &place)) ||
           online_is_float_cast(f->graph, online_node_of(f, &place)))
        place = online_arg_place(f, &place, 0);
    return place;
}

bool online_is_one(const OnlineFinder *f, DimId extent) {
    return dim_equals_const(f->graph->dims, extent, 1);
}

static bool spend(const OnlineFinder *f) {
    if (*f->budget) --*f->budget;
    return *f->budget > 0;
}

bool online_varies(const OnlineFinder *f, OnlinePlace place) {
    const Node *node = online_node_of(f, &place);
    bool moves = false;
    for (uint32_t k = 0; k < node->shape.rank; k++)
        moves = moves || ((index_axes(f->tab, place.at[k]) >> f->key_axis & 1) &&
                          !online_is_one(f, node->shape.dims[k]));
    if (moves && !spend(f)) return true;
    if (!moves || (!online_is_view(node) && !online_is_elementwise(node))) return moves;
    for (uint32_t k = 0; k < (online_is_view(node) ? 1 : node->n_args); k++)
        if (online_varies(f, online_arg_place(f, &place, k))) return true;
    return false;
}

/* Whether the two are elements of one node at equal indices. An axis of one element has no index.
 */
static bool is_same_element(const OnlineFinder *f, const OnlinePlace *a, const OnlinePlace *b) {
    const Shape *shape = &online_node_of(f, a)->shape;
    bool is = a->node == b->node;
    for (uint32_t k = 0; is && k < shape->rank; k++)
        is = a->at[k] == b->at[k] || online_is_one(f, shape->dims[k]);
    return is;
}

bool online_is_same(const OnlineFinder *f, OnlinePlace a, OnlinePlace b) {
    a = online_before_views(f, a), b = online_before_views(f, b);
    const Node *one = online_node_of(f, &a), *other = online_node_of(f, &b);
    if (a.node == b.node || !spend(f)) return is_same_element(f, &a, &b);
    if (one->op != other->op || one->dtype != other->dtype || !online_is_elementwise(one))
        return false;
    for (uint32_t k = 0; k < one->n_args; k++)
        if (!online_is_same(f, online_arg_place(f, &a, k), online_arg_place(f, &b, k)))
            return false;
    return true;
}

bool online_is_literal(const OnlineFinder *f, OnlinePlace place, double *number) {
    place = online_before_moves(f, place);
    *number = online_node_of(f, &place)->attrs.number;
    return online_node_of(f, &place)->op == OP_CONST &&
           dtype_is_float(online_node_of(f, &place)->dtype);
}

bool online_reduces_keys(const OnlineFinder *f, OnlinePlace place, PrimId combine,
                         OnlinePlace *arg) {
    place = online_before_moves(f, place);
    const Node *node = online_node_of(f, &place);
    const OpInfo *info = op_info(node->op);
    if (info->cls != CLASS_REDUCE || info->combine != combine || info->divides_by_count)
        return false;
    const Shape *shape = &graph_node(f->graph, node->args[0])->shape;
    *arg = (OnlinePlace){.node = node->args[0]};
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

bool online_go_on(OnlinePath *path, const OnlineFinder *f, OnlinePlace *place, uint32_t arg) {
    if (path->n == ONLINE_MOST_STEPS) return false;
    path->ops[path->n] = place->node;
    path->steps[path->n] = STEP_PLAIN;
    path->args[path->n++] = arg;
    *place = online_arg_place(f, place, arg);
    return true;
}

OnlineFinder online_finder_new(const Builder *b, NodeId id, OnlineFound *found,
                               OnlinePlace *first) {
    const Graph *graph = b->graph;
    OnlineFinder f = {.arena = b->arena, .graph = graph, .b = b, .found = found};
    f.budget = arena_array(b->arena, uint32_t, 1);
    *f.budget = MOST_VISITS;
    const Shape *shape = &graph_node(graph, id)->shape;
    f.tab = indextab_new(b->arena, graph->dims);
    *first = (OnlinePlace){.node = id};
    for (uint32_t k = 0; k < shape->rank; k++) {
        uint32_t axis = index_new_axis(f.tab, shape->dims[k]);
        first->at[k] = dim_equals_const(graph->dims, shape->dims[k], 1)
                           ? index_dim(f.tab, dim_const(graph->dims, 0))
                           : index_axis(f.tab, axis);
    }
    *found = (OnlineFound){.matmul = NODE_NONE, .power = NODE_NONE};
    return f;
}

void online_begin_keys(OnlineFinder *f, NodeId matmul) {
    const Shape *left = &graph_node(f->graph, graph_node(f->graph, matmul)->args[0])->shape;
    f->n_keys = left->dims[left->rank - 1];
    f->key_axis = index_new_axis(f->tab, f->n_keys);
}

OnlinePlace online_operand(OnlineFinder *f, const OnlinePlace *product, uint32_t side) {
    const Node *node = online_node_of(f, product);
    OnlinePlace operand = {.node = node->args[side]};
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
    return operand;
}
