/* Fusion: from a graph to a plan of kernels.
 *
 * Requires a verified graph. Decides which values are stored, groups reductions and stored values
 * into kernels (group.c), composes each kernel's scalar programs (inline.c), and records for every
 * edge of the graph what became of it and why. Where a group cannot be inlined into a kernel, nodes
 * are grouped anew. Splits, schedules and the memory plan come after. */
#ifndef FUSEC_FUSE_FUSE_H
#define FUSEC_FUSE_FUSE_H

#include "pipeline/pipeline.h"

typedef struct FuseOptions {
    bool off;        /* one kernel per op of the graph */
    bool pads_rows;  /* of intermediates that products read: see pad.h */
    bool has_im2col; /* rows that are windows over an image can be fetched from there: im2col.h */
    bool has_cores;  /* a CPU's, which compute so little at once that memory seldom hides it */
    const Decisions *decisions; /* or NULL: nothing is asked beyond the rules */
} FuseOptions;

/* `scratch`, another arena than any that holds the graph or the plan, is only used during the call.
 * The plan lives on `arena`. A fixed kernel that cannot be one kernel is reported to `diags`; then
 * NULL. Any other group that cannot is taken apart into its ops. */
Plan *fuse_graph(Arena *arena, Arena *scratch, const Graph *graph, FuseOptions options,
                 Diags *diags);

bool fuse_pass(const Planning *p, PlanUnit *unit);

#endif
