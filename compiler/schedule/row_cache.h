/* Keeping values of a row between stages, on a CPU: instead of computing them again. */
#ifndef FUSEC_SCHEDULE_ROW_CACHE_H
#define FUSEC_SCHEDULE_ROW_CACHE_H

#include "plan/kernel.h"

/* Bytes of stack for what a row keeps: threads of a caller may have no more than 128 KiB. */

/* What the kernel should keep where the variant applies, which is cheaper in all than to compute it
 * in each stage that needs it. Lives on the arena. */
RowCache row_cache_choose(Arena *arena, const Kernel *kernel, const Variant *variant);

#endif
