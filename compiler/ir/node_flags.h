/* Flags of a graph's nodes: a bit set per node. The owner of a set lists its flags in one enum, and
 * a function that reads one of them gets the set and the flag. */
#ifndef FUSEC_IR_NODE_FLAGS_H
#define FUSEC_IR_NODE_FLAGS_H

#include "ir/graph.h"

#define MAX_NODE_FLAGS 32

typedef uint32_t NodeBits; /* the flags of one node; flag `f` is bit `f` */

typedef struct NodeFlags {
    uint32_t n;     /* nodes */
    NodeBits *bits; /* per node */
} NodeFlags;

/* Makes flags for `n` nodes, all of them clear. */
static inline NodeFlags node_flags_new(Arena *arena, uint32_t n) {
    return (NodeFlags){.n = n, .bits = arena_array(arena, NodeBits, n)};
}
static inline NodeFlags node_flags_copy(Arena *arena, NodeFlags flags) {
    flags.bits = arena_copy(arena, flags.bits, flags.n * sizeof *flags.bits);
    return flags;
}

static inline bool node_has(NodeFlags flags, NodeId id, unsigned flag) {
    return flags.bits[id] >> flag & 1;
}
/* Adds the flag. Returns false if the node had it already. */
static inline bool node_add(NodeFlags flags, NodeId id, unsigned flag) {
    bool changes = !node_has(flags, id, flag);
    flags.bits[id] |= (NodeBits)1 << flag;
    return changes;
}
static inline void node_drop(NodeFlags flags, NodeId id, unsigned flag) {
    flags.bits[id] &= ~((NodeBits)1 << flag);
}
/* Adds or drops the flag. */
static inline void node_set(NodeFlags flags, NodeId id, unsigned flag, bool has) {
    node_drop(flags, id, flag);
    flags.bits[id] |= (NodeBits)has << flag;
}
/* Drops the flag of all nodes. */
static inline void node_flags_drop(NodeFlags flags, unsigned flag) {
    for (NodeId id = 0; id < flags.n; id++) node_drop(flags, id, flag);
}
/* Whether any node has the flag. */
static inline bool node_flags_any(NodeFlags flags, unsigned flag) {
    for (NodeId id = 0; id < flags.n; id++)
        if (node_has(flags, id, flag)) return true;
    return false;
}

#endif
