/* The plan: which kernels compute a graph, what each reads, reduces and stores, how it is scheduled
 * and where its buffers lie. Made by the passes, read by codegen. */
#ifndef FUSEC_PLAN_PLAN_H
#define FUSEC_PLAN_PLAN_H

#include "plan/kernel.h"

typedef enum {
    BUFFER_INPUT,
    BUFFER_PARAM,
    BUFFER_OUTPUT,
    BUFFER_TEMP,
    BUFFER_PREPARED /* made by init kernels from params; the program keeps it between runs */
} BufferKind;

/* Where a buffer lies. A temp that one launch alone stores and loads may lie in the launch's own
 * blocks; then it has no address in memory and is no argument. */
typedef enum {
    BUFFER_GLOBAL,  /* memory */
    BUFFER_SHARED,  /* a block's shared memory, whole or a tile of it; on a CPU a unit's stack.
                     * Products that run at once keep their tile in registers instead */
    BUFFER_REGISTER /* registers of the threads that compute it, a tile at a time */
} BufferSpace;

/* A row-major tensor. */
typedef struct Buffer {
    BufferKind kind;
    BufferSpace space;
    uint32_t ordinal; /* among its kind, in the order of the graph's list (temps: of creation) */
    Dtype dtype;
    Shape shape;
    DimId pitch;         /* temps: elements from row to row along the last axis, where that is more
                          * than the axis has; else DIM_NONE */
    NodeId node;         /* whose value it holds */
    Str name;            /* inputs, params, outputs: the user's; temps: t0, ..; prepared: p0, .. */
    DimId offset_bytes;  /* temps: place in the workspace, a multiple of WORKSPACE_ALIGN_BYTES */
    uint32_t takes_over; /* temps, plus 1: the temp in whose memory a kernel that reads it stores
                          * this one; 0: none */
    /* Of a copy that only some runs make, in its choice's alternative: in other runs it has no
     * elements, and its readers get `source`. NULL: every run makes the buffer. */
    const Choice *choice;
    uint32_t source; /* buffer, where there is a choice */
} Buffer;
enum { WORKSPACE_ALIGN_BYTES = 256 };

/* How far apart rows of `source` lie for those who read it or its copy, and how wide the copy is:
 * symbols with one rule (ir/predicate.h), whose condition is the choice's. */
typedef struct DynamicPitch {
    uint32_t source;       /* buffer */
    uint32_t pitch, width; /* symbols */
    const Choice *choice;  /* of the source (default) and its copy */
} DynamicPitch;

/* One edge of the graph and what fusion made of it. */
typedef enum { EDGE_FUSED, EDGE_STORED } EdgeVerdict;

typedef enum {
    REASON_NONE,
#define REASON(sym, id, text, step, advice) REASON_##sym,
#include "plan/reasons.def"
    REASON_COUNT
} ReasonId;

typedef struct ReasonInfo {
    const char *id;
    const char *text;
    const char *step;   /* a sentence, {} for values: what the source can say to flip the verdict */
    const char *advice; /* a sentence: which ops, extents or options would flip it */
} ReasonInfo;
const ReasonInfo *reason_info(ReasonId id);

typedef struct Edge {
    NodeId producer, consumer; /* NODE_NONE consumer: an output */
    uint32_t output;           /* which of the graph's that is */
    EdgeVerdict verdict;
    ReasonId reason;
} Edge;

/* What a change would make something take, and what it takes now, in microseconds, at values of the
 * dims (by symbol). */
typedef struct ChangePrice {
    const int64_t *dims;
    double then_us, now_us;
} ChangePrice;
typedef Vec(ChangePrice) VecChangePrice;

/* Two launches of which neither waits for the other, by a kernel of each, and why they are not one.
 */
typedef struct Unjoined {
    Str kernel, other;              /* names; `other` is before it */
    NodeId kernel_node, other_node; /* a value of each; NODE_NONE where it computes none */
    ReasonId reason;
    VecChangePrice prices; /* as one launch; where that decides: at every point that was asked */
} Unjoined;

/* How the kernels of a launch share its blocks. */
typedef enum {
    BLOCKS_OWN,    /* each kernel has blocks of its own: the grids add up */
    BLOCKS_SHARED, /* the first kernel's blocks run all kernels */
    BLOCKS_ONE     /* one block runs the whole grid of each kernel */
} LaunchBlocks;

typedef enum {
#define LAUNCH_MODE(sym, name, blocks, tried, text, word) LAUNCH_##sym,
#include "plan/launch_modes.def"
} LaunchMode;

/* The rows of a gemm-rows-gemm launch, rewritten to one pass (launch/online_softmax.h). They store
 * weight / total, where weight = power(x - shift). So weights by another shift are these weights
 * times a power, and a product with the weights can be divided by the total at the end. */
typedef struct OnlineSoftmax {
    ScalarId weight;       /* f32, per element; SCALAR_NONE: the rows are not rewritten */
    PrimId power;          /* power(a + b) is power(a) power(b) */
    uint32_t shift, total; /* slots: the greatest x of the row, the sum of its weights */
    bool is_limited;       /* in row m, weights of columns from m + 1 + ahead on are 0 */
    DimId ahead;
} OnlineSoftmax;
#define ONLINE_NAME "online-weights"

/* One grid that a run starts, and the kernels that it runs: [first, first + n) of the plan. The
 * launch takes the arguments of all its kernels but those that are not in global memory. Its
 * variants are the kernels' variants of one number, and the first kernel's have its symbols. */
typedef struct Launch {
    LaunchMode mode;
    uint32_t first, n;
    Vec(uint32_t) copied;         /* one block: buffers that it copies to shared memory first */
    OnlineSoftmax online_softmax; /* gemm-rows-gemm: of the rows */
} Launch;

struct Plan {
    const Graph *graph;
    Vec(Buffer) buffers;
    Vec(Kernel) kernels;  /* in launch order, init kernels first */
    Vec(Launch) launches; /* of a scheduled plan: every kernel is in one, in the kernels' order */
    Vec(Edge) edges;
    Vec(DynamicPitch) dynamic_pitches;
    Vec(Unjoined) unjoined;
    bool has_ties;             /* values that rows or columns could have been made with */
    bool may_rewrite;          /* arithmetic may be changed, within a bound */
    uint32_t facts;            /* that passes left true (pipeline/facts.def), a bit set */
    VecDim workspace;          /* bytes: the largest of these, 0 of none */
    DimId peak_bytes_unshared; /* what temps would take without reuse; DIM_NONE: no dim says */
};

/* Arguments (bit set) whose elements it reads once each: one load, at as many places as there are
 * elements. */
uint64_t kernel_args_read_once(const Plan *plan, const Kernel *kernel);
/* The arguments (bit set) in memory of the runtime's own, params among them, whose addresses are
 * multiples of WORKSPACE_ALIGN_BYTES. No copies whose source may be read instead. */
uint64_t kernel_own_args(const Plan *plan, const Kernel *kernel);
/* The shape that it fills in memory: rows as long as they are apart. */
Shape buffer_layout(const Buffer *buffer);
/* Bytes of a buffer as a dim, those between its rows included. */
DimId buffer_bytes(DimTab *dims, const Buffer *buffer);
/* Those that the kernel may touch of one of its arguments: all of them, or the rows that it gathers
 * or the part that it reads where that is less at any size, or the pieces that it stores. */
DimId kernel_buffer_bytes(const Plan *plan, const Kernel *kernel, uint32_t buffer);
/* Memory traffic of a kernel, each buffer counted once per kernel, as a dim: what it reads plus
 * what it writes. */
DimId kernel_bytes(const Plan *plan, const Kernel *kernel);
/* The node whose value, or a piece of it, the store puts into memory. */
NodeId store_holds(const Plan *plan, const Store *store);
uint32_t plan_n_buffers(const Plan *plan, BufferKind kind);
/* Appends it as the last of its kind. Returns its place in the plan. */
uint32_t plan_add_buffer(Arena *arena, Plan *plan, Buffer buffer);
uint32_t plan_add_temp(Arena *arena, Plan *plan, NodeId node, Dtype dtype, Shape shape);
/* How many of the plan's kernels are init kernels: those before this one. */
uint32_t plan_n_init(const Plan *plan);
/* Puts init kernels first, otherwise in the order in which they are, and numbers temps and prepared
 * buffers anew. */
void plan_order_init(Arena *arena, Plan *plan);
/* Whether the kernel starts at values of the dims, by symbol: a run may take the other version of
 * its choice, or read the source of the copy that it makes. */
bool kernel_starts(const Plan *plan, const Kernel *kernel, const int64_t *dims);
/* The buffer that readers of `buffer` get at values of the dims: the source of a copy that such a
 * run does not make, else the buffer itself. */
uint32_t plan_read_buffer(const Plan *plan, uint32_t buffer, const int64_t *dims);
/* How many kernels start in place of another one in runs that take the choice's alternative. */
uint32_t plan_n_alternatives(const Plan *plan, const Choice *choice);
/* Whether the kernel only lays an operand of matmuls out anew, in an init step or, where that pays,
 * in a run: it has no nodes, and the node of its buffer is a matmul's. */
bool kernel_lays_out(const Plan *plan, const Kernel *kernel);
/* The operand of the GEMM `kernel` that is read from this laid-out buffer, or NODE_NONE. */
NodeId kernel_operand_in(const Plan *plan, const Kernel *kernel, uint32_t buffer);
/* What the layout's kernel lays out: an operand of the first matmul that reads it. */
NodeId plan_laid_out(const Plan *plan, const Kernel *layout);
/* What init kernels write, in bytes. */
DimId plan_prepared_bytes(const Plan *plan);

/* Proves that every kernel reads only what is bound or was written before it, that everything is
 * written once (a concat perhaps in pieces; again by the alternatives of a choice) and in its
 * dtype, that stages hold every slot once, and that init kernels come first, read nothing but
 * params and what init kernels made, need no dim but those that params fix, and alone write what is
 * prepared. NULL, or what is wrong. */
const char *plan_verify(const Plan *plan, Arena *arena);
/* Proves of a placed plan that temps in one place do not live at the same time, but for one that
 * takes the place of another whose every element only the same element of the new one is made of.
 * NULL, or what is wrong. */
const char *plan_verify_places(const Plan *plan, Arena *arena);
/* `kernel softmax ... stage 1: r0 = max(...)`: the schedule and scalar programs, for --emit=sched.
 */
void plan_print(const Plan *plan, Text *out);

#endif
