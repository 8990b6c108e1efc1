/* Storing in place: where a kernel may put what it makes into the memory of a temp that it reads.
 *
 * Each element must be read by nothing but what computes the element that takes its place, and
 * before that is stored: loads at the very index of the store. A map and a matmul's epilogue visit
 * each element once, so it is enough that the stored value is made of the load.
 *
 * Kernels over rows and columns visit each element once in every stage, at one point of the loops,
 * where those have as many points as there are elements. Then
 *   - a load at the store's index reads, in each stage, the element that this very point stores in
 *     the store's stage: no other row, block or thread comes for it;
 *   - stages before that one have read it by then. A stage begins when the reductions of the one
 *     before are complete, over the threads of the row, its segments and the blocks of its cluster,
 *     and a point is the same thread's in all stages anyway;
 *   - in the store's stage a point loads what the stored value is made of before it stores, and
 *     points that are in flight with it, in lanes, unrolled or ahead, are other elements;
 *   - later stages and the row's own stores must not read it.
 * Teams without a row repeat the last one and store nothing: they may see either value, which is
 * why nothing may be gathered. Partial sums, several pieces and guarded stores stay apart; so does
 * a launch of several kernels (memory/memplan.c), of which another may read what is taken. Launches
 * that overlap change nothing: a kernel reads and writes when all before it have ended. */
#ifndef FUSEC_PLAN_IN_PLACE_H
#define FUSEC_PLAN_IN_PLACE_H

#include "plan/plan.h"

/* Whether the store may go over buffer `taken`, if nothing needs that any more after the kernel.
 * What it takes on the arena it gives back. */
bool in_place_may(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t taken,
                  const Store *store);
/* Whether some store of the kernel may: the kernel's code takes it for memory that changes. */
bool in_place_may_any(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t taken);

#endif
