/* Schedules: the numbers that lowering reads beside a kernel, and what a schedule needs of the
 * machine besides: tensor maps, and values of a row that are kept. */
#ifndef FUSEC_LOWERING_SCHED_H
#define FUSEC_LOWERING_SCHED_H

#include "ir/scalar.h"
#include "lowering/im2col.h"
#include "lowering/template.h"

/* GPU_MAP_TILE (template/map_tile.h): a tile of tile_m elements along axis_in by tile_n along the
 * lane axis, which is `lanes_out` axes before the last. lanes_in elements of a load that lies along
 * axis_in are loaded at a time. */
typedef struct MapTileSched {
    uint32_t tile_m, tile_n;
    uint32_t axis_in, lanes_in;
    uint32_t lanes_out;
} MapTileSched;

/* CPU_MAP: a work unit has chunk_elems elements of the lane axis, which is `lanes_out` axes before
 * the last: more than 0 where the last is short. */
typedef struct CpuMapSched {
    int64_t chunk_elems;
    uint32_t lanes_out;
} CpuMapSched;

/* CPU_COLUMN: columns of a work unit. */
typedef struct CpuColumnSched {
    int64_t chunk_elems;
} CpuColumnSched;

/* GPU_ROW. */
typedef struct RowSched {
    uint32_t threads_per_row;
    uint32_t resident; /* steps of a row kept in registers over all stages; 0: none */
    uint32_t slots;    /* accumulators per sum, a power of two; of more than one each has every so
                        * many-th step of a resident row, so that threads_per_row * slots * lanes is
                        * n_chains or holds the row */
} RowSched;

/* GPU_COLUMN: threads along the columns, so that a block has threads / (8 * threads_along) segments
 * side by side. */
typedef struct ColumnSched {
    uint32_t threads_along;
} ColumnSched;

/* GEMMs in tiles on a GPU. */
typedef struct GemmSched {
    uint32_t tile_m, tile_n, tile_k; /* elements of a block's tile */
    uint32_t warps_m, warps_n; /* how the tile is split over warps; of GPU_GEMM_WGMMA those that
                                * multiply: four more bring in the operands */
    uint32_t stages;           /* tiles of k in shared memory at once */
    /* GPU_GEMM_WGMMA: GEMMs of the launch, whose tiles a block multiplies at once. They have the
     * lhs in common; 0 or 1: the kernel is alone. */
    uint32_t n_gemms;
    /* GPU_GEMM_WGMMA: columns of the last tile of each row of tiles, which is narrower and has a
     * map of its own for the rhs, the third; 0: it is as wide as the others. Blocks that have a
     * wide tile less take these, after the wide ones. */
    uint32_t tail_n;
    /* GPU_GEMM_WGMMA: warps that store a tile's results while the next tile is multiplied; 0: the
     * warps that multiply store theirs. */
    uint32_t store_warps;
} GemmSched;

/* CPU_GEMM: the tile of a work unit, and the register tile, in elements; vectors lie along n if
 * register_n is a multiple of lanes, else along m. */
typedef struct CpuGemmSched {
    uint32_t tile_m, tile_n, tile_k;
    uint32_t register_m, register_n;
    bool is_blocked; /* panels of both operands are packed for the cache; else they are streamed */
} CpuGemmSched;

/* GPU_GEMV: threads_along_k threads along k, each with `slots` accumulators of `lanes` chains
 * (lanes along k) or of `lanes` outputs (lanes along the outputs) at a time; the outputs of a block
 * are tile_m (then tile_n is 1) or tile_n. */
typedef struct GemvSched {
    uint32_t tile_m, tile_n;
    uint32_t threads_along_k, slots;
    uint32_t n_processors; /* that its blocks are spread over: rounds are counted for them */
    bool lanes_along_k;
} GemvSched;

/* Numbers only: what lowering reads beside the kernel itself. Of the union the template's member
 * (TemplateInfo.params) is valid. */
typedef struct Sched {
    TemplateId template;
    uint32_t lanes;  /* consecutive elements per step along the lane axis: the last parallel axis,
                      * in FORM_ROW the last reduced one */
    uint32_t unroll; /* steps in flight; of GPU_MAP and GPU_GEMM_NAIVE: of a thread, `threads` steps
                      * apart, MAP_MAX_UNROLL at most */
    uint32_t threads; /* GPU: per block. CPU: 1 */
    /* GPU: blocks side by side in the grid, which is a multiple of it, that see each other's shared
     * memory; 0 or 1: none. GPU_GEMM_WGMMA: one below the other, they fetch their common tile of
     * the rhs together. GPU_GEMV: they share the chains of one tile. GPU_ROW: each has a segment of
     * one row, resident; there are no more segments than blocks. */
    uint32_t cluster;
    uint32_t min_blocks; /* GPU: that the assembler must make room for on a processor, so that it
                          * does not spill for one more; 0: as it likes */
    bool is_wide;        /* indices need 64 bits */
    bool pairs_bf16;     /* GPU: it computes bf16 by itself, two lanes at a time, as it does f16 */
    union {
        MapTileSched map_tile;
        RowSched row;
        ColumnSched column;
        GemmSched gemm;
        GemvSched gemv;
        CpuMapSched cpu_map;
        CpuColumnSched cpu_column;
        CpuGemmSched cpu_gemm;
    };
} Sched;

/* For questions that any schedule answers: the member, or zeros where the template has another. */
static inline RowSched sched_row(const Sched *sched) {
    return template_info(sched->template)->params == SCHED_ROW ? sched->row : (RowSched){0};
}
/* GPU: threads that share a row, or along the columns; 0: of anything else. */
uint32_t sched_threads_per_row(const Sched *sched);
static inline GemmSched sched_gemm(const Sched *sched) {
    return template_info(sched->template)->params == SCHED_GEMM ? sched->gemm : (GemmSched){0};
}
static inline CpuGemmSched sched_cpu_gemm_params(const Sched *sched) {
    return template_info(sched->template)->params == SCHED_CPU_GEMM ? sched->cpu_gemm
                                                                    : (CpuGemmSched){0};
}
static inline GemmEngine sched_engine(const Sched *sched) {
    return template_info(sched->template)->engine;
}
/* Elements of the output that a block or a work unit of a GEMM makes, and those of k that it takes
 * in one step; zeros where there are no tiles. */
typedef struct GemmTile {
    uint32_t m, n, k;
} GemmTile;
GemmTile sched_tile(const Sched *sched);
/* GPU: rows of a GEMM's tile whose results lie in shared memory at once. Where the copy engine
 * brings the operands each warp has a few of its own there, else there are all. */
enum { EPILOGUE_WARP_ROWS = 8 };
static inline uint32_t sched_epilogue_rows(const Sched *sched) {
    return template_info(sched->template)->uses_copy_engine
               ? sched->gemm.warps_m * EPILOGUE_WARP_ROWS
               : sched_tile(sched).m;
}
/* How many axes the lane axis of a map lies before its last. */
uint32_t sched_lanes_out(const Sched *sched);
/* CPU: elements of the lane axis that a work unit has at most; 0: all of them. */
int64_t sched_chunk_elems(const Sched *sched);

enum { MAP_MAX_UNROLL = 4 };
/* GPU_GEMM_NAIVE: a known k of up to so many steps is written out, all loads first. */
enum { NAIVE_MAX_WRITTEN = 16 };

/* GPU_GEMV goes over k in passes, each with a group of chains that a block's threads hold at
 * once. */
typedef struct GemvPasses {
    uint32_t n_groups, n_passes; /* of all chains, of a block's own */
    /* Lanes along the outputs: rounds of loads of a pass that needs no loop, so that a round, and
     * the next pass's first, is on its way while the one before is used; 0: it has a loop. They
     * need a known k and few loads, since a grid of so many blocks takes the registers. */
    uint32_t n_rounds;
    uint32_t n_kept;     /* passes whose sums lie in shared memory before they are joined */
    uint32_t n_partials; /* of an output there, for each pass */
} GemvPasses;

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
