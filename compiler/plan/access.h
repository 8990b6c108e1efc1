/* Plain accesses: those of a buffer by some axes of a kernel in order, as its elements lie. Two
 * kernels that access one so meet at the same place of it. */
#ifndef FUSEC_PLAN_ACCESS_H
#define FUSEC_PLAN_ACCESS_H

#include "plan/plan.h"

/* Axes of a kernel, the innermost last. */
typedef struct AccessAxes {
    uint32_t n, of[MAX_RANK];
} AccessAxes;

/* The kernel's first `n`; none where they are more than MAX_RANK. */
AccessAxes access_first_axes(uint32_t n);
IndexId access_address(const Kernel *kernel, const AccessAxes *axes, const Buffer *buffer);
/* Whether every load of the buffer is such, and where no guard is. */
bool access_reads(const Plan *plan, const Kernel *kernel, const AccessAxes *axes, uint32_t buffer);

/* Whether kernel axes `axis` and `axis` + 1 can be one loop: everywhere the outer steps by the
 * inner's step times its extent. */
bool kernel_axes_join(const Kernel *kernel, uint32_t axis);

#endif
