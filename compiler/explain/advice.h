/* What the ledger's advice for an edge comes to: the changes of the program, step by step, after
 * which the edge has the other verdict, in a form that a program can carry out (docs/EXPLAIN.md,
 * `change`). Where a reason's own advice would leave the value stored for another reason, that one
 * is the next step, or the reason of the edge. */
#ifndef FUSEC_EXPLAIN_ADVICE_H
#define FUSEC_EXPLAIN_ADVICE_H

#include "cost/cost.h"

typedef enum AdviceKind {
    ADVICE_OPS,    /* other ops or extents: `fuse must` is refused, for the step's reason */
    ADVICE_NONE,   /* there is nothing to flip */
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
    ReasonId reason; /* whose advice this is */
    VecU32 nodes;    /* ascending, each once */
} AdviceStep;

enum { ADVICE_MAX_STEPS = 3 };

/* Of a run. */
typedef struct AdviceTotals {
    double us;
    uint32_t n_launches;
} AdviceTotals;

/* Steps to take together. None: nothing to flip. One of ADVICE_OPS comes last, if at all: the steps
 * before it, if any, do not suffice. */
typedef struct Advice {
    AdviceStep steps[ADVICE_MAX_STEPS];
    uint32_t n_steps;
    bool has_input; /* the value depends on an input, not on params alone */
    bool is_tried;  /* the steps were compiled: they flip the verdict and break no contract, or,
                       where the last is ADVICE_OPS, `fuse must` was in vain */
    bool is_priced;
    AdviceTotals then;     /* what the whole graph takes with the steps, where it is priced */
    VecChangePrice prices; /* the same at every point that plans are chosen by */
    VecU32 lost;           /* edges of the plan, which are stored then instead of fused */
} Advice;

/* Compiles a changed graph as far as verdicts are settled: to a plan with its launches linked, on
 * the arena; NULL if it cannot be. `trial`, the arena, holds nothing else: it is reset. */
typedef struct AdvicePlanner {
    Plan *(*plan)(void *user, Arena *arena, Graph *graph);
    /* Prices that plan as the ledger prices the graph's own. NULL: nothing is priced. */
    AdviceTotals (*price)(void *user, Arena *arena, const Plan *plan);
    /* What such a plan, or the graph's own, takes at the points of `points`; these may be none. */
    double (*price_at)(void *user, Arena *arena, const Plan *plan, const int64_t *dims);
    CostPoints points;
    void *user;
    Arena *trial;
    uint32_t n_nodes; /* of all graphs compiled so far, which is bounded */
} AdvicePlanner;

/* `"must"`, ...; NULL for ADVICE_NONE. */
const char *advice_kind_name(AdviceKind kind);

/* A copy of the graph with the steps taken. Nodes keep their numbers. */
Graph *advice_follow(Arena *arena, const Graph *graph, const Advice *advice);

/* The advice for every edge of the plan, an array as long as plan->edges. What steps lead to is
 * found by compiling the changed graph, as often as a bound on the work allows; what is to be put
 * into a `fuse must` block is what a block of the source would have. Where a reason is
 * for other ops to change, `fuse must` is tried all the same. Edges that no block nor output has a
 * say in get the reason that remains, if kernels of the same forms hold their ends. `planner` may
 * be NULL: then every edge has its reason's own step. */
Advice *advice_settle(Arena *arena, Plan *plan, AdvicePlanner *planner);

/* The same for plan->aparts: of a pair whose reason is another launch's price `fuse must` around
 * values of both, if that has been tried and starts them together in fewer launches than `now`. No
 * steps: what the source says of blocks does not change it. `planner` may be NULL. */
Advice *advice_settle_launches(Arena *arena, const Plan *plan, AdviceTotals now,
                               AdvicePlanner *planner);

/* What a `fuse must` block of the source costs: the totals without it. */
typedef struct BlockPrice {
    uint32_t block; /* of graph->fixed_kernels */
    AdviceTotals without;
} BlockPrice;
typedef Vec(BlockPrice) VecBlockPrice;
VecBlockPrice advice_price_blocks(Arena *arena, const Plan *plan, AdvicePlanner *planner);

/* The plan of the graph with the steps taken, on the planner's arena. NULL: it cannot be, or no
 * more is compiled. */
Plan *advice_try(AdvicePlanner *planner, const Graph *graph, const Advice *advice);
/* The nodes of the least `fuse must` block around `ends` that a source can have: with a node all
 * that its call of a def makes, with two what lies on a path between them, and with one of such a
 * block all of it. False: it would hold what other blocks have, beyond the ends. */
bool advice_block(Arena *arena, const Graph *graph, const VecU32 *ends, VecU32 *nodes);
/* Whether no block of a source can part them: ops of one call of a def, or of one expression. */
bool advice_is_same_unit(const Graph *graph, NodeId a, NodeId b);
/* Whether the node is the last of its call, or an op by itself: what a block is named by. */
bool advice_is_unit_end(const Graph *graph, NodeId id);
/* Puts the node into the list, which is ascending. */
void advice_add_node(Arena *arena, VecU32 *nodes, NodeId id);

/* The steps in words, a line for each, with the values that they concern by name and line. */
const char *advice_text(Arena *arena, const Graph *graph, const Advice *advice);
/* What the changed graph takes instead of `now`, and what is stored in it instead of fused. NULL:
 * that is not known. */
const char *advice_price_text(Arena *arena, const Plan *plan, const Advice *advice,
                              AdviceTotals now);
/* Whether the price is higher by more than nothing to tell of. */
bool advice_is_slower(double then_us, double now_us);
/* At how many of the points; `worst`: the one where that is most. */
uint32_t advice_count_slower(const VecChangePrice *prices, const ChangePrice **worst);
/* ` at B = 64 (chosen), T = 8`: the dims' values that kernels take. `chosen`: bit set of those that
 * are said to be. */
void advice_put_point(Text *text, const Plan *plan, const int64_t *values, uint64_t chosen);
/* Four significant digits, without an exponent. */
void advice_put_us(Text *text, double us);

#endif
