/* Schedules for kernels of one-block launches (LAUNCH_ONE_BLOCK): the launch's number of threads,
 * and as few blocks as possible, because they run one after the other. */
#ifndef FUSEC_SCHEDULE_ONE_BLOCK_H
#define FUSEC_SCHEDULE_ONE_BLOCK_H

#include "plan/kernel.h"

/* Adapts a kernel's own variant to a block of `threads`, a multiple of 128. No bit changes, because
 * the engine stays. False: the kernel has no schedule for such a block. */
bool sched_one_block(const Kernel *kernel, uint32_t threads, Variant *variant);

#endif
