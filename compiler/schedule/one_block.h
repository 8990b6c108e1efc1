/* Schedules for kernels that are turns of one block (LAUNCH_ONE_BLOCK): as many threads as the
 * launch has, and no more blocks than needed, since they come one after the other. */
#ifndef FUSEC_SCHEDULE_ONE_BLOCK_H
#define FUSEC_SCHEDULE_ONE_BLOCK_H

#include "plan/kernel.h"

/* Makes a kernel's own variant one for a block of `threads`, a multiple of 128. It changes no bit:
 * the engine stays. False: the kernel has no schedule for such a block. */
bool sched_one_block(const Kernel *kernel, uint32_t threads, Variant *variant);

#endif
