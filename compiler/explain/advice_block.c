/* Blocks that a source can have: a block contains whole calls of defs, since it cannot contain a
 * part of a call, and ops outside of calls. See advice.h. */
#include "explain/advice.h"
#include "plan/must.h"

#include "ir/node_flags.h"

/* Flags of the first nodes of units. */
enum {
    UNIT_IN,    /* the block contains it */
    UNIT_BELOW, /* it depends on a unit in the block */
    UNIT_ABOVE, /* a unit in the block depends on it */
};

struct AdviceUnits {
    const Graph *graph;
    NodeId *first, *last;             /* per node: those of its unit */
    NodeId *block_first, *block_last; /* per `fuse must` block, plus 1 */
    uint32_t *joined;  /* per `fuse must` block, plus 1: the last block that took it */
    NodeFlags flags;   /* clear but while a block grows */
    uint32_t n_blocks; /* that were asked for */
    NodeId begin, end; /* the nodes from the first unit of the block to its last */
};

/* Whether the unit of the node has the flag. */
static bool unit_has(const AdviceUnits *u, NodeId id, unsigned flag) {
    return node_has(u->flags, u->first[id], flag);
}

static bool unit_add(const AdviceUnits *u, NodeId id, unsigned flag) {
    return node_add(u->flags, u->first[id], flag);
}

/* Puts the unit of the node into the block. Returns false if it is there. */
static bool take(AdviceUnits *u, NodeId id) {
    if (u->first[id] < u->begin) u->begin = u->first[id];
    if (u->last[id] >= u->end) u->end = u->last[id] + 1;
    return unit_add(u, id, UNIT_IN);
}

/* The nodes of one expression outside of calls have one span and follow each other. */
static bool is_same_place(const Node *a, const Node *b) {
    return a->span.end && a->span.begin == b->span.begin && a->span.end == b->span.end;
}

bool advice_is_same_unit(const Graph *graph, NodeId a, NodeId b) {
    const Node *one = graph_node(graph, a), *other = graph_node(graph, b);
    if (one->call || other->call) return one->call == other->call;
    bool is_source = graph_class(graph, a) == CLASS_SOURCE || graph_class(graph, b) == CLASS_SOURCE;
    return !is_source && is_same_place(one, other);
}

static void find_units(AdviceUnits *u) {
    const Graph *graph = u->graph;
    uint32_t n = graph->nodes.n;
    for (NodeId id = 0; id < n; id++)
        u->first[id] = id && advice_is_same_unit(graph, id, id - 1) ? u->first[id - 1] : id;
    for (NodeId id = n; id-- > 0;)
        u->last[id] = id + 1 < n && u->first[id + 1] == u->first[id] ? u->last[id + 1] : id;
}

AdviceUnits *advice_units(Arena *arena, const Graph *graph) {
    uint32_t n = graph->nodes.n, n_blocks = graph->fixed_kernels.n + 1;
    AdviceUnits *u = arena_array(arena, AdviceUnits, 1);
    *u = (AdviceUnits){.graph = graph,
                       .first = arena_array(arena, NodeId, n),
                       .last = arena_array(arena, NodeId, n),
                       .block_first = arena_array(arena, NodeId, n_blocks),
                       .block_last = arena_array(arena, NodeId, n_blocks),
                       .joined = arena_array(arena, uint32_t, n_blocks),
                       .flags = node_flags_new(arena, n)};
    find_units(u);
    for (NodeId id = n; id-- > 0;) u->block_first[must_block(graph, id)] = id;
    for (NodeId id = 0; id < n; id++) u->block_last[must_block(graph, id)] = id;
    return u;
}

/* Adds the units on paths between two units of the block: a unit that depends on one and on which
 * the other depends. All other units may run before or after the block. Since arguments come before
 * their users and units are ranges, such units lie between the first and the last. */
static bool close_path(AdviceUnits *u) {
    const Graph *graph = u->graph;
    NodeId begin = u->begin, end = u->end;
    bool changed = false;
    for (NodeId id = begin; id < end; id++) {
        node_set(u->flags, id, UNIT_BELOW, node_has(u->flags, id, UNIT_IN));
        node_set(u->flags, id, UNIT_ABOVE, node_has(u->flags, id, UNIT_IN));
    }
    for (NodeId id = begin; id < end; id++)
        for (uint32_t i = 0; i < graph_node(graph, id)->n_args; i++)
            if (unit_has(u, graph_node(graph, id)->args[i], UNIT_BELOW))
                unit_add(u, id, UNIT_BELOW);
    for (NodeId id = end; id-- > begin;)
        for (uint32_t i = 0; unit_has(u, id, UNIT_ABOVE) && i < graph_node(graph, id)->n_args;
             i++) {
            NodeId arg = graph_node(graph, id)->args[i];
            if (arg >= begin) unit_add(u, arg, UNIT_ABOVE);
        }
    for (NodeId id = begin; id < end; id++)
        if (unit_has(u, id, UNIT_BELOW) && unit_has(u, id, UNIT_ABOVE))
            changed = take(u, id) || changed;
    return changed;
}

/* Adds the `fuse must` blocks of the source that share a unit with the block. */
static bool join_blocks(AdviceUnits *u) {
    bool changed = false;
    for (NodeId id = u->begin; id < u->end; id++) {
        uint32_t block = must_block(u->graph, id);
        if (!block || u->joined[block] == u->n_blocks || !unit_has(u, id, UNIT_IN)) continue;
        u->joined[block] = u->n_blocks;
        for (NodeId of = u->block_first[block]; of <= u->block_last[block]; of++)
            if (must_block(u->graph, of) == block) changed = take(u, of) || changed;
    }
    return changed;
}

/* Lists the nodes of the block. */
static bool list_nodes(const AdviceUnits *u, Arena *arena, const VecU32 *ends, VecU32 *nodes) {
    const Graph *graph = u->graph;
    for (NodeId id = u->begin; id < u->end; id++) {
        if (!unit_has(u, id, UNIT_IN) || graph_is_bound(graph, id)) continue;
        bool is_taken = graph_block(graph, id, BLOCK_KERNEL) || graph_block(graph, id, BLOCK_NEVER);
        if (is_taken && !vec_has(ends, id)) return false;
        vec_push(arena, nodes, id);
    }
    return true;
}

bool advice_block(Arena *arena, AdviceUnits *u, const VecU32 *ends, VecU32 *nodes) {
    u->n_blocks++;
    u->begin = u->graph->nodes.n;
    u->end = 0;
    for (uint32_t i = 0; i < ends->n; i++) take(u, ends->data[i]);
    while (close_path(u) || join_blocks(u)) {
    }
    bool is_whole = list_nodes(u, arena, ends, nodes);
    for (NodeId id = u->begin; id < u->end; id++) u->flags.bits[id] = 0;
    return is_whole;
}

bool advice_is_unit_end(const Graph *graph, NodeId id) {
    return id + 1 == graph->nodes.n || !advice_is_same_unit(graph, id, id + 1);
}
