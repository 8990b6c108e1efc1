/* Parts of one launch: whether kernels can be that, and the variants that they have then.
 *
 * Parts run in blocks of their own, so their programs, extents and epilogues are their own
 * business. A launch has one block size, one size of cluster and one function, so parts agree in
 * their form, a GEMM's engine, and those two. Blocks that walk over tiles (wgmma) have one
 * loop that multiplies for all: there tiles, stages, the operands' dtype and how they lie in shared
 * memory are the same. A function takes as many registers and as much shared memory as the part
 * that takes most; whether that is worth it is the price's to say (launch/parallel.c). */
#ifndef FUSEC_LAUNCH_PARALLEL_FIT_H
#define FUSEC_LAUNCH_PARALLEL_FIT_H

#include "machine/target.h"
#include "plan/plan.h"

/* Whether a launch may have so many kernels: `parts` and one more. REASON_NONE, or why not. */
ReasonId parallel_limits(const Kernel *parts, uint32_t n_parts, const Kernel *kernel);

/* Makes kernel `n` of the array a part beside the `n` before it, which are parts of one launch
 * already: gives all of them variants that go together, one by one. Returns REASON_NONE, or why
 * they cannot; then the kernels are to be thrown away. Symbols live on the arena. */
ReasonId parallel_add(Arena *arena, const Plan *plan, Kernel *kernels, uint32_t n,
                      const Target *target);
/* Whether the blocks of so many parts together are a dim. */
bool parallel_grids_add_up(const Plan *plan, const Kernel *kernels, uint32_t n);

#endif
