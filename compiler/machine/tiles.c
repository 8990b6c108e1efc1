/* Expands tiles.def. */
#include "machine/tiles.h"
#include "machine/tuning.h"

const SimtTile simt_tiles[N_SIMT_TILES] = {
#define SIMT_TILE(symbol, m, n, k, warps_m, warps_n, threads, stages, halves, ...) \
    {m, n, k, warps_m, warps_n, threads, stages, halves},
#include "machine/tiles.def"
};

const MmaTile mma_tiles[N_MMA_TILES] = {
#define MMA_TILE(symbol, m, n, depth, warps_m, warps_n, stages, ...) \
    {m, n, depth, warps_m, warps_n, stages},
#include "machine/tiles.def"
};

const WgmmaTile wgmma_priced_tiles[N_WGMMA_TILES] = {
#define WGMMA_TILE(symbol, m, n, cluster, one, several, share, step, left, right, rest, ...) \
    {m, n, cluster, one, several, share, step, left, right, rest},
#include "machine/tiles.def"
};

#define COLUMNS(...) \
    { __VA_ARGS__ }
#define WGMMA_WIDTHS(columns, ...) const uint32_t wgmma_widths[N_WGMMA_WIDTHS] = COLUMNS columns;
#include "machine/tiles.def"
