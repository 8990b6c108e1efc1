/* Splitting long reductions over the machine. One kernel reduces segments of rows or columns to
 * partials and does the stores per element; a second kernel reduces the partials. The order of
 * summation is that of ReduceOrder in both cases. */
#ifndef FUSEC_SPLIT_SPLIT_REDUCE_H
#define FUSEC_SPLIT_SPLIT_REDUCE_H

#include "plan/plan.h"

/* The reason why a reduction over at most `rows` rows (or columns) of at most `length` elements is
 * split at any price, so that no kernel can use its results at every element. One kernel would
 * leave most of the machine idle, or would have to sum partials in more than two levels.
 * REASON_NONE if it need not be split. */
ReasonId split_need(KernelForm form, double rows, double length);

/* Whether the kernel's reductions need a single pass, may be longer than a segment, and are not
 * split yet. */
bool split_may(const Plan *plan, const Kernel *kernel);

/* Appends `kernel` to the plan as two kernels if it may be split and either needs to be or stores
 * only its results. Returns false and changes nothing if it stays one kernel. A kernel that also
 * stores elements may be faster as one kernel; split/dispatch_rows.h decides by price. */
bool split_kernel(Arena *arena, Plan *plan, const Kernel *kernel);
/* Appends the kernel as two: the one that makes partials, whose buffers are added, and the one that
 * reduces any number of partials. The kernel must satisfy split_may. */
void split_in_two(Arena *arena, Plan *plan, Kernel kernel);

#endif
