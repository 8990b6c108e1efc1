/* GEMMs by mma.sync: the sums of a block in shared memory, from which they are stored in rows. */
#ifndef FUSEC_TEMPLATE_MMA_H
#define FUSEC_TEMPLATE_MMA_H

#include "machine/machine.h"
#include "plan/plan.h"

enum {
    MMA_FRAGMENT_ROWS = 16,
    MMA_EPILOGUE_PAD = 8 /* elements behind each row: threads of a warp reach other banks */
};

/* The rows of each warp's share that are stored at once: as many as fit in static shared memory, at
 * least those of a fragment. */
static inline uint32_t mma_epilogue_rows(const Sched *sched, uint32_t acc_bytes) {
    const GemmSched *gemm = &sched->gemm;
    uint32_t rows = gemm->tile_m / gemm->warps_m;
    uint32_t row_bytes = gemm->warps_m * (gemm->tile_n + MMA_EPILOGUE_PAD) * acc_bytes;
    while (rows > MMA_FRAGMENT_ROWS && rows * row_bytes > STATIC_SHARED_BYTES) rows /= 2;
    return rows;
}

static inline uint32_t mma_epilogue_bytes(const Sched *sched, uint32_t acc_bytes) {
    const GemmSched *gemm = &sched->gemm;
    return mma_epilogue_rows(sched, acc_bytes) * gemm->warps_m * (gemm->tile_n + MMA_EPILOGUE_PAD) *
           acc_bytes;
}

#endif
