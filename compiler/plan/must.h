/* `fuse must` blocks: the one place that says what they demand. Within a block, no value goes from
 * one launch to another through global memory. A value that an init kernel prepares counts as a
 * param and breaks no block. A block overrides prices, and rules that only save time. One rule
 * changes bits: a matmul in a block with another reduction is one segment of k
 * (graph_segment_elems), so the order of its sum follows from the source, not from the plan. Every
 * pass that gives way to a block asks one of these functions:
 *
 *   asks                who                                   and then
 *   must_shares_any     fuse/group.c (is_insisted)            a root joins a group at any price
 *                       fuse/group_merge.c (is_wanted_in)     it prefers no other group
 *   must_shares         fuse/group_merge.c (is_unwanted)      groups merge, though a directive
 *                                                             forbids it
 *                       fuse/group.c, fuse/inline/inline.c           a reader recomputes a stored
 * value (directive MUST_HOLD) search/region.c (breaks_block)        search does not cut there
 *   must_block          fuse/group.c (place_root)             the work of a kernel has no limit
 *                       fuse/group_store.c (last_sink)        values sink only inside their block
 *                       search/region.c (may_place)           search tries no concat in place
 *                       search/search.c (n_broken)            the plan with more kernels per block
 *                                                             loses
 *   must_shares         fuse/group_limits.c                   it is cut between blocks, not inside
 *   must_has_readers    fuse/group_store.c (must_fuse)        no price has the value stored
 *   must_has_kernel     split/dispatch_rows.c,                the kernel stays whole
 *                       layout/pack_dynamic.c,
 *                       search/unfused_guard.c
 *   must_passes         launch/trial.c, for sequence.c and    the launch is made at any price
 *                       gemm_rows_gemm.c
 *   must_spans          launch/parallel.c                     the same
 *   must_n_broken       launch/trial.c, launch/compose.c,     one block is made, at any price, for
 *                       launch/one_block.c                    what the other modes leave broken
 *   must_block,         launch/compose.c (find_hull,          the same: which kernels it takes
 *   must_breaks         keep_blocks)
 *   must_n_broken       search/search.c                       the plan that breaks more loses
 *   must_block,         search/must_blocks.c                  directives that keep the blocks
 *   must_shares,
 *   must_leaves,
 *   must_breaks,
 *   must_n_broken,
 *   must_broken_blocks
 *   must_block,         explain/must_check.c                  the error
 *   must_breaks
 *   must_block,         explain/conflict.c                    which edge of the block is to blame
 *   must_forbids,
 *   must_breaks,
 *   must_n_broken,
 *   must_broken_blocks
 *   must_block          explain/advice_block.c                advice keeps whole blocks
 *   must_breaks,        explain/advice.c                      which change helps
 *   must_n_broken
 *   must_block,         explain/advice_launch.c               no launch that breaks more; the price
 *   must_n_broken                                             of each block */
#ifndef FUSEC_PLAN_MUST_H
#define FUSEC_PLAN_MUST_H

#include "plan/launch.h"

/* Blocks of the graph. */

/* The block that contains the node, plus 1; or 0. */
static inline uint32_t must_block(const Graph *graph, NodeId id) {
    return graph_block(graph, id, BLOCK_MUST);
}
/* Whether one block contains both nodes. */
bool must_shares(const Graph *graph, NodeId a, NodeId b);
/* Whether the node's block contains one of `n` others that is not the node itself. */
bool must_shares_any(const Graph *graph, NodeId id, const NodeId *others, uint32_t n);
/* Whether a node outside the value's block reads it. `users`: per node. */
bool must_leaves(const Graph *graph, const VecU32 *users, NodeId id);
/* Whether a block contains the value and all of its readers, of which there are some. */
bool must_has_readers(const Graph *graph, const VecU32 *users, NodeId id);

/* Kernels and launches. */

/* Whether a block contains a node of the kernel. */
bool must_has_kernel(const Graph *graph, const Kernel *kernel);
/* Whether a block contains a value that the launch stores, and a user of it in `reader`. */
bool must_passes(const Plan *plan, const Launch *launch, const Kernel *reader);
/* Whether a block has values of both launches that the other launch does not compute. */
bool must_spans(const Plan *plan, const Launch *a, const Launch *b);

/* Edges. */

/* Whether a block forbids such an edge between its nodes: the value is stored. */
bool must_forbids(const Edge *edge);
/* Whether the edge lies inside a block and its value is stored. */
bool must_breaks(const Plan *plan, const Edge *edge);
/* The number of edges inside blocks that the plan stores. Joining launches may reduce it later. */
uint32_t must_n_broken(const Plan *plan);
/* Per block, from 1 on: whether such an edge lies inside it. */
bool *must_broken_blocks(Arena *arena, const Plan *plan);

#endif
