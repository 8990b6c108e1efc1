/* Launches whose rows pass tile by tile: what passes and templates agree on.
 *
 * A LAUNCH_GEMM_ROWS_GEMM has three kernels: a product (the scores, [.., m, n]), rows over it,
 * and a product of what the rows make (by [.., n, columns]). A block has tile_m rows from beginning
 * to end. The scores are made `tile_n` columns at a time, in every pass of the rows anew, and are
 * nowhere whole; in the last pass the rows' values are the lhs of the second product, whose
 * sums stay in registers.
 *
 * Nothing changes a bit. Scores are the same whenever they are made. A sum along the rows has
 * chains (ReduceOrder), and each must have its elements in ascending order; but the chains are
 * independent. So a pass that reduces takes the tiles that have the same chains one after the
 * other, then those of the next, and joins the chains of each such lot when it is done: a subtree
 * of the order's tree. The last pass takes tiles in ascending order, as the second product needs
 * them.
 *
 * Shared memory holds the lhs's tile and two buffers, each for a tile of either right
 * operand. */
#ifndef FUSEC_TEMPLATE_GEMM_ROWS_GEMM_H
#define FUSEC_TEMPLATE_GEMM_ROWS_GEMM_H

#include "plan/plan.h"

enum {
    GEMM_ROWS_GEMM_SCORES = 0, /* its kernels */
    GEMM_ROWS_GEMM_ROWS,
    GEMM_ROWS_GEMM_RESULT,
    GEMM_ROWS_GEMM_KERNELS,
    GEMM_ROWS_GEMM_WARPS = 4,
    GEMM_ROWS_GEMM_ELEM_BYTES = 2,
    GEMM_ROWS_GEMM_STEP = 16,  /* elements of k of one instruction */
    GEMM_ROWS_GEMM_PAD_K = 32, /* products pad k to a multiple of this, everywhere */
    GEMM_ROWS_GEMM_MOST_K = 128,
    GEMM_ROWS_GEMM_MOST_COLUMNS = 128 /* of the result */
};

static inline uint32_t gemm_rows_gemm_left_bytes(const Sched *scores) {
    return scores->gemm.tile_m * scores->gemm.tile_k * GEMM_ROWS_GEMM_ELEM_BYTES;
}

static inline uint32_t gemm_rows_gemm_buffer_bytes(const Sched *scores, const Sched *result) {
    uint32_t right = scores->gemm.tile_n * scores->gemm.tile_k,
             values = result->gemm.tile_k * result->gemm.tile_n;
    return (right > values ? right : values) * GEMM_ROWS_GEMM_ELEM_BYTES;
}

static inline uint32_t gemm_rows_gemm_shared_bytes(const Sched *scores, const Sched *result) {
    return gemm_rows_gemm_left_bytes(scores) + 2 * gemm_rows_gemm_buffer_bytes(scores, result);
}

#endif
