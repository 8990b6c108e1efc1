/* Caching values of a row between stages on a CPU, instead of recomputing them. */
#ifndef FUSEC_SCHEDULE_ROW_CACHE_H
#define FUSEC_SCHEDULE_ROW_CACHE_H

#include "plan/kernel.h"

/* The cache is on the stack (FRT_MAX_KERNEL_STACK_BYTES). */

/* The values that the kernel should cache where the variant applies: those whose caching costs less
 * than recomputing them in each stage. The result is on the arena. */
RowCache row_cache_choose(Arena *arena, const Kernel *kernel, const Variant *variant);

#endif
