/* What a block of CONTRACT_WGMMA keeps in shared memory, in this order: its stages, each a tile of
 * the left factor and one of the right; per warp that multiplies, some rows of results on their way
 * to the epilogue; two barriers per stage. The scheduler sizes it, the template lays it out.
 *
 * A tile of a factor is WGMMA_DEPTH long along k. Straight, k is contiguous: a row of 128 bytes per
 * m (or n). Turned, m (or n) is: blocks of WGMMA_DEPTH rows, a row per k, each 64 elements of m (or
 * n) wide. */
#ifndef FUSEC_WGMMA_H
#define FUSEC_WGMMA_H

#include "ir/kernel.h"

enum {
    WGMMA_DEPTH = 64, /* elements of k of a stage; 16-bit ones fill a row of the swizzle */
    WGMMA_ROWS = 64,  /* of an instruction, by a group of four warps */
    WGMMA_GROUP_WARPS = 4,
    WGMMA_SWIZZLE_BYTES = 128,
    WGMMA_TILE_ALIGN = 1024, /* the swizzle repeats after 8 rows */
    WGMMA_DRAIN_ROWS = 8,    /* of results, per warp */
    WGMMA_DRAIN_PAD = 8,     /* elements after each of them, so that 4 rows touch all banks */
    WGMMA_MAX_STAGES = 12,
    WGMMA_BARRIER_BYTES = 8,
    WGMMA_SHARED_BYTES = 227 * 1024 /* that a block may have */
};

static inline uint32_t wgmma_tile_bytes(uint32_t tile, bool is_turned) {
    uint32_t rows = is_turned ? (tile + 63) / 64 * 64 : tile;
    return rows * WGMMA_SWIZZLE_BYTES;
}

/* Columns of results that a warp drains at once: as many as divide the tile, at most 128. Where a
 * lane takes one column at a time, fewer: a column for each lane. */
static inline uint32_t wgmma_drain_columns(uint32_t tile_n) {
    uint32_t columns = 128;
    while (tile_n % columns) columns /= 2;
    return columns;
}

static inline uint32_t wgmma_drain_bytes(uint32_t tile_n) {
    return (wgmma_drain_columns(tile_n) + WGMMA_DRAIN_PAD) * WGMMA_DRAIN_ROWS * 4;
}

static inline uint32_t wgmma_shared_bytes(uint32_t stage_bytes, const Sched *sched) {
    return sched->stages * (stage_bytes + 2 * WGMMA_BARRIER_BYTES) +
           sched->warps_m * wgmma_drain_bytes(sched->tile_n);
}

#endif
