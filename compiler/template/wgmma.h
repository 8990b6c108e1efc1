/* The shared memory of a GEMM_WGMMA block, in this order. First its stages: each has a tile of the
 * lhs and one rhs tile per GEMM, side by side so that one instruction reads them all. Then a
 * results buffer per consumer warp: some of its rows, or all of its rows if store warps store them.
 * Then two mbarriers per stage, and two per consumer warp with store warps. The schedule sizes it,
 * the template lays it out.
 *
 * An operand's tile is wgmma_depth long along k. In a straight tile k is contiguous: a row of 128
 * bytes per m (or n). In a transposed tile m (or n) is contiguous: blocks of one row per k, each
 * row 64 elements of m (or n). Only 16-bit elements can be transposed. */
#ifndef FUSEC_TEMPLATE_WGMMA_H
#define FUSEC_TEMPLATE_WGMMA_H

#include "machine/machine.h"
#include "machine/tuning.h"
#include "plan/kernel.h"

#include <math.h>

enum {
    WGMMA_ROWS = 64, /* of an instruction of a warpgroup */
    WGMMA_GROUP_WARPS = 4,
    WGMMA_GROUP_THREADS = WGMMA_GROUP_WARPS * WARP_THREADS,
    WGMMA_SWIZZLE_BYTES = 128,
    WGMMA_TILE_ALIGN = 1024, /* the swizzle repeats after 8 rows */
    WGMMA_WARP_ROWS = 16,    /* those of one warp */
    WGMMA_EPILOGUE_ROWS = EPILOGUE_WARP_ROWS,
    WGMMA_EPILOGUE_COLUMNS = 128,
    WGMMA_MAX_WIDTH = 256, /* columns of an instruction, over all GEMMs of the launch */
    WGMMA_MAX_GEMMS = 4,
    WGMMA_MAX_STAGES = 12,
    WGMMA_BARRIER_BYTES = 8
};

/* Elements of k of a stage: one row of the swizzle. */
static inline uint32_t wgmma_depth(Dtype dtype) {
    return WGMMA_SWIZZLE_BYTES / dtype_bytes(dtype);
}

static inline uint32_t wgmma_tile_bytes(uint32_t tile, bool is_mn_major) {
    uint32_t rows = is_mn_major ? (tile + 63) / 64 * 64 : tile;
    return rows * WGMMA_SWIZZLE_BYTES;
}

/* Bytes of a tile of `own` 16-bit elements along m or n and `depth` along k: blocks of 64 elements
 * of the contiguous axis, one after the other. */
static inline uint32_t wgmma_operand_bytes(uint32_t own, uint32_t depth, bool is_mn_major) {
    uint32_t along = is_mn_major ? own : depth, rows = is_mn_major ? depth : own;
    return (along + 63) / 64 * rows * WGMMA_SWIZZLE_BYTES;
}

/* Rows that a warp stores per step, a power of two. Its lanes take 1 or 4 columns each, side by
 * side and then row below row. */
static inline uint32_t wgmma_epilogue_step(uint32_t columns, uint32_t lanes) {
    uint32_t across = columns / lanes, step = WGMMA_EPILOGUE_ROWS;
    while (step > 1 && across * step > 32) step /= 2;
    return step;
}

static inline uint32_t wgmma_n_gemms(const Sched *sched) {
    return sched->gemm.n_gemms > 1 ? sched->gemm.n_gemms : 1;
}

/* Columns of each GEMM that a warp stores per part: a divisor of the tile. Each part has an
 * overhead of about four steps. */
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

/* Elements from row to row with the GEMMs side by side: 4 rows of 8 bytes touch all banks. */
static inline uint32_t wgmma_epilogue_pitch(const Sched *sched, uint32_t lanes) {
    uint32_t columns = wgmma_epilogue_columns(sched, lanes) * wgmma_n_gemms(sched);
    return columns + (columns % 16 ? 16 : 8);
}

/* The schedule of the narrow tiles alone. */
static inline Sched wgmma_tail(const Sched *sched) {
    Sched tail = *sched;
    tail.gemm.tile_n = sched->gemm.tail_n;
    tail.gemm.tail_n = 0;
    return tail;
}

/* With store warps: 16-bit elements from row to row of a warp's rounded results. For any tile
 * width, 8 rows of 16 bytes touch all banks. */
static inline uint32_t wgmma_results_pitch(const Sched *sched) {
    return sched->gemm.tile_n * wgmma_n_gemms(sched) + 8;
}

/* Bytes of one warp's buffer. Other warps may be at another tile, wide or narrow, so it is the
 * largest of both. */
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

/* Least time of a step with an im2col lhs, in microseconds per row of both operands. Fitted on an
 * H200 to tiles of 64 and 128 rows by 64 columns (43.2 and 38.4 us for 64 images of 56 x 56 x 64, 3
 * x 3 taps). */
static inline double wgmma_windows_us(uint32_t tile_m, uint32_t tile_n) {
    return SCHED_WGMMA_WINDOW_ROW_US * (tile_m + tile_n);
}

/* The time of all tiles on so many processors: waves of wide tiles, then the narrow ones, which
 * first go to processors without a wide tile in the last wave. */
static inline double wgmma_waves_us(double n_wide, double wide_us, double n_narrow,
                                    double narrow_us, double n_processors) {
    double waves = ceil(n_wide / n_processors), n_idle = waves * n_processors - n_wide;
    double before = n_idle > 0 ? waves - 1 : waves;
    double turns = ceil(n_narrow / (n_idle > 0 ? n_idle : n_processors));
    return fmax(waves * wide_us, before * wide_us + turns * narrow_us);
}

#endif
