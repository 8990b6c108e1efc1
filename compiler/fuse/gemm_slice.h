/* Slices of matmuls. A matmul that only slices read, directly or after elementwise work on all of
 * it, need not be computed as a whole. A kernel may compute one slice, which is a matmul of slices
 * of the operands with the same sums, to the bit. Two slices that meet (`a, b = split(x @ w);
 * silu(a) * b`) are then two matmuls whose results can meet in registers. */
#ifndef FUSEC_FUSE_GEMM_SLICE_H
#define FUSEC_FUSE_GEMM_SLICE_H

#include "ir/graph.h"
#include "ir/node_flags.h"

typedef struct GemmSlices {
    VecU32 inside; /* the matmul, and the values computed from it before the slice */
    VecU32 slices;
} GemmSlices;

/* What the whole graph says of slices. */
typedef enum GemmSliceFlag {
    LEADS_TO_SLICES, /* from the node only elementwise work and slices, which end it, are computed;
                      * any other node lies inside no matmul that only slices read */
} GemmSliceFlag;
/* Flags the nodes with GemmSliceFlag. `users` is per node. */
NodeFlags gemm_slice_leads(Arena *arena, const Graph *graph, const VecU32 *users);

/* Finds the slices of the matmul. `users` is per node, and `leads` of GemmSliceFlag. Returns false
 * if something other than slices reads the matmul, if a slice has a step, if a `fuse never` or
 * `kernel` block lies between, or if operands that start at the slice's offset might need loads of
 * single elements. */
bool gemm_slice_find(Arena *arena, const Graph *graph, const VecU32 *users, NodeFlags leads,
                     NodeId gemm, GemmSlices *found);

/* Whether all slices have one shape and together no more elements than the matmul. */
bool gemm_slices_are_alike(const Graph *graph, const GemmSlices *found);

/* Per node: its readers, ascending. */
VecU32 *gemm_slice_users(Arena *arena, const Graph *graph);

#endif
