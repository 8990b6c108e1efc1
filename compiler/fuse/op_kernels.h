/* Kernels of elementwise ops by themselves. A plan without fusion has a hundred thousand of them,
 * and few are of another op, shape or dtype than the ones before: those are copies of the first,
 * with buffers of their own. A copy is the kernel that inlining would make. */
#ifndef FUSEC_FUSE_OP_KERNELS_H
#define FUSEC_FUSE_OP_KERNELS_H

#include "base/hashids.h"
#include "fuse/inline/inline.h"

/* All zeros: none is known. */
typedef struct OpKernels {
    HashIds ids;
    Vec(NodeId) nodes;   /* per program: the first op of it */
    Vec(Kernel) kernels; /* per program: the kernel of that op */
} OpKernels;

/* Whether the group is an elementwise op whose arguments are literals or in memory, which any
 * kernel can be. */
bool op_kernels_are_for(const InlineInput *input, const Group *group);
/* Sets what inlining such a group sets of it. */
void op_kernels_note_loads(Arena *arena, const Graph *graph, Group *group);

/* As inline_group, for any group. A kernel that is the first of its program, or a copy, has the
 * number of the program. */
bool op_kernels_inline(Arena *arena, OpKernels *known, const InlineInput *input, Group *group,
                       Kernel *kernel, InlineFailure *failure);

#endif
