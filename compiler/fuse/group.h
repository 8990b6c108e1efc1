/* Grouping: which reductions and stored values share a kernel, and which values must be stored.
 *
 * Roots (reductions, and nodes that must be stored) are taken in topological order. Each joins
 * the latest group that can compute it and that no other group it depends on has to follow, or an
 * earlier one that can follow these; otherwise it opens a new group. So groups are in launch order
 * and no cycle can arise. What is not a root is computed where it is used; when that turns out
 * to repeat costly work, it becomes a stored root and grouping starts over.
 */
#ifndef FUSEC_FUSE_GROUP_H
#define FUSEC_FUSE_GROUP_H

#include "fuse/inline.h"
#include "fuse/fuse.h"

/* Why a group that loads a value is not the one that makes it. */
typedef struct Refusal {
    NodeId load;
    uint32_t group; /* the reader's */
    ReasonId reason;
} Refusal;

typedef struct Grouping {
    Vec(Group) groups;
    uint32_t *group_of;          /* per node: the group that makes it (roots), or GROUP_NONE */
    bool *is_stored;             /* per node: held in memory after its group ran */
    ReasonId *why_stored;        /* per node */
    Vec(Refusal) refusals;       /* of values that nothing but groups keeps apart */
    const bool *is_placed;       /* per node: concats whose pieces are stored in their place */
    const NodeId *gemm_slice_of; /* per node: the product that it is a window of, or NODE_NONE */
    ReasonId *why_apart;         /* per node: why the first that loads it is in another group */
    bool has_ties;               /* see Plan */
    const bool *can_prepare;     /* per node: see hoist.h; groups are of such values or of others */
} Grouping;

/* A group that no kernel can be. */
typedef struct GroupFailure {
    InlineFailure why;
    NodeId root; /* what the group is there for; NODE_NONE: the source has fixed it */
} GroupFailure;

/* `arena` holds everything, intermediate attempts included. With options.off, every node but
 * literals is a root of its own. NULL when a fixed kernel of the source cannot be kept, or a
 * group not be composed: `failure` says why.
 */
Grouping *group_graph(Arena *arena, const Graph *graph, FuseOptions options, GroupFailure *failure);

#endif
