/* Plain accesses: a kernel reads or writes a buffer at the row-major position of some of its axes.
 * Two kernels with plain accesses to one buffer meet at the same element. */
#ifndef FUSEC_PLAN_ACCESS_H
#define FUSEC_PLAN_ACCESS_H

#include "plan/plan.h"

enum { MAX_ACCESS_AXES = 8 };
/* Axes of a kernel, the innermost last. */
typedef struct AccessAxes {
    uint32_t n, of[MAX_ACCESS_AXES];
} AccessAxes;

/* The kernel's first `n` axes; no axes if `n` is more than MAX_ACCESS_AXES. */
AccessAxes access_first_axes(uint32_t n);
IndexId access_address(const Kernel *kernel, const AccessAxes *axes, const Buffer *buffer);
/* Whether every load of the buffer is a plain access without a guard. */
bool access_reads(const Plan *plan, const Kernel *kernel, const AccessAxes *axes, uint32_t buffer);

/* Whether two axes of a kernel, between which there are only axes of one element, can be joined
 * into one loop: in every index the stride of the outer axis equals the inner axis's stride times
 * its extent. `in_ranges`: a guard may instead hold in a range of the outer axis, which becomes a
 * range of the loop. */
bool kernel_axes_join(const Kernel *kernel, uint32_t outer, uint32_t inner, bool in_ranges);

/* The length of the runs of `axis`, which begin at its multiples: within a run each load that the
 * value needs is contiguous or the same, and each guard holds for all elements or for none. Of
 * im2col they are the channels of a pixel. If only shorter runs than `least` have the latter,
 * guards do not count. 0: there are no runs as long as `least`. */
uint32_t kernel_run(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                    uint32_t least);
/* The length of the runs of `axis` in which all that is stored per output lies side by side, and
 * each load of it too, or is the same. INDEX_ANY_START: the axis is one run. 0: there are none. */
uint32_t kernel_store_run(Arena *arena, const Kernel *kernel, uint32_t axis);
/* Outputs that lie between each other: neighbours along one axis are `n` elements apart in runs, as
 * those of kernel_store_run, and those of `other` that are `apart` away lie in the gaps: c, c +
 * apart, .. where c / apart % n is 0. */
typedef struct StoreWeave {
    uint32_t n, apart, run;
} StoreWeave;
enum { STORE_WEAVE_MOST = 4 };
/* Finds how the kernel's one store per output is woven; false: it is not. */
bool kernel_store_weave(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t other,
                        StoreWeave *weave);
/* Whether each load that the value needs is contiguous or the same for `lanes` neighbours along
 * `axis` that begin at a multiple of the lanes. */
bool kernel_is_smooth(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      uint32_t lanes);

/* Tells of each scalar whether `lanes` neighbours along `axis`, from a multiple of the lanes on,
 * share its value. */
const bool *kernel_shared_scalars(Arena *arena, const Kernel *kernel, uint32_t axis,
                                  uint32_t lanes);

/* Whether each condition of the guard holds for all of these neighbours or for none. */
bool kernel_guard_is_shared(const Kernel *kernel, GuardId guard, uint32_t axis, uint32_t lanes);

/* The range [lo, hi) of the axis in which the guard's first condition holds whatever the other axes
 * are; false: it is not known. */
bool kernel_guard_holds_in(const Kernel *kernel, Guard guard, uint32_t axis, int64_t *lo,
                           int64_t *hi);
/* Whether each condition of the kernel's guards that the axis moves holds on the whole axis if it
 * holds at both ends of it, alike for all lanes; false too if the axis moves none. */
bool kernel_guards_have_ends(Arena *arena, const Kernel *kernel, const Sched *sched, uint32_t axis);

/* Whether each load that the value needs is at equal distances along `axis`. */
bool kernel_is_strided(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis);

#endif
