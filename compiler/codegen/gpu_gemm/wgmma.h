/* Warp-specialised GEMMs on wgmma: declarations that the template's files share. See
 * template/wgmma.h for the layout of shared memory.
 *
 * A persistent block walks over tiles. Its last four warps are the producer: they bring in the
 * operands' tiles, stage by stage, by the copy engine (TMA). Each warpgroup before them is a
 * consumer, which multiplies 64 rows of the tile. A stage is full when all its bytes have arrived,
 * and empty when every consumer has multiplied it. Each of the two states has an mbarrier in shared
 * memory. Its phase alternates, and a waiting thread keeps the parity of the phase.
 *
 * GEMMs that share blocks have a common lhs [m,k]. The tiles of their rhs [k,n] are side by side,
 * so that one instruction multiplies all of them and its result has the kernels' results side by
 * side. Parallel GEMMs add more tiles for the blocks to walk over: one mainloop multiplies them
 * all, and each kernel has its own code for loads and stores.
 *
 * If the last tile of each row of tiles is narrow, blocks walk over the wide tiles first. Blocks
 * that have one tile fewer then walk over the narrow ones, by the same code for another width. The
 * ring of stages continues.
 *
 * One of the producer's warps copies. The others may store results (Sched.store_warps): a
 * consumer's warp then leaves the rounded results of its rows in shared memory, and reuses the
 * buffer when they have been read.
 *
 * A row kernel on the result is part of the epilogue: a warp stores 8 of its rows to its own buffer
 * in shared memory, and reduces them there before it stores the next 8.
 *
 * A cluster of two blocks has two tiles, one below the other. Each block loads half of the rhs
 * tile, and the copy engine multicasts it to both. So a stage is empty when the consumers of both
 * blocks have multiplied it. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_WGMMA_H
#define FUSEC_CODEGEN_GPU_GEMM_WGMMA_H

#include "codegen/gpu_gemm/gemm.h"
#include "template/wgmma.h"

typedef struct WgmmaSide {
    const TensorMap *map;
    Val parameter; /* the encoded map of the kernel that has the current tile, a kernel parameter */
    bool is_mn_major;
    bool is_read_once;    /* gpu_gemm_reads_right_once; unused for the lhs */
    uint32_t axis, tile;  /* m or n, and the tile's length along it */
    uint32_t begin_bytes; /* offset within a stage */
} WgmmaSide;

typedef struct Wgmma Wgmma;
struct Wgmma {
    Lower *lower; /* of the first kernel; the others follow it in the array */
    const Codegen *k;
    const Sched *sched;
    Wgmma *tail; /* the state for narrow tiles, with their width in `sched`; NULL: there are none,
                  * or this is that state */
    Wgmma *wide; /* for the narrow tiles: the state of the wide ones; else NULL */
    GemmTiles tiles;         /* m counts the rows of all blocks of a cluster together */
    Dtype left_dtype, dtype; /* of the operands in memory */
    Dtype acc;               /* of the accumulators: f32 or i32 */
    LLVMTypeRef acc_type;
    uint32_t n_gemms, width; /* kernels that share the block, and columns of the instruction */
    WgmmaSide sides[1 + WGMMA_MAX_GEMMS]; /* the lhs, then each rhs */
    uint32_t tile_bytes;                  /* bytes of these tiles in a stage */
    uint32_t stage_bytes;                 /* from one stage to the next */
    uint32_t epilogue_bytes;              /* from one warp's results buffer to the next */
    uint32_t n_groups;
    Val shared;              /* ptr addrspace(3) */
    Val thread, warp, group; /* i32 */
    Val in_group;            /* i32: the thread's number within its warpgroup */
    Val rank;                /* i32: rank in the cluster; NULL: there is no cluster */
};

/* An address in shared memory. */
static inline Val wgmma_at(const Wgmma *w, Val bytes) {
    return k_byte(w->k, w->shared, bytes);
}

/* The position of a role in the ring of stages. */
typedef struct PipelineState {
    Val stage, parity; /* i32 */
} PipelineState;

/* The next stage of a ring of `n_stages`, with its parity. */
PipelineState pipeline_next(const Codegen *k, PipelineState place, uint32_t n_stages);

/* A copy of a box of an operand by the copy engine. */
typedef struct WgmmaBox {
    const TensorMap *map;
    Val parameter;   /* the encoded map, a kernel parameter */
    uint32_t axis;   /* the operand's own axis, m or n */
    Val own, k;      /* index_type: the first element along it, and along k */
    Val to, barrier; /* in shared memory */
    uint32_t blocks; /* bit set of the cluster's blocks that get it; 0: this block alone */
    bool is_read_once;
} WgmmaBox;
/* Starts the copy; `block` has the position along the other axes. */
void wgmma_copy_box(const Lower *lower, const WgmmaBox *box, const GemmBlock *block);
/* Sets thread, warp, group, in_group and rank. */
void wgmma_place_thread(Wgmma *w);

/* Synchronises all threads of the block, or of the cluster. */
void wgmma_meet(const Wgmma *w);
/* Initialises the barriers, then synchronises. Call it before any barrier is used. */
void wgmma_init_barriers(const Wgmma *w);
/* The barriers of a stage. Full: its copies have arrived. Empty: all consumers have read it. */
Val wgmma_full(const Wgmma *w, Val stage);
Val wgmma_empty(const Wgmma *w, Val stage);
/* The barriers of a warp's results in shared memory: they have been written, or they have been
 * read. */
Val wgmma_results_full(const Wgmma *w, Val warp);
Val wgmma_results_empty(const Wgmma *w, Val warp);
/* Waits until the phase of this parity (i32) has completed. */
void wgmma_wait(const Wgmma *w, Val barrier, Val parity);

/* A warpgroup marks a stage as empty. `condition`: i1, or NULL for always. */
void wgmma_release(const Wgmma *w, Val stage, Val condition);

/* Tiles. If parallel kernels have several codes, `codes` is the array of them. */
uint32_t wgmma_cluster(const Wgmma *w); /* blocks */
GemmTiles wgmma_tiles(const Wgmma *w);
/* This block's rows of a tile; in a cluster they may begin beyond the matrix. */
GemmBlock wgmma_tile_at(const Wgmma *w, Val number);
/* A loop over the block's tiles of all kernels, or over its narrow ones; or, if a kernel has a band
 * along n, over its rows of tiles and in each of them over the tiles in the band. Under a band rows
 * of tiles take different times: blocks take them in rounds, forth and back, so that all have as
 * much work. */
typedef struct WgmmaWalk {
    Loop tiles, columns;
    bool has_columns; /* `tiles` are rows of tiles */
    Val number;       /* of the tile */
} WgmmaWalk;
/* wgmma_walk begins the loops, which carry the values, and wgmma_walked ends them. */
WgmmaWalk wgmma_walk(const Wgmma *codes, Val *values, uint32_t n);
void wgmma_walked(const Wgmma *codes, WgmmaWalk *walk);
/* Whether the block has a tile after this one: i1. */
Val wgmma_is_more(const Wgmma *codes, const WgmmaWalk *walk);
/* Parallel kernels are numbered one after the other. `number` becomes the tile's number within its
 * kernel. Returns the kernel's number, or NULL if there is one kernel. */
Val wgmma_kernel_of_tile(const Wgmma *w, Val *number);
/* Switches to the maps, or the pointers, of the kernel. */
void wgmma_take_maps(Wgmma *w, Val part);
void wgmma_take_pointers(Wgmma *w, Val part);
/* The elements of k of the code's tile, and of the kernel that has the tile. */
GpuBand wgmma_k_of_number(const Wgmma *w, Val number);
GpuBand wgmma_k_of_tile(const Wgmma *codes, Val tile);
/* The work on tile `number` of a code. `values` are updated in place. */
typedef void WgmmaWork(Wgmma *w, Val number, Val *values);
/* Branches to the code of the kernel that has the tile, if there are several codes. `values` go
 * into the work; after it, the first `n_kept` have their new values. */
enum { WGMMA_MAX_ACCUMULATORS = WGMMA_MAX_WIDTH / 2, WGMMA_MAX_VALUES };
void wgmma_work_by_code(Wgmma *codes, Val tile, WgmmaWork *work, Val *values, uint32_t n_values,
                        uint32_t n_kept);
/* An operand's tile in shared memory: `own` elements along m or n, `depth` along k. A straight tile
 * has blocks of one row of the swizzle per m (or n), one block after the other along k. A
 * transposed one has blocks of one row per k, one block after the other along m (or n). */
typedef struct WgmmaLayout {
    bool is_mn_major;
    uint32_t own, depth;
} WgmmaLayout;

/* A product of 64 rows of a warpgroup, in steps of k of 32 bytes. */
typedef struct WgmmaProduct {
    Dtype dtypes[2];                       /* of the lhs and of the rhs */
    uint32_t width, n_steps;               /* columns; steps of k */
    bool begins;                           /* the accumulators begin at +0, whatever they hold */
    WgmmaLayout left, right;               /* of all rows of the tile */
    Val left_descriptor, right_descriptor; /* wgmma_descriptor of where the product's rows begin */
    const Val *registers;                  /* the lhs as 4 registers (i32) per step; NULL: it has a
                                            * descriptor */
    const Val *accs;                       /* see wgmma_multiply */
} WgmmaProduct;
/* The name of the operand's dtype in instructions. */
const char *wgmma_operand_type(Dtype dtype);
/* The descriptor (i64) of a tile at `at` (ptr addrspace(3)). */
Val wgmma_descriptor(const Codegen *k, const WgmmaLayout *layout, Val at);
/* Emits its instructions as one wgmma group, which is committed but not awaited. The registers of
 * the lhs may not change before it has finished. */
void wgmma_product(const Codegen *k, const WgmmaProduct *product);
/* Waits until all wgmma groups but the last `n_groups` have finished. `accs` are the `n`
 * accumulators of the groups that have then finished. */
void wgmma_await(const Codegen *k, uint32_t n_groups, const Val *accs, uint32_t n);

/* Emits the instructions of one stage for the 64 rows of this warpgroup. They add to accs[width /
 * 2], allocas of acc_type. Each alloca stays in one register, because the instruction writes to it
 * asynchronously until wgmma_finish. `stage` is a stage of the ring. Ends with the wgmma group
 * committed but not awaited. begins: see WgmmaProduct. */
void wgmma_multiply(const Wgmma *w, Val stage, const Val *accs, bool begins);
/* Waits until all multiplications have finished. */
void wgmma_finish(const Wgmma *w, const Val *accs);

#endif
