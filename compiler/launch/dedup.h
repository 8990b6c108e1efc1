/* Sharing code between kernels that are structurally the same, of any graphs of a module. Requires
 * schedules. */
#ifndef FUSEC_LAUNCH_DEDUP_H
#define FUSEC_LAUNCH_DEDUP_H

#include "pipeline/pipeline.h"

/* Sets Kernel.code: equal numbers for kernels that are structurally the same. */
void dedup_classify(Arena *arena, const Plan *const *plans, uint32_t n_plans);
/* Gives launches of the same codes one function: sets Variant.symbol of the later ones to the first
 * one's and marks them shared. Requires composed
 * launches. */
void dedup_functions(Arena *arena, const Plan *const *plans, uint32_t n_plans);

bool dedup_pass(const Planning *p);

#endif
