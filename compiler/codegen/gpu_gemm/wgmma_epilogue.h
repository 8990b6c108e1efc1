/* The epilogue of wgmma GEMMs: from the accumulators to memory, and the row kernel on the result.
 *
 * A warp stores its 16 rows in parts. Each time, 8 rows of some columns of every kernel's result go
 * through the warp's own buffer in shared memory, so that each lane gets neighbours of one row. No
 * warp waits for another. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_WGMMA_EPILOGUE_H
#define FUSEC_CODEGEN_GPU_GEMM_WGMMA_EPILOGUE_H

#include "codegen/gpu_gemm/wgmma.h"

typedef struct WgmmaEpilogue {
    uint32_t columns, n_subtiles, lanes, across; /* columns of a part, parts, lanes (columns) per
                                                  * thread, threads side by side */
    uint32_t step, unroll;                       /* rows per step, and steps at once */
    GemmBlock *tiles;                            /* one per kernel that shares the block */
    Val warp;                                    /* i32: the consumer warp whose rows are stored */
    Val own;                                     /* that warp's buffer in shared memory */
    Val place;                                   /* address in it of this lane's accumulators */
    Val first_row, in_subtile; /* i32: this lane's first row, and first column in a
                                * part */
} WgmmaEpilogue;

/* Gives each warp its own rows of the buffers in shared memory. Call it once before the first tile,
 * for a GEMM that a row kernel follows, and for that kernel. */
void wgmma_take_smem(const Wgmma *w, Lower *lower);
/* Begins the epilogue of tile `number` of the code, before the tile is multiplied or before its
 * multiplications are awaited. */
WgmmaEpilogue wgmma_begin_epilogue(Wgmma *w, Val number);
/* Waits for the last multiplications, releases their stage and stores the results. `accs`: see
 * wgmma_multiply. */
void wgmma_end_epilogue(const Wgmma *w, const WgmmaEpilogue *epilogue, Val last_stage,
                        const Val *accs);

/* Stores results whose multiplications have finished. */
void wgmma_epilogue_sums(const Wgmma *w, const WgmmaEpilogue *epilogue, const Val *accs);

/* With Sched.store_warps, a consumer warp waits for the last multiplications, leaves its results of
 * a tile in shared memory and continues. It stores the last tile of the loop itself, because little
 * work is left to hide the store. `parity` (i32) is 0 or 1; returns that of the next tile. */
Val wgmma_leave_results(Wgmma *w, const WgmmaWalk *walk, Val parity, Val last_stage,
                        const Val *accs);
/* The work of the store warps, starting with this parity. */
void wgmma_store_tiles(Wgmma *w, Val *parity);
/* Stores the rows of warp `warp` (i32) of the tile, all of which are in shared memory. */
void wgmma_epilogue_results(const Wgmma *w, WgmmaEpilogue epilogue, Val warp);

#endif
