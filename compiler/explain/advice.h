/* The ledger's advice for an edge. An edge between two ops is fused or stored; the advice lists
 * changes of the source that alter this verdict. Each change is a step that a program can carry out
 * (docs/EXPLAIN.md, `change`). If a step leaves the value stored for another reason, the advice for
 * that reason is the next step, or that reason replaces the reason of the edge. */
#ifndef FUSEC_EXPLAIN_ADVICE_H
#define FUSEC_EXPLAIN_ADVICE_H

#include "cost/cost.h"

typedef enum AdviceKind {
    ADVICE_OPS,    /* other ops or extents; `fuse must` fails for the step's reason */
    ADVICE_NONE,   /* no change of the source alters the verdict */
    ADVICE_MUST,   /* put the nodes into one `fuse must` block */
    ADVICE_NEVER,  /* put the nodes into a `fuse never` block */
    ADVICE_FREE,   /* take the nodes out of their blocks */
    ADVICE_OUTPUT, /* take the nodes out of the graph's outputs */
    ADVICE_INPUT,  /* make inputs of the nodes: params, or literals */
    ADVICE_OPTION, /* compile with fusion */
    ADVICE_KIND_COUNT
} AdviceKind;

typedef struct AdviceStep {
    AdviceKind kind;
    ReasonId reason; /* the step is the advice of this reason */
    VecU32 nodes;    /* ascending, each once */
} AdviceStep;

enum { ADVICE_MAX_STEPS = 3 };

/* The time and the launches of one run. */
typedef struct AdviceTotals {
    double us;
    uint32_t n_launches;
} AdviceTotals;

/* The steps are taken together. Advice without steps: no change alters the verdict. A step of
 * ADVICE_OPS is always the last one; the steps before it do not suffice. */
typedef struct Advice {
    AdviceStep steps[ADVICE_MAX_STEPS];
    uint32_t n_steps;
    bool has_input; /* the value depends on an input, not on params alone */
    bool is_tried;  /* the graph with the steps was compiled. The verdict changes and no more edges
                     * break `fuse must` blocks. Or, if the last step is ADVICE_OPS, `fuse must` was
                     * tried and did not help */
    bool is_priced;
    AdviceTotals then;     /* totals of the graph with the steps, if is_priced */
    VecChangePrice prices; /* the times at every point by which plans are chosen */
    VecU32 lost;           /* fused edges of the plan that are stored if the steps are taken */
} Advice;

/* Compiles a changed graph until its verdicts are final: to a plan with its launches linked, on the
 * arena `trial`, or NULL on failure. `trial` is reset before each compilation and holds nothing
 * else. */
typedef struct AdvicePlanner {
    Plan *(*plan)(void *user, Arena *arena, Graph *graph);
    /* Prices the new plan with the ledger's cost model. NULL: nothing is priced. */
    AdviceTotals (*price)(void *user, Arena *arena, const Plan *plan);
    /* The microseconds of the new plan, or of the graph's own plan, at one of `points`, which may
     * be empty. */
    double (*price_at)(void *user, Arena *arena, const Plan *plan, const int64_t *dims);
    CostPoints points;
    void *user;
    Arena *trial;
    const uint64_t *work; /* see Planning; NULL: there is no limit */
    uint64_t most_work;   /* no trial plan begins that would come to more, by the last one */
    uint64_t last_work;   /* of the last trial plan; before the first, of the compilation */
    uint32_t n_refused;   /* trial plans beyond the limit, which were not made */
} AdvicePlanner;

/* Limits the work of the planner's trial plans. The work so far is that of the compilation. */
void advice_limit(AdvicePlanner *planner, const uint64_t *work);

/* `"must"`, ...; NULL for ADVICE_NONE. */
const char *advice_kind_name(AdviceKind kind);

/* Returns a copy of the graph with the steps taken. Nodes keep their numbers. */
Graph *advice_follow(Arena *arena, const Graph *graph, const Advice *advice);

/* Returns an array of one advice for each of plan->edges. It compiles the changed graph to learn
 * the result of steps, until a limit on the work is reached. A step of ADVICE_MUST lists all nodes
 * that a block in the source would contain. `fuse must` is also tried where the advice of the
 * reason is to change ops. An edge gets a new reason if neither a block nor an output keeps its
 * value stored; then kernels of the same forms must compute its two ends before and after.
 * `planner` may be NULL; then every advice is the one step of the edge's reason. */
Advice *advice_settle(Arena *arena, Plan *plan, AdvicePlanner *planner);

/* Returns one advice for each of plan->unjoined, the pairs of launches that could start together. A
 * pair whose reason is the price of another launch gets `fuse must` around values of both launches,
 * if a trial joins them and the graph has fewer launches than `now`. An advice without steps: no
 * block in the source joins the pair. `planner` may be NULL. */
Advice *advice_settle_launches(Arena *arena, const Plan *plan, AdviceTotals now,
                               AdvicePlanner *planner);

/* The totals of the graph without one `fuse must` block of the source. */
typedef struct BlockPrice {
    uint32_t block; /* of graph->fixed_kernels */
    AdviceTotals without;
} BlockPrice;
typedef Vec(BlockPrice) VecBlockPrice;
VecBlockPrice advice_price_blocks(Arena *arena, const Plan *plan, AdvicePlanner *planner);

/* Plans the graph with the steps taken, on the planner's arena. NULL: the graph cannot be planned,
 * or the limit of compilations is reached. */
Plan *advice_try(AdvicePlanner *planner, const Graph *graph, const Advice *advice);
/* The units of a graph, ops of one call or one expression, which a block contains all or not at
 * all: made once for all blocks that advice asks for. */
typedef struct AdviceUnits AdviceUnits;
AdviceUnits *advice_units(Arena *arena, const Graph *graph);
/* Finds the nodes of the smallest `fuse must` block in a source that contains `ends`. A block
 * contains all ops of a call of a def or none, all nodes on paths between its nodes, and all of
 * another `fuse must` block that it touches. False: the smallest block would take nodes other than
 * `ends` from other blocks. */
bool advice_block(Arena *arena, AdviceUnits *units, const VecU32 *ends, VecU32 *nodes);
/* Whether every block of a source contains both nodes or neither: they are ops of one call of a
 * def, or of one expression. */
bool advice_is_same_unit(const Graph *graph, NodeId a, NodeId b);
/* Whether the node is the last of its call, or an op outside of calls. Messages name a block by
 * such nodes. */
bool advice_is_unit_end(const Graph *graph, NodeId id);
/* Inserts the node into an ascending list, unless the list contains it. */
void advice_add_node(Arena *arena, VecU32 *nodes, NodeId id);

/* The steps as English text, one line for each, with the names and lines of their values. */
const char *advice_text(Arena *arena, const Graph *graph, const Advice *advice);
/* A text with the time of the changed graph beside `now`, and the values that become stored. NULL:
 * the changed graph has no price. */
const char *advice_price_text(Arena *arena, const Plan *plan, const Advice *advice,
                              AdviceTotals now);
/* Whether the price is higher by enough to report. */
bool advice_is_slower(double changed_us, double current_us);
/* Counts the points at which the steps lose time; `worst` is the point with the largest loss. */
uint32_t advice_count_slower(const VecChangePrice *prices, const ChangePrice **worst);
/* ` at B = 64 (chosen), T = 8`: the values of the dims that kernels use. `chosen` is a bit set of
 * the dims that the text marks as chosen. */
void advice_put_point(Text *text, const Plan *plan, const int64_t *values, uint64_t chosen);
/* Four significant digits, without an exponent. */
void advice_put_us(Text *text, double us);

#endif
