/* Scans by a function, and the functions. See build.h. */
#include "ir/build/build.h"

#include <string.h>

/* The copy of a function that was traced on whole tensors as a function of single elements. */
typedef struct Copy {
    const Graph *traced;
    const Shape *domain; /* of the tensors */
    Graph *to;
    bool *is_needed; /* per traced node */
    NodeId *of;      /* per traced node: its copy */
} Copy;

static void mark_needed(const Copy *c, const NodeId *results, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) c->is_needed[results[i]] = true;
    for (NodeId id = c->traced->nodes.n; id-- > 0;) {
        const Node *node = graph_node(c->traced, id);
        for (uint32_t i = 0; i < node->n_args && c->is_needed[id]; i++)
            c->is_needed[node->args[i]] = true;
    }
}

/* The inputs have the numbers that they had. */
static bool copy_inputs(Copy *c) {
    for (uint32_t i = 0; i < c->traced->inputs.n; i++) {
        const GraphInput *input = &c->traced->inputs.data[i];
        Node node = *graph_node(c->traced, input->node);
        if (!shape_equal(&node.shape, c->domain)) return false;
        node.shape.rank = 0;
        c->of[input->node] = graph_add(c->to, node);
        vec_push(c->to->arena, &c->to->inputs,
                 ((GraphInput){.name = input->name, .node = c->of[input->node]}));
    }
    return true;
}

/* Copies the node, unless it is no op of single elements. */
static bool copy_node(Copy *c, NodeId id) {
    Node node = *graph_node(c->traced, id);
    OpClass cls = op_info(node.op)->cls;
    bool is_repeated = node.op == OP_EXPAND && !graph_node(c->traced, node.args[0])->shape.rank;
    bool is_element = cls == CLASS_ELTWISE || cls == CLASS_CAST || node.op == OP_CONST;
    if (node.op == OP_INPUT) return true;
    if (is_repeated) c->of[id] = c->of[node.args[0]];
    if (is_repeated) return true;
    if (!is_element || (node.shape.rank && !shape_equal(&node.shape, c->domain))) return false;
    NodeId *args = arena_array(c->to->arena, NodeId, node.n_args);
    for (uint32_t i = 0; i < node.n_args; i++) args[i] = c->of[node.args[i]];
    node.args = args;
    node.shape.rank = 0;
    node.name = NULL;
    node.call = 0;
    c->of[id] = graph_add(c->to, node);
    return true;
}

const Graph *build_scan_function(const Builder *trace, const NodeId *results, uint32_t n) {
    const Graph *traced = trace->graph;
    if (!n || traced->inputs.n != 2 * n) return NULL;
    Copy c = {.traced = traced,
              .domain = &graph_node(traced, traced->inputs.data[0].node)->shape,
              .to = graph_new(trace->arena, trace->dims, traced->source, traced->name),
              .is_needed = arena_array(trace->arena, bool, traced->nodes.n),
              .of = arena_array(trace->arena, NodeId, traced->nodes.n)};
    mark_needed(&c, results, n);
    if (!copy_inputs(&c)) return NULL;
    for (NodeId id = 0; id < traced->nodes.n; id++)
        if (c.is_needed[id] && !copy_node(&c, id)) return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const Node *result = graph_node(traced, results[i]);
        const Node *given = graph_node(traced, traced->inputs.data[i].node);
        if (result->dtype != given->dtype || !shape_equal(&result->shape, c.domain)) return NULL;
        vec_push(trace->arena, &c.to->outputs,
                 ((GraphOutput){.name = given->name, .node = c.of[results[i]]}));
    }
    return c.to;
}

static bool are_equal_nodes(const Node *a, const Node *b) {
    return a->op == b->op && a->dtype == b->dtype && a->n_args == b->n_args &&
           memcmp(a->args, b->args, a->n_args * sizeof *a->args) == 0 &&
           memcmp(&a->attrs.number, &b->attrs.number, sizeof a->attrs.number) == 0 &&
           a->attrs.whole == b->attrs.whole;
}

bool build_equal_functions(const Graph *a, const Graph *b) {
    bool equal = a->nodes.n == b->nodes.n && a->inputs.n == b->inputs.n;
    for (NodeId id = 0; equal && id < a->nodes.n; id++)
        equal = are_equal_nodes(graph_node(a, id), graph_node(b, id));
    for (uint32_t i = 0; equal && i < a->outputs.n; i++)
        equal = a->outputs.data[i].node == b->outputs.data[i].node;
    return equal;
}

NodeId build_scan_by(Builder *b, const Graph *function, const NodeId *xs, int64_t number,
                     uint32_t result) {
    uint32_t axis, n = function->outputs.n;
    for (uint32_t i = 0; i < n; i++)
        if (xs[i] == NODE_NONE) return NODE_NONE;
    const Node *like = graph_node(b->graph, xs[result]);
    if (!build_check_axis(b, (BuildPlace){.arg = 3}, number, like->shape.rank, &axis))
        return NODE_NONE;
    Node node = {.op = OP_SCAN_BY,
                 .dtype = like->dtype,
                 .shape = like->shape,
                 .n_args = n,
                 .args = (NodeId *)(uintptr_t)xs,
                 .attrs = {.axes = 1u << axis, .axis = (int32_t)result, .function = function}};
    return build_checked_node(b, node);
}
