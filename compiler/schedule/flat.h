/* Which maps get flat schedules (template/flat.h). */
#ifndef FUSEC_SCHEDULE_FLAT_H
#define FUSEC_SCHEDULE_FLAT_H

#include "plan/kernel.h"

/* The accesses of a map with vectors in the order of its elements. */
typedef struct FlatUse {
    bool may;           /* it can be flat, and is not slower for it */
    bool has_others;    /* some loads go element by element */
    uint64_t wide_args; /* bit set of Kernel.args whose vectors are aligned if the tensor is */
} FlatUse;
FlatUse sched_flat_use(Arena *arena, const Kernel *kernel, uint32_t lanes);
/* The blocks of a map. */
DimId sched_map_grid(const Kernel *kernel, const Sched *sched);

#endif
