/* Maps in tiles on a CPU: the facts on which schedule, cost and code agree.
 *
 * The stores of a map lie along the lane axis, `out`. Lanes of a load that lies along another axis,
 * `in`, are in a cache line each. So values that need such loads, and no load that lies along
 * `out`, are computed in vectors along `in`. A tile of them is turned: the rest of the map reads it
 * in vectors along `out`. */
#ifndef FUSEC_TEMPLATE_CPU_MAP_TILE_H
#define FUSEC_TEMPLATE_CPU_MAP_TILE_H

#include "plan/kernel.h"

enum { CPU_MAP_TILE_MOST_TURNED = 4 };

/* The values that are turned, and the loads that they need. */
typedef struct CpuMapTurned {
    ScalarId ids[CPU_MAP_TILE_MOST_TURNED];
    uint32_t n;        /* 0: none, or too many */
    const bool *under; /* per ScalarId: only turned values need it, or it is one */
} CpuMapTurned;
CpuMapTurned cpu_map_turned(Arena *arena, const Kernel *kernel, uint32_t in, uint32_t out,
                            uint32_t lanes);
/* Those of a schedule; n 0 if its template turns none. */
CpuMapTurned cpu_map_tile_turned(Arena *arena, const Kernel *kernel, const Sched *sched);

#endif
