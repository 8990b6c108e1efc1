/* In-place stores: when a kernel may store a temporary into the memory of another temporary that it
 * reads.
 *
 * Each element may be read only to compute the element that replaces it, and before that is stored:
 * all loads have exactly the store's index. A map and a matmul's epilogue visit each element once,
 * so it suffices that the stored value is computed from the load.
 *
 * Kernels over rows and columns visit each element once per stage, at one point of the loops, if
 * the loops have as many points as the buffer has elements. Then
 *   - a load at the store's index reads, in each stage, the element that the same point stores in
 *     the store's stage: no other row, block or thread reads it;
 *   - earlier stages have read it by then: a stage begins after the reductions of the stage
 *   before
 *     it are complete, over the threads of the row, its segments and the blocks of its cluster,
 *     and
 *     a point belongs to the same thread in all stages;
 *   - in the store's stage a point loads the inputs of the stored value before it stores, and
 *   points
 *     in flight at the same time (lanes, unrolled or prefetched points) are other elements;
 *   - later stages and the row's own stores must not read the buffer. Thread groups without a row
 *   repeat the last row and store nothing. They may see either value, so nothing may be gathered.
 *   Partial sums, concats in place and guarded stores are excluded, and so are updates, whose
 *   buffer has another value when the kernel starts, and launches of
 *   several kernels (memory/memplan.c), because another kernel may read the buffer. Launches that
 *   overlap change nothing: a kernel reads and writes after all kernels before it have ended. */
#ifndef FUSEC_PLAN_IN_PLACE_H
#define FUSEC_PLAN_IN_PLACE_H

#include "plan/plan.h"

/* Whether the store may overwrite buffer `taken`, provided that nothing after the kernel needs
 * `taken`. Memory taken from the arena is released. */
bool in_place_may(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t taken,
                  const Store *store);
/* Per argument: whether any store of the kernel may overwrite it. If so, the kernel's code treats
 * the argument as memory that changes. */
bool *in_place_find(Arena *arena, const Plan *plan, const Kernel *kernel);

#endif
