/* Fusion: from a graph to a plan of kernels.
 *
 * Requires a verified graph. Decides which values are stored, groups reductions and stored values
 * into kernels (group.c), composes each kernel's scalar programs (inline.c), and records for every
 * edge of the graph what became of it and why. Schedules and the memory plan come after. */
#ifndef FUSEC_FUSE_FUSE_H
#define FUSEC_FUSE_FUSE_H

#include "base/diag.h"
#include "machine/target.h"
#include "plan/plan.h"

typedef struct FuseOptions {
    bool off;        /* one kernel per op of the graph */
    bool pads_rows;  /* of intermediates that products read: see pad.h */
    bool has_im2col; /* rows that are windows over an image can be fetched from there: im2col.h */
    bool has_cores;  /* a CPU's, which compute so little at once that memory seldom hides it */
    bool by_columns; /* what rows and columns make something for goes with columns, not with rows */
    /* Per node, or NULL: reductions whose results no pass over the same rows uses in their own
     * kernel. */
    const bool *apart;
    const bool *unmerged; /* per node, or NULL: reductions in no kernel with those of other rows */
    const bool *store;    /* per node, or NULL: stored, since its reader is faster then */
    const bool *alone;    /* per node, or NULL: kernels by themselves */
    const bool *placed;   /* per node, or NULL: concats stored in pieces by however many kernels */
    const bool *gemm_sliced; /* per node, or NULL: products of which each slice is a kernel's own */
    /* Per node, or NULL: computed by whoever reads it in its `fuse must` block, though it is stored
     * for others. */
    const bool *held;
    /* Per node, or NULL: stored where a price asks for it, though its `fuse must` block has all
     * that reads it: it may be handed over within a launch then. */
    const bool *loose;
    /* Where kernels are cut in two; NULL, or all three per node. */
    const bool *cut;      /* stored, and read by kernels of another part from memory alone */
    const bool *again;    /* computed in several kernels, whatever that costs */
    const uint32_t *part; /* that the node belongs to */
    /* Per node, or NULL; of tests: in no kernel of several ops, as if none was lowered. */
    const bool *unlowered;
} FuseOptions;
/* What the target says. */
FuseOptions fuse_options_for(const Target *target);

/* `scratch`, another arena than any that holds the graph or the plan, is only used during the call.
 * The plan lives on `arena`. A fixed kernel that cannot be one kernel is reported to `diags`; then
 * NULL. Any other group that cannot is taken apart into its ops. */
Plan *fuse_graph(Arena *arena, Arena *scratch, const Graph *graph, FuseOptions options,
                 Diags *diags);

#endif
