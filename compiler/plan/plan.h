/* The plan: the kernels that compute a graph, what each reads, reduces and stores, its schedule,
 * and the place of its buffers. Passes make and change it, codegen reads it. */
#ifndef FUSEC_PLAN_PLAN_H
#define FUSEC_PLAN_PLAN_H

#include "plan/kernel.h"

typedef enum {
    BUFFER_INPUT,
    BUFFER_PARAM,
    BUFFER_OUTPUT,
    BUFFER_TEMP,
    BUFFER_PREPARED /* init kernels compute it from params; the program keeps it */
} BufferKind;

/* Where a buffer lies. A temporary that only one launch stores and loads may lie in the launch's
 * blocks. Then it has no address in global memory and is no argument. */
typedef enum {
    BUFFER_GLOBAL,  /* global memory */
    BUFFER_SHARED,  /* shared memory of a block, whole or as a tile; on a CPU the stack of a work
                     * unit. A dual GEMM keeps its tile in registers */
    BUFFER_REGISTER /* registers of the threads that compute it, tile by tile */
} BufferSpace;

/* A row-major tensor: the value of a node, with the axes in the order of memory. */
typedef struct Buffer {
    BufferKind kind;
    BufferSpace space;
    uint32_t ordinal; /* number in its kind, in the graph's order (temporaries: of creation) */
    Dtype dtype;
    Shape shape;        /* in memory: outermost axis first */
    uint32_t inner;     /* temporaries: the node's axis that lies innermost, plus 1; 0: the last */
    DimId pitch;        /* temporaries: row pitch in elements, if above the last extent */
    NodeId node;        /* the node whose value it holds */
    Str name;           /* inputs, params, outputs: from the source; others t0, .. and p0, .. */
    DimId offset_bytes; /* temporaries: bytes; a multiple of WORKSPACE_ALIGN_BYTES */
    uint32_t in_place_of; /* temporaries: stored in place of this one, plus 1; 0: none */
    /* For a copy that only runs of the choice's alternative make: in other runs it has no elements
     * and its readers get `source`. NULL: every run makes the buffer. */
    const Choice *choice;
    uint32_t source; /* buffer that is copied, with a choice */
} Buffer;
enum { WORKSPACE_ALIGN_BYTES = 256 };
/* Buffers, pieces and parts that an artifact may name of a graph. */
enum { PLAN_MAX_TENSORS = 16384 };

/* The row pitch of `source` or its copy, and the width of the copy: symbols with one rule
 * (ir/predicate.h), whose condition is the choice's. */
typedef struct DynamicPitch {
    uint32_t source;       /* buffer */
    uint32_t pitch, width; /* symbols */
    const Choice *choice;  /* of the source (default) or its copy */
} DynamicPitch;

/* An edge of the graph and its outcome. */
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
    const char *step;   /* a sentence, {} for values: what the source can change to flip it */
    const char *advice; /* a sentence: which ops, extents or options would flip it */
} ReasonInfo;
const ReasonInfo *reason_info(ReasonId id);

typedef struct Edge {
    NodeId producer, consumer; /* NODE_NONE consumer: an output */
    uint32_t output;           /* which of the graph's outputs */
    EdgeVerdict verdict;
    ReasonId reason;
} Edge;

/* The time after a change and the time now, in microseconds, at values of the dims (by symbol). */
typedef struct ChangePrice {
    const int64_t *dims;
    double changed_us, current_us;
} ChangePrice;
typedef Vec(ChangePrice) VecChangePrice;

/* Two independent launches, named by a kernel of each, and the reason why they are not one. */
typedef struct Unjoined {
    Str kernel, other;              /* names; `other` is before it */
    NodeId kernel_node, other_node; /* a value of each; NODE_NONE if the kernel computes none */
    ReasonId reason;
    VecChangePrice prices; /* as one launch, at every point priced, if prices decide */
} Unjoined;

/* How the kernels of a launch share its blocks. */
typedef enum {
    BLOCKS_OWN,    /* each kernel has its own blocks; the launch's grid is their sum */
    BLOCKS_SHARED, /* the first kernel's blocks run all kernels */
    BLOCKS_ONE     /* one block runs the whole grid of each kernel */
} LaunchBlocks;

typedef enum {
#define LAUNCH_MODE(sym, ...) LAUNCH_##sym,
#include "plan/launch_modes.def"
} LaunchMode;

/* A grid that a run starts, and its kernels [first, first + n) of the plan. The launch takes the
 * arguments of all its kernels, except buffers outside global memory. Variant v of the launch
 * consists of variant v of each kernel and has the symbol of the first kernel's. */
typedef struct Launch {
    LaunchMode mode;
    uint32_t first, n;
    Vec(uint32_t) copied; /* one block: buffers copied to shared memory first */
} Launch;

struct Plan {
    const Graph *graph;
    Vec(Buffer) buffers;
    Vec(Kernel) kernels;  /* in launch order, init kernels first */
    Vec(Launch) launches; /* of a scheduled plan: every kernel is in one, in order */
    Vec(Edge) edges;
    Vec(DynamicPitch) dynamic_pitches;
    Vec(Unjoined) unjoined;
    bool has_ties;             /* values that row or column kernels could have computed */
    uint32_t facts;            /* facts established by passes (pipeline/facts.def), a bit set */
    VecDim workspace;          /* the largest of these, in bytes; 0 if empty */
    DimId peak_bytes_unshared; /* bytes of all temporaries without reuse; DIM_NONE: unknown */
};

/* The arguments (bit set) whose elements the kernel reads once each: one load, at as many points as
 * there are elements. */
uint64_t kernel_args_read_once(const Plan *plan, const Kernel *kernel);
/* The arguments (bit set) in memory that the runtime allocates, params included. Their addresses
 * are multiples of WORKSPACE_ALIGN_BYTES. Without copies whose source may be read in their
 * place. */
uint64_t kernel_own_args(const Plan *plan, const Kernel *kernel);
/* Whether the argument is complete before any kernel of the same phase (init or run) begins. An
 * input is not: a kernel that still runs when this one starts (PDL) may write it. */
bool kernel_arg_is_given(const Plan *plan, const Kernel *kernel, uint32_t arg);
/* Moves an axis of a temporary's shape to the end. Nothing has its address yet. */
void buffer_put_inside(Buffer *buffer, uint32_t axis);
/* Brings coordinates of the buffer's node into the order of memory. */
void buffer_order_coords(const Buffer *buffer, const IndexId *coords, IndexId *in_memory);
/* Whether the buffers differ only in their names, places and values, and not in what a kernel's
 * program and schedule follow from. */
bool buffer_is_alike(const Buffer *a, const Buffer *b);
/* The shape that the buffer fills in memory: rows as long as its pitch. */
Shape buffer_layout(const Buffer *buffer);
/* Bytes of a buffer as a dim, gaps between rows included. */
DimId buffer_bytes(DimTab *dims, const Buffer *buffer);
/* Bytes of an argument that the kernel may access: all bytes, or fewer if the kernel gathers rows,
 * reads a part that is smaller at any size, or stores operands of a concat. */
DimId kernel_buffer_bytes(const Plan *plan, const Kernel *kernel, uint32_t buffer);
/* Memory traffic of a kernel in bytes, as a dim: reads plus writes, each buffer counted once. */
DimId kernel_bytes(const Plan *plan, const Kernel *kernel);
/* The node whose value the store writes, or the concat of which it writes an operand. */
NodeId store_holds(const Plan *plan, const Store *store);
uint32_t plan_n_buffers(const Plan *plan, BufferKind kind);
/* Per buffer: its users, the kernels that it is an argument of, ascending. */
VecU32 *plan_users(Arena *arena, const Plan *plan);
/* Lets the last stage of the row kernel reduce the value by the op, for the node. Returns the
 * result. */
ScalarId kernel_reduce(Arena *arena, Kernel *kernel, NodeId node, OpId op, ScalarId value);
/* Lets the kernel store the value once for each row, to a temporary of the node. Returns it. */
uint32_t plan_store_rows(Arena *arena, Plan *plan, Kernel *kernel, NodeId node, ScalarId value);
/* Per buffer: the kernels that have it as an argument, and the updates that copy it. */
uint32_t *plan_count_users(Arena *arena, const Plan *plan);
/* Appends the buffer as the last of its kind. Returns its index in the plan. */
uint32_t plan_add_buffer(Arena *arena, Plan *plan, Buffer buffer);
uint32_t plan_add_temp(Arena *arena, Plan *plan, NodeId node, Dtype dtype, Shape shape);
/* The number of init kernels, which come first. */
uint32_t plan_n_init(const Plan *plan);
/* Moves init kernels to the front and keeps the order otherwise. */
void plan_move_init(Arena *arena, Plan *plan);
/* The same, and renumbers temporaries and prepared buffers. */
void plan_order_init(Arena *arena, Plan *plan);
/* Whether the kernel starts at values of the dims (by symbol). It does not if a run takes the other
 * version of its choice, or reads the source of the copy that the kernel makes. */
bool kernel_starts(const Plan *plan, const Kernel *kernel, const int64_t *dims);
/* The buffer that readers of `buffer` get at values of the dims: the source of a copy that the run
 * does not make; otherwise `buffer`. */
uint32_t plan_read_buffer(const Plan *plan, uint32_t buffer, const int64_t *dims);
/* The number of kernels of the choice's alternative. */
uint32_t plan_n_alternatives(const Plan *plan, const Choice *choice);
/* Whether the kernel only copies an operand of matmuls into another layout, as an init kernel or in
 * runs. It has no nodes, and the node of its buffer is a matmul. */
bool kernel_lays_out(const Plan *plan, const Kernel *kernel);
/* The operand of GEMM `kernel` that the kernel reads from this copy, or NODE_NONE. */
NodeId kernel_operand_in(const Plan *plan, const Kernel *kernel, uint32_t buffer);
/* The node that the layout's kernel copies: an operand of the first matmul that reads the copy. */
NodeId plan_laid_out(const Plan *plan, const Kernel *layout);
/* Bytes that init kernels write. */
DimId plan_prepared_bytes(const Plan *plan);

/* Checks the plan: every kernel reads only bound buffers and buffers written before; everything is
 * written once (a concat possibly operand by operand; again by the alternative of a choice) and in
 * its dtype; stages hold every slot once; init kernels come first, read only params and results of
 * init kernels, need only dims that params fix, and are the only ones to write prepared buffers.
 * Returns NULL or a description of the violation. */
const char *plan_verify(const Plan *plan, Arena *arena);
/* Checks a placed plan: two temporaries in one place never live at the same time, unless one is
 * stored in place of the other and each of its elements depends on the same element of the other
 * only. Returns NULL or a description of the violation. */
const char *plan_verify_places(const Plan *plan, Arena *arena);
/* Prints schedules and scalar programs for --emit=sched: `kernel softmax ... stage 1: r0 =
 * max(...)`. */
void plan_print(const Plan *plan, Text *out);

#define NO_BUFFER UINT32_MAX
/* The input that may lie at the address of this output: the output is the input, updated, and no
 * kernel reads the input, and nothing copies it, once the first update is made. NO_BUFFER: none. */
uint32_t plan_input_in_place(const Plan *plan, uint32_t output);

#endif
