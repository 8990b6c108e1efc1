/* Conflicts: the edges that make a `fuse must` block impossible. Each is an edge inside the block
 * that a plan without the block stores, and that a block of its own cannot fuse either. The stored
 * edges of the plan with the block are a poor answer: fusing a matmul's operand into its kernel,
 * for example, can split a softmax elsewhere in the block. */
#ifndef FUSEC_EXPLAIN_CONFLICT_H
#define FUSEC_EXPLAIN_CONFLICT_H

#include "explain/advice.h"

typedef struct Conflict {
    uint32_t edge;   /* of the plan */
    uint32_t block;  /* index in graph->fixed_kernels plus 1, as graph_block returns it */
    ReasonId reason; /* why a block around the two ends alone cannot fuse the edge */
    NodeId folded;   /* a reduction from which a matmul's operand is computed; NODE_NONE: the edge
                      * is not to an operand of a matmul, or the operand needs no reduction */
    NodeId left;     /* the block is possible without this node and the nodes that depend on it;
                      * NODE_NONE: no node was found */
} Conflict;
typedef Vec(Conflict) VecConflict;

/* Finds the conflicts of all blocks that the plan breaks, by compiling graphs with smaller blocks.
 * A block has no conflict if the limit of compilations is reached, or if each of its edges can be
 * fused alone. */
VecConflict conflict_find(Arena *arena, const Plan *plan, AdvicePlanner *planner);

#endif
