/* Axes of a map taken apart. Composition walks axes that lie one behind the other in what is stored
 * as one loop. Where a load takes the number of that loop apart again (a transpose behind which a
 * reshape joins the last axes), the two are axes of their own for tiles (ir/map_tile.h). */
#ifndef FUSEC_UNJOIN_H
#define FUSEC_UNJOIN_H

#include "ir/kernel.h"
#include "ir/target.h"

/* Takes axes of the map apart where it has no tiles as it is, and has some then. It computes the
 * same. */
void unjoin_for_tiles(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target);

#endif
