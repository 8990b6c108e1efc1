/* Plain accesses: a kernel reads or writes a buffer at the row-major position of some of its axes.
 * Two kernels with plain accesses to one buffer meet at the same element. */
#ifndef FUSEC_PLAN_ACCESS_H
#define FUSEC_PLAN_ACCESS_H

#include "plan/plan.h"

/* Axes of a kernel, the innermost last. */
typedef struct AccessAxes {
    uint32_t n, of[MAX_RANK];
} AccessAxes;

/* The kernel's first `n` axes; no axes if `n` is more than MAX_RANK. */
AccessAxes access_first_axes(uint32_t n);
IndexId access_address(const Kernel *kernel, const AccessAxes *axes, const Buffer *buffer);
/* Whether every load of the buffer is a plain access without a guard. */
bool access_reads(const Plan *plan, const Kernel *kernel, const AccessAxes *axes, uint32_t buffer);

/* Whether kernel axes `axis` and `axis` + 1 can be joined into one loop: in every index the stride
 * of the outer axis equals the inner axis's stride times its extent. */
bool kernel_axes_join(const Kernel *kernel, uint32_t axis);

#endif
