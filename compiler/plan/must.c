/* See must.h. */
#include "plan/must.h"

bool must_shares(const Graph *graph, NodeId a, NodeId b) {
    uint32_t block = must_block(graph, a);
    return block && must_block(graph, b) == block;
}

bool must_shares_any(const Graph *graph, NodeId id, const NodeId *others, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (others[i] != id && must_shares(graph, others[i], id)) return true;
    return false;
}

bool must_leaves(const Graph *graph, const VecU32 *users, NodeId id) {
    for (uint32_t i = 0; i < users[id].n; i++)
        if (must_block(graph, users[id].data[i]) != must_block(graph, id)) return true;
    return false;
}

bool must_has_readers(const Graph *graph, const VecU32 *users, NodeId id) {
    return must_block(graph, id) && users[id].n && !must_leaves(graph, users, id);
}

bool must_has_kernel(const Graph *graph, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (must_block(graph, kernel->nodes.data[i])) return true;
    return false;
}

/* Whether the kernel computes a user of the value in the value's block. */
static bool has_user(const Graph *graph, const Kernel *kernel, NodeId value) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        NodeId id = kernel->nodes.data[i];
        const Node *node = graph_node(graph, id);
        for (uint32_t k = 0; k < node->n_args; k++)
            if (node->args[k] == value && must_shares(graph, value, id)) return true;
    }
    return false;
}

bool must_passes(const Plan *plan, const Launch *launch, const Kernel *reader) {
    for (uint32_t i = 0; i < reader->args.n; i++) {
        uint32_t buffer = reader->args.data[i];
        if (launch_stores_to(plan, launch, buffer) &&
            has_user(plan->graph, reader, plan->buffers.data[buffer].node))
            return true;
    }
    return false;
}

/* Whether the launch computes a value of the block that `other` does not compute. */
static bool has_own(const Plan *plan, const Launch *launch, const Launch *other, uint32_t block) {
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        for (uint32_t i = 0; i < kernel->nodes.n; i++) {
            NodeId id = kernel->nodes.data[i];
            if (must_block(plan->graph, id) == block && !launch_computes(plan, other, id))
                return true;
        }
    }
    return false;
}

bool must_spans(const Plan *plan, const Launch *a, const Launch *b) {
    for (uint32_t i = 0; i < plan->graph->fixed_kernels.n; i++)
        if (plan->graph->fixed_kernels.data[i].kind == BLOCK_MUST && has_own(plan, a, b, i + 1) &&
            has_own(plan, b, a, i + 1))
            return true;
    return false;
}

bool must_forbids(const Edge *edge) {
    return edge->verdict != EDGE_FUSED && edge->reason != REASON_PREPARED;
}

bool must_breaks(const Plan *plan, const Edge *edge) {
    return edge->consumer != NODE_NONE && must_forbids(edge) &&
           must_shares(plan->graph, edge->producer, edge->consumer);
}

uint32_t must_n_broken(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->edges.n; i++) n += must_breaks(plan, &plan->edges.data[i]);
    return n;
}

bool *must_broken_blocks(Arena *arena, const Plan *plan) {
    bool *is_broken = arena_array(arena, bool, plan->graph->fixed_kernels.n + (size_t)1);
    for (uint32_t i = 0; i < plan->edges.n; i++)
        if (must_breaks(plan, &plan->edges.data[i]))
            is_broken[must_block(plan->graph, plan->edges.data[i].producer)] = true;
    return is_broken;
}
