/* Launches whose rows pass tile by tile: what passes and templates agree on.
 *
 * Three kernels linked by LINK_RELAY: a product (the scores, [.., m, n]), rows over it, and a
 * product of what the rows make (by [.., n, columns]). A block has tile_m rows from beginning to
 * end. The scores are made `tile_n` columns at a time, in every pass of the rows anew, and are
 * nowhere whole; in the last pass the rows' values are the left factor of the second product, whose
 * sums stay in registers.
 *
 * Nothing changes a bit. Scores are the same whenever they are made. A sum along the rows has
 * chains (ReduceOrder), and each must have its elements in ascending order; but the chains are
 * independent. So a pass that reduces takes the tiles that have the same chains one after the
 * other, then those of the next, and joins the chains of each such lot when it is done: a subtree
 * of the order's tree. The last pass takes tiles in ascending order, as the second product needs
 * them.
 *
 * Shared memory holds the left factor's tile and two buffers, each for a tile of either right
 * factor. */
#ifndef FUSEC_PLAN_GEMM_ROWS_GEMM_H
#define FUSEC_PLAN_GEMM_ROWS_GEMM_H

#include "plan/kernel.h"

enum {
    RELAY_KERNELS = 3, /* scores, rows, result */
    RELAY_WARPS = 4,
    RELAY_ELEM_BYTES = 2,
    RELAY_STEP = 16,  /* elements of k of one instruction */
    RELAY_PAD_K = 32, /* products pad k to a multiple of this, everywhere */
    RELAY_MOST_K = 128,
    RELAY_MOST_COLUMNS = 128 /* of the result */
};

static inline uint32_t relay_left_bytes(const Sched *scores) {
    return scores->tile_m * scores->tile_k * RELAY_ELEM_BYTES;
}

static inline uint32_t relay_buffer_bytes(const Sched *scores, const Sched *result) {
    uint32_t right = scores->tile_n * scores->tile_k, values = result->tile_k * result->tile_n;
    return (right > values ? right : values) * RELAY_ELEM_BYTES;
}

static inline uint32_t relay_shared_bytes(const Sched *scores, const Sched *result) {
    return relay_left_bytes(scores) + 2 * relay_buffer_bytes(scores, result);
}

#endif
