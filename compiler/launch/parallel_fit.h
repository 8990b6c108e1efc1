/* Whether kernels can be one parallel launch, and the variants that they have then.
 *
 * They run in blocks of their own, so their programs, extents and epilogues may differ. A launch
 * has one block size, one size of cluster and one function, so its kernels agree in their form, a
 * GEMM's engine, and those two. Blocks that walk over tiles (wgmma) have one loop that multiplies
 * for all: there tiles, stages, the operands' dtype and how they lie in shared memory are the same.
 * A function takes as many registers and as much shared memory as the kernel that takes most;
 * whether that is worth it is the price's to say (launch/trial.c). */
#ifndef FUSEC_LAUNCH_PARALLEL_FIT_H
#define FUSEC_LAUNCH_PARALLEL_FIT_H

#include "launch/trial.h"

/* Whether a launch may have so many kernels: `n` and one more. REASON_NONE, or why not. */
ReasonId parallel_limits(const Kernel *kernels, uint32_t n, const Kernel *kernel);

/* Schedules kernel `n` of the array with the `n` before it, which are one launch already: gives all
 * of them variants that go together, one by one. REASON_NONE, or why they cannot; then the kernels
 * are of no more use. Symbols live on the arena. */
ReasonId parallel_add(const Composer *c, const Plan *plan, Kernel *kernels, uint32_t n);

#endif
