/* Flat schedules of maps (Sched.is_flat): a vector is the next elements in row-major order of all
 * parallel axes, wherever rows end. What lies in memory in that order is accessed as vectors, from
 * any element on; everything else is loaded element by element, and needs coordinates. */
#ifndef FUSEC_TEMPLATE_FLAT_H
#define FUSEC_TEMPLATE_FLAT_H

#include "plan/kernel.h"

/* Whether the index goes through memory as the elements follow one another: it is the element's
 * number plus *offset, a dim. */
bool flat_is_in_order(const Kernel *kernel, IndexId index, DimId *offset);
/* The axes (bit set) whose coordinates the elements of a map need. */
uint32_t flat_coordinates(Arena *arena, const Kernel *kernel);
/* Elements that its threads have room for, a vector each: those that fill no vector have a thread
 * each, too. */
DimId flat_room(const Kernel *kernel, uint32_t lanes);
/* Whether every element is in some vector. */
bool flat_is_whole(const Kernel *kernel, uint32_t lanes);

#endif
