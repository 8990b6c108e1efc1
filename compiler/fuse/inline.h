/* Composition: turning a group of graph nodes into one kernel's scalar programs, by pulling every
 * value through elementwise bodies and index maps down to loads.
 *
 * A group has a domain (a shape), the axes of it that its reductions fold, the reductions, and the
 * values it stores. A value varies over the whole domain ("inner") or only over what is left of it
 * after reducing ("row"). Nothing here decides what belongs together; it finds out whether it can.
 */
#ifndef FUSEC_FUSE_INLINE_H
#define FUSEC_FUSE_INLINE_H

#include "pipeline/decisions.h"
#include "plan/plan.h"

#define OUTPUT_NONE UINT32_MAX

/* A value to store: into output `output`, or into the node's temp when that is OUTPUT_NONE; or
 * where it lies in `whole`, a stored concat, as its argument `piece` - 1. */
typedef struct StoreTarget {
    NodeId node;
    uint32_t output;
    NodeId whole;
    uint32_t piece; /* 0: no part of anything */
} StoreTarget;

typedef struct Group {
    Shape domain;
    uint32_t axes; /* reduced axes of the domain, bit set */
    /* Of a window (fuse/gemm_slice.h), per axis of the domain: where it begins in the product; all
     * DIM_NONE: the product as a whole. */
    DimId begin[MAX_RANK];
    uint32_t window;     /* the slice that is such a window, plus 1; 0: none */
    Vec(NodeId) reduces; /* ascending */
    Vec(StoreTarget) targets;
    /* As last composed: */
    Vec(NodeId) loads; /* nodes it reads from memory */
    double prims;      /* of a CPU's code, in simple ones; 0: not composed yet */
    bool has_passes;   /* its reductions, or what it stores, need more than one pass */
    bool has_inner;    /* it reduces, and stores inner values besides */
    uint32_t fixed;    /* the source's kernel this is, plus 1; 0: free */
    bool is_closed;    /* nothing may join */
    bool is_whole;     /* a map over a value that it stores parts of */
} Group;

/* Per node, what a composition knows of it. Clean between compositions, so that one costs what it
 * touches, not what the graph has. */
typedef struct InlineMarks {
    uint32_t *slot;  /* slot + 1 of reductions of the group, which are visited too */
    uint8_t *flags;  /* loaded, visited */
    NodeId *touched; /* that have flags */
    uint32_t n_touched;
} InlineMarks;
InlineMarks inline_marks_new(Arena *arena, const Graph *graph);
void inline_mark(InlineMarks *marks, NodeId id, uint8_t flag);
void inline_clear_marks(InlineMarks *marks);

#define GROUP_NONE UINT32_MAX

/* What composition may read and where it puts things. */
typedef struct InlineInput {
    const Graph *graph;
    InlineMarks *marks;
    Arena *scratch; /* for a first composition, which is given up; NULL while trying */
    /* In memory before this kernel runs are inputs, params and what other groups make and store. A
     * reduction of the group itself is never read back. */
    const uint32_t *group_of; /* per node: the group that makes it, or GROUP_NONE */
    uint32_t group;           /* the one that is composed */
    const bool *is_stored;    /* per node; NULL while trying: then all that groups make is */
    /* Per node: costly values, which a group that stores them may not compute at other places too.
     */
    const bool *is_costly;
    const Decisions *decisions; /* or NULL */
    /* Per node: the buffer to load it from, and per target: the buffer to store to. NULL while
     * trying: then loads name the node and stores UINT32_MAX. */
    const uint32_t *buffer_of_node;
    const uint32_t *buffer_of_output;
    const Buffer *buffers;
    bool *drops_rest; /* per node, or NULL: is set for slices that a store leaves out the rest of */
    bool has_im2col;  /* FuseOptions */
    uint32_t max_scalars;
} InlineInput;

typedef struct InlineFailure {
    ReasonId reason;
    NodeId node; /* where it came up */
} InlineFailure;

/* Composes `group` into `kernel` (name, args, symbols, variants stay empty). On failure says why.
 * Sets group->loads, has_passes, has_inner and kernel->nodes. */
bool inline_group(Arena *arena, const InlineInput *input, Group *group, Kernel *kernel,
                  InlineFailure *failure);

/* Per scalar id: the first stage in which it can be computed, one more than that of the last
 * reduction it hangs on. */
uint32_t *inline_scalar_stages(Arena *arena, const Kernel *kernel);
/* The stage in which a reduction runs, given those of scalars. */
uint32_t inline_reduce_stage(const Kernel *kernel, uint32_t slot, const uint32_t *stage);
/* Puts reductions and stores into the kernel's stages; `is_row`: per store, after all of them. */
void inline_arrange_stages(Arena *arena, Kernel *kernel, const Store *stores, const bool *is_row,
                           uint32_t n_stores);

#endif
