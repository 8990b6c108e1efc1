/* Splitting long reductions and products over the machine. */
#ifndef FUSEC_SPLIT_H
#define FUSEC_SPLIT_H

#include "ir/kernel.h"

/* Appends `kernel` to the plan; as a partial kernel and a finishing one when its reduction may be
 * longer than a segment and needs a single pass. The finishing kernel goes over the partials by
 * itself, however many there are: the order of summation is that of ReduceOrder either way. Adds
 * the partials' buffers. */
void split_kernel(Arena *arena, Plan *plan, Kernel kernel);

/* Adds a buffer of partials of this reduction. */
uint32_t split_add_partials(Arena *arena, Plan *plan, NodeId node, Dtype dtype, DimId outer,
                            DimId inner);

#endif
