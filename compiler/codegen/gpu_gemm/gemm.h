/* Code common to the GPU's GEMM templates: the output tile of a block, and the epilogue.
 *
 * A block computes GemmTile.m x GemmTile.n outputs of one batch. Its accumulators, in the
 * reduction's compute dtype, go through shared memory to gpu_gemm_epilogue. The loop there contains
 * the epilogue's code once for all outputs of a thread, and its threads store whole rows,
 * coalesced. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_GEMM_H
#define FUSEC_CODEGEN_GPU_GEMM_GEMM_H

#include "codegen/gpu/gpu.h"
#include "template/mma.h"
#include "codegen/scalar/acc.h"

typedef struct GemmBlock {
    Lower *lower;
    Val thread;    /* i32 */
    Val m0, n0;    /* index_type: first row and column of the tile; inside the extents */
    Val m, n, k;   /* index_type: extents */
    bool is_whole; /* along n: every tile is inside the extent */
    Val batch;     /* index_type: number of the batch; NULL: there is one batch */
    Point point;   /* position with the batch axes set */
} GemmBlock;

/* The tiling of outputs by tiles of m x n, with `across` tiles side by side from column `begin`
 * on. */
typedef struct GemmTiles {
    uint32_t m, n;
    DimId begin, across;
    bool is_whole; /* as GemmBlock.is_whole */
} GemmTiles;

/* Finds the tile of this block in a grid of batches x tiles along m x tiles along n. For GEMM_GEMV
 * each tile has as many consecutive blocks as a cluster. Tiles are numbered in groups of a few rows
 * of tiles, so that concurrent blocks share operands in L2. */
GemmBlock gpu_gemm_block(Lower *lower);
/* The tiling of all outputs by tiles of `rows` rows and the schedule's columns. */
GemmTiles gpu_gemm_tiles(const Lower *lower, uint32_t rows);
/* The tile number `tile` (index_type), for persistent blocks. */
GemmBlock gpu_gemm_block_at(Lower *lower, Val tile, const GemmTiles *tiles);

/* Row of tiles number `row` of all batches: a block without columns. And the number of its tile
 * `column`. */
GemmBlock gpu_gemm_row_at(Lower *lower, Val row, const GemmTiles *tiles);
Val gpu_gemm_tile_number(Lower *lower, Val row, Val column, const GemmTiles *tiles);

/* Of a tile of rows: the elements of k to multiply, [first, end), those of the kernel's band if it
 * is along k; and the columns of its band along n. */
GpuBand gpu_gemm_band_of_k(const GemmBlock *block);
GpuBand gpu_gemm_band_of_n(const GemmBlock *block);
/* Whether the tile has outputs in the kernel's band: i1; NULL: all tiles have. `columns`: of the
 * tile. */
Val gpu_gemm_in_band(const GemmBlock *block, uint32_t columns);

/* The tile in the form that later kernels of the sequence read. */
BlockTile gpu_gemm_tile(const GemmBlock *block);

/* Whether the extent of an axis is a multiple of `lanes` under the variant's predicate. A vector of
 * `lanes` elements from a multiple of `lanes` is then inside the extent or outside as a whole. */
bool gpu_gemm_axis_is_multiple(const Lower *lower, uint32_t axis, uint32_t lanes);

/* Emits at the block's point the values that the roots need and that depend on the batch alone. */
void gpu_gemm_prepare_batch(GemmBlock *block, const ScalarId *roots, uint32_t n_roots);

/* Operands. The number of loads under `value` that are contiguous for `lanes` lanes along an
 * axis. */
uint32_t gpu_gemm_contiguous_loads(const Lower *lower, ScalarId value, uint32_t axis,
                                   uint32_t lanes);
/* Whether vectors of `lanes` elements along the axis are contiguous and aligned in memory. */
bool gpu_gemm_has_vectors(const Lower *lower, const Scalar *load, uint32_t axis, uint32_t lanes);
/* Converts a value of an operand to the accumulators' dtype, and a sum to the result's. */
Val gpu_gemm_to_acc(const Lower *lower, ScalarId operand, Val value);
Val gpu_gemm_rounded(const Lower *lower, Val sum);
/* The byte offset (i32) of the stage after that at `at` in a ring of `n` stages. */
Val gpu_gemm_next_stage(const Codegen *k, Val at, uint32_t stage_bytes, uint32_t n);

/* Whether no two tiles of the kernel read the same element of the rhs: the rhs is a plain load, and
 * all outputs are in one row of tiles. */
bool gpu_gemm_one_tile_reads_right(const Lower *lower);
/* The same of a launch, which has one kernel then. */
bool gpu_gemm_reads_right_once(const Lower *lower);

/* The epilogue of a part of the tile that is in shared memory. For each output inside the extents
 * it rounds the accumulator to the result dtype, computes the row stores and stores them. The
 * part's rows have a pitch of `pitch` elements of the compute dtype from `shared` on (16-byte
 * aligned; for vectors the pitch is a multiple of 16 bytes). Row r of the part is row first_row + r
 * / run * run_stride + r % run of the tile. Threads take vectors of at most sched.lanes and 16
 * bytes, side by side along n. All threads of the block must call it, and the caller places
 * barriers before and after. */
typedef struct GemmSubtile {
    Val shared;                 /* ptr addrspace(3) */
    uint32_t pitch;             /* elements */
    uint32_t n_rows, n_columns; /* powers of two */
    Val first_row;              /* i32: row in the tile; NULL: 0 */
    uint32_t run, run_stride;   /* powers of two */
    Val n_next;       /* i32: number of rows right after these that are stored next; NULL: none */
    uint32_t between; /* elements from one kernel's results to the next kernel's; 0: n_columns */
    bool is_rounded;  /* the elements are already rounded to the result dtype */
} GemmSubtile;
void gpu_gemm_epilogue(const GemmBlock *block, const GemmSubtile *subtile);

/* Stores a tile in `n_subtiles` subtiles, each of subtile->run rows of each run. The parts go one
 * after the other through the same shared memory: `put` writes the accumulators of subtile i. So
 * the epilogue's code exists once. */
void gpu_gemm_epilogue_subtiles(const GemmBlock *block, GemmSubtile subtile, uint32_t n_subtiles,
                                void (*put)(const void *user, uint32_t i), const void *user);

/* The accumulators of a lane in a fragment of mma.sync and of wgmma: 16 rows x 8 columns of a
 * warp's product, of which a lane has two pairs of neighbours. Pair h is columns 2t and 2t + 1 of
 * row g + 8h, with g the lane's number / 4 and t its number % 4. */
enum {
    FRAGMENT_ROWS = MMA_FRAGMENT_ROWS,
    FRAGMENT_COLUMNS = 8,
    FRAGMENT_PAIR = 2, /* neighbours in a row */
    FRAGMENT_ACCUMULATORS = 4,
    PAIR_ROWS = 8 /* from one pair of a lane to its other pair */
};
Val gpu_fragment_row(const Codegen *k, Val lane);    /* i32: g */
Val gpu_fragment_column(const Codegen *k, Val lane); /* i32: 2t; the lane or the thread's number */
/* Joins an accumulator over the four lanes of a row of a fragment. */
Acc gpu_fragment_join(const Lower *lower, const Reduce *reduce, Acc acc);
/* The position of pair `half` of fragment (m,n) in a lane's accumulators [n_m,n_n,4]. */
static inline uint32_t gpu_fragment_pair(uint32_t n_n, uint32_t m, uint32_t n, uint32_t half) {
    return (m * n_n + n) * FRAGMENT_ACCUMULATORS + half * FRAGMENT_PAIR;
}

/* The fragments of a warp's product that a thread writes to shared memory. */
typedef struct GemmFragments {
    const Val *accs;   /* [n_m,n_n,4] */
    uint32_t n_m, n_n; /* fragments along m and n */
    uint32_t n_halves; /* 2; 1: one pair of each fragment, the first of which `accs` is */
    uint32_t pitch;    /* elements of a row in shared memory */
    uint32_t column;   /* the first fragment's column there */
    Dtype acc, stored; /* type of the accumulators, and in shared memory */
} GemmFragments;
/* Writes the accumulators to shared memory. `place` is the thread's: row g, column 2t. */
void gpu_gemm_put_fragments(const Codegen *k, const GemmFragments *fragments, Val place);

/* gpu_gemm_epilogue in two steps, for callers that distribute rows and columns themselves. The
 * first prepares values that depend on the thread's columns alone: `lanes` columns from `in_tile`
 * (i32) on. The second stores the part's rows from `first` (i32) on, `step` apart, up to `unroll`
 * of them at once (a power of two, at most 8), so that their loads overlap. A loop may prepare the
 * columns of its next iteration and carry them as values. */
enum { GEMM_MAX_EARLY_LOADS = 8 }; /* per row: the loaded values wait in registers */
typedef struct GemmColumn {
    Point point;
    Val in_subtile; /* i32: the first column in the part */
    /* Loads that are started one iteration before their use. */
    ScalarId early[GEMM_MAX_EARLY_LOADS];
    uint32_t n_early;
} GemmColumn;
uint32_t gpu_gemm_lanes(const GemmBlock *block, uint32_t most);
/* The number of rows computed at once. Several rows let their loads overlap; one row suffices for
 * much arithmetic, which hides the latency and needs many registers. */
uint32_t gpu_gemm_rows_at_once(const Lower *lower);
GemmColumn gpu_gemm_column(const GemmBlock *block, Val in_tile, uint32_t lanes);
/* The number of values of `column` that vary with the column. `loop` carries them, if it is not
 * NULL. */
uint32_t gpu_gemm_carry_column(const GemmBlock *block, GemmColumn *column, Loop *loop);
/* Sets these values to those of another column. */
void gpu_gemm_move_column(const GemmBlock *block, GemmColumn *column, const GemmColumn *to);
/* For kernels that share the block: each kernel with the block of its own Lower. Their results of
 * one row are side by side in the part, n_columns each. A value that one kernel computes for
 * another passes in registers. */
enum { GEMM_MAX_EPILOGUES = 4 };
typedef struct GemmEpilogue {
    GemmBlock block;
    GemmColumn column;
} GemmEpilogue;
/* Marks the loads that depend on the row as early, except loads of tensors that the kernels
 * themselves compute. */
void gpu_gemm_load_early(GemmEpilogue *epilogues, uint32_t n_epilogues);
/* The rows of a part that one thread stores. */
enum { GEMM_MAX_UNROLL = 8 };
typedef struct GemmRows {
    const GemmEpilogue *epilogues;
    uint32_t n_epilogues;
    const GemmSubtile *subtile;
    Val first; /* i32 */
    uint32_t step, unroll;
} GemmRows;
GemmRows gpu_gemm_rows(const GemmEpilogue *epilogues, uint32_t n_epilogues,
                       const GemmSubtile *subtile, Val first, uint32_t step, uint32_t unroll);
/* Starts the early loads of the first rows, and returns the number of values.
 * gpu_gemm_epilogue_rows uses these values, and leaves those of the rows after the part, up to
 * part->n_next. */
enum { GEMM_MAX_EARLY_VALUES = GEMM_MAX_UNROLL * GEMM_MAX_EPILOGUES * GEMM_MAX_EARLY_LOADS };
uint32_t gpu_gemm_begin_rows(const GemmRows *rows, Val *values);
void gpu_gemm_epilogue_rows(const GemmRows *rows, Val *values);

/* The epilogue for a single output in a thread's register. gpu_gemm_begin_one starts the loads of
 * output `element` (i32, counted row by row). gpu_gemm_epilogue_one does the rest; `value` is the
 * GEMM's result in the accumulator's dtype. */
typedef struct GemmOne {
    GemmEpilogue epilogue;
    Val row; /* index_type: row of the matrix */
    Val early[GEMM_MAX_EARLY_LOADS];
} GemmOne;
GemmOne gpu_gemm_begin_one(const GemmBlock *block, const GemmSubtile *subtile, Val element);
void gpu_gemm_epilogue_one(const GemmOne *one, Val value);

#endif
