/* Blocks that a source can have: a block contains whole calls of defs, since it cannot contain a
 * part of a call, and ops outside of calls. See advice.h. */
#include "explain/advice.h"
#include "plan/must.h"

/* Units: ops of one call or one expression, which a block contains all or not at all. The first
 * op's number is the number of the unit. */
typedef struct Units {
    const Graph *graph;
    const uint32_t *of;        /* per node */
    bool *is_in;               /* per unit: the block contains it */
    bool *is_below, *is_above; /* per unit: depends on a unit in the block; a unit in the block
                                * depends on it */
} Units;

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
    for (NodeId id = 0; id < n; id++) u->is_below[id] = u->is_above[id] = u->is_in[id];
    for (NodeId id = 0; id < n; id++)
        for (uint32_t i = 0; i < graph_node(graph, id)->n_args; i++)
            if (u->is_below[u->of[graph_node(graph, id)->args[i]]]) u->is_below[u->of[id]] = true;
    for (NodeId id = n; id-- > 0;)
        for (uint32_t i = 0; u->is_above[u->of[id]] && i < graph_node(graph, id)->n_args; i++)
            u->is_above[u->of[graph_node(graph, id)->args[i]]] = true;
    for (NodeId id = 0; id < n; id++) {
        bool is_between = u->is_below[u->of[id]] && u->is_above[u->of[id]];
        changed = changed || (is_between && !u->is_in[u->of[id]]);
        if (is_between) u->is_in[u->of[id]] = true;
    }
    return changed;
}

/* Adds the `fuse must` blocks of the source that share a unit with the block. */
static bool join_blocks(Units *u) {
    const Graph *graph = u->graph;
    bool changed = false;
    for (uint32_t b = 1; b <= graph->fixed_kernels.n; b++) {
        bool meets = false;
        for (NodeId id = 0; id < graph->nodes.n; id++)
            meets = meets || (u->is_in[u->of[id]] && must_block(graph, id) == b);
        for (NodeId id = 0; meets && id < graph->nodes.n; id++) {
            if (must_block(graph, id) != b || u->is_in[u->of[id]]) continue;
            u->is_in[u->of[id]] = changed = true;
        }
    }
    return changed;
}

bool advice_block(Arena *arena, const Graph *graph, const VecU32 *ends, VecU32 *nodes) {
    uint32_t n = graph->nodes.n;
    Units u = {.graph = graph,
               .of = find_units(arena, graph),
               .is_in = arena_array(arena, bool, n),
               .is_below = arena_array(arena, bool, n),
               .is_above = arena_array(arena, bool, n)};
    for (uint32_t i = 0; i < ends->n; i++) u.is_in[u.of[ends->data[i]]] = true;
    while (close_path(&u) || join_blocks(&u)) {
    }
    for (NodeId id = 0; id < n; id++) {
        if (!u.is_in[u.of[id]] || graph_is_bound(graph, id)) continue;
        bool is_taken = graph_block(graph, id, BLOCK_KERNEL) || graph_block(graph, id, BLOCK_NEVER);
        if (is_taken && !vec_has(ends, id)) return false;
        vec_push(arena, nodes, id);
    }
    return true;
}

bool advice_is_unit_end(const Graph *graph, NodeId id) {
    return id + 1 == graph->nodes.n || !advice_is_same_unit(graph, id, id + 1);
}
