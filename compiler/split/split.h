/* Splitting: kernels whose reductions or products are long become a partial kernel, over the whole
 * machine, and a finishing one (split_reduce.h, split_k.h). */
#ifndef FUSEC_SPLIT_SPLIT_H
#define FUSEC_SPLIT_SPLIT_H

#include "pipeline/pipeline.h"

/* Of a fused plan. Kernels know their arguments then. */
void split_plan(Arena *arena, Plan *plan);

bool split_pass(const Planning *p, PlanUnit *unit);

#endif
