/* Packing: places pieces of memory, each needed by a range of launches, in one workspace. */
#ifndef FUSEC_MEMORY_PLACE_H
#define FUSEC_MEMORY_PLACE_H

#include "plan/kernel.h"

typedef struct Room {
    DimId bytes;          /* bytes; a multiple of WORKSPACE_ALIGN_BYTES, as is the offset */
    uint32_t first, last; /* the launches that need it */
    DimId offset;         /* result, in bytes */
} Room;
typedef Vec(Room) VecRoom;

/* Places the rooms so that two rooms that the same launch needs never overlap, at any value of the
 * dims. Sets `ends` to expressions; the largest of them is the size of the workspace. Returns false
 * if an expression could exceed 2^62. */
bool place_buffers(Arena *arena, DimTab *dims, VecRoom *rooms, VecDim *ends);

#endif
