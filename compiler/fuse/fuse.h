/* Fusion: from a graph to a plan of kernels.
 *
 * Requires a verified graph. Decides which values are stored, groups reductions and stored values
 * into kernels (group.c), inlines each kernel's scalar programs (inline.c), and records the outcome
 * and the reason for every edge of the graph. If a group cannot become a kernel, grouping is
 * repeated. Splits, schedules and the memory plan are later passes. */
#ifndef FUSEC_FUSE_FUSE_H
#define FUSEC_FUSE_FUSE_H

#include "pipeline/pipeline.h"

typedef struct FuseOptions {
    bool off;        /* one kernel per op of the graph */
    bool pads_rows;  /* pads rows of temporaries that matmuls read: see pad.h */
    bool has_im2col; /* the copy engine can fetch im2col rows from the image: im2col.h */
    bool has_f8_mma; /* tensor cores for 8-bit floats */
    bool has_traces; /* kernels have traces */
    bool has_cores;  /* a CPU: it computes slowly, so memory seldom hides the computation */
    const Decisions *decisions; /* NULL: no directives */
    /* See Planning; NULL: any plan. */
    bool (*may_hold)(const Graph *graph, uint32_t n_buffers, Diags *diags);
    GroupMemo *memo;         /* of other plans of the graph; NULL: none is kept */
    GroupingWork *work;      /* see Planning */
    const uint32_t *op_cost; /* op_costs; NULL: not found yet */
} FuseOptions;

/* Returns the plan, allocated in `arena`. `scratch` must be another arena than those of the graph
 * and the plan; it is used only during the call. If a `kernel` block of the source cannot be one
 * kernel, reports it to `diags` and returns NULL; also if the result may not hold the plan. Any
 * other group that cannot be a kernel is split into its ops. */
Plan *fuse_graph(Arena *arena, Arena *scratch, const Graph *graph, FuseOptions options,
                 Diags *diags);

bool fuse_pass(const Planning *p, PlanUnit *unit);

#endif
