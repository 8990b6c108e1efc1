/* Taking turns: kernels so small that starting each takes longer than its work become one launch of
 * one block (LAUNCH_ONE_BLOCK). What passes between them stays in shared memory, and what they read
 * is copied there as the block begins, for all of them at once. The price decides, beside launches
 * of their own and of parts, unless a `fuse must` block cannot be kept otherwise. It changes no
 * bit. For GPUs; requires schedules; before kernels are chained and launches joined.
 *
 * Only kernels whose extents are all known take part: a launch has as many turns for every size. */
#ifndef FUSEC_LAUNCH_ONE_BLOCK_H
#define FUSEC_LAUNCH_ONE_BLOCK_H

#include "machine/target.h"
#include "plan/plan.h"

void one_block_kernels(Arena *arena, Arena *scratch, Plan *plan, const Target *target);

#endif
