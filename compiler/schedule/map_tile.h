/* Schedules of maps in tiles (template/map_tile.h): for those with loads against the grain of what
 * they store. */
#ifndef FUSEC_SCHEDULE_MAP_TILE_H
#define FUSEC_SCHEDULE_MAP_TILE_H

#include "machine/target.h"
#include "plan/plan.h"

enum { MAP_TILE_VARIANTS = 2 };

/* Fills `variants`, in order of preference, from `base`, which has what all of the kernel's
 * variants have in common, and returns how many they are; 0: the kernel is none for tiles. Where
 * extents may be too small to fill them, all have a condition that others must follow. */
uint32_t sched_map_tiles(Arena *arena, const Plan *plan, const Kernel *kernel, const Target *target,
                         const Variant *base, Variant *variants);

#endif
