/* The graph: a typed DAG of tensor ops. Nodes are indices into one array in topological order
 * (arguments before users). Each node has the source range it came from. The front end makes
 * graphs, passes change them. */
#ifndef FUSEC_IR_GRAPH_H
#define FUSEC_IR_GRAPH_H

#include "base/source.h"
#include "base/vec.h"
#include "ir/dim/dim.h"
#include "ir/op.h"
#include "ir/steps.h"

/* MAX_RANK: axes of a value that a graph computes. MAX_GIVEN_RANK: axes of an input, a param or an
 * output. */
enum { MAX_RANK = 16, MAX_GIVEN_RANK = 8 };
enum { MAX_NODES = 1 << 20, MAX_CONCAT_ARGS = 1024 };
/* Different extents of a graph's values with symbols, and their terms. */
enum { MAX_EXTENTS = 3 << 8, MAX_EXTENT_TERMS = 3 << 11 };

typedef uint32_t NodeId;
#define NODE_NONE UINT32_MAX

typedef struct Shape {
    uint32_t rank;
    DimId dims[MAX_RANK];
} Shape;

/* Keys in a block of the recurrence of CLASS_ONLINE (docs/design/attention.md). */
enum { ONLINE_BLOCK = 128 };
/* With at most ONLINE_FEW_ROWS rows of scores, the keys are split into parts of ONLINE_PART_KEYS,
 * or of as many times 2 that the parts are at most ONLINE_MOST_PARTS. The last may be shorter. */
enum { ONLINE_FEW_ROWS = 32, ONLINE_PART_KEYS = 256, ONLINE_MOST_PARTS = 64 };
/* Keys in a part. */
DimId online_part_keys(DimTab *dims, DimId keys);
/* Whether this many rows of this many keys may have parts. */
bool online_may_split(const DimTab *dims, DimId rows, DimId keys);

/* The precision of a matmul's operands: unchanged, or f32 rounded to tf32. */
typedef enum { PRECISION_FULL, PRECISION_TF32, PRECISION_COUNT } Precision;
const char *precision_name(Precision precision);

/* Attributes per axis, which few ops have. They are apart, so that a node is small. */
typedef struct AxisAttrs {
    uint8_t perm[MAX_RANK];
    DimId begin[MAX_RANK];
    int64_t step[MAX_RANK];
    int64_t dilation[MAX_RANK];
} AxisAttrs;

/* Attributes of an op. The op's class and row decide which fields are used:
 *   const: number, whole     iota: axis (its index along that axis is the value)
 *   reduce: axes, keep       matmul: precision, segment_elems
 *   transpose: per_axis->perm[k] = the argument axis that becomes axis k
 *   reshape, expand: none beyond the node's own shape
 *   slice: begin, step per axis (the extent is the node's shape)
 *   windows: axes (of the argument, that have windows); step = the stride, and dilation, per axis
 *   pad: begin = elements put before each axis; number, whole = the value put there
 *   concat: axis             gather: axis (of the data argument; indices are the second argument)
 *   argmax, argmin: axes, keep (exactly one axis)    scans, argsort: axes (exactly one)
 *   scan_by: axes (exactly one); axis = which of the scanned tensors; function
 *   online without powers: quantize
 *   segments: axes (exactly one; the number of segments is the node's shape)
 *   loop_result: axis = which carried value; begin[0] = the number of steps */
typedef struct Attrs {
    double number;
    int64_t whole; /* the number of an integer dtype, which a double may round */
    Precision precision;
    int64_t segment_elems; /* of k per split-k segment (search/split_k_segments.h) */
    int32_t axis;
    uint32_t axes; /* bit set */
    bool keep;
    QuantizeMap quantize;
    const AxisAttrs *per_axis; /* never NULL in a graph */
    /* Of scan_by, how it joins parts of the axis: a graph of elementwise ops and constants of rank
     * 0. Of n tensors it has 2 n inputs, the values of the part before and of the part behind it,
     * and n outputs. Equal functions of a module are one graph. */
    const struct Graph *function;
} Attrs;

typedef struct Node {
    OpId op;
    Dtype dtype;
    Shape shape;
    uint32_t n_args;
    NodeId *args;
    Attrs attrs;
    Span span;     /* of the source expression */
    uint32_t call; /* the def call of the graph that made it, counted from 1; 0: none */
    Str name;      /* the variable it was first bound to, or NULL */
} Node;

typedef struct GraphInput {
    Str name;
    NodeId node;
    Str key;   /* params: the key in the weights file */
    Span span; /* of the declaration */
} GraphInput;

typedef struct GraphOutput {
    Str name;
    NodeId node;
    Span span;
    /* For an output that is an unchanged input or param, which no op computes: the `kernel` block
     * that copies it, plus 1; 0: any kernel may. A block of copies also has nodes. */
    uint32_t copied_by;
} GraphOutput;

/* A block of the source. `kernel name { ... }`, written by a user or a dump, fixes a kernel. `fuse
 * must { ... }` requires that all edges inside it fuse; `fuse never { ... }` that no edge from, to
 * or inside it does. A node whose `kernel_of` entry is k + 1 belongs to block k; 0 means no
 * block. */
typedef enum { BLOCK_KERNEL, BLOCK_MUST, BLOCK_NEVER } BlockKind;
const char *block_word(BlockKind kind); /* `kernel`, `must`, `never` */

typedef struct FixedKernel {
    BlockKind kind;
    Str name; /* of a `fuse` block its keyword */
    Span span;
} FixedKernel;

/* What became of a softmax in a graph that is rewritten (--rewrite). */
typedef struct SoftmaxNote {
    OpId op;  /* that it became part of; or, of one that is left, the product or the sum of the
               * exponentials, */
    Str name; /* its name and place */
    Span span;
    const char *why_left; /* NULL: it became part of the op: */
    Dtype values;         /* what the weights multiply */
    DimId n_keys;
} SoftmaxNote;

typedef struct Graph {
    Arena *arena;
    DimTab *dims;
    const Source *source;
    Str name;
    Str cut_from; /* the graph with loops that it was cut from (ir/sequence.h), or NULL */
    Span span;
    Vec(Node) nodes;
    Vec(GraphInput) inputs;
    Vec(GraphInput) params;
    Vec(GraphOutput) outputs;
    Vec(FixedKernel) fixed_kernels;
    Vec(uint32_t) kernel_of; /* empty, or one entry per node */
    Vec(SoftmaxNote) softmaxes;
    LoopStepsList loops; /* that were unrolled, outer ones before those in them */
    bool is_fast;        /* --numerics=fast, which also widens the error bounds */
} Graph;

/* A source file after semantic analysis. All graphs share the DimTab and the string table. */
typedef struct Module {
    Arena *arena;
    StrTab *strings;
    DimTab *dims;
    const Source *source;
    Str weights; /* path as written, or NULL */
    Vec(Graph *) graphs;
    Vec(const Graph *) functions; /* of scans (Attrs.function) */
} Module;

Module *module_new(Arena *arena, StrTab *strings, const Source *source);
Graph *graph_new(Arena *arena, DimTab *dims, const Source *source, Str name);
/* Appends a node and copies its args and its attributes per axis, if it has any. The caller has
 * checked the node. */
NodeId graph_add(Graph *graph, Node node);
/* Moves the nodes from the graph's arena to another one, where later nodes will lie too. */
void graph_move_nodes(Graph *graph, Arena *arena);
static inline Node *graph_node(const Graph *graph, NodeId id) {
    return &graph->nodes.data[id];
}

static inline OpClass graph_class(const Graph *graph, NodeId id) {
    return op_info(graph_node(graph, id)->op)->cls;
}

static inline bool graph_is_matmul(const Graph *graph, NodeId id) {
    return graph_class(graph, id) == CLASS_MATMUL;
}

static inline bool graph_is_segments(const Graph *graph, NodeId id) {
    return graph_class(graph, id) == CLASS_SEGMENT;
}

/* Whether the node moves the elements of one argument. */
static inline bool graph_is_moved(const Graph *graph, NodeId id) {
    return graph_class(graph, id) == CLASS_VIEW && graph_node(graph, id)->n_args == 1;
}

/* The value that views of one argument move. */
static inline NodeId graph_below_views(const Graph *graph, NodeId id) {
    while (graph_is_moved(graph, id)) id = graph_node(graph, id)->args[0];
    return id;
}

static inline bool graph_is_online(const Graph *graph, NodeId id) {
    return graph_class(graph, id) == CLASS_ONLINE;
}

/* Whether the two are a product and the logarithm of the sum of one softmax. */
bool graph_share_softmax(const Graph *graph, NodeId a, NodeId b);

static inline bool graph_is_update(const Graph *graph, NodeId id) {
    return graph_class(graph, id) == CLASS_UPDATE;
}

static inline bool graph_is_scan_by(const Graph *graph, NodeId id) {
    return graph_class(graph, id) == CLASS_SCAN_BY;
}

/* Whether it is a reduction with a result for each element of its argument. */
static inline bool graph_keeps_shape(const Graph *graph, NodeId id) {
    OpClass cls = graph_class(graph, id);
    return cls == CLASS_SCAN || cls == CLASS_SCAN_BY || cls == CLASS_SORT;
}

static inline bool graph_is_reduction(const Graph *graph, NodeId id) {
    OpClass cls = graph_class(graph, id);
    return cls == CLASS_REDUCE || cls == CLASS_ARGREDUCE || cls == CLASS_MATMUL ||
           cls == CLASS_SEGMENT || cls == CLASS_ONLINE || graph_keeps_shape(graph, id);
}

static inline bool graph_is_literal(const Graph *graph, NodeId id) {
    return graph_node(graph, id)->op == OP_CONST;
}

static inline bool graph_is_output(const Graph *graph, NodeId id) {
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (graph->outputs.data[i].node == id) return true;
    return false;
}

/* Whether the value comes from the caller: an input or a param. */
static inline bool graph_is_bound(const Graph *graph, NodeId id) {
    OpId op = graph_node(graph, id)->op;
    return op == OP_INPUT || op == OP_PARAM;
}

/* The block of this kind that contains the node, plus 1; or 0. */
static inline uint32_t graph_block(const Graph *graph, NodeId id, BlockKind kind) {
    uint32_t k = graph->kernel_of.n ? graph->kernel_of.data[id] : 0;
    return k && graph->fixed_kernels.data[k - 1].kind == kind ? k : 0;
}

/* Sorts ascending. */
void graph_sort_nodes(NodeId *nodes, uint32_t n);

/* Whether the language accepts `name` as the name of a graph or kernel: letters, digits and `_`, at
 * most GRAPH_MAX_NAME of them, no digit first, and not a keyword. */
enum { GRAPH_MAX_NAME = 255 };
bool graph_is_identifier(const char *name);
/* Whether `name` may also name a value: it must not be the name of a dtype. */
bool graph_is_name(const char *name);

/* Shape helpers. */
bool shape_equal(const Shape *a, const Shape *b);
/* The product of all extents; DIM_NONE on overflow. */
DimId shape_n_elems(DimTab *dims, const Shape *shape);
/* `f32[B, 64]` */
void shape_print(const DimTab *dims, const Shape *shape, Text *out);
/* `(B, 64)`; `(64,)` for rank 1 */
const char *shape_str(const DimTab *dims, Arena *arena, const Shape *shape);
/* `f32[B, 64]` */
const char *shape_type_str(const DimTab *dims, Arena *arena, Dtype dtype, const Shape *shape);
/* Broadcasts `b` into `*shape` as NumPy does. Returns false and leaves `*shape` unchanged if they
 * do not broadcast. A symbolic dim never counts as 1. */
bool shape_broadcast(const DimTab *dims, Shape *shape, const Shape *b);
/* The shape of a reduction of `arg` over the bit set `axes`. */
Shape shape_reduced(DimTab *dims, const Shape *arg, uint32_t axes, bool keep);
/* The shape of a matmul [.., m, k] x [.., k, n] -> [.., m, n]; k is not checked. Returns false if
 * the leading axes do not broadcast. */
bool matmul_shape(const DimTab *dims, const Shape *left, const Shape *right, Shape *shape);
/* The shape of a gather of `rows` along `axis` of `data`: at most MAX_RANK axes. */
Shape shape_gathered(const Shape *data, const Shape *rows, uint32_t axis);

/* Bit set of the dim symbols that are a whole extent of a param, so that the params' shapes fix
 * them. */
uint64_t graph_param_symbols(const Graph *graph);

/* Proofs about dims beyond ranges: they use that d * floor(n / d) lies between n - d + 1 and n, and
 * equals n if n is known to be a multiple of d. False means "not proved". */
bool dim_prove_le(DimTab *dims, DimId a, DimId b);
bool dim_prove_equal(DimTab *dims, DimId a, DimId b);

/* The axes of the result of `windows` over the bit set `axes` of its argument's axes. The places of
 * windows stand where the argument's axes stood. The taps of all windows follow the last of these,
 * in the same order. */
uint32_t windows_axis(uint32_t axes, uint32_t axis);
uint32_t windows_tap_axis(uint32_t axes, uint32_t axis);

/* Prints the graph as source text: one statement per node in order, inputs in the header, fixed
 * kernels as blocks. Together with the module's dims the text parses back to an equal graph, if the
 * inputs come first and every other node is needed for an output and has an effect (the front end
 * drops reshapes, slices, casts and the like that change nothing). */
void graph_print(const Graph *graph, Text *out);
/* Prints the module's weights line, dims and graphs: a whole source file. */
void module_print(const Module *module, Text *out);

/* Checks the graph's invariants: order, arity, and dtypes and shapes by the op's rule. Returns NULL
 * or a description of the violation. */
const char *graph_verify(const Graph *graph, Arena *arena);

/* Elements of k per split-k segment of a matmul; the last segment may have fewer. 0 means one
 * segment. A matmul in a `fuse must` block with another reduction has one segment, because the
 * other reduction would have to wait for the last segment. */
int64_t graph_segment_elems(const Graph *graph, NodeId matmul);

#endif
