/* Gemm-rows-gemm launches (template/gemm_rows_gemm.h) on tensor cores: declarations that the
 * template's files share.
 *
 * A warp has 16 or 32 rows of the block's tile and all columns of a tile of scores. So a row lies
 * in four threads. The accumulators that one mma leaves in a thread are the registers that the next
 * mma takes as its lhs: scores never leave the registers. Thread t of the four has columns 8n + 2t
 * and 8n + 2t + 1: one pair for each n. Each pair is a point of the scores' kernel. If the row
 * kernel does not use the column index, several pairs form one point of it, although their columns
 * are not contiguous. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_GEMM_ROWS_GEMM_H
#define FUSEC_CODEGEN_GPU_GEMM_GEMM_ROWS_GEMM_H

#include "codegen/gpu_gemm/mma_tile.h"
#include "codegen/gpu/stage.h"
#include "template/gemm_rows_gemm.h"

enum {
    PAIR = GEMM_ROWS_GEMM_PAIR,
    MAX_ROWS = 4,    /* rows per thread */
    MAX_PAIRS = 8,   /* pairs of a row per thread */
    GROUP_PAIRS = 4, /* most pairs of one point of the row kernel */
    MAX_LEVELS = 6
};
_Static_assert((int)PAIR == (int)FRAGMENT_PAIR, "a pair of scores is a pair of a fragment");

typedef struct GemmRowsGemm {
    Lower *lower, *rows_lower, *out_lower;
    const Codegen *k;
    const Kernel *rows_kernel;
    MmaTile scores, out;
    MmaOperand left, right, values; /* both operands of the scores, and the rhs of the result */
    uint32_t n_steps;               /* steps of the scores' k */
    uint32_t width, n_pairs;        /* of a tile of scores: its columns, and the pairs of a row in a
                                     * thread */
    uint32_t group, n_groups;       /* pairs of one point of the row kernel; points (groups) of a
                                     * row */
    uint32_t period;                /* tiles from one element of a chain to the next */
    uint32_t n_levels;              /* levels of the tree over a row's lots of chains, plus one */
    Val fixed, buffers;             /* shared memory: the lhs tile, then two buffers */
    uint32_t buffer_bytes;
    Val read;      /* i32: byte offset in `buffers` of the current tile */
    Val n_tiles;   /* index_type: tiles of a row */
    Val column;    /* index_type: the thread's first column in a tile */
    bool is_whole; /* every tile is inside the extents */
    uint32_t n_rows;
    Point score_rows[MAX_ROWS], rows[MAX_ROWS]; /* positions of the thread's rows: two of each 16 */
} GemmRowsGemm;

/* The current tile: its first column plus the thread's first column, and which pairs exist (i1).
 * NULL: all exist. */
typedef struct ScoreTile {
    Val column;
    Val exists[MAX_PAIRS];
} ScoreTile;

/* Waits until all fetched tiles have arrived and all threads have finished with the buffers. */
void gemm_rows_gemm_meet(const GemmRowsGemm *s);
/* gemm_rows_gemm_fetch_right starts the copy of tile `tile` (index_type) of the scores' rhs to the
 * buffer at `offset` (i32). gemm_rows_gemm_other_buffer returns the offset of the other buffer. */
void gemm_rows_gemm_fetch_right(GemmRowsGemm *s, Val tile, Val offset);
Val gemm_rows_gemm_other_buffer(const GemmRowsGemm *s, Val offset);
/* Computes the scores of the tile at `offset`. */
void gemm_rows_gemm_multiply_scores(GemmRowsGemm *s, Val offset);
ScoreTile gemm_rows_gemm_tile(const GemmRowsGemm *s, Val tile);
/* The point of the row kernel at group `g` of row `r`, with its scores set. */
Point gemm_rows_gemm_group(const GemmRowsGemm *s, const ScoreTile *at, uint32_t r, uint32_t g);
/* A mask of the lanes of group `g` that exist; NULL: all. */
Val gemm_rows_gemm_group_exists(const GemmRowsGemm *s, const ScoreTile *at, uint32_t g);
/* Emits a reducing pass over the rows: sets the results at all rows. */
void gemm_rows_gemm_reduce(GemmRowsGemm *s, const Stage *stage);

/* The row kernel's values of one tile, as registers of the lhs: [row,pair], i32. */
typedef struct Weights {
    Val pairs[MAX_ROWS][MAX_PAIRS];
} Weights;
void gemm_rows_gemm_put_weights(const GemmRowsGemm *s, uint32_t r, uint32_t g, Val values,
                                Weights *weights);

static inline Val gemm_rows_gemm_index(const GemmRowsGemm *s, int64_t value) {
    return lower_index_const(s->lower, value);
}

#endif
