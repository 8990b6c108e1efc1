/* The state of search, shared by its files and internal to them: search.c prices candidates,
 * region.c finds kernels with candidates and makes subgraphs, must_blocks.c keeps `fuse must`
 * blocks, unfused_guard.c compares whole plans. */
#ifndef FUSEC_SEARCH_SEARCH_STATE_H
#define FUSEC_SEARCH_SEARCH_STATE_H

#include "search/search.h"
#include "ir/subgraph.h"
#include "pipeline/pipeline.h"

enum { MAX_TAKEN = 4 };

typedef struct Searcher {
    const Planning *planning;
    Arena *arena, *scratch;
    ArenaMark clean; /* the scratch arena before the search, to which it is rewound */
    Graph *graph;
    const Target *target;
    CostPoints points;
    Decisions *decisions;
    const uint32_t *op_cost; /* per op */
    const VecU32 *users;     /* per node */
    bool *is_settled;        /* per main node of a kernel: its candidates were tried */
    bool *is_asked;          /* per node: recomputing it in its matmuls has been priced */
    bool *is_sliced;         /* per node: computing slices of it has been priced */
    uint32_t n_regions;
    bool asks_all; /* every kernel of several ops may have candidates that pay */
    /* Per node, for the first regions whose candidates were taken: the nodes of the region. */
    const bool *taken[MAX_TAKEN];
    uint32_t n_taken;
} Searcher;

/* The price of a plan, the number of broken edges of `fuse must` blocks, and the number of
 * launches. */
typedef struct Evaluation {
    Prices prices;
    uint32_t n_broken, n_launches;
    bool is_at_once; /* its dual GEMMs run both matmuls at once */
} Evaluation;

/* A kernel, the kernels that compute its operands, and their other readers. Or a matmul and the
 * kernels that read slices of it; such a region has GEMM slices as its only candidate. */
typedef struct Region {
    Subgraph subgraph;
    bool *is_computed;   /* per node: an operand that the GEMM computes */
    bool *is_ahead[2];   /* by side, per node: of a kernel that computes an operand */
    bool *may_place;     /* per node: a concat that may be stored in place */
    bool *is_joined;     /* per node: the first common result of a kernel's readers */
    bool *is_transposed; /* per node: a transpose that a row or column kernel reads */
    bool has_gemm_slices;
    bool *may_slice_gemm; /* per node: a matmul that may be computed slice by slice */
} Region;

/* Whole plans. */

/* Prices the graph planned with these decisions. Returns false if it cannot be planned. */
bool search_evaluate(const Searcher *c, const Decisions *decisions, Evaluation *evaluation);
/* Whether `other` replaces `now`. At equal price fewer launches win. */
bool search_is_worth(const Searcher *c, const Evaluation *now, const Evaluation *other,
                     const Prices *unfused);
/* The plan with the search's decisions, without layouts and schedules; NULL if there is none. */
Plan *search_make_plan(const Searcher *c);
/* Tries the candidates of all kernels and returns the resulting plan. */
Plan *search_try_candidates(Searcher *c, Plan *plan);
/* Returns the plan, or a plan that is slower than one kernel per op at fewer points. */
Plan *search_guard_unfused(Searcher *c, Plan *plan);

/* `fuse must` blocks. */

/* Returns the plan, or a plan with other decisions that stores fewer edges of `fuse must`
 * blocks. */
Plan *search_keep_must_blocks(Searcher *c, Plan *plan);
/* Returns the plan, or a plan whose launches keep more of the blocks. */
Plan *search_launch_must_blocks(Searcher *c, Plan *plan);

/* Regions. */

/* Whether a candidate may pay for the kernel, whose candidates have not been tried. */
bool search_has_candidates(const Searcher *c, const Plan *plan, const Kernel *kernel);
/* The node that identifies the kernel: its reduction, or the value it stores. */
NodeId search_main_node(const Kernel *kernel);
/* Whether kernels read slices of the kernel's matmul that could be computed alone, and this has not
 * been priced. */
bool search_has_gemm_slices(const Searcher *c, const Plan *plan, const Kernel *kernel);
/* Flags, per node, the transposes that a row or column kernel reads; on a GPU also those that a map
 * reads. Returns false if there are none. */
bool search_find_transposes(const Searcher *c, const Kernel *kernel, bool *is_transposed);
/* Returns false if a `kernel` block contains one of its nodes, or a `fuse must` block one of its
 * nodes and one outside. */
bool search_make_region(const Searcher *c, const Plan *plan, const Kernel *kernel,
                        bool has_gemm_slices, Region *region);

#endif
