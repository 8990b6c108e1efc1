/* A block's accumulators on tensor cores: its warps' shares of tile_m x tile_n, the instructions
 * that add to them, and the way through shared memory to the epilogue. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_MMA_TILE_H
#define FUSEC_CODEGEN_GPU_GEMM_MMA_TILE_H

#include "codegen/gpu_gemm/mma.h"

enum { MAX_ACCUMULATORS = 128 };

/* Accumulators 0, 1 of a thread are columns 2t, 2t + 1 of row g of a 16 x 8 tile, 2 and 3 of row
 * g + 8, where g is the lane's number / 4 and t the rest. */
typedef struct MmaTile {
    Lower *lower;
    const Codegen *k;
    const Sched *sched;
    GemmBlock block;
    Dtype dtype; /* of the operands */
    uint32_t acc_bytes;
    LLVMTypeRef acc_type;
    Val shared; /* the caller's: the epilogue's shared memory, at least mma_tile_epilogue_bytes */
    Val warp_m, warp_n; /* i32: the warp's place in the tile, in warps */
    uint32_t n_m, n_n;  /* instructions' tiles of 16 and of 8 along the warp's share */
    uint32_t n_accs;
    Val accs[MAX_ACCUMULATORS]; /* [m][n][4]; +0 at first */
} MmaTile;

void mma_tile_init(MmaTile *tile, const GemmBlock *block);
/* Prepares the fragments that this thread's warp takes of an operand. */
void mma_tile_aim(const MmaTile *tile, MmaOperand *factor);
/* Adds the products of one step of k: all fragments of the warp's share of both operands. */
void mma_tile_multiply(MmaTile *tile, const Val *left, const Val *right);
uint32_t mma_tile_epilogue_bytes(const MmaTile *tile);
/* The epilogue. Nothing else uses `shared` meanwhile: barriers before it are the caller's. */
void mma_tile_epilogue(const MmaTile *tile);

#endif
