/* The graph with each kernel as a block of source. See explain.h. */
#include "explain/explain.h"

#include <string.h>

typedef struct Cloner {
    Arena *arena;
    const Plan *plan;
    const Graph *from;
    Graph *to;
    NodeId *in_memory;   /* per node of `from`: its clone in memory, which every kernel may read */
    NodeId *in_kernel;   /* per node of `from`: its clone in the current kernel */
    uint32_t *copied_by; /* per output: see GraphOutput */
    NodeId **pieces;     /* per concat of `from` whose operands are stored in it: the clones of the
                          * operands */
} Cloner;

static NodeId clone_node(Cloner *c, NodeId id, uint32_t kernel);

/* The clone of `id` that the current kernel reads. */
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

/* Notes a store of one operand of a concat. The concat itself is outside of all kernels, after the
 * kernel of its last operand. */
static void note_piece(Cloner *c, const Store *store, uint32_t kernel) {
    NodeId whole = store_holds(c->plan, store);
    Node node = *graph_node(c->from, whole);
    NodeId **pieces = &c->pieces[whole];
    if (!*pieces) {
        *pieces = arena_array(c->arena, NodeId, node.n_args);
        memset(*pieces, 0xFF, node.n_args * sizeof **pieces);
    }
    (*pieces)[store->piece - 1] = clone_arg(c, store->node, kernel);
    for (uint32_t i = 0; i < node.n_args; i++)
        if ((*pieces)[i] == NODE_NONE) return;
    node.args = *pieces;
    c->in_memory[whole] = graph_add(c->to, node);
    vec_push(c->arena, &c->to->kernel_of, 0);
}

static void note_stored(void *user, const Store *store) {
    Cloner *c = user;
    const Buffer *buffer = &c->plan->buffers.data[store->buffer];
    if (graph_is_bound(c->from, store->node) && !store->piece && buffer->kind == BUFFER_OUTPUT)
        c->copied_by[buffer->ordinal] = c->to->fixed_kernels.n;
    if (store->piece)
        note_piece(c, store, c->to->fixed_kernels.n);
    else if (c->in_memory[store->node] == NODE_NONE)
        c->in_memory[store->node] = c->in_kernel[store->node];
}

/* Notes a store of a kernel that only copies; the kernel has no block. */
static void note_copy(void *user, const Store *store) {
    if (store->piece) note_piece(user, store, 0);
}

/* Notes the values that a kernel of partial results stores per element. */
static void note_elements(Cloner *c, const Kernel *partial) {
    for (uint32_t s = 0; s < partial->stages.n; s++)
        for (uint32_t i = 0; i < partial->stages.data[s].stores.n; i++)
            note_stored(c, &partial->stages.data[s].stores.data[i]);
}

/* Clones one block: a kernel, or a kernel that combines partial results together with the kernels
 * of those, which precede it. */
static void clone_kernel(Cloner *c, const Kernel *last, uint32_t n_partials) {
    vec_push(c->arena, &c->to->fixed_kernels,
             (FixedKernel){.name = last->name, .span = last->span});
    memset(c->in_kernel, 0xFF, c->from->nodes.n * sizeof *c->in_kernel);
    for (uint32_t i = 0; i < last->nodes.n; i++) {
        NodeId id = last->nodes.data[i];
        if (graph_is_bound(c->from, id) || c->in_kernel[id] != NODE_NONE) continue;
        c->in_kernel[id] = clone_node(c, id, c->to->fixed_kernels.n);
    }
    for (uint32_t k = n_partials; k > 0; k--) note_elements(c, last - k);
    kernel_each_store(last, note_stored, c);
}

Graph *explain_fused_graph(Arena *arena, StrTab *strings, const Plan *plan) {
    const Graph *from = plan->graph;
    Cloner c = {.arena = arena, .plan = plan, .from = from};
    c.pieces = arena_array(arena, NodeId *, from->nodes.n);
    c.to = graph_new(arena, from->dims, from->source, strtab_intern_z(strings, from->name));
    c.to->span = from->span;
    c.to->is_fast = from->is_fast;
    c.in_memory = arena_array(arena, NodeId, from->nodes.n);
    c.in_kernel = arena_array(arena, NodeId, from->nodes.n);
    c.copied_by = arena_array(arena, uint32_t, from->outputs.n);
    memset(c.in_memory, 0xFF, from->nodes.n * sizeof *c.in_memory);
    memset(c.in_kernel, 0xFF, from->nodes.n * sizeof *c.in_kernel);
    for (NodeId id = 0; id < from->nodes.n; id++)
        if (graph_is_bound(from, id)) c.in_memory[id] = clone_node(&c, id, 0);
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
    for (uint32_t i = 0, n_partials = 0; i < plan->kernels.n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        if (kernel_is_alternative(kernel)) continue;
        bool is_partial = kernel->segment_axis != NO_AXIS;
        if (!is_partial && kernel->nodes.n)
            clone_kernel(&c, kernel, n_partials);
        else if (!is_partial)
            kernel_each_store(kernel, note_copy, &c);
        n_partials = is_partial ? n_partials + 1 : 0;
    }
    for (uint32_t i = 0; i < from->outputs.n; i++) {
        GraphOutput output = from->outputs.data[i];
        output.copied_by = c.copied_by[i];
        output.node = c.in_memory[output.node];
        if (output.node == NODE_NONE)
            ice(arena, "output %s of graph %s is never stored", output.name, from->name);
        vec_push(arena, &c.to->outputs, output);
    }
    return c.to;
}
