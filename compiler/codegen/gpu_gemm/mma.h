/* GEMMs on tensor cores by mma.sync: declarations that the template's files share.
 *
 * The tile of an operand for one stage is in shared memory as rows of 16-byte chunks, in the layout
 * of the operand in memory. A straight tile has one row per m (or n), with k contiguous; a
 * transposed tile has one row per k. Within a row, chunks are swizzled: the chunk's number is xored
 * with the row's number, so that one warp access touches all banks. For ldmatrix, which loads whole
 * 8x8 matrices, it spreads 8 neighbouring rows of a chunk column. For element loads it spreads 4
 * rows of two columns: ldmatrix cannot transpose 4-byte elements and has no 8-byte ones.
 *
 * Elements have 1 byte (i8, u8, 8-bit floats; never transposed), 2 (f16, bf16), 4 (f32 as tf32) or
 * 8 (f64). One step always covers 32 bytes of k, two chunks: m16n8k32, m16n8k16, m16n8k8 and
 * m16n8k4, which have the same accumulator layout. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_MMA_H
#define FUSEC_CODEGEN_GPU_GEMM_MMA_H

#include "codegen/gpu_gemm/gemm.h"

enum {
    CHUNK_BYTES = 16,
    STEP_BYTES = 32,
    MAX_CHUNKS = 16,
    MAX_FRAGMENTS = 8,
    FRAGMENT_REGISTERS = 4
};

/* One operand of the GEMM, and the thread's part in loading it. */
typedef struct MmaOperand {
    const GemmBlock *block;
    Lower *lower;
    const Codegen *k;
    ScalarId value;
    Dtype dtype;
    bool is_left;
    bool is_mn_major;
    bool is_copied;    /* the bytes are copied to shared memory unchanged and asynchronously
                        * (cp.async) */
    bool by_elements;  /* fragments are loaded element by element, not by ldmatrix */
    bool rounds;       /* f32 elements are rounded to tf32 in registers */
    bool ends_in_step; /* k may end inside a tile, and the padding is not all zeros */
    uint32_t elem_bytes, chunk_elems;
    uint32_t axis;               /* m or n */
    Val first, extent;           /* index_type, along the axis: first element of the tile, extent of
                                  * the matrix */
    uint32_t n_rows, row_chunks; /* of the tile in shared memory */
    uint32_t begin_bytes;        /* offset within a stage */
    /* The thread's chunks: rows own_row + i * row_step, chunk own_chunk. */
    uint32_t n_chunks, row_step;
    Val own_row, own_chunk; /* i32 */
    Val own_bytes;          /* i32: offset of the first chunk within a stage */
    /* If copied: addresses at k = 0, and the distance of one step in k. */
    Val sources[MAX_CHUNKS]; /* global pointers */
    Val k_stride;            /* index_type: elements */
    /* i32: bytes of a chunk inside the matrix, apart from the limit of k. For a straight tile it is
     * a mask on the bytes that k leaves. For a broadcast row, which may end inside a chunk, it is 0
     * to 16. */
    Val n_bytes[MAX_CHUNKS];
    /* If not copied: values on their way through registers. */
    Val values[MAX_CHUNKS];
    /* i32: byte offset within a stage of this thread's row of the 8x8 matrices of a fragment. A
     * straight tile has one entry per step of k, a transposed one an entry per fragment. With
     * element loads: offset of the thread's element, for a straight tile per step, for a transposed
     * one per half fragment of 8. */
    Val lane_bytes[MAX_FRAGMENTS * 2];
} MmaOperand;

/* Bytes of a stage that the operand takes. */
uint32_t mma_operand_bytes(const MmaOperand *operand);
/* The byte offset within a stage of the tile's element `own` along m or n and `at_k` (i32). */
Val mma_operand_element(const MmaOperand *operand, Val own, Val at_k);
/* Chooses the operand's layout and this thread's part in loading it. The operand keeps `block`. */
void mma_operand_init(MmaOperand *operand, const GemmBlock *block, bool is_left,
                      uint32_t begin_bytes);
/* Brings the tile from k0 (index_type) into the stage at `stage` (ptr addrspace(3)). It starts the
 * copies. Values that are not copied are computed into operand->values, and mma_operand_put stores
 * them. Elements beyond the matrix are zero. */
void mma_operand_fetch(MmaOperand *operand, Val k0, Val stage);
/* Moves the tile along its own axis, so that it begins at `first` (index_type). */
void mma_operand_move(MmaOperand *operand, Val first);
void mma_operand_put(const MmaOperand *operand, Val stage);
/* Prepares the fragments of `warp_elems` elements along m or n from `warp_first` (i32, in the tile)
 * on. */
void mma_operand_aim(MmaOperand *operand, Val warp_first, uint32_t warp_elems);
/* Registers of a fragment: 16 elements along m or n by one step of k. */
uint32_t mma_fragment_registers(const MmaOperand *operand);
/* A step of k in the tile that begins at k0 (index_type). */
typedef struct MmaStep {
    uint32_t step;
    Val k0;
} MmaStep;
/* Loads fragment `i` of a step: i32 registers, or double for f64. For the lhs it is one operand of
 * the instruction; for the rhs it is two operands of 8 columns each. */
void mma_operand_fragment(const MmaOperand *operand, Val stage, uint32_t i, MmaStep step,
                          Val *registers);

#endif
