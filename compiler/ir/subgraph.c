/* See subgraph.h. Nodes keep their order, so arguments still come before users. */
#include "ir/subgraph.h"

#include <string.h>

typedef struct Copier {
    Arena *arena;
    const Graph *from;
    Graph *to;
    NodeId *copy_of; /* per node of `from`, or NODE_NONE */
    Vec(NodeId) of;  /* per node of `to` */
} Copier;

static NodeId add(Copier *c, NodeId id, Node node, uint32_t block) {
    NodeId copy = graph_add(c->to, node);
    vec_push(c->arena, &c->of, id);
    vec_push(c->arena, &c->to->kernel_of, block);
    return c->copy_of[id] = copy;
}

/* Copies a node that the subgraph reads and does not contain. */
static NodeId copy_leaf(Copier *c, NodeId id) {
    Node leaf = *graph_node(c->from, id);
    bool is_source = op_info(leaf.op)->cls == CLASS_SOURCE, is_param = leaf.op == OP_PARAM;
    if (!is_source) leaf.op = OP_INPUT;
    leaf.n_args = 0;
    NodeId copy = add(c, id, leaf, 0);
    GraphInput input = {.name = "", .node = copy, .key = "", .span = leaf.span};
    if (is_param)
        vec_push(c->arena, &c->to->params, input);
    else if (leaf.op == OP_INPUT)
        vec_push(c->arena, &c->to->inputs, input);
    return copy;
}

static void copy_node(Copier *c, NodeId id) {
    Node node = *graph_node(c->from, id);
    NodeId *args = arena_array(c->arena, NodeId, node.n_args);
    for (uint32_t i = 0; i < node.n_args; i++) {
        NodeId copy = c->copy_of[node.args[i]];
        args[i] = copy == NODE_NONE ? copy_leaf(c, node.args[i]) : copy;
    }
    node.args = args;
    add(c, id, node, c->from->kernel_of.n ? c->from->kernel_of.data[id] : 0);
}

Subgraph subgraph_of(Arena *arena, const Graph *graph, NodeFlags flags) {
    uint32_t n = graph->nodes.n;
    Copier c = {.arena = arena, .from = graph, .copy_of = arena_array(arena, NodeId, n)};
    c.to = graph_new(arena, graph->dims, graph->source, graph->name);
    c.to->span = graph->span;
    c.to->is_fast = graph->is_fast;
    c.to->fixed_kernels = graph->fixed_kernels;
    memset(c.copy_of, 0xFF, n * sizeof *c.copy_of);
    for (NodeId id = 0; id < n; id++) {
        if (!node_has(flags, id, SUBGRAPH_IN)) continue;
        copy_node(&c, id);
        if (node_has(flags, id, SUBGRAPH_OUT))
            vec_push(arena, &c.to->outputs,
                     (GraphOutput){.name = "", .node = c.copy_of[id], .span = graph->span});
    }
    return (Subgraph){.graph = c.to, .of = c.of.data};
}
