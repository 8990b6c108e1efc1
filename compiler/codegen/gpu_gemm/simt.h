/* GEMMs on a GPU's ordinary units: what the template and its loading share. The template is
 * simt.c; bringing the operands into shared memory is simt_load.c. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_SIMT_H
#define FUSEC_CODEGEN_GPU_GEMM_SIMT_H

#include "codegen/gpu_gemm/gemm.h"
#include "template/simt.h"

enum { MAX_STEPS = 32 };

/* One operand and its tile. */
typedef struct Side {
    ScalarId value;
    uint32_t axis;             /* m or n */
    uint32_t tile;             /* elements along it */
    Val begin, extent;         /* index_type: of the tile, of the axis */
    uint32_t lane_axis, lanes; /* how elements are loaded */
    uint32_t pitch;            /* elements from one k to the next in shared memory */
    uint32_t offset_bytes;     /* in a buffer */
    double pad;                /* stands beyond the end of k */
    const Scalar *copied;      /* the plain load that it is, copied as it is; else NULL */
    uint32_t n_groups,
        n_steps; /* groups of lanes in a tile, and per thread (the last may be idle) */
    /* Per step: where its group stands, and how much further: steps a constant distance apart have
     * all but that in common. */
    Val own[MAX_STEPS];  /* i32: in the tile along the axis */
    Val at_k[MAX_STEPS]; /* i32: in the tile along k */
    uint32_t more_own[MAX_STEPS], more_k[MAX_STEPS];
    Val exists[MAX_STEPS];   /* i1: the group is inside the extent of the axis */
    Point points[MAX_STEPS]; /* with the values that do not move with k */
    /* The thread's fragments: `n` of `size` elements, `stride` elements apart, the first at `first`
     * (i32) along the axis. */
    uint32_t n, size, stride;
    Val first;
} Side;

typedef struct Simt {
    Lower *lower;
    const Codegen *k;
    const Sched *sched;
    GemmBlock block;
    Dtype acc;
    uint32_t acc_bytes;
    Side sides[2]; /* left, right */
    Val shared;
    uint32_t buffer_bytes; /* of one pair of tiles */
    Val computes;          /* i1, or NULL: whether the thread has outputs; NULL: all have */
    uint32_t part_pitch;   /* elements */
} Simt;

static inline Val simt_plus(const Simt *g, Val value, uint32_t more) {
    if (!more) return value;
    return k_add(g->k, value, k_int(LLVMTypeOf(value), more));
}

/* Decides how a side is loaded, and how its rows lie in shared memory: after its fragments are
 * placed. Then, with the block's batch prepared, where the groups of this thread stand. */
void simt_side_init(const Simt *g, Side *side);
void simt_side_place(const Simt *g, Side *side);

Val simt_shared_at(const Simt *g, Val bytes);
/* Where an element of a side's tile lies in a buffer, in bytes. All are i32. */
Val simt_offset(const Simt *g, const Side *side, Val at_k, Val own);

/* The tile of k from `begin`, to the buffer at `buffer` bytes (i32). Operands that are plain loads
 * are copied: a group of copies for each tile, which are there when so many groups have been waited
 * for. Of the others the loads are started by fetch, into registers, and put stores them. Pads
 * stand where the tile goes beyond the end of k. */
bool simt_has_copies(const Simt *g);
void simt_copy_tile(const Simt *g, Val begin, Val buffer);
void simt_fetch_tile(const Simt *g, Val begin, Point (*points)[MAX_STEPS]);
void simt_put_tile(const Simt *g, Val buffer, Point (*points)[MAX_STEPS]);

#endif
