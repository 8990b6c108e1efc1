/* Maps in tiles: the facts on which schedule, cost and template agree.
 *
 * The stores of a map lie along one axis, `out`, and so do its lanes. A load that lies along
 * another axis, `in`, is uncoalesced: each lane's element is in a cache line of its own. So a block
 * takes a tile of both axes. First it loads these tensors with lanes along `in` and writes them to
 * shared memory. Then it computes and stores with lanes along `out`, as any map does, and reads
 * them there. All other loads are those of an ordinary map. */
#ifndef FUSEC_TEMPLATE_MAP_TILE_H
#define FUSEC_TEMPLATE_MAP_TILE_H

#include "plan/kernel.h"

enum { MAP_TILE_THREADS = 256, MAP_TILE_MAX_STAGED = 8 };

/* Lists the live loads that go through shared memory with lanes along `out` and tiles along `in`,
 * ascending, at most `most`. Returns their number. */
uint32_t map_tile_staged(Arena *arena, const Kernel *kernel, uint32_t in, uint32_t out,
                         ScalarId *staged, uint32_t most);
/* Whether this schedule's tiles stage the load through shared memory. */
bool map_tile_stages(const Kernel *kernel, const Sched *sched, const Scalar *load);
/* Whether the other loads start before the tile has arrived. Their values wait in registers, so
 * there must be few. */
bool map_tile_loads_ahead(Arena *arena, const Kernel *kernel, const Sched *sched);
/* Elements of the tile per thread. */
static inline uint32_t map_tile_elems(const Sched *sched) {
    return sched->map_tile.tile_m * sched->map_tile.tile_n / MAP_TILE_THREADS;
}
/* Registers of a thread that hold loaded values: of staged loads, and of loads started ahead. */
typedef struct MapTileHeld {
    uint32_t staged, ahead;
} MapTileHeld;
MapTileHeld map_tile_held(Arena *arena, const Kernel *kernel, const Sched *sched);
/* Shared memory of a block, in bytes. */
uint32_t map_tile_bytes(Arena *arena, const Kernel *kernel, const Sched *sched);

/* The layout of an array in shared memory: a row of tile_m elements for each coordinate along
 * `out`. Words of a row (4 bytes, or one element if that is longer) are swizzled: word w of row r
 * is at w xor the low bits of the twist of r. So a warp touches different banks in both directions.
 * All these numbers are powers of two. */
typedef struct MapTilePlace {
    uint32_t elem_bytes, word_elems, row_words;
    uint32_t lanes, twist_step; /* the twist of r: (r / lanes * twist_step) xor (r % lanes) */
} MapTilePlace;
MapTilePlace map_tile_place(const Sched *sched, uint32_t elem_bytes);
/* The byte offset of an element in the array. For coordinates with disjoint bits it is the xor of
 * their offsets. */
uint32_t map_tile_offset(const MapTilePlace *place, uint32_t row, uint32_t column);

#endif
