/* Tile shapes of GEMMs, expanded from tiles.def, which says what the columns mean. */
#ifndef FUSEC_MACHINE_TILES_H
#define FUSEC_MACHINE_TILES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct SimtTile {
    uint32_t m, n, k, warps_m, warps_n, threads, stages, halves;
} SimtTile;
typedef enum {
#define SIMT_TILE(symbol, ...) SIMT_TILE_##symbol,
#include "machine/tiles.def"
    N_SIMT_TILES
} SimtTileId;
extern const SimtTile simt_tiles[N_SIMT_TILES];

typedef struct MmaTile {
    uint32_t m, n, depth_bytes, warps_m, warps_n, stages;
} MmaTile;
typedef enum {
#define MMA_TILE(symbol, ...) MMA_TILE_##symbol,
#include "machine/tiles.def"
    N_MMA_TILES
} MmaTileId;
extern const MmaTile mma_tiles[N_MMA_TILES];

typedef struct WgmmaTile {
    uint32_t m, n, cluster;
    bool is_for_one, is_for_several;
    int64_t share, step, left, right, rest;
} WgmmaTile;
typedef enum {
#define WGMMA_TILE(symbol, ...) WGMMA_TILE_##symbol,
#include "machine/tiles.def"
    N_WGMMA_TILES
} WgmmaTileId;
extern const WgmmaTile wgmma_priced_tiles[N_WGMMA_TILES];

/* The columns of tiles that are compared for known extents. */
enum { N_WGMMA_WIDTHS = 12 };
extern const uint32_t wgmma_widths[N_WGMMA_WIDTHS];

#endif
