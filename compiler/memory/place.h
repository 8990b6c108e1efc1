/* Packing: where pieces of memory, each needed for some launches, lie in one workspace. */
#ifndef FUSEC_MEMORY_PLACE_H
#define FUSEC_MEMORY_PLACE_H

#include "plan/kernel.h"

typedef struct Room {
    DimId bytes;          /* a multiple of WORKSPACE_ALIGN_BYTES, as is the offset */
    uint32_t first, last; /* launches that need it */
    DimId offset;         /* the result */
} Room;
typedef Vec(Room) VecRoom;

/* Places the rooms so that no two that one launch needs overlap at any value of the dims, and sets
 * `ends`: expressions of which the largest is the end of them all. False when one could pass 2^62.
 */
bool place_buffers(Arena *arena, DimTab *dims, VecRoom *rooms, VecDim *ends);

#endif
