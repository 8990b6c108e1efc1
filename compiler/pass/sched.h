/* Scheduling: gives every kernel of a plan its variants (numbers only) for a target.
 * Requires a fused plan; reads limits of the target and ranges of dims. */
#ifndef FUSEC_SCHED_H
#define FUSEC_SCHED_H

#include "ir/target.h"

void sched_plan(Arena *arena, Plan *plan, const Target *target);

#endif
