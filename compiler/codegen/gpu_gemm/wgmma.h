/* Warp-specialised GEMMs on wgmma: what the template's files share. See template/wgmma.h for the
 * layout of shared memory.
 *
 * A block walks over tiles. Its last four warps are the producer: they bring in the operands'
 * tiles, stage by stage, by the copy engine (TMA). Each warpgroup before them is a consumer, which
 * multiplies 64 rows of the tile. A stage is full when all its bytes have arrived, and empty when
 * every consumer has multiplied it. An mbarrier in shared memory stands for each; its phase
 * alternates, and a thread that waits for it keeps the parity of the phase.
 *
 * GEMMs that share blocks run at once: they have the lhs [m, k] in common, and the tiles of their
 * rhs [k, n] lie side by side, so that the instruction sees one tile. Its results are all kernels'
 * results one after the other. Parallel GEMMs are more tiles for the blocks to walk over: one
 * mainloop multiplies them all, and each kernel's code loads and stores its own.
 *
 * Where the last tile of each row of tiles is narrow, blocks walk over the others first. The blocks
 * that had one less then walk over the narrow ones, by the same code for another width. The ring of
 * stages goes on.
 *
 * Of the producer's warps one copies. The others may store (Sched.store_warps): then a consumer's
 * warp leaves the rounded results of its rows in shared memory, and takes the place again when they
 * have been read.
 *
 * A kernel over the rows of the result is part of the epilogue: a warp stores 8 of its rows to a
 * place in shared memory that no other warp has, and reduces them there before it stores the next.
 *
 * A cluster of two blocks has two tiles, one below the other. Each block loads its half of the rhs
 * tile and the copy engine gives it to both (multicast); so a stage is empty when the consumers of
 * both have multiplied it. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_WGMMA_H
#define FUSEC_CODEGEN_GPU_GEMM_WGMMA_H

#include "codegen/gpu_gemm/gemm.h"
#include "template/wgmma.h"

typedef struct WgmmaSide {
    const TensorMap *map;
    Val parameter; /* of the kernel: the encoded map, of the kernel that has the current tile */
    bool is_turned;
    bool is_read_once;    /* gpu_gemm_reads_right_once; of the lhs not asked */
    uint32_t axis, tile;  /* m or n, and the tile's length along it */
    uint32_t begin_bytes; /* in a stage */
} WgmmaSide;

typedef struct Wgmma Wgmma;
struct Wgmma {
    Lower *lower; /* of the first kernel; the others' follow it */
    const Codegen *k;
    const Sched *sched;
    Wgmma *tail; /* the same for the narrow tiles, whose `sched` has their width; NULL: there are
                  * none, as in that one */
    Wgmma *wide; /* of a tail, else NULL */
    GemmTiles tiles;            /* m: of all blocks of a cluster together */
    Dtype dtype;                /* of the operands in memory */
    uint32_t n_products, width; /* kernels that share the block, and columns of the instruction */
    WgmmaSide sides[1 + WGMMA_MAX_PRODUCTS]; /* the lhs, the right ones */
    uint32_t tile_bytes;                     /* that a stage has of these tiles */
    uint32_t stage_bytes;                    /* from a stage to the next */
    uint32_t epilogue_bytes;                 /* from a warp's place for results to the next */
    uint32_t n_groups;
    Val shared;              /* ptr addrspace(3) */
    Val thread, warp, group; /* i32 */
    Val in_group;            /* i32: the thread's number there */
    Val rank;                /* i32: in the cluster, or NULL: there is none */
};

/* In shared memory. */
static inline Val wgmma_at(const Wgmma *w, Val bytes) {
    return k_byte(w->k, w->shared, bytes);
}

/* Where a role stands in the ring of stages. */
typedef struct RingPlace {
    Val stage, parity; /* i32 */
} RingPlace;

/* The next stage of the ring, with its parity. */
RingPlace wgmma_ring_next(const Wgmma *w, RingPlace place);

/* All threads of the block, or of the cluster, wait for one another. */
void wgmma_meet(const Wgmma *w);
/* Before any barrier is used; then all threads meet. */
void wgmma_init_barriers(const Wgmma *w);
/* Barriers of a stage: its copies are there; all that read it have. */
Val wgmma_full(const Wgmma *w, Val stage);
Val wgmma_empty(const Wgmma *w, Val stage);
/* Barriers of a warp's results in shared memory: they */
Val wgmma_handed(const Wgmma *w, Val warp);
Val wgmma_taken(const Wgmma *w, Val warp);
/* Until the phase of this parity (i32) has ended. */
void wgmma_wait(const Wgmma *w, Val barrier, Val parity);

/* A group says that a stage may be filled again. `condition`: i1, or NULL for always. */
void wgmma_release(const Wgmma *w, Val stage, Val condition);

/* Tiles. Where parallel kernels have several codes, `codes` are these, side by side. */
uint32_t wgmma_cluster(const Wgmma *w); /* blocks */
GemmTiles wgmma_tiles(const Wgmma *w);
/* The block's own rows of a tile; in a cluster they may begin beyond the matrix. */
GemmBlock wgmma_tile_at(const Wgmma *w, Val number);
/* A loop over the block's tiles of all kernels, or over its narrow ones. */
Loop wgmma_each_tile(const Wgmma *codes);
/* The parallel kernels' tiles come one kernel's after the other's. `number` becomes the tile's
 * within its own; returns which kernel that is, or NULL where there is one. */
Val wgmma_part_of_tile(const Wgmma *w, Val *number);
/* Sets the maps, or the pointers, to those of the kernel. */
void wgmma_take_maps(Wgmma *w, Val part);
void wgmma_take_pointers(Wgmma *w, Val part);
DimId wgmma_extent_of_k(const Wgmma *w);
/* Of the kernel that has the tile. */
Val wgmma_k_of_tile(const Wgmma *codes, Val tile);
/* What is done with tile `number` of its code's. `values` go in and come out changed. */
typedef void WgmmaWork(Wgmma *w, Val number, Val *values);
/* Branches to the code of the kernel that has the tile, if there are several. `values` are the
 * work's, the first `n_kept` of which are as it leaves them afterwards. */
enum { WGMMA_MAX_ACCUMULATORS = WGMMA_MAX_WIDTH / 2, WGMMA_MAX_VALUES };
void wgmma_work_by_code(Wgmma *codes, Val tile, WgmmaWork *work, Val *values, uint32_t n_values,
                        uint32_t n_kept);
/* The instructions of one stage, for the 64 rows of the own group. They add to accs[width / 2],
 * addresses of f32 of the thread's own, which stay in one register each: it is written to until
 * the end, whatever else the thread does meanwhile. `stage` is in the ring. Ends with the group
 * committed, not waited for. */
void wgmma_multiply(const Wgmma *w, Val stage, const Val *accs);
/* Waits until all multiplications are done. */
void wgmma_finish(const Wgmma *w, const Val *accs);

#endif
