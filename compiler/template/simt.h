/* GEMM_FMA on a GPU: the facts on which its schedule and its template agree. */
#ifndef FUSEC_TEMPLATE_SIMT_H
#define FUSEC_TEMPLATE_SIMT_H

#include "plan/kernel.h"
#include "machine/machine.h"

enum { SIMT_FRAGMENT_BYTES = ACCESS_BYTES };

/* Threads of a warp along m: 8 by 4 usually, 4 by 8 with two rows each if the warp has 8 rows and
 * enough columns, or all along the only side of a row or column. */
static inline uint32_t simt_lanes_m(const Sched *sched) {
    uint32_t rows = sched->gemm.tile_m / sched->gemm.warps_m,
             columns = sched->gemm.tile_n / sched->gemm.warps_n;
    if (sched->gemm.tile_m == 1 || sched->gemm.tile_n == 1)
        return sched->gemm.tile_m == 1 ? 1 : WARP_THREADS;
    return rows < 16 && columns >= 16 ? 4 : 8;
}

/* The number of k rows by which a thread's fragments are loaded ahead. The multiplications in
 * between should take as long as shared memory, some 30 clocks. It divides tile_k. */
enum { SIMT_MAX_AHEAD = 8 };
static inline uint32_t simt_rows_ahead(const Sched *sched) {
    uint32_t threads = WARP_THREADS * sched->gemm.warps_m * sched->gemm.warps_n;
    uint32_t outputs = sched->gemm.tile_m * sched->gemm.tile_n / threads;
    uint32_t ahead = outputs <= 4 ? SIMT_MAX_AHEAD : outputs <= 16 ? 4 : 1;
    while (sched->gemm.tile_k % ahead) ahead /= 2;
    return ahead;
}

/* Shared memory of a stage, a tile of both operands, with the largest padding of rows. */
static inline uint32_t simt_stage_bytes(const Sched *sched, uint32_t acc_bytes) {
    uint32_t row = (sched->gemm.tile_m + sched->gemm.tile_n) * acc_bytes + 2 * SIMT_FRAGMENT_BYTES;
    return row * sched->gemm.tile_k + 2 * SIMT_FRAGMENT_BYTES;
}

/* The epilogue stores the tile in parts, one row of every thread's fragments at a time. The
 * elements from row to row of a part, and the bytes of a part. */
static inline uint32_t simt_subtile_pitch(const Sched *sched, uint32_t acc_bytes) {
    return sched->gemm.tile_n + (sched->gemm.tile_n > 1 ? SIMT_FRAGMENT_BYTES / acc_bytes : 0);
}

static inline uint32_t simt_subtile_bytes(const Sched *sched, uint32_t acc_bytes) {
    uint32_t own = sched->gemm.tile_m / (sched->gemm.warps_m * simt_lanes_m(sched));
    uint32_t most = SIMT_FRAGMENT_BYTES / acc_bytes, n_subtiles = own > most ? own / most : 1;
    return sched->gemm.tile_m / n_subtiles * simt_subtile_pitch(sched, acc_bytes) * acc_bytes;
}

#endif
