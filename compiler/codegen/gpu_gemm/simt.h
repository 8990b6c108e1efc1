/* GEMMs on CUDA cores (SIMT): declarations that the mainloop (simt.c) and the loads into shared
 * memory (simt_operand.c) share. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_SIMT_H
#define FUSEC_CODEGEN_GPU_GEMM_SIMT_H

#include "codegen/gpu_gemm/gemm.h"
#include "template/simt.h"

enum { MAX_STEPS = 32 };

/* One operand and its tile. */
typedef struct Side {
    ScalarId value;
    uint32_t axis;             /* m or n */
    uint32_t tile;             /* elements of the tile along the axis */
    Val begin, extent;         /* index_type: first element of the tile, extent of the axis */
    uint32_t lane_axis, lanes; /* the vector axis and width of the loads */
    uint32_t pitch;            /* elements from one k to the next in shared memory */
    uint32_t offset_bytes;     /* bytes, within a buffer */
    double pad;                /* the value past the end of k */
    const Scalar *copied;      /* the load, if the operand is one that can be copied unchanged; else
                                * NULL */
    uint32_t n_groups,
        n_steps; /* vectors (groups) in a tile, and per thread; the last may be idle */
    /* Per step: the position of the thread's group, as a value plus a constant. Steps a constant
     * distance apart share the value. */
    Val own[MAX_STEPS];  /* i32: position in the tile along the axis */
    Val at_k[MAX_STEPS]; /* i32: position in the tile along k */
    uint32_t more_own[MAX_STEPS], more_k[MAX_STEPS];
    Val exists[MAX_STEPS];   /* i1: the group is inside the extent of the axis */
    Point points[MAX_STEPS]; /* points with the values that are invariant in k */
    /* The thread's fragments: `n` of `size` elements each, `stride` elements apart. The first is at
     * `first` (i32) along the axis. */
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
    Side sides[2]; /* lhs, rhs */
    Val shared;
    uint32_t buffer_bytes;  /* bytes of one tile of both operands */
    Val computes;           /* i1: whether the thread has outputs; NULL: all threads do */
    uint32_t subtile_pitch; /* elements */
} Simt;

/* simt_side_init, called after a side's fragments are placed, chooses how the side is loaded and
 * how its rows are laid out in shared memory. simt_side_place, called after gpu_gemm_prepare_batch,
 * finds the positions of this thread's groups. */
void simt_side_init(const Simt *g, Side *side);
void simt_side_place(const Simt *g, Side *side);

Val simt_shared_at(const Simt *g, Val bytes);
/* The byte offset (i32) of an element of a side's tile within a buffer. */
Val simt_offset(const Simt *g, const Side *side, Val at_k, Val own);

/* Bring the tile of k from `begin` into the buffer at byte `buffer` (i32). simt_copy_tile copies
 * operands that are plain loads, as one cp.async group per tile. For other operands,
 * simt_fetch_tile starts the loads into registers and simt_put_tile stores them. Elements past the
 * end of k get the pad value. */
bool simt_has_copies(const Simt *g);
void simt_copy_tile(const Simt *g, Val begin, Val buffer);
void simt_fetch_tile(const Simt *g, Val begin, Point (*points)[MAX_STEPS]);
void simt_put_tile(const Simt *g, Val buffer, Point (*points)[MAX_STEPS]);

#endif
