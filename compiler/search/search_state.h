/* The state of search, shared by its files and internal to them: search.c prices candidates,
 * region.c finds kernels with candidates and makes subgraphs, must_blocks.c keeps `fuse must`
 * blocks, unfused_guard.c compares whole plans. */
#ifndef FUSEC_SEARCH_SEARCH_STATE_H
#define FUSEC_SEARCH_SEARCH_STATE_H

#include "search/search.h"
#include "ir/subgraph.h"
#include "pipeline/pipeline.h"

enum { MAX_TAKEN = 4 };

typedef enum SearchMark {
    MARK_SETTLED, /* the main node of a kernel whose candidates were tried */
    MARK_ASKED,   /* recomputing it in its matmuls has been priced */
    MARK_SLICED,  /* computing slices of it has been priced */
    MARK_TAKEN,   /* in the first region whose candidates were taken; the next MAX_TAKEN - 1 flags
                   * are for the regions after it */
} SearchMark;
_Static_assert(MARK_TAKEN + MAX_TAKEN <= MAX_NODE_FLAGS, "a mark is a flag of a node");

/* A plan with its launches, which shows whether decisions keep `fuse must` blocks. */
typedef struct Linked {
    const Decisions *decisions;
    Plan *plan; /* NULL: there is none */
} Linked;

typedef struct Searcher {
    const Planning *planning;
    Arena *arena, *scratch;
    Arena *priced;   /* for plans that only their prices outlive; NULL: `arena` */
    ArenaMark clean; /* the scratch arena before the search, to which it is rewound */
    RegionMemo *memo;
    Graph *graph;
    const Target *target;
    CostPoints points;
    Decisions *decisions;
    const uint32_t *op_cost; /* per op */
    const VecU32 *users;     /* per node */
    /* Of the plan whose kernels are tried, per buffer: see plan_users. */
    const VecU32 *buffer_users;
    NodeFlags leads;    /* of GemmSliceFlag */
    NodeFlags marks;    /* of SearchMark */
    Vec(Linked) linked; /* all that were made */
    uint32_t n_regions;
    uint64_t most_work; /* Planning.work after which no plan is tried; 0: there is no such */
    bool asks_all;      /* every kernel of several ops may have candidates that pay */
    uint32_t n_taken;   /* regions with MARK_TAKEN */
} Searcher;

/* The price of a plan, the number of broken edges of `fuse must` blocks, and the number of
 * launches. */
typedef struct Evaluation {
    Prices prices;
    uint32_t n_broken, n_launches;
    bool is_at_once; /* its dual GEMMs run both matmuls at once */
} Evaluation;

typedef enum RegionFlag {
    REGION_COMPUTED_LEFT = SUBGRAPH_FLAG_COUNT, /* what the GEMM computes in its left prologue */
    REGION_COMPUTED_RIGHT,                      /* in its right one */
    REGION_LEFT,       /* of a kernel that could be a GEMM's prologue on the left */
    REGION_RIGHT,      /* of a kernel that could be a GEMM's prologue on the right */
    REGION_MAY_PLACE,  /* a concat that may be stored in place */
    REGION_JOINED,     /* the first common result of a kernel's readers */
    REGION_TRANSPOSED, /* a transpose that a row or column kernel reads */
    REGION_MAY_SLICE,  /* a matmul that may be computed slice by slice */
    REGION_REPEATED,   /* computed again for the elements of a larger tensor, if not stored */
    REGION_BROADCAST,  /* the last of these before the larger tensor */
    REGION_OUTER_VIEW, /* of these, a view that lanes read one by one; those inside are no such */
    REGION_FLAG_COUNT
} RegionFlag;
_Static_assert(REGION_FLAG_COUNT <= MAX_NODE_FLAGS, "a region's flag is a flag of a node");

/* A kernel, the kernels that compute its operands, and their other readers. Or a matmul and the
 * kernels that read slices of it; such a region has GEMM slices as its only candidate. */
typedef struct Region {
    Subgraph subgraph;
    NodeFlags flags; /* of RegionFlag */
    uint32_t *inner; /* see Decisions */
    bool has_gemm_slices;
} Region;

/* Whole plans. */

/* Whether the work for trials is spent. */
bool search_is_spent(const Searcher *c);
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
/* Returns the plan, or a plan that stores the results of blocks that the plan does not keep. */
Plan *search_store_broken_blocks(Searcher *c, Plan *plan);

/* Regions. */

/* The search's decisions for the region's nodes. */
Decisions *search_region_decisions(const Searcher *c, const Region *region);
/* Finds the region's decisions after all candidates that pay. Returns false if none pays. After a
 * candidate was taken, a later one is tried on top of it and in its place, because the first may
 * block the second, or be needless beside it. */
bool search_improve(const Searcher *c, const Region *region, Decisions **decisions);

/* Whether a candidate may pay for the kernel, whose candidates have not been tried. */
bool search_has_candidates(const Searcher *c, const Plan *plan, const Kernel *kernel);
/* The node that identifies the kernel: its reduction, or the value it stores. */
NodeId search_main_node(const Kernel *kernel);
/* Whether kernels read slices of the kernel's matmul that could be computed alone, and this has not
 * been priced. */
bool search_has_gemm_slices(const Searcher *c, const Plan *plan, const Kernel *kernel);
/* Whether the view has guards, or its last axis is not the last in memory. */
bool search_view_is_costly(const Graph *graph, NodeId id);
/* Flags the transposes that a row or column kernel reads (REGION_TRANSPOSED); on a GPU also those
 * that a map reads. Returns false if there are none. */
bool search_find_transposes(const Searcher *c, const Kernel *kernel, NodeFlags flags);
/* Makes the region in the scratch arena. Returns false if a `kernel` block contains one of its
 * nodes, or a `fuse must` block one of its nodes and one outside. */
bool search_make_region(const Searcher *c, const Plan *plan, const Kernel *kernel,
                        bool has_gemm_slices, Region *region);

#endif
