/* Schedules of maps in tiles (template/map_tile.h), for maps with uncoalesced loads. */
#ifndef FUSEC_SCHEDULE_MAP_TILE_H
#define FUSEC_SCHEDULE_MAP_TILE_H

#include "machine/target.h"
#include "plan/plan.h"

enum { MAP_TILE_VARIANTS = 2 };

/* Fills `variants` in order of preference and returns their number; 0: the kernel gets no tiles.
 * `base` has the fields common to all variants. If extents may be too small to fill tiles, every
 * variant has a condition, and other variants must follow. */
uint32_t sched_map_tiles(Arena *arena, const Plan *plan, const Kernel *kernel, const Target *target,
                         const Variant *base, Variant *variants);

#endif
