/* Splitting long reductions and products over the machine: segments of rows or columns are reduced
 * to partials by one kernel, which stores what else is stored of their elements as it goes over
 * them, and these by another. The order of summation is that of ReduceOrder either way. */
#ifndef FUSEC_SPLIT_SPLIT_REDUCE_H
#define FUSEC_SPLIT_SPLIT_REDUCE_H

#include "plan/plan.h"

/* Why reductions over `rows` rows, or columns, of `length` elements, each at most, are split
 * whatever that costs, so that no kernel can use their results at every element: one kernel for all
 * would leave most of the machine idle, or would have partials of partials of partials to sum.
 * REASON_NONE: they need not be. */
ReasonId split_need(KernelForm form, double rows, double length);

/* Whether its reductions need a single pass, may be longer than a segment and are whole. */
bool split_may(const Plan *plan, const Kernel *kernel);

/* Appends `kernel` to the plan in two if it may be split, and needs to be or stores nothing but its
 * results. False: it is to stay one, and nothing has changed. What stores elements too can be one
 * kernel at less cost (split/dispatch_rows.h). */
bool split_kernel(Arena *arena, Plan *plan, const Kernel *kernel);
/* Appends it in two: the one that makes partials, whose buffers are added, and the one that goes
 * over them by itself, however many there are. It may be split. */
void split_in_two(Arena *arena, Plan *plan, Kernel kernel);

#endif
