/* Splitting and joining axes of a map. Index propagation merges axes that are contiguous in the
 * stores into one loop. A load may divide that loop's index again, as a transpose before a reshape
 * that joins the last axes does. Then the two parts become axes of their own: on a GPU for tiles
 * (template/map_tile.h), on a CPU for lanes. Axes that some load does not walk evenly stay
 * apart; if the last one is a part of a vector, a CPU joins it with the one before. */
#ifndef FUSEC_SCHEDULE_SPLIT_AXES_H
#define FUSEC_SCHEDULE_SPLIT_AXES_H

#include "machine/target.h"
#include "plan/plan.h"

/* Splits axes of the map if it has no tiles without that, and has some afterwards. The results are
 * the same. */
void split_axes_for_tiles(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target);
/* Splits the last axis of the map if fewer accesses of its lanes are strided then. The results are
 * the same. */
void split_axes_for_lanes(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target);
/* Joins the last two axes of the map if the last one is shorter than a vector. Either it is a power
 * of two, and no access of the lanes is strided then; or the map gathers one element after the
 * other in any case, and all other accesses are contiguous then. The results are the same. */
void join_axes_for_lanes(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target);

#endif
