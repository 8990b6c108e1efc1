/* Windows of products. A product that nothing but slices read, as it is or after elementwise work
 * on all of it, need not be made as a whole: a kernel may multiply for one slice alone, which is a
 * product of slices of the operands and has the same sums, to the bit. So two slices that meet
 * (`a, b = split(x @ w); silu(a) * b`) are two products, which need not be stored to meet. */
#ifndef FUSEC_FUSE_GEMM_SLICE_H
#define FUSEC_FUSE_GEMM_SLICE_H

#include "ir/graph.h"

typedef struct GemmSlices {
    VecU32 inside; /* the product, and what is made of it before it is sliced */
    VecU32 slices;
} GemmSlices;

/* Finds what reads the product. `users`: per node. False: something else than slices does, or they
 * take steps, or `fuse never` or `kernel` blocks stand between, or operands that begin where a
 * slice does might be read element by element. */
bool gemm_slice_find(Arena *arena, const Graph *graph, const VecU32 *users, NodeId gemm,
                     GemmSlices *windows);

/* Whether all slices have one shape, and no more elements than the product. */
bool gemm_slices_are_alike(const Graph *graph, const GemmSlices *windows);

/* Per node: those that read it, ascending. */
VecU32 *gemm_slice_users(Arena *arena, const Graph *graph);

#endif
