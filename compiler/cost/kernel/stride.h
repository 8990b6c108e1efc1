/* Lanes whose elements do not lie side by side: how far apart they are, and what a CPU takes for
 * that. */
#ifndef FUSEC_COST_KERNEL_STRIDE_H
#define FUSEC_COST_KERNEL_STRIDE_H

#include "cost/kernel/pricing.h"

/* Elements that the address moves when the axis goes on by one; remainders count, quotients stand
 * still. */
double cost_axis_stride(const Coster *c, const Kernel *kernel, IndexId address, uint32_t axis);

/* CPU: prims of all that the kernel reads and stores lane by lane, in every pass over its rows;
 * else 0, and of GEMMs, which pack what they read. `live`: per stage, and of the stores
 * after the last, what it has. */
double cost_stride_prims(const Coster *c, const Pricing *p, bool *const *live);

#endif
