/* Culprits: of the edges that a broken `fuse must` block wants, those that cannot be had together
 * with what is fused without the block. Which edges are stored in the attempt to keep the block
 * says little: to take a matmul's operand into its kernel may break a softmax in two. */
#ifndef FUSEC_EXPLAIN_CONFLICT_H
#define FUSEC_EXPLAIN_CONFLICT_H

#include "explain/advice.h"

typedef struct Conflict {
    uint32_t edge;   /* of the plan */
    uint32_t block;  /* plus 1, as graph_block counts */
    ReasonId reason; /* what is in the way where the two ends are tried alone */
    NodeId folded;   /* the reduction that an operand of a matmul rests on; NODE_NONE: it is no such
                      * edge */
    NodeId left; /* without whom, and what rests on it, the block can be had; NODE_NONE: that was
                  * not found */
} Conflict;
typedef Vec(Conflict) VecConflict;

/* Of all blocks that the plan breaks, by compiling graphs with less in the block. A block may have
 * none, if no more is compiled or every edge can be had by itself. */
VecConflict conflict_find(Arena *arena, const Plan *plan, AdvicePlanner *planner);

#endif
