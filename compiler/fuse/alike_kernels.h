/* Kernels of groups that are alike. The layers of a model make the same groups of other nodes: the
 * kernel of the second one is a copy of the first, with nodes, buffers and tables of its own. A
 * copy is the kernel that inlining would make.
 *
 * Groups are alike if a walk from their reductions and targets, argument by argument, finds nodes
 * of the same look with the same facts, one for one, as far as the values that are in memory, and
 * if the buffers of these values are alike, one for one. */
#ifndef FUSEC_FUSE_ALIKE_KERNELS_H
#define FUSEC_FUSE_ALIKE_KERNELS_H

#include "fuse/node_kinds.h"
#include "fuse/op_kernels.h"

typedef struct AlikeKernels AlikeKernels;

/* No kernel, for the groups of one plan. `kinds` is of the plan's graph; NULL: nothing is copied.
 * `scratch` must live as long. */
AlikeKernels *alike_kernels_new(Arena *scratch, NodeKinds *kinds, const Graph *graph);

/* As op_kernels_inline. */
bool alike_kernels_inline(Arena *arena, AlikeKernels *known, const InlineInput *input, Group *group,
                          Kernel *kernel, InlineFailure *failure);

#endif
