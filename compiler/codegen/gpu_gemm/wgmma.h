/* GEMMs on tensor cores fed by the copy engine: what the template's files share. See
 * plan/wgmma.h for what lies where in shared memory.
 *
 * A block walks over tiles. Its last four warps bring in the operands, stage by stage; each group
 * of four before them multiplies 64 rows of the tile. A stage is full when all its bytes have
 * arrived, and empty when every group has multiplied it. Both are told by barriers in shared
 * memory, whose phases alternate; whoever waits for one counts the phases.
 *
 * The phases of a launch run at once: they have the lhs in common, and their rhs operands'
 * tiles lie side by side, so that they are one tile to the instruction, and its results all phases'
 * one after the other. The parts of a launch are more tiles for the blocks to walk over:
 * all are multiplied by one loop, and fetched and drained by the code of their part.
 *
 * Where the last tile of each row of tiles is narrow, blocks walk over the others first, and then
 * those that had one less walk over the narrow ones, by the same code for another width. The ring
 * of stages goes on.
 *
 * Of those four warps one copies. The others may store (Sched.store_warps): then a warp that
 * multiplies leaves the rounded results of its rows on chip, and takes the place again when they
 * have been read.
 *
 * Rows that follow are no phase of their own: a warp drains 8 of its rows to a place on chip that
 * no other warp has, and goes over them there before it drains the next.
 *
 * A cluster of two blocks has two tiles, one below the other. Each fetches its half of the right
 * operand's tile and the copy engine gives it to both; so a stage is empty when the groups of both
 * have multiplied it. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_WGMMA_H
#define FUSEC_CODEGEN_GPU_GEMM_WGMMA_H

#include "codegen/gpu_gemm/gemm.h"
#include "plan/wgmma.h"

typedef struct WgmmaSide {
    const TensorMap *map;
    Val parameter; /* of the kernel: the encoded map, of the current tile's part */
    bool is_turned;
    bool is_read_once;    /* gpu_gemm_reads_right_once; of the lhs not asked */
    uint32_t axis, tile;  /* m or n, and the tile's length along it */
    uint32_t begin_bytes; /* in a stage */
} WgmmaSide;

typedef struct Wgmma Wgmma;
struct Wgmma {
    Lower *lower; /* of the first phase; the others' follow it */
    const Codegen *k;
    const Sched *sched;
    Wgmma *tail; /* the same for the narrow tiles, whose `sched` has their width; NULL: there are
                  * none, as in that one */
    Wgmma *wide; /* of a tail, else NULL */
    GemmTiles tiles;                         /* m: of all blocks of a cluster together */
    Dtype dtype;                             /* of the operands in memory */
    uint32_t n_products, width;              /* phases, and columns of the instruction */
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

/* Barriers of a warp's results on chip: they are there; they have been read. */
Val wgmma_handed(const Wgmma *w, Val warp);
Val wgmma_taken(const Wgmma *w, Val warp);
/* Until the phase of this parity (i32) has ended. */
void wgmma_wait(const Wgmma *w, Val barrier, Val parity);

/* A group says that a stage may be filled again. `condition`: i1, or NULL for always. */
void wgmma_release(const Wgmma *w, Val stage, Val condition);

/* Tiles. Where the launch has parts of several codes, `codes` are these, side by side. */
uint32_t wgmma_cluster(const Wgmma *w); /* blocks */
GemmTiles wgmma_tiles(const Wgmma *w);
/* The block's own part of a tile; its rows may begin beyond the matrix in a cluster. */
GemmBlock wgmma_tile_at(const Wgmma *w, Val number);
/* A loop over the block's tiles of all parts, or over its narrow ones. */
Loop wgmma_each_tile(const Wgmma *codes);
/* The parts' tiles come one part's after the other's. `number` becomes the tile's within its own;
 * returns which that is, or NULL where there is one. */
Val wgmma_part_of_tile(const Wgmma *w, Val *number);
/* Sets the maps, or the pointers, to those of the part. */
void wgmma_take_maps(Wgmma *w, Val part);
void wgmma_take_pointers(Wgmma *w, Val part);
DimId wgmma_extent_of_k(const Wgmma *w);
/* Of the part that has the tile. */
Val wgmma_k_of_tile(const Wgmma *codes, Val tile);
/* What is done with tile `number` of its code's. `values` go in and come out changed. */
typedef void WgmmaWork(Wgmma *w, Val number, Val *values);
/* Branches to the code of the part that has the tile, if there are several. `values` are the
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
