/* Schedules: the numbers that lowering reads beside a kernel, and what a schedule needs of the
 * machine besides: tensor maps, and values of a row that are kept. */
#ifndef FUSEC_PLAN_SCHED_H
#define FUSEC_PLAN_SCHED_H

#include "ir/scalar.h"
#include "plan/im2col.h"
#include "plan/order.h"

/* Numbers only: what lowering reads beside the kernel itself. */
typedef struct Sched {
    uint32_t lanes;     /* consecutive elements per step along the lane axis: the last parallel
                         * axis, in FORM_ROW the last reduced one */
    bool is_flat;       /* GPU FORM_MAP: lanes go on from row to row (template/flat.h) */
    uint32_t lanes_out; /* FORM_MAP: the lane axis is so many before the last, which is short (CPU)
                         * or is not the one along which results lie (GPU, in tiles) */
    /* GPU: FORM_MAP in tiles (template/map_tile.h) of tile_m elements along axis_in by tile_n along
     * the lane axis: lanes_in elements of what lies along axis_in are loaded at a time. 0: it is
     * not.
     */
    uint32_t lanes_in, axis_in;
    uint32_t unroll;          /* steps in flight; of a map on a GPU, and of GEMM_NAIVE: of a thread,
                               * `threads` steps apart, MAP_MAX_UNROLL at most */
    uint32_t threads;         /* GPU: per block. CPU: 1 */
    uint32_t threads_per_row; /* GPU FORM_ROW: threads per row; FORM_COLUMN: threads along columns,
                               * so that a block has threads / (8 * team) segments side by side */
    int64_t chunk_elems;      /* CPU: elements of the lane axis per work unit (map, column) */
    uint32_t resident; /* GPU FORM_ROW: steps of a row kept in registers over all stages; 0: none */
    uint32_t slots;    /* GPU FORM_ROW: accumulators per sum, a power of two; of more than one
                        * each has every so many-th step of a resident row, so that team * slots
                        * * lanes is n_chains or holds the row */
    bool is_wide;      /* indices need 64 bits */
    bool pairs_bf16;   /* GPU: which computes bf16 by itself, two lanes at a time, as it does f16 */
    uint32_t min_blocks; /* GPU: that the assembler must make room for on a processor, so that it
                          * does not spill for one more; 0: as it likes */
    /* FORM_GEMM */
    GemmEngine engine;
    uint32_t tile_m, tile_n, tile_k; /* elements of a block's (GPU) or unit's (CPU) tile */
    /* GPU: how the tile is split over warps; GEMM_WGMMA has four more that bring in the
     * operands. CPU: the register tile, in elements; vectors lie along n if warps_n is a multiple
     * of lanes, else along m. */
    uint32_t warps_m, warps_n;
    uint32_t stages; /* GPU: tiles of k in shared memory at once. CPU: 1 blocked, 0 streamed */
    /* GPU: blocks side by side in the grid, which is a multiple of it, that see each other's shared
     * memory; 0 or 1: none. GEMM_WGMMA: one below the other, they fetch their common tile of
     * the rhs together. GEMM_GEMV: they share the chains of one tile. FORM_ROW: each
     * has a segment of one row, resident; there are no more segments than blocks. */
    uint32_t cluster;
    /* GEMM_WGMMA: the phases of the launch, whose tiles a block multiplies at once. They have
     * the lhs in common; 0 or 1: the kernel is alone. */
    uint32_t products;
    /* GEMM_WGMMA: columns of the last tile of each row of tiles, which is narrower and has a
     * map of its own for the rhs, the third; 0: it is as wide as the others. Blocks that
     * have a wide tile less take these, after the wide ones. */
    uint32_t tail_n;
    /* GEMM_WGMMA: warps that store a tile's results while the next tile is multiplied; 0: the
     * warps that multiply store theirs. */
    uint32_t store_warps;
    /* GEMM_GEMV: `team` threads along k, each with `slots` accumulators of `lanes` chains
     * (lanes along k) or of `lanes` outputs (lanes along the outputs) at a time; the outputs of a
     * block are tile_m (then tile_n is 1) or tile_n. */
    bool lanes_along_k;
} Sched;

enum { MAP_MAX_UNROLL = 4 };
/* GEMM_NAIVE: a known k of up to so many steps is written out, all loads first. */
enum { NAIVE_MAX_WRITTEN = 16 };

/* GEMM_GEMV goes over k in passes, each with a group of chains that a block's threads hold at
 * once. */
typedef struct GemvPasses {
    uint32_t n_groups, n_passes; /* of all chains, of a block's own */
    /* Lanes along the outputs: rounds of loads of a pass that needs no loop, so that a round, and
     * the next pass's first, is on its way while the one before is used; 0: it has a loop. They
     * need a known k and few loads, since a grid of so many blocks takes the registers. */
    uint32_t n_rounds;
    uint32_t n_kept;  /* passes whose sums lie in shared memory before they are joined */
    uint32_t n_parts; /* of an output there, for each pass */
} GemvPasses;
enum { GEMV_PROCESSORS = 132 }; /* of the cards that rounds are counted for */

enum {
    MAX_MAPS = 3,
    MAX_MAP_RANK = 5,
    MAX_LAUNCH_MAPS = 16,
    MAP_STEP_BYTES = 16 /* what addresses and strides of a map are multiples of */
};

/* How the copy engine of a GPU sees an argument: as axes of the kernel, each with its stride and
 * the length of the box that is copied at once (elements), the contiguous axis first. It fills with
 * zeros what a box has outside. Kernels get it as a parameter of 128 bytes; the runtime makes it,
 * and passes over the variant where pointers or strides are none that it can describe. */
typedef struct MapAxis {
    uint32_t axis; /* of the kernel */
    DimId stride;
    uint32_t box;
} MapAxis;
typedef struct TensorMap {
    uint32_t arg; /* of Kernel.args */
    /* Of a lhs that is windows over an image: the first axis is k, whose box is taken of
     * each of as many pixels as the box of the last one, m, has, row by row. NULL: of no such. */
    const Im2col *im2col;
    uint32_t swizzle_bytes;
    bool is_tf32; /* the copy engine rounds elements of f32 to tf32 on their way */
    DimId offset; /* elements */
    uint32_t rank;
    MapAxis axes[MAX_MAP_RANK];
} TensorMap;

/* CPU, FORM_ROW: a value of each element of a row that several stages need. One computes it and
 * keeps it on the stack, the others find it there. */
typedef struct CachedValue {
    ScalarId value;
    uint32_t stage; /* that computes it: the first that needs it */
    uint32_t slot;  /* an array over the row; values that lie there one after the other share it */
} CachedValue;
typedef struct RowCache {
    const CachedValue *data;
    uint32_t n;
} RowCache;
enum { MAX_CACHED_VALUES = 32 };

#endif
