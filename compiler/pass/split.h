/* Splitting long reductions over the machine. */
#ifndef FUSEC_SPLIT_H
#define FUSEC_SPLIT_H

#include "ir/kernel.h"

/* Appends `kernel` to the plan; as a partial kernel per level and a finishing kernel when its
 * reduction may be longer than a segment and needs a single pass. The order of summation is that of
 * ReduceOrder either way. Adds the partials' buffers. */
void split_kernel(Arena *arena, Plan *plan, Kernel kernel);

#endif
