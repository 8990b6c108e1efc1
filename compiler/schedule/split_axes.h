/* Axes of a map taken apart. Composition walks axes that lie one behind the other in what is stored
 * as one loop. Where a load takes the number of that loop apart again (a transpose behind which a
 * reshape joins the last axes), the two are axes of their own for tiles (template/map_tile.h). */
#ifndef FUSEC_SCHEDULE_SPLIT_AXES_H
#define FUSEC_SCHEDULE_SPLIT_AXES_H

#include "machine/target.h"
#include "plan/plan.h"

/* Takes axes of the map apart where it has no tiles as it is, and has some then. It computes the
 * same. */
void split_axes_for_tiles(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target);

#endif
