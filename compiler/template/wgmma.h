/* What a block of GEMM_WGMMA keeps in shared memory, in this order: its stages, each a tile of
 * the lhs and one of the right for each product, side by side so that they are one to the
 * instruction; per warp that multiplies, some rows of results on their way to the epilogue, or all
 * of its rows where other warps store them; two barriers per stage, and then per warp. The
 * scheduler sizes it, the template lays it out.
 *
 * A tile of an operand is wgmma_depth long along k. Straight, k is contiguous: a row of 128 bytes
 * per m (or n). Turned, m (or n) is: blocks of as many rows, a row per k, each 64 elements of m (or
 * n) wide; elements of 16 bits alone may be turned. */
#ifndef FUSEC_TEMPLATE_WGMMA_H
#define FUSEC_TEMPLATE_WGMMA_H

#include "machine/card.h"
#include "plan/kernel.h"

#include <math.h>

enum {
    WGMMA_ROWS = 64, /* of an instruction, by a group of four warps */
    WGMMA_GROUP_WARPS = 4,
    WGMMA_SWIZZLE_BYTES = 128,
    WGMMA_TILE_ALIGN = 1024, /* the swizzle repeats after 8 rows */
    WGMMA_WARP_ROWS = 16,    /* of them, a warp's */
    WGMMA_EPILOGUE_ROWS = EPILOGUE_WARP_ROWS,
    WGMMA_EPILOGUE_COLUMNS = 128,
    WGMMA_MAX_WIDTH = 256, /* columns of an instruction, of all products together */
    WGMMA_MAX_GEMMS = 4,
    WGMMA_MAX_STAGES = 12,
    WGMMA_BARRIER_BYTES = 8,
    WGMMA_SHARED_BYTES = CARD_SHARED_H200 /* of a block, on every card with wgmma */
};

/* Elements of k of a stage: they fill a row of the swizzle. */
static inline uint32_t wgmma_depth(Dtype dtype) {
    return WGMMA_SWIZZLE_BYTES / dtype_bytes(dtype);
}

static inline uint32_t wgmma_tile_bytes(uint32_t tile, bool is_mn_major) {
    uint32_t rows = is_mn_major ? (tile + 63) / 64 * 64 : tile;
    return rows * WGMMA_SWIZZLE_BYTES;
}

/* A warp drains results by lanes that take 1 or 4 columns each, side by side and then row below
 * row: rows at a time, a power of two. */
static inline uint32_t wgmma_epilogue_step(uint32_t columns, uint32_t lanes) {
    uint32_t across = columns / lanes, step = WGMMA_EPILOGUE_ROWS;
    while (step > 1 && across * step > 32) step /= 2;
    return step;
}

static inline uint32_t wgmma_n_gemms(const Sched *sched) {
    return sched->gemm.n_gemms > 1 ? sched->gemm.n_gemms : 1;
}

/* Columns that a warp drains at once, of each product: a divisor of the tile. Each part has a price
 * of its own, as much as four steps. */
static inline uint32_t wgmma_epilogue_columns(const Sched *sched, uint32_t lanes) {
    uint32_t best = 8, best_price = UINT32_MAX, tile_n = sched->gemm.tile_n;
    uint32_t most = WGMMA_EPILOGUE_COLUMNS / wgmma_n_gemms(sched);
    if (most > 32 * lanes) most = 32 * lanes;
    for (uint32_t columns = 8; columns <= most && columns <= tile_n; columns += 8) {
        uint32_t steps = WGMMA_EPILOGUE_ROWS / wgmma_epilogue_step(columns, lanes);
        uint32_t price = tile_n / columns * (4 + steps);
        if (tile_n % columns || price > best_price) continue;
        best = columns;
        best_price = price;
    }
    return best;
}

/* Elements from row to row, where the products lie side by side: 4 rows of 8 touch all banks. */
static inline uint32_t wgmma_epilogue_pitch(const Sched *sched, uint32_t lanes) {
    uint32_t columns = wgmma_epilogue_columns(sched, lanes) * wgmma_n_gemms(sched);
    return columns + (columns % 16 ? 16 : 8);
}

/* Of the narrow tiles, as if they were all there are. */
static inline Sched wgmma_tail(const Sched *sched) {
    Sched tail = *sched;
    tail.gemm.tile_n = sched->gemm.tail_n;
    tail.gemm.tail_n = 0;
    return tail;
}

/* Where other warps store: elements from row to row of a warp's rounded results, of 16 bits each.
 * However wide the tile is, 8 rows of 16 bytes touch all banks. */
static inline uint32_t wgmma_results_pitch(const Sched *sched) {
    return sched->gemm.tile_n * wgmma_n_gemms(sched) + 8;
}

/* Of a warp, whose neighbours may be at another tile, wide or narrow. */
static inline uint32_t wgmma_epilogue_bytes(const Sched *sched) {
    uint32_t most = 0;
    if (sched->gemm.store_warps) return WGMMA_WARP_ROWS * wgmma_results_pitch(sched) * 2;
    Sched tail = wgmma_tail(sched);
    for (uint32_t i = 0; i < (sched->gemm.tail_n ? 4u : 2u); i++) {
        uint32_t pitch = wgmma_epilogue_pitch(i < 2 ? sched : &tail, i % 2 ? 1 : 4);
        if (pitch > most) most = pitch;
    }
    return most * WGMMA_EPILOGUE_ROWS * 4;
}

static inline uint32_t wgmma_shared_bytes(uint32_t stage_bytes, const Sched *sched) {
    uint32_t n_result_barriers = sched->gemm.store_warps ? sched->gemm.warps_m : 0;
    return sched->gemm.stages * stage_bytes + sched->gemm.warps_m * wgmma_epilogue_bytes(sched) +
           2 * WGMMA_BARRIER_BYTES * (sched->gemm.stages + n_result_barriers);
}

/* At least, of a step whose lhs is windows over an image, in microseconds: for each row of
 * both operands, fitted to tiles of 64 and 128 rows by 64 columns on an H200 (43.2 and 38.4 us for
 * 64 images of 56 x 56 x 64, 3 x 3 taps). */
static inline double wgmma_windows_us(uint32_t tile_m, uint32_t tile_n) {
    return 0.0014 * (tile_m + tile_n);
}

/* How long tiles take on so many processors: waves of wide ones, then narrow ones where there are
 * any, in turn to those that have no tile of the last wave. */
static inline double wgmma_waves_us(double n_wide, double wide_us, double n_narrow,
                                    double narrow_us, double n_processors) {
    double waves = ceil(n_wide / n_processors), n_idle = waves * n_processors - n_wide;
    double before = n_idle > 0 ? waves - 1 : waves;
    double turns = ceil(n_narrow / (n_idle > 0 ? n_idle : n_processors));
    return fmax(waves * wide_us, before * wide_us + turns * narrow_us);
}

#endif
