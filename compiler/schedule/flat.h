/* Flat schedules of maps (template/flat.h): which maps they are for. */
#ifndef FUSEC_SCHEDULE_FLAT_H
#define FUSEC_SCHEDULE_FLAT_H

#include "plan/kernel.h"

/* What vectors over a map's elements in order would access. */
typedef struct FlatUse {
    bool may;           /* it can be scheduled so, and is not worse for it */
    bool has_others;    /* loads that are made element by element */
    uint64_t wide_args; /* bit set over Kernel.args: whose vectors are aligned if the tensor is */
} FlatUse;
FlatUse sched_flat_use(Arena *arena, const Kernel *kernel, uint32_t lanes);
/* Blocks of a map. */
DimId sched_map_grid(const Kernel *kernel, const Sched *sched);

#endif
