/* What blocks of `mma.sync` products wait for, step by step of k. Copies of operands are several
 * steps ahead. What lies otherwise, or is computed, goes through registers one step ahead, so that
 * a block that has little to multiply waits for memory at each. */
#ifndef FUSEC_COST_KERNEL_MMA_H
#define FUSEC_COST_KERNEL_MMA_H

#include "plan/kernel.h"

/* Of one step, whatever it holds, in microseconds; 0: both operands are copied ahead. */
double cost_mma_fetch_step_us(Arena *arena, const Kernel *gemm, const Variant *variant);

#endif
