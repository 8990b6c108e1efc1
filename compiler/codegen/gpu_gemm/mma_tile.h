/* A block's accumulators on tensor cores: each warp's share of the tile [tile_m,tile_n], the
 * instructions that add to it, and its way through shared memory to the epilogue. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_MMA_TILE_H
#define FUSEC_CODEGEN_GPU_GEMM_MMA_TILE_H

#include "codegen/gpu_gemm/mma.h"

enum { MAX_ACCUMULATORS = 128 };

typedef struct MmaTile {
    Lower *lower;
    const Codegen *k;
    const Sched *sched;
    GemmBlock block;
    Dtype left, dtype; /* of the lhs and of the rhs: both the same but for 8-bit floats */
    uint32_t acc_bytes;
    LLVMTypeRef acc_type;
    Val shared;         /* set by the caller: the epilogue's shared memory, at least
                         * mma_tile_epilogue_bytes */
    Val warp_m, warp_n; /* i32: position of the warp's share in the tile, in warps */
    uint32_t n_m, n_n;  /* instruction tiles along the warp's share: of 16 rows, of 8 columns */
    uint32_t n_accs;
    Val accs[MAX_ACCUMULATORS]; /* [n_m,n_n,4]; they start at +0 */
    /* Of 8-bit floats: where instructions add, the same for the last GEMM_F8_DEPTH elements of k.
     * Allocas if warpgroups multiply: see wgmma_multiply. */
    bool has_parts;
    Val parts[MAX_ACCUMULATORS];
} MmaTile;

/* The pair of fragment column `n` in the thread's row `r`; a fragment has two rows of a thread. */
static inline const Val *mma_tile_pair(const MmaTile *tile, uint32_t r, uint32_t n) {
    return tile->accs + gpu_fragment_pair(tile->n_n, r / 2, n, r % 2);
}
void mma_tile_init(MmaTile *tile, const GemmBlock *block);
/* Prepares the fragments of an operand that this thread's warp loads. */
void mma_tile_aim(const MmaTile *tile, MmaOperand *operand);
/* The fragments of the warp's share of both operands in one step of k. */
typedef struct MmaFragments {
    Val left[MAX_FRAGMENTS * FRAGMENT_REGISTERS];
    Val right[MAX_FRAGMENTS * FRAGMENT_REGISTERS];
} MmaFragments;
/* Loads an operand's fragments of a step from the stage at `stage`. */
void mma_tile_load(const MmaTile *tile, const MmaOperand *operand, Val stage, MmaStep step,
                   Val *fragments);
/* Adds the products of the fragments to the parts, or without parts to the accumulators. */
void mma_tile_multiply(MmaTile *tile, const MmaFragments *fragments);
/* Adds the parts to the accumulators; the next parts start at +0. */
void mma_tile_join(MmaTile *tile);
/* Starts the multiplication of a stage whose tiles are GEMM_F8_DEPTH deep by the warpgroup of this
 * thread. Call mma_tile_finish_group before the stage is overwritten: it waits, and adds the parts
 * to the accumulators. */
void mma_tile_start_group(const MmaTile *tile, const MmaOperand operands[2], Val stage);
void mma_tile_finish_group(MmaTile *tile);
static inline uint32_t mma_tile_epilogue_bytes(const MmaTile *tile) {
    return mma_epilogue_bytes(tile->sched, tile->acc_bytes);
}
/* Stores the accumulators through the epilogue. `shared` must be free: the caller places a barrier
 * before. */
void mma_tile_epilogue(const MmaTile *tile);

#endif
