/* Schedules: the numbers that lowering reads besides a kernel. Also tensor maps, and values of a
 * row that are cached. */
#ifndef FUSEC_LOWERING_SCHED_H
#define FUSEC_LOWERING_SCHED_H

#include "ir/scalar.h"
#include "lowering/im2col.h"
#include "lowering/template.h"

/* GPU_MAP_TILE (template/map_tile.h), CPU_MAP_TILE (template/cpu_map_tile.h): a tile of tile_m
 * elements along axis_in by tile_n along the lane axis, which is `lanes_out` axes before the last.
 * Staged loads have lanes_in elements. */
typedef struct MapTileSched {
    uint32_t tile_m, tile_n;
    uint32_t axis_in, lanes_in;
    uint32_t lanes_out;
} MapTileSched;

/* CPU_MAP: a work unit has chunk_elems elements of the lane axis. That is `lanes_out` axes before
 * the last axis: more than 0 if the last is short. */
typedef struct CpuMapSched {
    int64_t chunk_elems;
    uint32_t lanes_out;
} CpuMapSched;

/* CPU_COLUMN: columns of a work unit. */
typedef struct CpuColumnSched {
    int64_t chunk_elems;
} CpuColumnSched;

/* GPU_ROW. GPU_SCAN reads threads_per_row alone: 1, or all threads of the block; GPU_SORT too: all
 * threads. */
typedef struct RowSched {
    uint32_t threads_per_row;
    uint32_t resident; /* steps of a row kept in registers over all stages; 0: none */
    uint32_t slots;    /* accumulators per sum, a power of two; each adds every slots-th step of a
                        * resident row, so that threads_per_row * slots * lanes is n_chains or
                        * covers the row */
} RowSched;

/* GPU_COLUMN: threads along the columns. A block has threads / (8 * threads_along) groups, one per
 * segment. */
typedef struct ColumnSched {
    uint32_t threads_along;
} ColumnSched;

/* Tiled GEMMs on a GPU. */
typedef struct GemmSched {
    uint32_t tile_m, tile_n, tile_k; /* elements of a block's tile */
    uint32_t warps_m, warps_n;       /* the warps' arrangement over the tile; for GPU_GEMM_WGMMA the
                                      * consumers', beside four producer warps */
    uint32_t stages;                 /* pipeline stages in shared memory, one tile_k each */
    /* GPU_GEMM_WGMMA: the number of GEMMs of the launch that share blocks and the lhs; 0 or 1: the
     * kernel is alone. */
    uint32_t n_gemms;
    /* GPU_GEMM_WGMMA: columns of a narrower last tile in each row of tiles, with its own tensor map
     * for the rhs (the third); 0: all tiles are equally wide. Blocks with fewer wide tiles compute
     * the narrow ones after them. */
    uint32_t tail_n;
    /* GPU_GEMM_WGMMA: warps that store a tile's results while the next tile is multiplied; 0: the
     * consumer warps store their own. */
    uint32_t store_warps;
    /* GPU_GEMM_MMA: warpgroups multiply the tile in shared memory by wgmma, 64 rows each. */
    bool by_groups;
} GemmSched;

/* CPU_GEMM: the tile that is multiplied at a time, a work unit, and the register tile, in elements.
 * The units of a call that lie side by side are one tile, as far as they fit it: few threads get
 * large tiles, many threads small ones. Units lie side by side along the rows of the register tile,
 * streamed ones along its columns. Where a tile has all rows, it may also have several lines of
 * units. Vectors lie along n if register_n is a multiple of lanes, else
 * along m. */
typedef struct CpuGemmSched {
    uint32_t tile_m, tile_n, tile_k;
    uint32_t unit_m, unit_n;
    uint32_t register_m, register_n;
    uint32_t more_batches; /* of a work unit, beyond its first: rows of an image whose strips are
                            * side by side */
    bool is_blocked;       /* panels of both operands are packed for the cache; false: columns are
                            * streamed */
    bool has_strips;       /* the lhs is packed in strips (template/cpu_strips.h) */
    bool sweeps;           /* a unit goes down its batches, the rows of an image, of which each is
                            * packed once (template/cpu_sweep.h). A register tile has all columns
                            * of some taps */
    bool has_amx;          /* tile registers multiply (template/cpu_amx.h) */
    bool is_transposed;    /* vectors lie along m */
} CpuGemmSched;

/* CPU_TAPS: a work unit has `chunk` elements of the axis `walked` and all of the axis `whole`. That
 * is the lane axis, which is `lanes_out` axes before the last parallel one; else the unit has one
 * vector of the lane axis. */
typedef struct CpuTapsSched {
    uint32_t lanes_out, walked, whole, chunk;
    bool has_planes; /* the image is packed (template/cpu_planes.h) */
} CpuTapsSched;

/* GPU_GEMV: threads_along_k threads along k. Each has `slots` accumulators of `lanes` chains (lanes
 * along k), or of `lanes` outputs (lanes along the outputs). A block has tile_m outputs (with
 * tile_n 1) or tile_n outputs. */
typedef struct GemvSched {
    uint32_t tile_m, tile_n;
    uint32_t threads_along_k, slots;
    uint32_t n_processors; /* processors over which the blocks are spread; rounds are counted for
                            * them */
    bool lanes_along_k;
} GemvSched;

/* Numbers that lowering reads besides the kernel itself. The union's valid member is
 * TemplateInfo.params of the template. */
typedef struct Sched {
    TemplateId template;
    uint32_t lanes;   /* consecutive elements per step along the lane axis: the last parallel axis,
                       * for FORM_ROW the last reduced one */
    uint32_t unroll;  /* steps in flight; for GPU_MAP and GPU_GEMM_NAIVE: steps of a thread,
                       * `threads` apart, at most SCHED_MAP_UNROLL */
    uint32_t threads; /* GPU: per block; CPU: 1 */
    /* GPU: blocks of a thread block cluster; the grid is a multiple of it; 0 or 1: no cluster.
     * GPU_GEMM_WGMMA: the blocks are one below the other and multicast their common rhs tile.
     * GPU_GEMV: the blocks share the chains of one tile. GPU_ROW: each block has a resident segment
     * of one row; there are no more segments than blocks. */
    uint32_t cluster;
    uint32_t min_blocks; /* GPU: blocks per processor that ptxas must leave registers for, so that
                          * it does not spill to fit one more; 0: no bound */
    bool is_wide;        /* indices need 64 bits */
    bool pairs_bf16;     /* GPU: bf16 arithmetic in its own type, two lanes per instruction, as for
                          * f16 */
    union {
        MapTileSched map_tile;
        RowSched row;
        ColumnSched column;
        GemmSched gemm;
        GemvSched gemv;
        CpuMapSched cpu_map;
        CpuColumnSched cpu_column;
        CpuGemmSched cpu_gemm;
        CpuTapsSched cpu_taps;
    };
} Sched;

/* The member for queries on any schedule: zeros if the template has another member. */
static inline RowSched sched_row(const Sched *sched) {
    return template_info(sched->template)->params == SCHED_ROW ? sched->row : (RowSched){0};
}
/* GPU: threads per row, or threads along the columns; 0 for other templates. */
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
/* The outputs that a block or work unit of a GEMM computes, and the elements of k per step; zeros
 * without tiles. */
typedef struct GemmTile {
    uint32_t m, n, k;
} GemmTile;
GemmTile sched_tile(const Sched *sched);
/* GPU: rows of a GEMM's tile whose results are in shared memory at once. With the copy engine each
 * warp has a few of its own rows there, otherwise all rows are there. */
enum { EPILOGUE_WARP_ROWS = 8 };
static inline uint32_t sched_epilogue_rows(const Sched *sched) {
    return template_info(sched->template)->uses_copy_engine
               ? sched->gemm.warps_m * EPILOGUE_WARP_ROWS
               : sched_tile(sched).m;
}
/* CPU: whether the schedules differ in work units alone, and in the rows of a tile, of which `b`
 * has no fewer. Then code for `b` that takes its units from `a` is code for `a` too. */
bool sched_differ_in_units(const Sched *a, const Sched *b);
/* How many axes before the last the lane axis of a map is. */
uint32_t sched_lanes_out(const Sched *sched);
/* CPU: most elements of the lane axis in a work unit; 0: all. */
int64_t sched_chunk_elems(const Sched *sched);

/* GPU_GEMV loops over k in passes; each has a group of chains that a block's threads hold at
 * once. */
typedef struct GemvPasses {
    uint32_t n_groups, n_passes; /* over all chains, and of one block */
    /* With lanes along the outputs: rounds of loads in a pass without a loop. A round, and the next
     * pass's first one, then loads while the round before is used. 0: the pass has a loop. Unrolled
     * passes need a known k and few loads, because a grid with many blocks needs the registers. */
    uint32_t n_rounds;
    uint32_t n_kept;     /* passes whose sums are in shared memory before they are joined */
    uint32_t n_partials; /* sums of an output there, per pass */
} GemvPasses;

enum {
    MAX_MAPS = 3,
    MAX_MAP_RANK = 5,
    MAX_LAUNCH_MAPS = 16,
    MAP_STEP_BYTES = 16 /* alignment of addresses and strides of a map */
};

/* A tensor map: an argument as the copy engine sees it. It has axes of the kernel, each with its
 * stride and the box's length (elements), the contiguous axis first. Parts of a box outside the
 * tensor are zero. A kernel gets it as a parameter of 128 bytes. The runtime encodes it, and skips
 * the variant if pointers or strides cannot be encoded. */
typedef struct MapAxis {
    uint32_t axis; /* axis of the kernel */
    DimId stride;
    uint32_t box;
} MapAxis;
typedef struct TensorMap {
    uint32_t arg; /* index in Kernel.args */
    /* For an im2col lhs: the first axis is k. Its box is taken from as many pixels as the box of
     * the last axis, m, has, row by row. NULL: not im2col. */
    const Im2col *im2col;
    uint32_t swizzle_bytes;
    bool is_tf32; /* the copy engine rounds f32 elements to tf32 */
    DimId offset; /* elements */
    uint32_t rank;
    MapAxis axes[MAX_MAP_RANK];
} TensorMap;

/* CPU, FORM_ROW: a value per element of a row that several stages need. One stage computes it and
 * stores it on the stack, and the others read it there. */
typedef struct CachedValue {
    ScalarId value;
    uint32_t stage; /* the stage that computes it: the first that needs it */
    uint32_t slot;  /* an array over the row; values with disjoint lifetimes share it */
} CachedValue;
typedef struct RowCache {
    const CachedValue *data;
    uint32_t n;
} RowCache;
enum { MAX_CACHED_VALUES = 32 };

#endif
