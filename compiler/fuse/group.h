/* Grouping: which reductions and stored values share a kernel, and which values must be stored.
 *
 * Roots are reductions and nodes that must be stored. They are taken in topological order. Each
 * root joins the latest group that can compute it and after which no group comes whose results the
 * root needs. It may also join an earlier group that can be moved after those groups. Otherwise it
 * opens a new group. So groups are in launch order and no cycle can arise. A node that is no root
 * is computed where it is used. If that repeats costly work, the node becomes a stored root and
 * grouping starts again. */
#ifndef FUSEC_FUSE_GROUP_H
#define FUSEC_FUSE_GROUP_H

#include "fuse/inline/inline.h"
#include "fuse/fuse.h"

/* The reason why a group loads a value that another group computes. */
typedef struct Refusal {
    NodeId load;
    uint32_t group; /* the group that loads it; known when the last round has ended */
    ReasonId reason;
    uint32_t of_load, of_group; /* the one before it of the load, of the group, plus 1; 0: none */
} Refusal;

typedef struct Grouping {
    Vec(Group) groups;
    uint32_t *group_of;          /* per node: the group that computes it (roots), or GROUP_NONE */
    NodeFlags flags;             /* of GroupingFlag */
    ReasonId *why_stored;        /* per node */
    Vec(Refusal) refusals;       /* of values that only the grouping keeps apart */
    uint32_t *last_refusal;      /* per node that a group loads, plus 1; 0: none */
    const NodeId *gemm_slice_of; /* per node: the matmul that it is a GEMM slice of, or NODE_NONE */
    ReasonId *why_apart;         /* per node: why the first group that loads it is another group */
    bool has_ties;               /* see Plan */
} Grouping;

/* A group that cannot be a kernel. */
typedef struct GroupFailure {
    InlineFailure why;
    NodeId root; /* the root for which it was opened; NODE_NONE: a `kernel` block of the source */
} GroupFailure;

/* Whether so much work is done that fusion stops trying. A longer source may take more. */
bool group_work_is_spent(const GroupingWork *work, const Graph *graph);

/* `arena` holds everything, intermediate attempts included. With options.off every node except
 * literals is a root of its own. Returns NULL and sets `failure` if a `kernel` block cannot be kept
 * or a group cannot be inlined. */
Grouping *group_graph(Arena *arena, const Graph *graph, FuseOptions options, GroupFailure *failure);

#endif
