/* GEMMs on tensor cores: what the template's files share.
 *
 * An operand's tile of one step of k lies in shared memory as rows of 16-byte chunks. A straight
 * tile has a row per m (or n) with k running along it, a turned one a row per k; it lies as its
 * operand does in memory. Within a row, chunks are permuted by an exclusive or with the row's
 * number, so that what a warp reads at once touches all banks: 8 neighbouring rows of one chunk
 * column where whole matrices are loaded (ldmatrix), 4 rows of two columns where elements are:
 * ldmatrix neither turns elements of 4 bytes nor knows elements of 8.
 *
 * Elements are of 2 bytes (f16, bf16), 4 (f32 as tf32) or 8 (f64). A step of the template is always
 * 32 bytes of k, two chunks: m16n8k16, m16n8k8 and m16n8k4, whose accumulators lie alike. */
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

/* One operand of the GEMM, and what this thread loads of it. */
typedef struct MmaOperand {
    ScalarId value;
    Dtype dtype;
    bool is_left;
    bool is_turned;
    bool is_copied;    /* bytes in memory go to shared memory as they are, asynchronously */
    bool by_elements;  /* fragments are loaded element by element, not by ldmatrix */
    bool rounds;       /* f32 that becomes tf32 in registers */
    bool ends_in_step; /* k may end within a tile, and padding is not all zeros */
    uint32_t elem_bytes, chunk_elems;
    uint32_t axis;               /* m or n */
    Val first, extent;           /* index_type: along it, of the tile and of the matrix */
    uint32_t n_rows, row_chunks; /* of the tile in shared memory */
    uint32_t begin_bytes;        /* within a stage */
    /* This thread's chunks: rows own_row + i * row_step at own_chunk. */
    uint32_t n_chunks, row_step;
    Val own_row, own_chunk; /* i32 */
    Val own_bytes;          /* i32: where the first of them lies within a stage */
    /* Copied: addresses at k = 0 and how far a step of 1 in k is. */
    Val sources[MAX_CHUNKS]; /* global pointers */
    Val k_stride;            /* index_type: elements */
    /* i32: bytes of a chunk inside the matrix, as far as k does not tell. Of a straight one a mask
     * of the bytes that k leaves: 0 to 16 of a broadcast row, which need not end with a chunk. */
    Val n_bytes[MAX_CHUNKS];
    /* Not copied: values on their way from registers. */
    Val values[MAX_CHUNKS];
    /* Where this thread's rows of the 8x8 matrices of a fragment begin, i32 bytes within a stage:
     * of a straight tile per step of k, of a turned one per fragment. By elements: where its
     * element of a straight tile's step is, or of a turned fragment's half of 8. */
    Val lane_bytes[MAX_FRAGMENTS * 2];
} MmaOperand;

/* Bytes of a stage that the operand takes. */
uint32_t mma_operand_bytes(const MmaOperand *factor);
/* How the operand lies and what this thread loads of it. `tile` is the tile's length along m or n.
 */
void mma_operand_init(MmaOperand *factor, const GemmBlock *block, bool is_left, uint32_t tile,
                      uint32_t begin_bytes);
/* Brings in the tile from k0 (index_type) to the stage at `stage` (ptr addrspace(3)): copies are
 * started, what is not copied is computed into operand->values, for mma_operand_put to store.
 * Beyond the matrix there are zeros. */
void mma_operand_fetch(MmaOperand *factor, const GemmBlock *block, Val k0, Val stage);
/* Moves the tile along its own axis, to begin at `first` (index_type). */
void mma_operand_move(MmaOperand *factor, const GemmBlock *block, Val first);
void mma_operand_put(const MmaOperand *factor, const GemmBlock *block, Val stage);
/* Copies that were started since the last commit are a group; waits until at most `n_pending` of
 * the thread's groups are under way. */
/* Prepares fragments of `warp_elems` along m or n, from `warp_first` (i32, in the tile) on. */
void mma_operand_aim(MmaOperand *factor, const GemmBlock *block, Val warp_first,
                     uint32_t warp_elems);
/* Registers of a fragment: 16 elements along m or n by a step of k. */
uint32_t mma_fragment_registers(const MmaOperand *factor);
/* Fragment `i` of step `step` of the tile that begins at k0 (index_type): i32, of f64 double. Of
 * the lhs an operand of the instruction; of the right one two, 8 columns each, one after
 * another. */
void mma_operand_fragment(const MmaOperand *factor, const GemmBlock *block, Val stage, uint32_t i,
                          uint32_t step, Val k0, Val *registers);

#endif
