/* Softmax between two products by wgmma: declarations that the template's files share. The kernel
 * is one of the form `online`, alone or with the matmul that makes its scores.
 *
 * A persistent block walks over tiles of rows. The last warpgroup is the producer: it copies the
 * tile of the scores' lhs, then tiles of the scores' rhs and of the result's rhs by turns. Each
 * warpgroup before it is a consumer of 64 rows:
 *
 *     scores = lhs rhs^T              accumulators [64, width]; or they are loaded
 *     weights, and a shift per row    while another warpgroup multiplies
 *     result += weights values        the weights are the lhs, in registers
 *
 * A thread has two rows, 8 apart, and of each the columns 8n + 2t and 8n + 2t + 1, with t the
 * number of the thread among the four of its rows. The accumulators of the scores lie in registers
 * as the lhs of the second product must.
 *
 * A tile of columns that a mask hides from all rows of the block is neither copied nor multiplied.
 * In one that no mask touches, no code for masks runs. A hidden key, of score -infinity, has no
 * part in the sums, whatever its value is. Where rows may not see keys of a tile, idle warps of the
 * producer find out whether its values have an infinity or a NaN. If so, a consumer multiplies the
 * scores again, to see which are hidden; so the tiles of both operands stay until then. With more
 * than 128 columns of the result the registers hold scores or weights, not both, and a consumer
 * that is alone waits for memory: such consumers end one product before the other begins. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_WGMMA_ROWS_H
#define FUSEC_CODEGEN_GPU_GEMM_WGMMA_ROWS_H

#include "codegen/gpu_gemm/wgmma.h"
#include "codegen/scalar/mask.h"
#include "codegen/scalar/online.h"
#include "template/gemm_rows_gemm.h"

enum {
    WGMMA_ROWS_OF_THREAD = 2,
    WGMMA_ROWS_MOST_PAIRS = 16, /* of a thread's row in a tile of scores */
    WGMMA_ROWS_MOST_SCORES = 2 * WGMMA_ROWS_OF_THREAD * WGMMA_ROWS_MOST_PAIRS,
    WGMMA_ROWS_MOST_SUMS = 128,     /* of a thread, of the result */
    WGMMA_ROWS_MOST_BESIDE = 64,    /* sums, where the scores of the next tile have registers too */
    WGMMA_ROWS_BLOCK_ELEMS = 64,    /* 16-bit elements of a row of the swizzle */
    WGMMA_ROWS_STEP_REGISTERS = 4,  /* of a thread, of the lhs in a step of k */
    WGMMA_ROWS_MOST_STEPS = 8,      /* of k of the scores' product, if its lhs lies in registers */
    WGMMA_ROWS_OTHER_REGISTERS = 40 /* beside sums, scores, weights and the lhs */
};

/* What a consumer has of the tile before: nothing, weights of keys that all rows see, or weights of
 * which some may be hidden. */
enum { WGMMA_ROWS_NO_WEIGHTS, WGMMA_ROWS_WEIGHTS, WGMMA_ROWS_WEIGHTS_OF_HIDDEN };

/* An operand's tile in shared memory: `own` elements along m or n, `depth` along k. */
typedef struct OperandTile {
    Lower *lower;
    const TensorMap *map;
    Val parameter;
    uint32_t axis; /* m or n */
    bool is_mn_major;
    bool is_read_once; /* by one block */
    uint32_t own, depth, bytes;
} OperandTile;

typedef struct WgmmaRows {
    Lower *lower, *out_lower; /* of the scores, and of the online kernel: without scores the same */
    bool has_scores;          /* the launch multiplies them */
    bool has_maps; /* the copy engine copies tiles; else the producer's threads compute them */
    Val copies;    /* i1: this thread of the producer starts copies */
    uint32_t row_axis, key_axis;   /* of `lower`: rows and columns of the scores */
    ScalarId exponent;             /* of the online kernel */
    ScalarId weight_factor;        /* Reduce.factor of it */
    Reduce greatest, total_of_row; /* how a row's shift and its sum of weights are combined */
    const Codegen *k;
    Wgmma out; /* the result's tile for its epilogue */
    GemmTiles tiles;
    OperandTile left, right, values;
    uint32_t width, n_pairs, n_sums, n_stages;
    bool keeps_left; /* consumers have the lhs in registers (i32) */
    Val kept_left[WGMMA_ROWS_MOST_STEPS * WGMMA_ROWS_STEP_REGISTERS];
    bool overlaps;          /* the next tile's scores are multiplied beside a tile's weights */
    Mask masks[MOST_MASKS]; /* the innermost last */
    uint32_t n_masks;
    MaskThreads looking; /* a warp looks at the masks' values of rows */
    MaskBox seen_rows;   /* of the block */
    bool may_hide;       /* scores may be -infinity by themselves */
    /* The product times a power of two, or SCALAR_NONE: the scores here are the product itself, as
     * the multiplication rounds nothing. `scale`: that power, or 1. */
    ScalarId scaled;
    double scale;
    double factor;               /* a weight is 2^(factor * (score - shift)) */
    bool is_whole;               /* every tile of scores is inside the extents */
    GemmBlock block, out_block;  /* of `lower` and of the result */
    Val n_keys;                  /* index_type: columns of the scores */
    OnlineKeys keys;             /* those of the block */
    Val left_parity, wants_left; /* of the producer: variables, of the lhs of the block's rows */
    /* Of a consumer: positions of its rows, and variables that lie in registers. */
    Point score_rows[WGMMA_ROWS_OF_THREAD], rows[WGMMA_ROWS_OF_THREAD];
    Val scores[WGMMA_ROWS_MOST_SCORES], sums[WGMMA_ROWS_MOST_SUMS];
    Val shift[WGMMA_ROWS_OF_THREAD], total[WGMMA_ROWS_OF_THREAD][2];
    Val weights[2 * WGMMA_ROWS_MOST_PAIRS], has_weights;
    Val weighed;                    /* index_type: the column of the tile that was weighed */
    Val seen[WGMMA_ROWS_OF_THREAD]; /* i32: the thread's keys that are not hidden, a bit for each */
} WgmmaRows;

void wgmma_rows_find_masks(WgmmaRows *s);
/* Sets what masks have of the rows of the block. The threads of a warp come here together. */
void wgmma_rows_take_seen_rows(WgmmaRows *s);
/* What the rows of the block see of the tile from `column` (index_type) on. NULL: some of every
 * tile, or all of every tile. Each thread may have a column of its own. */
Seen wgmma_rows_seen(const WgmmaRows *s, Val column);
/* What they see of 32 tiles from `column` on, which the threads of a warp look at together: a bit
 * (i32) for each tile. */
typedef struct SeenTiles {
    Val some, all; /* whether a row sees some of its columns; whether all rows see all of them */
} SeenTiles;
SeenTiles wgmma_rows_seen_tiles(const WgmmaRows *s, Val column);
/* The number (i32) of the first tile of `some`, of which there is one. */
Val wgmma_rows_first_seen(const WgmmaRows *s, Val some);

/* Whether rows may not see some columns of a tile. */
static inline bool wgmma_rows_hide_columns(const WgmmaRows *s) {
    return s->n_masks || !s->is_whole;
}
/* The work of a role on the tile of columns at `column`. `sees_all`: see Seen. */
typedef void WgmmaRowsWork(WgmmaRows *s, Val column, Val sees_all, PipelineState place);
/* Does the work on every tile of columns that some row sees. `ring` has the stage and its parity.
 */
void wgmma_rows_each_columns(WgmmaRows *s, WgmmaRowsWork *work, Val *ring);

/* Opens the kernels of the launch; `out` stays for the template. */
void wgmma_rows_open(WgmmaRows *s, Lower *lowers);
/* Whether a block takes the next tile of rows when it has one less to do (Kernel.tiles_taken). All
 * warps of the producer and of the consumers then walk over tiles. */
static inline bool wgmma_rows_counts_tiles(const WgmmaRows *s) {
    return s->lower->kernel->tiles_taken != SCALAR_NONE;
}
/* Where it does, shared memory for the next tile of rows: mbarriers, and its number
 * (index_type). */
typedef struct WgmmaRowsGiven {
    Val full, empty, number;
} WgmmaRowsGiven;
WgmmaRowsGiven wgmma_rows_given(const WgmmaRows *s);
/* The number of the tile of rows at place `at` of all. Where masks hide tiles of columns, tiles of
 * rows take different times: a few batches are computed together, and their tiles of rows go from
 * the last to the first, as under a causal mask the last rows see the most columns. */
Val wgmma_rows_number(const WgmmaRows *s, Val at);
/* The work of a role on tile `number` of rows. `ring`: the stage, its parity and that of the lhs,
 * which changes with each tile, updated in place. */
enum { WGMMA_ROWS_RING = 3 };
typedef void WgmmaRowsTileWork(WgmmaRows *s, Val number, Val *ring);
/* Does the work on each of the block's tiles of rows. is_producer: the role brings in operands. */
void wgmma_rows_each_tile(WgmmaRows *s, WgmmaRowsTileWork *work, bool is_producer);
void wgmma_rows_make_variables(WgmmaRows *s);
/* Sets the block to tile `number` (index_type). */
void wgmma_rows_take_tile(WgmmaRows *s, Val number);
/* A consumer begins the rows of the block: their positions, then their variables. */
void wgmma_rows_begin(WgmmaRows *s);
void wgmma_rows_reset(const WgmmaRows *s);
/* Turns the scores of the tile at `column` into exponents, in place. `sees_all`: Seen.all; NULL: no
 * mask hides a column. */
void wgmma_rows_make_exponents(const WgmmaRows *s, Val column, Val sees_all);
/* The same with the code for masks in any case. */
void wgmma_rows_make_exponents_again(const WgmmaRows *s, Val column);
/* A row's greatest exponents: before the tile of columns, and with it. */
typedef struct RowMost {
    Val before, now;
} RowMost;
/* Sets the shifts of the thread's rows: the greatest exponents. */
void wgmma_rows_shift(const WgmmaRows *s, RowMost *rows);
/* Turns the exponents of the tile at `column` into weights, adds them to the totals, and rounds
 * them, times their factors, to the lhs of the second product; scales the sums of the tiles before.
 * All of it is one block of code: powers take their unit's time, in which ptxas places the other
 * work. */
void wgmma_rows_weigh(const WgmmaRows *s, Val column, const RowMost *rows);
/* The register of the weights of the thread's row `r` in pair `n`. */
static inline uint32_t wgmma_rows_weight(uint32_t r, uint32_t n) {
    return n / 2 * 4 + n % 2 * 2 + r;
}

/* Tiles in which a value is not finite. */

/* The exponents of the two values of a word (i32), each plus one: that of a value that is not
 * finite reaches its sign. Those of several words may be joined by `or`. */
Val wgmma_rows_next_exponents(const WgmmaRows *s, Val word);
/* Whether such a value is not finite: i1. */
Val wgmma_rows_is_infinite(const WgmmaRows *s, Val next);
/* The word with 0 in place of such elements. */
Val wgmma_rows_finite(const WgmmaRows *s, Val word);
/* Notes which exponents are not those of hidden keys. */
void wgmma_rows_note_seen(const WgmmaRows *s);
/* The values (i32: 16 bits each) of a key of the tile at a pair of columns (i32: the first) of the
 * result's tile. */
typedef Val WgmmaRowsPair(const void *user, Val key, Val column);
/* The pair of values at two places in shared memory. */
Val wgmma_rows_pair(const Codegen *k, Val first, Val second, bool are_neighbours);
/* Adds to the sums the infinities and NaNs that the rows see, each times its weight. */
void wgmma_rows_add_infinite(const WgmmaRows *s, WgmmaRowsPair *pair_at, const void *user);
/* Divides the sums by the totals; those of a part are stored beside the greatest scores. */
void wgmma_rows_end(WgmmaRows *s);

/* Whether consumers of `registers` a thread may keep the lhs. */
bool wgmma_rows_can_keep_left(const WgmmaRows *s, uint32_t registers);
/* A consumer loads its rows of the lhs tile. */
void wgmma_rows_take_left(WgmmaRows *s);
/* Each warp that has its rows arrives at the barrier. */
void wgmma_rows_free_left(const WgmmaRows *s, Val barrier);

/* Begin the products of a tile: a wgmma group each. `left_at`: the lhs in shared memory; NULL if it
 * is kept. */
void wgmma_rows_multiply_scores(const WgmmaRows *s, Val left_at, Val right_at);
void wgmma_rows_multiply_weights(const WgmmaRows *s, Val values_at);

/* Without maps: the producer's threads compute a tile of an operand at the block, from `own` along
 * its axis and `k` on (index_type), and one of them arrives at the barrier. `flag`: becomes 1 in
 * shared memory if a value of the warp is not finite, else 0; NULL: nobody asks. */
typedef struct TilePlace {
    Val own, k, to, flag;
} TilePlace;
void wgmma_rows_compute_tile(const WgmmaRows *s, const OperandTile *tile, const GemmBlock *block,
                             TilePlace place, Val barrier);
/* A warp looks at its part of the values at `at`, and sets its flag. */
void wgmma_rows_check_values(const WgmmaRows *s, Val at, Val flag);
/* The consumers add the infinities and NaNs of the values at `at` to the sums of the rows that see
 * them, and replace them by 0. */
void wgmma_rows_take_infinite(const WgmmaRows *s, Val at);

#endif
