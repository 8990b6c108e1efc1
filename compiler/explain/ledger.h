/* The fusion ledger of one graph: everything that `--explain` prints, as plain data. `ledger_new`
 * fills it from the plan and its cost. The text, the JSON (explain/explain.h) and the tables of the
 * page (report/report.h) read only the ledger. The page's drawings, memory chart and roofline also
 * read the plan. docs/EXPLAIN.md describes each number. */
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
    const Advice *launch_advices; /* per pair of launches that could start together but do not;
                                   * NULL: no such pair */
    VecBlockPrice blocks;         /* the `fuse must` blocks of the source */
    uint32_t n_refused;           /* trial plans for advice beyond the limit */
    uint64_t given_dims;          /* bit set of the dims whose values the user gave */
    bool advises_stored_only;     /* only edges between ops whose value is stored get a text of
                                   * advice: explain_print shows no other */
} LedgerInput;

/* A number of bytes, as an expression of the dims and at the dims' values. */
typedef struct LedgerBytes {
    const char *text; /* `2*B*C`, or `more than 2^62` */
    double n;
} LedgerBytes;

/* A dim that the source declares. */
typedef struct LedgerDim {
    const char *name;
    uint32_t symbol; /* its index in the dims of a ChangePrice */
    int64_t value;
    bool is_given; /* the user gave the value; otherwise the compiler chose it */
    bool is_used;  /* a kernel of the plan without fusion uses the dim */
} LedgerDim;

typedef struct LedgerValue {
    NodeId node;
    const char *name; /* NULL: the value has no name */
    const char *op;
    Position at; /* line 0: the graph has no source */
} LedgerValue;

/* How a change of the source alters a verdict. */
typedef struct LedgerAdvice {
    const Advice *advice; /* `lost` counts edges of the ledger */
    const char *text;     /* a line for each step; NULL: the advice has no step or no text */
    const char *price;    /* the time of the changed graph; NULL: it is not known */
} LedgerAdvice;

typedef struct LedgerEdge {
    LedgerValue from, to;
    const char *output; /* the name of the output that the edge goes to, without a `to`; or NULL */
    bool is_literal;    /* `from` is a literal */
    bool is_fused;
    const ReasonInfo *reason;
    LedgerBytes size; /* bytes of the value `from` */
    EdgeCost cost;
    LedgerAdvice advice;
} LedgerEdge;

/* A buffer that a kernel reads or writes. */
typedef struct LedgerBuffer {
    const char *name;
    double n_bytes; /* bytes of the whole buffer */
    BufferSpace space;
    const char *replaces; /* the buffer whose memory this one reuses element by element, or NULL */
    const char *copy_of;  /* the buffer that this one copies, or NULL */
    const char *copy;     /* the copy that kernels read instead at other sizes, or NULL */
} LedgerBuffer;

typedef struct LedgerBuffers {
    Vec(LedgerBuffer) list;
    LedgerBytes moved; /* bytes of the elements that the kernel may access in memory */
} LedgerBuffers;

typedef struct LedgerKernel {
    const char *name;
    Position at; /* line 0: the graph has no source */
    const FormInfo *form;
    bool is_tiled;              /* a map in tiles */
    uint32_t n_passes;          /* how often the kernel walks each row */
    bool is_partial;            /* the kernel computes partial results of segments */
    uint32_t launch;            /* index from 0, among the init launches or those of a run */
    bool is_joined;             /* the kernel is not the first of its launch */
    const LaunchModeInfo *mode; /* of the launch */
    const char *variant;        /* the function of the artifact that runs at these dims */
    VecU32 nodes; /* the nodes that the kernel computes; an init step that changes an operand's
                   * layout lists the operand */
    LedgerBuffers reads, writes;
    KernelCost cost;
    uint32_t n_alternatives; /* how many of the kernels after this one replace it where `condition`
                              * holds */
    const char *condition;   /* NULL: the kernel has no alternatives */
} LedgerKernel;

/* Two launches that could start together. */
typedef struct LedgerUnjoined {
    const char *kernel, *other; /* names of kernels; `other` runs first */
    const ReasonInfo *reason;
    VecChangePrice prices;     /* times as one launch and as two, at every priced size */
    uint32_t n_slower;         /* at how many of `prices` one launch is slower */
    const ChangePrice *slower; /* the price with the largest loss, if n_slower > 0 */
    const char *slower_at;     /* ` at B = 64, T = 8`: the dims of `slower` */
    LedgerAdvice advice;
} LedgerUnjoined;

/* A `fuse must` block of the source. */
typedef struct LedgerBlock {
    Position at;
    AdviceTotals without; /* totals of a run without the block */
} LedgerBlock;

/* A softmax that --rewrite made part of an op, or left. */
typedef struct LedgerSoftmax {
    LedgerValue value;    /* what has its place: the op, or as SoftmaxNote says; `node` is none */
    const char *why_left; /* NULL: it is rewritten */
    double bound;         /* the op's (interp_online_bound), at these extents */
} LedgerSoftmax;

/* The launches, time and memory of a run. */
typedef struct LedgerTotals {
    uint32_t n_launches;
    double us;
    double dram_bytes;
    double workspace_bytes, unshared_bytes; /* with and without reuse of memory */
    double peak_bytes;                      /* the peak of all tensors */
    LedgerBytes moved;                      /* bytes of memory traffic, each tensor counted once per
                                             * kernel */
} LedgerTotals;

typedef struct Ledger {
    const char *graph;
    const Card *card;
    const char *priced_at; /* ` at B = 64 (chosen), T = 8`: the dims that kernels use */
    Vec(LedgerDim) dims;
    Vec(LedgerEdge) edges;
    Vec(LedgerKernel) kernels; /* init steps first */
    Vec(LedgerUnjoined) unjoined;
    Vec(LedgerBlock) blocks;
    Vec(LedgerSoftmax) softmaxes;
    LedgerTotals fused, unfused;
    uint32_t n_fused, n_stored;    /* edges between ops */
    uint32_t n_refused;            /* trial plans for advice beyond the limit */
    const char *least_text;        /* bytes: the used parts of all buffers but temporaries, once
                                    * each */
    double least_bytes;            /* those bytes, as traffic of DRAM */
    const char *workspace_text;    /* bytes */
    const char *unshared_text;     /* bytes */
    uint32_t n_init, n_init_steps; /* kernels, and their launches */
    double init_us, init_bytes;    /* of all init steps */
    LedgerBytes prepared;          /* bytes that init steps write */
} Ledger;

/* Lives on the arena; keeps parts of `input`. */
const Ledger *ledger_new(Arena *arena, const LedgerInput *input);

#endif
