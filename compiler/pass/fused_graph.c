/* The graph with its kernels as blocks. See explain.h. */
#include "pass/explain.h"

#include <string.h>

typedef struct Cloner {
    Arena *arena;
    const Graph *from;
    Graph *to;
    NodeId *in_memory; /* per node of `from`: the clone that every kernel may read */
    NodeId *in_kernel; /* per node of `from`: its clone in the current kernel */
} Cloner;

static NodeId clone_node(Cloner *c, NodeId id, uint32_t kernel);

/* What the current kernel reads as the value of `id`. */
static NodeId clone_arg(Cloner *c, NodeId id, uint32_t kernel) {
    if (c->in_kernel[id] != NODE_NONE) return c->in_kernel[id];
    if (c->in_memory[id] != NODE_NONE) return c->in_memory[id];
    return c->in_kernel[id] = clone_node(c, id, kernel);
}

static NodeId clone_node(Cloner *c, NodeId id, uint32_t kernel) {
    Node node = *graph_node(c->from, id);
    NodeId *args = arena_array(c->arena, NodeId, node.n_args);
    for (uint32_t i = 0; i < node.n_args; i++) args[i] = clone_arg(c, node.args[i], kernel);
    node.args = args;
    NodeId made = graph_add(c->to, node);
    vec_push(c->arena, &c->to->kernel_of, kernel);
    return made;
}

static void note_stored(Cloner *c, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        NodeId id = stores[i].node;
        if (c->in_memory[id] == NODE_NONE) c->in_memory[id] = c->in_kernel[id];
    }
}

/* One block: the kernels [first, last], which are a finishing kernel and the partials before it. */
static void clone_kernels(Cloner *c, const Kernel *first, const Kernel *last) {
    vec_push(c->arena, &c->to->fixed_kernels,
             (FixedKernel){.name = last->name, .span = last->span});
    memset(c->in_kernel, 0xFF, c->from->nodes.n * sizeof *c->in_kernel);
    for (uint32_t i = 0; i < first->nodes.n; i++) {
        NodeId id = first->nodes.data[i];
        OpId op = graph_node(c->from, id)->op;
        if (op == OP_INPUT || op == OP_PARAM || c->in_kernel[id] != NODE_NONE) continue;
        c->in_kernel[id] = clone_node(c, id, c->to->fixed_kernels.n);
    }
    for (uint32_t i = 0; i < last->stages.n; i++)
        note_stored(c, last->stages.data[i].stores.data, last->stages.data[i].stores.n);
    note_stored(c, last->row_stores.data, last->row_stores.n);
}

Graph *explain_fused_graph(Arena *arena, StrTab *strings, const Plan *plan) {
    const Graph *from = plan->graph;
    Cloner c = {.arena = arena, .from = from};
    c.to = graph_new(arena, from->dims, from->source, strtab_intern_z(strings, from->name));
    c.to->span = from->span;
    c.in_memory = arena_array(arena, NodeId, from->nodes.n);
    c.in_kernel = arena_array(arena, NodeId, from->nodes.n);
    memset(c.in_memory, 0xFF, from->nodes.n * sizeof *c.in_memory);
    for (NodeId id = 0; id < from->nodes.n; id++) {
        OpId op = graph_node(from, id)->op;
        if (op == OP_INPUT || op == OP_PARAM) c.in_memory[id] = clone_node(&c, id, 0);
    }
    for (uint32_t i = 0; i < from->inputs.n; i++) {
        GraphInput input = from->inputs.data[i];
        input.node = c.in_memory[input.node];
        vec_push(arena, &c.to->inputs, input);
    }
    for (uint32_t i = 0; i < from->params.n; i++) {
        GraphInput param = from->params.data[i];
        param.node = c.in_memory[param.node];
        vec_push(arena, &c.to->params, param);
    }
    for (uint32_t first = 0, i = 0; i < plan->kernels.n; i++) {
        if (plan->kernels.data[i].segment_axis != NO_AXIS) continue;
        clone_kernels(&c, &plan->kernels.data[first], &plan->kernels.data[i]);
        first = i + 1;
    }
    for (uint32_t i = 0; i < from->outputs.n; i++) {
        GraphOutput output = from->outputs.data[i];
        output.node = c.in_memory[output.node];
        if (output.node == NODE_NONE)
            ice(arena, "output %s of graph %s is never stored", output.name, from->name);
        vec_push(arena, &c.to->outputs, output);
    }
    return c.to;
}
