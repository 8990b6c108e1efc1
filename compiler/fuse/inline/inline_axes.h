/* Which axes of a group's domain share a loop of its kernel. Adjacent axes are joined into one loop
 * if every index allows it. */
#ifndef FUSEC_FUSE_INLINE_INLINE_AXES_H
#define FUSEC_FUSE_INLINE_INLINE_AXES_H

#include "fuse/inline/inline.h"

typedef struct AxisPlan {
    uint8_t order[MAX_RANK]; /* the domain's axes, outermost loop first */
    bool joins[MAX_RANK];    /* loop `at` of the order is one with the next loop of its kind */
} AxisPlan;

/* Separate loops in the order of the domain, or in that of the first result that is not row-major
 * in memory: neighbours along the innermost parallel loop are then stored side by side. The axes of
 * matmuls have their places, as the points of a scan and of segments have. */
AxisPlan inline_order_axes(const InlineInput *input, const Group *group);
/* The next loop that is reduced, or parallel, as loop `at` is; MAX_RANK: there is none. */
uint32_t inline_next_of_kind(const Group *group, const AxisPlan *plan, uint32_t at);
/* Whether the domain has two axes of one kind. */
bool inline_may_join_axes(const Group *group);
/* Joins adjacent loops that every index of the kernel, whose loops are separate, treats as one.
 * With `has_cores` also loops of which guards hold in ranges: vectors of a CPU are split there. */
void inline_join_axes(const DimTab *dims, const Group *group, const Kernel *kernel, bool has_cores,
                      AxisPlan *plan);
/* Joins the batch axes of a matmul with m, even if some index has to divide. Returns false if the
 * rhs varies along a batch axis. */
bool inline_join_rows(const Group *group, const Kernel *kernel, AxisPlan *plan);

#endif
