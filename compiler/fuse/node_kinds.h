/* Kinds of nodes. Nodes of one kind differ in their place in the graph alone: op, dtype, shape and
 * attributes are equal, and so are those of their arguments, which lie at equal distances before
 * them. A node that is fixed is a kind by itself, and the same argument of all nodes of a kind:
 * inputs, params, values that are computed from sources alone, and values that many nodes read and
 * that are computed from fixed ones, or from inputs and no param. But one with one reader belongs
 * to a layer, as weights do, and is not fixed. Nor are equal ones, each of which is read for the
 * last time before the next comes. Literals on whose values inlining does not depend may differ:
 * nodes of a kind read such a literal again at equal distances.
 *
 * Layers of a model repeat a group of nodes, and so do graphs of a program. Inlining of the second
 * group has the result of the first, at other nodes. */
#ifndef FUSEC_FUSE_NODE_KINDS_H
#define FUSEC_FUSE_NODE_KINDS_H

#include "base/keytab.h"
#include "ir/graph.h"

/* The kinds of the nodes of several graphs that share their dims. All zeros: no kind is known. */
typedef struct KindTab {
    KeyTab looks, kinds;
} KindTab;

/* The kinds of one graph that have been asked for. */
typedef struct NodeKinds {
    uint32_t *of;              /* per node; 0: not asked for yet */
    struct KindFinder *finder; /* finds the others */
} NodeKinds;

/* The kinds of the graph's nodes, which are found when they are asked for. The arena is the
 * table's. */
NodeKinds *node_kinds_new(Arena *arena, KindTab *tab, const Graph *graph);
bool node_is_fixed(const NodeKinds *kinds, NodeId id);
/* The number of the node's look, which is all of it but its arguments, from 1 on. */
uint32_t node_look(const NodeKinds *kinds, NodeId id);
void node_kind_find(NodeKinds *kinds, NodeId id);
/* The number of the node's kind, from 1 on. */
static inline uint32_t node_kind(NodeKinds *kinds, NodeId id) {
    if (!kinds->of[id]) node_kind_find(kinds, id);
    return kinds->of[id];
}

#endif
