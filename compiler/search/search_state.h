/* What choosing works on, shared by its parts: search.c prices moves, region.c finds the
 * kernels that have moves and takes them out of the graph, must_blocks.c keeps the blocks of the
 * source, unfused_guard.c looks at whole plans. Internal to them. */
#ifndef FUSEC_SEARCH_SEARCH_STATE_H
#define FUSEC_SEARCH_SEARCH_STATE_H

#include "search/search.h"
#include "ir/subgraph.h"
#include "pipeline/pipeline.h"

enum { MAX_TAKEN = 4 };

typedef struct Searcher {
    const Planning *planning;
    Arena *arena, *scratch;
    ArenaMark clean; /* scratch memory as it was before the search, which goes back there */
    Graph *graph;
    const Target *target;
    CostPoints points;
    Decisions *decisions;
    const uint32_t *op_cost; /* per op */
    const VecU32 *users;     /* per node */
    bool *is_settled;        /* per node: the kernel that it is the main one of had its moves */
    bool *is_asked;          /* per node: computing it in what multiplies it has been priced */
    bool *is_sliced;         /* per node: making slices of it in its place has been priced */
    uint32_t n_regions;
    bool asks_all; /* every kernel of several ops may have moves that pay */
    /* Per node, of the first parts whose moves were taken: what they hold. */
    const bool *taken[MAX_TAKEN];
    uint32_t n_taken;
} Searcher;

/* What a plan costs, how far it takes `fuse must` blocks apart, and what it starts. */
typedef struct Evaluation {
    Prices prices;
    uint32_t n_broken, n_launches;
    bool is_at_once; /* blocks make several products with the same instructions */
} Evaluation;

/* A kernel, those that make an operand for it, and others that these make it for. Or a product and
 * the kernels that read slices of it, which has windows and no other moves. */
typedef struct Region {
    Subgraph subgraph;
    bool *is_spread;   /* per node of it: a GEMM's operand that is not simply loaded */
    bool *is_ahead[2]; /* by side, per node of it: of a kernel that makes such an operand */
    bool *may_place;   /* per node of it: a concat that may be stored in pieces */
    bool *is_joined;   /* per node of it: what readers make first of several values of one kernel */
    bool *is_transposed; /* per node of it: transposes of what rows are folded over, or made of */
    bool has_gemm_slices;
    bool *may_slice_gemm; /* per node of it: the product that may be made slice by slice */
} Region;

/* Whole plans. */

/* Of the graph planned with these decisions. False: it cannot be. */
bool search_evaluate(const Searcher *c, const Decisions *decisions, Evaluation *evaluation);
/* Whether the other is taken in place of what there is; at equal price fewer launches win. */
bool search_is_worth(const Searcher *c, const Evaluation *now, const Evaluation *other,
                     const Prices *unfused);
/* The plan with the search's decisions, without layouts and not scheduled; NULL: it cannot be. */
Plan *search_make_plan(const Searcher *c);
/* Has the moves of the plan's kernels tried. */
Plan *search_try_candidates(Searcher *c, Plan *plan);
/* The plan, or one that is nowhere slower than its ops apart where the plan is. */
Plan *search_guard_unfused(Searcher *c, Plan *plan);

/* Blocks of the source. */

/* The plan, or one with other decisions that leaves fewer edges of `fuse must` blocks stored. */
Plan *search_keep_must_blocks(Searcher *c, Plan *plan);
/* The plan, or one that keeps blocks which it does not, with launches linked. */
Plan *search_launch_must_blocks(Searcher *c, Plan *plan);

/* Parts. */

/* Whether a move may pay for the kernel, which has had none yet. */
bool search_has_candidates(const Searcher *c, const Plan *plan, const Kernel *kernel);
/* The node that stands for the kernel: its reduction, or what it stores. */
NodeId search_main_node(const Kernel *kernel);
/* Whether kernels read slices of its product that may be made in its place, which has not been
 * priced yet. */
bool search_has_gemm_slices(const Searcher *c, const Plan *plan, const Kernel *kernel);
/* Flags, per node, transposes that a kernel over rows or columns reads, of a GPU a map too. False:
 * there are none. */
bool search_find_transposes(const Searcher *c, const Kernel *kernel, bool *is_transposed);
/* False: the source says which kernel some of it is, or wants it in one with something else. */
bool search_make_region(const Searcher *c, const Plan *plan, const Kernel *kernel,
                        bool has_gemm_slices, Region *region);

#endif
