/* Blocks that a source can have: a block contains whole calls of defs, since it cannot contain a
 * part of a call, and ops outside of calls. See advice.h. */
#include "explain/advice.h"
#include "plan/must.h"

#include "ir/node_flags.h"

/* Units: ops of one call or one expression, which a block contains all or not at all. The first
 * op's number is the number of the unit. */
typedef struct Units {
    const Graph *graph;
    const uint32_t *of; /* per node */
    NodeFlags flags;    /* of the first nodes of units */
} Units;

enum {
    UNIT_IN,    /* the block contains it */
    UNIT_BELOW, /* it depends on a unit in the block */
    UNIT_ABOVE, /* a unit in the block depends on it */
};

/* Whether the unit of the node has the flag. */
static bool unit_has(const Units *u, NodeId id, unsigned flag) {
    return node_has(u->flags, u->of[id], flag);
}

static bool unit_add(const Units *u, NodeId id, unsigned flag) {
    return node_add(u->flags, u->of[id], flag);
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

static const uint32_t *find_units(Arena *arena, const Graph *graph) {
    uint32_t *units = arena_array(arena, uint32_t, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++)
        units[id] = id && advice_is_same_unit(graph, id, id - 1) ? units[id - 1] : id;
    return units;
}

/* Adds the units on paths between two units of the block: a unit that depends on one and on which
 * the other depends. All other units may run before or after the block. */
static bool close_path(Units *u) {
    const Graph *graph = u->graph;
    uint32_t n = graph->nodes.n;
    bool changed = false;
    for (NodeId id = 0; id < n; id++) {
        node_set(u->flags, id, UNIT_BELOW, node_has(u->flags, id, UNIT_IN));
        node_set(u->flags, id, UNIT_ABOVE, node_has(u->flags, id, UNIT_IN));
    }
    for (NodeId id = 0; id < n; id++)
        for (uint32_t i = 0; i < graph_node(graph, id)->n_args; i++)
            if (unit_has(u, graph_node(graph, id)->args[i], UNIT_BELOW))
                unit_add(u, id, UNIT_BELOW);
    for (NodeId id = n; id-- > 0;)
        for (uint32_t i = 0; unit_has(u, id, UNIT_ABOVE) && i < graph_node(graph, id)->n_args; i++)
            unit_add(u, graph_node(graph, id)->args[i], UNIT_ABOVE);
    for (NodeId id = 0; id < n; id++)
        if (unit_has(u, id, UNIT_BELOW) && unit_has(u, id, UNIT_ABOVE))
            changed = unit_add(u, id, UNIT_IN) || changed;
    return changed;
}

/* Adds the `fuse must` blocks of the source that share a unit with the block. */
static bool join_blocks(Units *u) {
    const Graph *graph = u->graph;
    bool changed = false;
    for (uint32_t b = 1; b <= graph->fixed_kernels.n; b++) {
        bool meets = false;
        for (NodeId id = 0; id < graph->nodes.n; id++)
            meets = meets || (unit_has(u, id, UNIT_IN) && must_block(graph, id) == b);
        for (NodeId id = 0; meets && id < graph->nodes.n; id++)
            if (must_block(graph, id) == b) changed = unit_add(u, id, UNIT_IN) || changed;
    }
    return changed;
}

bool advice_block(Arena *arena, const Graph *graph, const VecU32 *ends, VecU32 *nodes) {
    uint32_t n = graph->nodes.n;
    Units u = {.graph = graph, .of = find_units(arena, graph), .flags = node_flags_new(arena, n)};
    for (uint32_t i = 0; i < ends->n; i++) unit_add(&u, ends->data[i], UNIT_IN);
    while (close_path(&u) || join_blocks(&u)) {
    }
    for (NodeId id = 0; id < n; id++) {
        if (!unit_has(&u, id, UNIT_IN) || graph_is_bound(graph, id)) continue;
        bool is_taken = graph_block(graph, id, BLOCK_KERNEL) || graph_block(graph, id, BLOCK_NEVER);
        if (is_taken && !vec_has(ends, id)) return false;
        vec_push(arena, nodes, id);
    }
    return true;
}

bool advice_is_unit_end(const Graph *graph, NodeId id) {
    return id + 1 == graph->nodes.n || !advice_is_same_unit(graph, id, id + 1);
}
