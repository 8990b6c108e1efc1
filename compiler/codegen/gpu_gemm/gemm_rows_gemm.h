/* Gemm-rows-gemm launches (template/gemm_rows_gemm.h) on tensor cores: what the template's files
 * share.
 *
 * A warp has 16 or 32 rows of the block's tile and all columns of a tile of scores, so that a row
 * lies in four threads, and what one instruction leaves in a thread's accumulators is what another
 * takes of it as its lhs: scores never leave the registers. Thread t of the four has
 * columns 8n + 2t and 8n + 2t + 1, a pair for each n. Each pair is a point of the scores' kernel.
 * Where rows do not ask at which column they are, several pairs are one point of theirs, whatever
 * lies between. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_GEMM_ROWS_GEMM_H
#define FUSEC_CODEGEN_GPU_GEMM_GEMM_ROWS_GEMM_H

#include "codegen/gpu_gemm/mma_tile.h"
#include "codegen/gpu/stage.h"
#include "template/gemm_rows_gemm.h"

enum {
    PAIR = 2,
    MAX_ROWS = 4,    /* of a thread */
    MAX_PAIRS = 8,   /* of a row in a thread */
    GROUP_PAIRS = 4, /* that are one point of the rows, at most */
    MAX_LEVELS = 6
};

typedef struct GemmRowsGemm {
    Lower *lower, *rows_lower, *out_lower;
    const Codegen *k;
    const Kernel *rows_kernel;
    const OnlineSoftmax *online_softmax;
    MmaTile scores, out;
    MmaOperand left, right, values; /* of the scores both, and the result's right one */
    uint32_t n_steps;               /* of the scores' k */
    uint32_t width, n_pairs;        /* of a tile of scores: columns, a row's pairs in a thread */
    uint32_t group, n_groups;       /* pairs of a point of the rows; groups of a row */
    uint32_t period;                /* tiles from one element of a chain to the next */
    uint32_t n_levels;              /* of the tree over the lots of a row's chains, and one */
    Val fixed, buffers;             /* shared memory: the left tile, then two buffers */
    uint32_t buffer_bytes;
    Val read;      /* i32: where the tile that is due lies, or will, in bytes of `buffers` */
    Val n_tiles;   /* index_type: of a row */
    Val column;    /* index_type: the thread's first in a tile */
    bool is_whole; /* all tiles are */
    uint32_t n_rows;
    Point score_rows[MAX_ROWS], rows[MAX_ROWS]; /* rows of the thread: of 16, two */
} GemmRowsGemm;

/* The tile at hand: its first column plus the thread's own, and which pairs exist (i1); NULL: all.
 */
typedef struct ScoreTile {
    Val column;
    Val exists[MAX_PAIRS];
} ScoreTile;

/* All that was fetched is there, and nobody reads what was there before. */
void gemm_rows_gemm_meet(const GemmRowsGemm *s);
/* Begins to fetch tile `tile` (index_type) of the scores' rhs to the buffer at `offset`
 * (i32); other_buffer: the one that is not there. */
void gemm_rows_gemm_fetch_right(GemmRowsGemm *s, Val tile, Val offset);
Val gemm_rows_gemm_other_buffer(const GemmRowsGemm *s, Val offset);
/* The products of the tile that lies at `offset`. */
void gemm_rows_gemm_multiply_scores(GemmRowsGemm *s, Val offset);
ScoreTile gemm_rows_gemm_tile(const GemmRowsGemm *s, Val tile);
/* The point of the rows' kernel at group `g` of row `r`, with its scores. */
Point gemm_rows_gemm_group(const GemmRowsGemm *s, const ScoreTile *at, uint32_t r, uint32_t g);
/* Which lanes of group `g` exist; NULL: all. */
Val gemm_rows_gemm_group_exists(const GemmRowsGemm *s, const ScoreTile *at, uint32_t g);
/* With what the other threads of the row have, whose numbers differ in two bits. */
Acc gemm_rows_gemm_join_threads(const GemmRowsGemm *s, const Reduce *reduce, Acc acc);
/* A pass of the rows that reduces: sets the results at all rows. */
void gemm_rows_gemm_reduce(GemmRowsGemm *s, const Stage *stage);

/* The rows' values of a tile, as registers of the lhs: [row][pair], i32. */
typedef struct Weights {
    Val pairs[MAX_ROWS][MAX_PAIRS];
} Weights;
void gemm_rows_gemm_put_weights(const GemmRowsGemm *s, uint32_t r, uint32_t g, Val values,
                                Weights *weights);

/* Of the rewrite to one pass: per row of the thread the greatest exponent so far, and the sum of
 * the thread's own weights. */
typedef struct GemmRowsGemmState {
    Val shift[MAX_ROWS], total[MAX_ROWS];
} GemmRowsGemmState;
void gemm_rows_gemm_begin_online(GemmRowsGemm *s, GemmRowsGemmState *state);
/* Takes in a tile: scales what was summed before, the result's accumulators too, and adds to the
 * state, but not to the accumulators. */
void gemm_rows_gemm_weigh(GemmRowsGemm *s, const ScoreTile *at, GemmRowsGemmState *state,
                          Weights *weights);
/* Divides the result's accumulators by the sums of all weights. */
void gemm_rows_gemm_end_online(GemmRowsGemm *s, const GemmRowsGemmState *state);

static inline Val gemm_rows_gemm_index(const GemmRowsGemm *s, int64_t value) {
    return lower_index_const(s->lower, value);
}

#endif
