/* Whether kernels can share a parallel launch, and their variants then.
 *
 * Each kernel runs in its own blocks, so programs, extents and epilogues may differ. A launch has
 * one block size, one cluster size and one function. So its kernels must have the same form (and
 * engine, if GEMMs), block size and cluster size. Persistent blocks (wgmma) have one loop that
 * multiplies for all kernels; it requires equal tiles, stages, operand dtypes and layouts in shared
 * memory. A function needs as many registers and as much shared memory as its costliest kernel; the
 * price decides whether that pays (launch/trial.c). */
#ifndef FUSEC_LAUNCH_PARALLEL_FIT_H
#define FUSEC_LAUNCH_PARALLEL_FIT_H

#include "launch/trial.h"

/* Whether a launch may have `n` kernels and `kernel`. Returns REASON_NONE or why not. */
ReasonId parallel_limits(const Kernel *kernels, uint32_t n, const Kernel *kernel);

/* Schedules kernel `n` of the array together with the `n` before it, which are one launch already:
 * gives all of them matching variants, one by one. Returns REASON_NONE, or why that is impossible;
 * then the kernels must be discarded. Symbols are allocated in the arena. */
ReasonId parallel_add(const Composer *c, const Plan *plan, Kernel *kernels, uint32_t n);

#endif
