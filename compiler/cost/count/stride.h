/* Strided accesses: the stride between lanes, and their cost on a CPU. */
#ifndef FUSEC_COST_COUNT_STRIDE_H
#define FUSEC_COST_COUNT_STRIDE_H

#include "cost/pricing.h"

/* The change of the address, in elements, when the axis increases by one. Remainders count;
 * quotients count as constant. */
double cost_axis_stride(const Coster *c, const Kernel *kernel, IndexId address, uint32_t axis);

/* CPU: which scalars the lanes of a vector share (kernel_shared_scalars); NULL if there are no
 * lanes. */
const bool *cost_shared_scalars(const Coster *c, const Pricing *p);

/* CPU: primitives of all strided loads and stores in every pass over the rows; else 0, and 0 for
 * GEMMs, which pack their operands. `live`: per stage, and for the final stores, the scalars that
 * it needs. */
double cost_stride_prims(const Coster *c, const Pricing *p, bool *const *live);

#endif
