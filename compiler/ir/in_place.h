/* Storing in place: where a kernel may put what it makes into the memory of a temp that it reads.
 *
 * Each element must be read by nothing but what computes the element that takes its place, and
 * before that is stored: loads at the very index of the store, which the stored value is made of. A
 * map and a matmul's epilogue visit each element once, so that is enough for them. Kernels that go
 * over rows or columns several times, or whose blocks share what they read, are not among them:
 * there another thread may still come for an element. */
#ifndef FUSEC_IN_PLACE_H
#define FUSEC_IN_PLACE_H

#include "ir/kernel.h"

/* Whether the store may go over buffer `taken`, if nothing needs that any more after the kernel.
 * What it takes on the arena it gives back. */
bool in_place_may(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t taken,
                  const Store *store);
/* Whether some store of the kernel may: the kernel's code takes it for memory that changes. */
bool in_place_may_any(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t taken);

#endif
