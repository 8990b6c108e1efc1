/* The epilogue: from the accumulators to memory, and the kernel over the rows of the result.
 *
 * A warp stores its 16 rows in parts: 8 rows of some columns of every kernel's result at a time.
 * They go through its own place in shared memory, so that each lane has neighbours of one row; no
 * warp waits for another. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_WGMMA_EPILOGUE_H
#define FUSEC_CODEGEN_GPU_GEMM_WGMMA_EPILOGUE_H

#include "codegen/gpu_gemm/wgmma.h"

typedef struct WgmmaEpilogue {
    uint32_t columns, n_parts, lanes, across; /* of a part; lanes' groups side by side */
    uint32_t step, unroll;                    /* rows at a time, and of those at once */
    GemmBlock *tiles;                         /* per product */
    Val warp;                                 /* i32: whose rows, of those that multiply */
    Val own;                                  /* that warp's place in shared memory */
    Val place;                                /* where this lane's accumulators go in it */
    Val first_row, in_part;                   /* i32: of this lane's in a part */
} WgmmaEpilogue;

/* Once, before the first tile, for a GEMM that a kernel over rows follows, and for that kernel:
 * each warp has its own rows of the buffers in shared memory. */
void wgmma_take_smem(const Wgmma *w, Lower *lower);
/* Of tile `number` of the code's: before it is multiplied, or before what is under way is waited
 * for. */
WgmmaEpilogue wgmma_begin_epilogue(Wgmma *w, Val number);
/* Waits for the last multiplications, releases their stage and stores the results. `accs`: see
 * wgmma_multiply. */
void wgmma_end_epilogue(const Wgmma *w, const WgmmaEpilogue *epilogue, Val last_stage,
                        const Val *accs);

/* Where warps of their own store (Sched.store_warps): one that multiplies waits for the last
 * multiplications, leaves its results of a tile in shared memory and goes on; of the last tile of
 * the loop it stores them itself, since little is left to hide that behind. `parity` (i32): 0 and 1
 * in parity, for each tile that is left to them; returns the next tile's. */
Val wgmma_leave_results(Wgmma *w, const Loop *tiles, Val parity, Val last_stage, const Val *accs);
/* What the warps that store do, from such a parity on. */
void wgmma_store_tiles(Wgmma *w, Val *parity);
/* Stores the tile's rows of warp `warp` (i32), all of which lie in shared memory. */
void wgmma_epilogue_results(const Wgmma *w, WgmmaEpilogue epilogue, Val warp);

#endif
