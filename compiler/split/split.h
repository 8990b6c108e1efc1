/* Splits kernels with long reductions or a long k into a partial kernel, which occupies the whole
 * machine, and a finishing kernel (split_reduce.h, split_k.h). */
#ifndef FUSEC_SPLIT_SPLIT_H
#define FUSEC_SPLIT_SPLIT_H

#include "pipeline/pipeline.h"

/* Takes a fused plan whose kernels know their arguments. */
void split_plan(Arena *arena, Plan *plan);

bool split_pass(const Planning *p, PlanUnit *unit);

#endif
