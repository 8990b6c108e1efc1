/* What the templates of GEMMs on a GPU share: the output tile of a block, and the epilogue.
 *
 * A block computes GemmTile.m x GemmTile.n outputs of one batch. Its accumulators, in the
 * reduction's compute dtype, go through shared memory to gpu_gemm_epilogue, whose loop holds the
 * epilogue once, however many outputs a thread has, and stores whole rows side by side. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_GEMM_H
#define FUSEC_CODEGEN_GPU_GEMM_GEMM_H

#include "codegen/gpu/gpu.h"

typedef struct GemmBlock {
    Lower *lower;
    Val thread;    /* i32 */
    Val m0, n0;    /* index_type: first row and column of the tile, within the extents */
    Val m, n, k;   /* index_type: extents */
    bool is_whole; /* along n: no tile goes beyond the extent */
    Val batch;     /* index_type: its number; NULL: there is one */
    Point point;   /* the batch axes */
} GemmBlock;

/* Tiles of m x n outputs, `across` side by side from column `begin` on. */
typedef struct GemmTiles {
    uint32_t m, n;
    DimId begin, across;
    bool is_whole; /* as of a block */
} GemmTiles;

/* Block number to tile, for a grid of batches x tiles along m x tiles along n, of GEMM_GEMV
 * each as many times in a row as a cluster has blocks. Tiles go in groups of a few rows of tiles,
 * which keeps what neighbouring blocks read in the L2 cache. */
GemmBlock gpu_gemm_block(Lower *lower);
/* Tiles of `rows` rows and as many columns as the schedule says, over all outputs. */
GemmTiles gpu_gemm_tiles(const Lower *lower, uint32_t rows);
/* The tile by number (index_type), for blocks that walk over several. */
GemmBlock gpu_gemm_block_at(Lower *lower, Val tile, const GemmTiles *tiles);

/* What kernels that follow in the launch need to know of the tile. */
BlockTile gpu_gemm_tile(const GemmBlock *block);

/* Whether the extent of an axis is a multiple of `lanes`, under the variant's condition. Groups of
 * `lanes` from a multiple of it are then either inside the extent or outside as a whole. */
bool gpu_gemm_axis_is_multiple(const Lower *lower, uint32_t axis, uint32_t lanes);

/* Whether no two tiles of the launch need the same element of the rhs, which is a plain
 * load: all outputs lie in one row of tiles. */
bool gpu_gemm_reads_right_once(const Lower *lower);

/* The epilogue, for outputs inside the extents: the accumulator is rounded to the result dtype,
 * then the row stores are computed and stored. It takes a part of the tile that lies in shared
 * memory, rows of `pitch` elements of the compute dtype from `shared` (16-byte aligned; pitch a
 * multiple of 16 bytes where it has vectors). Row r of the part is row first_row + r / run *
 * run_stride + r % run of the tile. Threads take vectors of at most sched.lanes and 16 bytes, side
 * by side along n. All threads take part; the barriers before and after are the caller's. */
typedef struct GemmPart {
    Val shared;                 /* ptr addrspace(3) */
    uint32_t pitch;             /* elements */
    uint32_t n_rows, n_columns; /* powers of two */
    Val first_row;              /* i32: in the tile; NULL: 0 */
    uint32_t run, run_stride;   /* powers of two */
    Val n_next;       /* i32: rows right behind them that are stored next, or NULL: none */
    uint32_t between; /* elements from a kernel's results to the next's; 0: n_columns */
    bool is_rounded;  /* the elements are of the result dtype */
} GemmPart;
void gpu_gemm_epilogue(const GemmBlock *block, const GemmPart *part);

/* Stores a tile in `n_parts` parts of part->run rows of each run, one after the other through the
 * same shared memory: `put` stores the accumulators of part i there. The code of the epilogue is
 * there once. */
void gpu_gemm_epilogue_parts(const GemmBlock *block, GemmPart part, uint32_t n_parts,
                             void (*put)(const void *user, uint32_t i), const void *user);

/* The same in two steps, for whoever deals out rows and columns itself: what depends on a thread's
 * columns alone, `lanes` from `in_tile` (i32) on; then the part's rows from `first` (i32) on,
 * `step` apart, up to `unroll` (a power of two, at most 8) at once so that their loads overlap.
 * Columns prepared ahead of a loop's next iteration are carried into it as values. */
enum { GEMM_MAX_EARLY_LOADS = 8 }; /* of a row: what they load waits in registers */
typedef struct GemmColumn {
    Point point;
    Val in_part; /* i32: the first column in the part */
    /* Loads that are begun an iteration before they are used. */
    ScalarId early[GEMM_MAX_EARLY_LOADS];
    uint32_t n_early;
} GemmColumn;
uint32_t gpu_gemm_lanes(const GemmBlock *block, uint32_t most);
/* Rows computed at once: several, so that their loads overlap, unless they take much arithmetic,
 * which fills the wait and many registers. */
uint32_t gpu_gemm_rows_at_once(const Lower *lower);
GemmColumn gpu_gemm_column(const GemmBlock *block, Val in_tile, uint32_t lanes);
/* How many values of `column` vary with the column; the first `most` of them. */
uint32_t gpu_gemm_column_values(const GemmBlock *block, const GemmColumn *column, Val *values,
                                uint32_t most);
/* `column` with its values replaced, in the same order. */
GemmColumn gpu_gemm_column_with(const GemmBlock *block, const GemmColumn *column,
                                const Val *values);
/* Of kernels that share the block, each with the kernel of its block's Lower. Their results of a
 * row lie side by side in the part, n_columns each; a value that one has for the next passes in
 * registers. */
enum { GEMM_MAX_PHASES = 4 };
typedef struct GemmPhase {
    GemmBlock block;
    GemmColumn column;
} GemmPhase;
/* Has the loads that depend on the row begun early, but for what the kernels compute themselves. */
void gpu_gemm_load_early(GemmPhase *phases, uint32_t n_phases);
/* A thread's way through the rows of a part. */
enum { GEMM_MAX_UNROLL = 8 };
typedef struct GemmRows {
    const GemmPhase *phases;
    uint32_t n_phases;
    const GemmPart *part;
    Val first; /* i32 */
    uint32_t step, unroll;
} GemmRows;
GemmRows gpu_gemm_rows(const GemmPhase *phases, uint32_t n_phases, const GemmPart *part, Val first,
                       uint32_t step, uint32_t unroll);
/* Begins the early loads of the first rows, and says how many values those are. Storing takes them,
 * and leaves those of the rows behind the part, as far as part->n_next. */
enum { GEMM_MAX_EARLY_VALUES = GEMM_MAX_UNROLL * GEMM_MAX_PHASES * GEMM_MAX_EARLY_LOADS };
uint32_t gpu_gemm_begin_rows(const GemmRows *rows, Val *values);
void gpu_gemm_epilogue_rows(const GemmRows *rows, Val *values);

/* One element of a part that is not in shared memory, by the thread that has it: what is loaded for
 * element `element` (i32, row by row), then the rest, with the product's result in its
 * accumulator's dtype. */
typedef struct GemmOne {
    GemmPhase phase;
    Val row; /* index_type: of the matrix */
    Val early[GEMM_MAX_EARLY_LOADS];
} GemmOne;
GemmOne gpu_gemm_begin_one(const GemmBlock *block, const GemmPart *part, Val element);
void gpu_gemm_epilogue_one(const GemmOne *one, Val value);

#endif
