/* What the ledger's advice for an edge comes to: the changes of the program, step by step, after
 * which the edge has the other verdict, in a form that a program can carry out (docs/EXPLAIN.md,
 * `change`). Where a reason's own advice would leave the value stored for another reason, that one
 * is the next step, or the reason of the edge. */
#ifndef FUSEC_ADVICE_H
#define FUSEC_ADVICE_H

#include "ir/kernel.h"

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

/* Steps to take together. None: nothing to flip. One of ADVICE_OPS comes last, if at all: the steps
 * before it, if any, do not suffice. */
typedef struct Advice {
    AdviceStep steps[ADVICE_MAX_STEPS];
    uint32_t n_steps;
    bool is_tried; /* the steps were compiled: they flip the verdict and break no contract, or,
                      where the last is ADVICE_OPS, `fuse must` was in vain */
} Advice;

/* Compiles a changed graph as far as verdicts are settled: to a plan with its launches linked, on
 * the arena; NULL if it cannot be. `trial`, the arena, holds nothing else: it is reset. */
typedef struct AdvicePlanner {
    const Plan *(*plan)(void *user, Arena *arena, const Graph *graph);
    void *user;
    Arena *trial;
} AdvicePlanner;

/* `"must"`, ...; NULL for ADVICE_NONE. */
const char *advice_kind_name(AdviceKind kind);

/* A copy of the graph with the steps taken. Nodes keep their numbers. */
Graph *advice_follow(Arena *arena, const Graph *graph, const Advice *advice);

/* The advice for every edge of the plan, an array as long as plan->edges. What steps lead to is
 * found by compiling the changed graph, as often as a bound on the work allows. Where a reason is
 * for other ops to change, `fuse must` is tried all the same. Edges that no block nor output has a
 * say in get the reason that remains, if kernels of the same forms hold their ends. `planner` may
 * be NULL: then every edge has its reason's own step. */
Advice *advice_settle(Arena *arena, Plan *plan, const AdvicePlanner *planner);

/* The steps in words, a line for each, with the values that they concern by name and line. */
const char *advice_text(Arena *arena, const Graph *graph, const Advice *advice);

#endif
