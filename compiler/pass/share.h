/* Sharing code: kernels that are structurally the same (of any graphs of a module) get one
 * function. Requires schedules. Sets Variant.symbol of later twins to the first one's and marks
 * them shared. */
#ifndef FUSEC_SHARE_H
#define FUSEC_SHARE_H

#include "ir/kernel.h"

void share_kernels(Arena *arena, const Plan *const *plans, uint32_t n_plans);

#endif
