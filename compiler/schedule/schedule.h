/* Scheduling: gives every kernel of a plan its variants (numbers only) for a target. It needs a
 * fused plan, limits of the target and ranges of dims. */
#ifndef FUSEC_SCHEDULE_SCHEDULE_H
#define FUSEC_SCHEDULE_SCHEDULE_H

#include "pipeline/pipeline.h"
#include "schedule/gemm.h"

/* Each kernel is a launch of its own afterwards. */
void sched_plan(Arena *arena, Plan *plan, const Target *target);
/* Gives one kernel of the plan its variants. */
void sched_kernel(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target);
/* Schedules a GEMM of a launch again. The variants are on the scratch arena, the data they refer to
 * on the other. */
void sched_in_launch(Arena *arena, Arena *scratch, const Plan *plan, Kernel *kernel,
                     GemmLaunch launch, const Target *target);

/* Adapts a kernel's own variant to a block of `threads`, a multiple of 128. No bit changes, because
 * the engine stays. False: the kernel has no schedule for such a block. */
bool sched_one_block(const Kernel *kernel, uint32_t threads, Variant *variant);

bool schedule_pass(const Planning *p, PlanUnit *unit);

#endif
