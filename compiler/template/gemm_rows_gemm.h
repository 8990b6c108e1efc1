/* Gemm-rows-gemm launches such as attention: the facts on which passes and templates agree.
 *
 * A LAUNCH_GEMM_ROWS_GEMM has three kernels: a GEMM (the scores [.., m, n]), a row kernel on its
 * result, and a GEMM of the row kernel's result (with a rhs [.., n, columns]). A block has the same
 * tile_m rows in all three. The scores are computed `tile_n` columns at a time, again in every pass
 * of the row kernel, and never exist as a whole. In the last pass the row kernel's values are the
 * lhs of the second GEMM, whose accumulators stay in registers.
 *
 * No bit changes. The scores are the same in every pass. A sum along the rows has chains
 * (ReduceOrder), each of which must add its elements in ascending order, but chains are
 * independent. So a reducing pass takes the tiles with the same chains one after the other, then
 * those with the next chains, and joins the chains of such a lot when it ends: a subtree of the
 * order's tree. The last pass takes tiles in ascending order, as the second GEMM needs them.
 *
 * Shared memory holds the lhs tile and two buffers, each for a tile of either rhs. */
#ifndef FUSEC_TEMPLATE_GEMM_ROWS_GEMM_H
#define FUSEC_TEMPLATE_GEMM_ROWS_GEMM_H

#include "plan/plan.h"
#include "template/mma.h"
#include "template/wgmma.h"

enum {
    GEMM_ROWS_GEMM_SCORES = 0, /* numbers of the kernels */
    GEMM_ROWS_GEMM_ROWS,
    GEMM_ROWS_GEMM_RESULT,
    GEMM_ROWS_GEMM_KERNELS,
    GEMM_ROWS_GEMM_WARPS = 4,
    GEMM_ROWS_GEMM_ELEM_BYTES = 2,
    GEMM_ROWS_GEMM_STEP = 16,     /* elements of k of one instruction */
    GEMM_ROWS_GEMM_PAD_K = 32,    /* every GEMM pads k to a multiple of this */
    GEMM_ROWS_GEMM_PAIR = 2,      /* neighbours in a row that one thread has */
    GEMM_ROWS_GEMM_MOST_SUMS = 4, /* reductions of a pass */
    ONLINE_MMA_WARP_ROWS = 16,    /* by mma.sync */
    GEMM_ROWS_GEMM_MOST_K = 128,
    GEMM_ROWS_GEMM_MOST_COLUMNS = 128, /* of the result */
    GEMM_ONLINE_MOST_K = 256,          /* of a matmul and an online kernel by wgmma */
    GEMM_ONLINE_MOST_COLUMNS = 256,
    /* Registers of a thread of the producer, at least: if it copies and looks at values, or if it
     * computes tiles. */
    ONLINE_COPYING_REGISTERS = 32,
    ONLINE_COMPUTING_REGISTERS = 72,
    /* Of a thread, beside the accumulators, in a kernel with one wgmma instruction. */
    ONLINE_INSTRUCTION_REGISTERS = 30
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

/* An online kernel by mma.sync, alone (`scores` NULL: a buffer for values) or with the matmul of
 * its scores; in the end the sums, which are f32. */
static inline uint32_t online_mma_shared_bytes(const Sched *scores, const Sched *result) {
    uint32_t of_sums = mma_epilogue_bytes(result, sizeof(float));
    uint32_t own = scores ? gemm_rows_gemm_shared_bytes(scores, result)
                          : result->gemm.tile_k * result->gemm.tile_n * GEMM_ROWS_GEMM_ELEM_BYTES;
    return own > of_sums ? own : of_sums;
}

/* Registers of a thread, if a multiprocessor has `n_blocks` blocks of `n` consumers and a producer:
 * its threads have at least `least`, and what consumers cannot share. */
typedef struct OnlineRegisters {
    uint32_t at_first; /* of every thread, until the consumers take theirs */
    uint32_t consumer, producer;
} OnlineRegisters;

static inline OnlineRegisters online_registers(uint32_t n_blocks, uint32_t n, uint32_t least) {
    uint32_t at_first = PROCESSOR_REGISTERS / (n_blocks * (n + 1) * WGMMA_GROUP_THREADS);
    at_first -= at_first % REGISTER_STEP;
    uint32_t consumer = ((n + 1) * at_first - least) / n;
    consumer -= consumer % REGISTER_STEP;
    return (OnlineRegisters){at_first, consumer, (n + 1) * at_first - n * consumer};
}

/* Registers of a consumer's thread for its sums, its scores and their weights, if its tiles have
 * `columns` of the result and `width` of the scores. */
static inline uint32_t online_product_registers(uint32_t columns, uint32_t width) {
    return columns / 2 + width / 2 + width / 4;
}

/* By wgmma: the lhs tile, then stages of a tile of the scores' rhs and one of the result's rhs,
 * then the buffers of results, then two mbarriers of the lhs and five of each stage, then a flag
 * per stage and warp of the producer, then two mbarriers of the next tile of rows and its number.
 */
enum { GEMM_ROWS_GEMM_STAGE_BARRIERS = 5, ONLINE_GIVEN_BYTES = 24 };
typedef struct GemmRowsGemmTiles {
    uint32_t left_bytes, right_bytes, values_bytes;
} GemmRowsGemmTiles;

static inline uint32_t gemm_rows_gemm_wgmma_bytes(GemmRowsGemmTiles tiles, const Sched *result) {
    uint32_t stage = tiles.right_bytes + tiles.values_bytes +
                     GEMM_ROWS_GEMM_STAGE_BARRIERS * WGMMA_BARRIER_BYTES + 4 * WGMMA_GROUP_WARPS;
    return tiles.left_bytes + result->gemm.stages * stage +
           result->gemm.warps_m * wgmma_epilogue_bytes(result) + 2 * WGMMA_BARRIER_BYTES +
           ONLINE_GIVEN_BYTES;
}

#endif
