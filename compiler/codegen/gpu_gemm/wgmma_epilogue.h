/* From the accumulators to memory: the results of a tile, with its epilogue, and the rows that
 * follow the product.
 *
 * A warp drains its 16 rows in parts: 8 rows of some columns of every product at a time. They go
 * through its own place in shared memory, so that each lane has neighbours of one row; no warp
 * waits for another. */
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

/* Once, before the first tile, for a kernel that has rows to follow and for that of the rows: of
 * what is on chip each warp has its own rows. */
void wgmma_take_chips(const Wgmma *w, Lower *lower);
/* Of tile `number` of the code's: before it is multiplied, or before what is under way is waited
 * for. */
WgmmaEpilogue wgmma_begin_epilogue(Wgmma *w, Val number);
/* Waits for the last multiplications, releases their stage and stores the results. `accs`: see
 * wgmma_multiply. */
void wgmma_end_epilogue(const Wgmma *w, const WgmmaEpilogue *epilogue, Val last_stage,
                        const Val *accs);

/* Where warps of their own store (Sched.store_warps): one that multiplies waits for the last
 * multiplications, leaves its results of a tile on chip and goes on; of the last tile of the loop
 * it stores them itself, since little is left to hide that behind. `turn` (i32): 0 and 1 in turn,
 * for each tile that is handed over; returns the next tile's. */
Val wgmma_hand_over(Wgmma *w, const Loop *tiles, Val turn, Val last_stage, const Val *accs);
/* What the warps that store do, from such a turn on. */
void wgmma_store_tiles(Wgmma *w, Val *turn);
/* Drains the tile's rows of warp `warp` (i32), which lie on chip whole. */
void wgmma_epilogue_results(const Wgmma *w, WgmmaEpilogue epilogue, Val warp);

#endif
