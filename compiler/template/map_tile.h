/* Maps in tiles: what their schedule, their price and their template agree on.
 *
 * What a map stores lies along one axis, `out`, which its lanes go along. A load that lies along
 * another one, `in`, runs against the grain: along the lanes each of its elements is in a line of
 * its own. So a block takes a tile of both axes. First it brings in such loads, lanes along `in`,
 * and puts them into shared memory; then it computes and stores, lanes along `out`, as any map, and
 * finds them there. All other loads are the map's own. */
#ifndef FUSEC_TEMPLATE_MAP_TILE_H
#define FUSEC_TEMPLATE_MAP_TILE_H

#include "plan/kernel.h"

enum { MAP_TILE_THREADS = 256, MAP_TILE_MAX_STAGED = 8 };

/* The live loads that go through shared memory when lanes go along `out` and tiles along `in` too,
 * ascending, `most` of them at most. Returns how many there are. */
uint32_t map_tile_staged(Arena *arena, const Kernel *kernel, uint32_t in, uint32_t out,
                         ScalarId *staged, uint32_t most);
/* Whether the load is one of them, in tiles of this schedule. */
bool map_tile_stages(const Kernel *kernel, const Sched *sched, const Scalar *load);
/* Whether the other loads are begun before the tile is there: what they bring waits in registers,
 * which has to be little. */
bool map_tile_loads_ahead(Arena *arena, const Kernel *kernel, const Sched *sched);
/* Elements of the tile for each thread. */
static inline uint32_t map_tile_elems(const Sched *sched) {
    return sched->map_tile.tile_m * sched->map_tile.tile_n / MAP_TILE_THREADS;
}
/* Registers that a thread has full of what it loads: for shared memory, and ahead of the work. */
typedef struct MapTileHeld {
    uint32_t staged, ahead;
} MapTileHeld;
MapTileHeld map_tile_held(Arena *arena, const Kernel *kernel, const Sched *sched);
/* Shared memory of a block, in bytes. */
uint32_t map_tile_bytes(Arena *arena, const Kernel *kernel, const Sched *sched);

/* How an array of elements lies there: a row of tile_m elements for each place along `out`, words
 * of it (of 4 bytes, or of an element if that is longer) in an order of their own: word w of row r
 * is at w xor (the lowest bits of) map_tile_twist of r. So a warp finds its words in different
 * banks whichever way it goes. All of these numbers are powers of two. */
typedef struct MapTilePlace {
    uint32_t elem_bytes, word_elems, row_words;
    uint32_t lanes, spread; /* the twist of r: (r / lanes * spread) xor (r % lanes) */
} MapTilePlace;
MapTilePlace map_tile_place(const Sched *sched, uint32_t elem_bytes);
/* Bytes from the array's beginning to an element. Of coordinates that have no bit in common it is
 * the xor of theirs. */
uint32_t map_tile_offset(const MapTilePlace *place, uint32_t row, uint32_t column);

#endif
