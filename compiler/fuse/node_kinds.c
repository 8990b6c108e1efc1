/* See node_kinds.h. A node's look is what it is without its arguments. Its kind is its look, and
 * the looks and distances of its arguments. Both are interned as words. */
#include "fuse/node_kinds.h"

#include "base/keytab.h"
#include "ir/node_flags.h"
#include "plan/must.h"

#include <string.h>

enum { MANY_READERS = 16 }; /* a layer has fewer readers of its values */

typedef enum KindFlag {
    KIND_NUMBER, /* computed from sources alone */
    KIND_FIXED
} KindFlag;

struct NodeKinds {
    Arena *arena;
    const Graph *graph;
    KeyTab looks, kinds;
    uint32_t *look_of, *kind_of; /* per node; 0: not asked for yet */
    NodeFlags flags;             /* of KindFlag */
    VecU32 key;                  /* that was looked up last */
};

/* Whether all arguments have the flag. */
static bool has_all(const NodeKinds *kinds, const Node *node, KindFlag flag) {
    bool all = true;
    for (uint32_t i = 0; i < node->n_args; i++)
        all = all && node_has(kinds->flags, node->args[i], flag);
    return all;
}

static void find_fixed(NodeKinds *kinds) {
    const Graph *graph = kinds->graph;
    uint32_t n = graph->nodes.n, *n_readers = arena_array(kinds->arena, uint32_t, n);
    for (NodeId id = 0; id < n; id++)
        for (uint32_t i = 0; i < graph_node(graph, id)->n_args; i++)
            n_readers[graph_node(graph, id)->args[i]]++;
    for (NodeId id = 0; id < n; id++) {
        const Node *node = graph_node(graph, id);
        bool is_bound = graph_is_bound(graph, id);
        bool is_number = !is_bound && has_all(kinds, node, KIND_NUMBER);
        bool is_read = n_readers[id] >= MANY_READERS && has_all(kinds, node, KIND_FIXED);
        node_set(kinds->flags, id, KIND_NUMBER, is_number);
        node_set(kinds->flags, id, KIND_FIXED, is_bound || is_number || is_read);
    }
}

NodeKinds *node_kinds_new(Arena *arena, const Graph *graph) {
    NodeKinds *kinds = arena_array(arena, NodeKinds, 1);
    kinds->arena = arena;
    kinds->graph = graph;
    kinds->look_of = arena_array(arena, uint32_t, graph->nodes.n);
    kinds->kind_of = arena_array(arena, uint32_t, graph->nodes.n);
    kinds->flags = node_flags_new(arena, graph->nodes.n);
    find_fixed(kinds);
    return kinds;
}

bool node_is_fixed(const NodeKinds *kinds, NodeId id) {
    return node_has(kinds->flags, id, KIND_FIXED);
}

static void put(NodeKinds *kinds, uint32_t word) {
    vec_push(kinds->arena, &kinds->key, word);
}

static void put_bytes(NodeKinds *kinds, const void *data, size_t n_bytes) {
    for (size_t at = 0; at < n_bytes; at += sizeof(uint32_t)) {
        uint32_t word = 0;
        size_t left = n_bytes - at;
        memcpy(&word, (const char *)data + at, left < sizeof word ? left : sizeof word);
        put(kinds, word);
    }
}

/* Few nodes have attributes per axis. */
static void put_per_axis(NodeKinds *kinds, const AxisAttrs *of) {
    static const AxisAttrs none;
    bool has_some = memcmp(of, &none, sizeof none) != 0;
    put(kinds, has_some);
    if (has_some) put_bytes(kinds, of, sizeof *of);
}

static uint32_t look_of(NodeKinds *kinds, NodeId id) {
    const Node *node = graph_node(kinds->graph, id);
    const Attrs *attrs = &node->attrs;
    if (kinds->look_of[id]) return kinds->look_of[id];
    kinds->key.n = 0;
    put(kinds, node->op);
    put(kinds, node->dtype);
    put(kinds, node->shape.rank);
    put_bytes(kinds, node->shape.dims, node->shape.rank * sizeof *node->shape.dims);
    put_bytes(kinds, &attrs->number, sizeof attrs->number);
    put_bytes(kinds, &attrs->whole, sizeof attrs->whole);
    put(kinds, attrs->precision);
    put_bytes(kinds, &attrs->segment_elems, sizeof attrs->segment_elems);
    put(kinds, (uint32_t)attrs->axis);
    put(kinds, attrs->axes);
    put(kinds, attrs->keep);
    put_bytes(kinds, &attrs->function, sizeof attrs->function);
    put_per_axis(kinds, attrs->per_axis);
    kinds->look_of[id] = keytab_intern(kinds->arena, &kinds->looks, &kinds->key);
    return kinds->look_of[id];
}

static uint32_t find_kind(NodeKinds *kinds, NodeId id) {
    const Graph *graph = kinds->graph;
    const Node *node = graph_node(graph, id);
    uint32_t look = look_of(kinds, id);
    bool is_fixed = node_is_fixed(kinds, id);
    for (uint32_t i = 0; i < node->n_args; i++) look_of(kinds, node->args[i]);
    kinds->key.n = 0;
    put(kinds, look);
    put(kinds, is_fixed);
    put(kinds, is_fixed ? id : node->n_args);
    for (uint32_t i = 0; i < node->n_args; i++) {
        NodeId arg = node->args[i];
        put(kinds, look_of(kinds, arg));
        put(kinds, node_is_fixed(kinds, arg));
        put(kinds, node_is_fixed(kinds, arg) ? arg : id - arg);
        put(kinds, must_shares(graph, arg, id));
    }
    return keytab_intern(kinds->arena, &kinds->kinds, &kinds->key);
}

uint32_t node_kind(NodeKinds *kinds, NodeId id) {
    if (!kinds->kind_of[id]) kinds->kind_of[id] = find_kind(kinds, id);
    return kinds->kind_of[id];
}
