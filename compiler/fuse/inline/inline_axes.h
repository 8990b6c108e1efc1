/* Which axes of a group's domain share a loop of its kernel. Adjacent axes are joined into one loop
 * if every index allows it. */
#ifndef FUSEC_FUSE_INLINE_INLINE_AXES_H
#define FUSEC_FUSE_INLINE_INLINE_AXES_H

#include "fuse/inline/inline.h"

typedef struct AxisPlan {
    bool joins[MAX_RANK]; /* domain axis d shares a loop with the next axis of its kind */
} AxisPlan;

/* The next axis that is reduced, or parallel, as axis `d` is; MAX_RANK: there is none. */
uint32_t inline_next_of_kind(const Group *group, uint32_t d);
/* Whether the domain has two axes of one kind. */
bool inline_may_join_axes(const Group *group);
/* Which adjacent axes every index of the kernel, whose axes are separate, treats as one. With
 * `has_cores` also those of which guards hold in ranges: vectors of a CPU are split there. */
AxisPlan inline_plan_axes(const DimTab *dims, const Group *group, const Kernel *kernel,
                          bool has_cores);
/* Joins the batch axes of a matmul with m, even if some index has to divide. Returns false if the
 * rhs varies along a batch axis. */
bool inline_join_rows(const Group *group, const Kernel *kernel, AxisPlan *plan);

#endif
