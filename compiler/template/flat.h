/* Flat schedules of maps: a vector is the next elements in row-major order of all parallel axes,
 * across the ends of rows. Tensors in that order are accessed as vectors from any element on. All
 * other tensors are loaded element by element, which needs coordinates. */
#ifndef FUSEC_TEMPLATE_FLAT_H
#define FUSEC_TEMPLATE_FLAT_H

#include "plan/kernel.h"

/* Whether the index is the number of the element plus *offset, a dim: memory has the order of the
 * elements. */
bool flat_is_in_order(const Kernel *kernel, IndexId index, DimId *offset);
/* The axes (bit set) whose coordinates the elements of a map need. */
uint32_t flat_coordinates(Arena *arena, const Kernel *kernel);
/* The number of elements for which threads exist, a vector each. Elements that fill no vector have
 * a thread each too. */
DimId flat_room(const Kernel *kernel, uint32_t lanes);
/* Whether every element is in a whole vector. */
bool flat_is_whole(const Kernel *kernel, uint32_t lanes);

#endif
