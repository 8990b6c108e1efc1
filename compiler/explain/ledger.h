/* The fusion ledger of one graph: everything that `--explain` says, as plain data. `ledger_new`
 * fills it from the plan and its cost; text, JSON and the page (explain/explain.h,
 * report/report.h) print it and read no plan. docs/EXPLAIN.md describes each number. */
#ifndef FUSEC_EXPLAIN_LEDGER_H
#define FUSEC_EXPLAIN_LEDGER_H

#include "cost/edge.h"
#include "explain/advice.h"
#include "plan/launch.h"

/* Both plans of one graph are scheduled, placed and priced for the same card and dims; the second
 * was made with fusion off. */
typedef struct LedgerInput {
    const PlanCost *cost, *unfused_cost;
    const Advice *advices;        /* per edge of the plan */
    const Advice *launch_advices; /* per pair of launches that are apart; NULL: there is none */
    VecBlockPrice blocks;         /* of the source, `fuse must` */
    uint64_t given_dims;          /* bit set of the dims whose values the user gave */
} LedgerInput;

/* Bytes, as an expression in the dims and at the dims' values. */
typedef struct LedgerBytes {
    const char *text; /* `2*B*C`, or `more than 2^62` */
    double n;
} LedgerBytes;

/* A dim that the source declares. */
typedef struct LedgerDim {
    const char *name;
    uint32_t symbol; /* its place in the dims of a ChangePrice */
    int64_t value;
    bool is_given; /* by the user; else the compiler chose the value */
    bool is_used;  /* by a kernel of the plan without fusion */
} LedgerDim;

typedef struct LedgerValue {
    NodeId node;
    const char *name; /* NULL: it has none */
    const char *op;
    Position at; /* line 0: the graph has no source */
} LedgerValue;

/* How a verdict is flipped. */
typedef struct LedgerAdvice {
    const Advice *advice; /* `lost` counts edges of the ledger */
    const char *text;     /* a line for each step; NULL: there is no step */
    const char *price;    /* what the changed graph takes; NULL: that is not known */
} LedgerAdvice;

typedef struct LedgerEdge {
    LedgerValue from, to;
    const char *output; /* the name of the output that the edge goes to, or NULL; then no `to` */
    bool is_literal;    /* `from` is one */
    bool is_fused;
    const ReasonInfo *reason;
    LedgerBytes size; /* of the value */
    EdgeCost cost;
    LedgerAdvice advice;
} LedgerEdge;

/* A buffer that a kernel reads or writes. */
typedef struct LedgerBuffer {
    const char *name;
    double n_bytes; /* all of it */
    BufferSpace space;
    const char *replaces; /* the buffer whose memory it takes, element by element, or NULL */
    const char *copy_of;  /* the buffer that it is a copy of, or NULL */
    const char *copy;     /* the copy that is read in its place at other sizes, or NULL */
} LedgerBuffer;

typedef struct LedgerBuffers {
    Vec(LedgerBuffer) list;
    LedgerBytes moved; /* those that the kernel may touch, in memory */
} LedgerBuffers;

/* What a kernel whose arithmetic is rewritten is held to (plan/rewrite.h). */
typedef struct LedgerRewrite {
    const char *name; /* NULL: nothing is rewritten */
    LedgerValue result;
    double relative, absolute;
    bool is_bounded; /* the three members before are known */
} LedgerRewrite;

typedef struct LedgerKernel {
    const char *name;
    Position at; /* line 0: the graph has no source */
    const FormInfo *form;
    bool is_tiled;              /* a map in tiles */
    uint32_t n_passes;          /* over its rows */
    bool is_partial;            /* it makes partial results of segments */
    uint32_t launch;            /* of its list, from 0 */
    bool is_joined;             /* a kernel of the launch is before it */
    const LaunchModeInfo *mode; /* of the launch */
    const char *variant;        /* the symbol that runs at these dims */
    LedgerRewrite rewrite;
    VecU32 nodes; /* what it computes; of an init step that lays out an operand, that operand */
    LedgerBuffers reads, writes;
    KernelCost cost;
    uint32_t n_alternatives; /* of the kernels behind it, where `condition` holds */
    const char *condition;   /* NULL: there are none */
} LedgerKernel;

/* Two launches that could start together. */
typedef struct LedgerUnjoined {
    const char *kernel, *other; /* names; `other` is before it */
    const ReasonInfo *reason;
    VecChangePrice prices;     /* at every size priced: as one launch, and as two */
    uint32_t n_slower;         /* at how many of them one launch is slower */
    const ChangePrice *slower; /* where it loses most; only where n_slower > 0 */
    const char *slower_at;     /* ` at B = 64, T = 8`: the dims of `slower` */
    LedgerAdvice advice;
} LedgerUnjoined;

/* A `fuse must` block of the source. */
typedef struct LedgerBlock {
    Position at;
    AdviceTotals without; /* what a run takes without the block */
} LedgerBlock;

/* What a run takes. */
typedef struct LedgerTotals {
    uint32_t n_launches;
    double us;
    double dram_bytes;
    double workspace_bytes, unshared_bytes; /* with and without reuse */
    double peak_bytes;                      /* of all tensors */
    LedgerBytes moved;                      /* each tensor once per kernel */
} LedgerTotals;

typedef struct Ledger {
    const char *graph;
    const Card *card;
    const char *priced_at; /* ` at B = 64 (chosen), T = 8`: the dims that kernels take */
    Vec(LedgerDim) dims;
    Vec(LedgerEdge) edges;
    Vec(LedgerKernel) kernels; /* init steps first */
    Vec(LedgerUnjoined) unjoined;
    Vec(LedgerBlock) blocks;
    LedgerTotals fused, unfused;
    uint32_t n_fused, n_stored;    /* edges between ops */
    const char *least_text;        /* bytes: what is used of inputs and outputs, once */
    double least_bytes;            /* of that, in DRAM */
    const char *workspace_text;    /* bytes */
    const char *unshared_text;     /* bytes */
    uint32_t n_init, n_init_steps; /* kernels, and their launches */
    double init_us, init_bytes;    /* of all init steps */
    LedgerBytes prepared;          /* that init steps write */
} Ledger;

/* Lives on the arena; keeps parts of `input`. */
const Ledger *ledger_new(Arena *arena, const LedgerInput *input);

#endif
