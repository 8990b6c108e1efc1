/* The graph: a typed tensor DAG. Nodes are indices into one array in topological order (arguments
 * come before users), each with the source range it came from. Made by the front end, changed by
 * passes, read by all. */
#ifndef FUSEC_IR_GRAPH_H
#define FUSEC_IR_GRAPH_H

#include "base/source.h"
#include "base/vec.h"
#include "ir/dim.h"
#include "ir/op.h"

enum { MAX_RANK = 8, MAX_NODES = 1 << 20, MAX_CONCAT_ARGS = 1024 };

typedef uint32_t NodeId;
#define NODE_NONE UINT32_MAX

typedef struct Shape {
    uint32_t rank;
    DimId dims[MAX_RANK];
} Shape;

/* How a matmul's operands enter its products: as they are, or f32 rounded to tf32 first. */
typedef enum { PRECISION_FULL, PRECISION_TF32, PRECISION_COUNT } Precision;
const char *precision_name(Precision precision);

/* What an op needs besides its arguments. Which fields count is said by the op's class and row:
 *   const: number            iota: axis (its index along that axis is the value)
 *   reduce: axes, keep       matmul: precision, segment_elems
 *   transpose: perm[k] = the argument axis that becomes axis k
 *   reshape, expand: none beyond the node's own shape
 *   slice: begin, step per axis (the extent is the node's shape)
 *   pad: begin = elements put before each axis; number = the value put there
 *   concat: axis             gather: axis (of the data argument; indices are the second argument)
 *   argmax, argmin: axes, keep (exactly one axis) */
typedef struct Attrs {
    double number;
    Precision precision;
    int64_t segment_elems; /* of k, which are summed apart (search/split_k_segments.h); 0: all are
                              one sum */
    int32_t axis;
    uint32_t axes; /* bit set */
    bool keep;
    uint8_t perm[MAX_RANK];
    DimId begin[MAX_RANK];
    int64_t step[MAX_RANK];
} Attrs;

typedef struct Node {
    OpId op;
    Dtype dtype;
    Shape shape;
    uint32_t n_args;
    NodeId *args;
    Attrs attrs;
    Span span;     /* of the source expression */
    uint32_t call; /* of a def by the graph, which made it: counted from 1; 0: the graph itself */
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
    /* Of an input or param as it is, which no op makes: the fixed kernel that copies it, plus 1; 0:
     * any may. It has nodes besides. */
    uint32_t copied_by;
} GraphOutput;

/* A block of the source: a user's or a dump's fixed kernel, `kernel name { ... }`; or a contract on
 * what becomes of its values, `fuse must { ... }` (all edges inside fuse) and `fuse never { ... }`
 * (none from, to or inside does). Nodes whose `kernel_of` entry is k + 1 belong to block k; 0 means
 * free. */
typedef enum { BLOCK_KERNEL, BLOCK_MUST, BLOCK_NEVER } BlockKind;
const char *block_word(BlockKind kind); /* `kernel`, `must`, `never` */

typedef struct FixedKernel {
    BlockKind kind;
    Str name; /* of a contract its word */
    Span span;
} FixedKernel;

typedef struct Graph {
    Arena *arena;
    DimTab *dims;
    const Source *source;
    Str name;
    Span span;
    Vec(Node) nodes;
    Vec(GraphInput) inputs;
    Vec(GraphInput) params;
    Vec(GraphOutput) outputs;
    Vec(FixedKernel) fixed_kernels;
    Vec(uint32_t) kernel_of; /* empty, or one entry per node */
    bool is_fast;            /* --numerics=fast: what values may be, and so the bounds on them */
} Graph;

/* One source file after sema. All graphs share the DimTab and the string table. */
typedef struct Module {
    Arena *arena;
    StrTab *strings;
    DimTab *dims;
    const Source *source;
    Str weights; /* path as written, or NULL */
    Vec(Graph *) graphs;
} Module;

Module *module_new(Arena *arena, StrTab *strings, const Source *source);
Graph *graph_new(Arena *arena, DimTab *dims, const Source *source, Str name);
/* Appends a node as given (args are copied); the caller has checked it. */
NodeId graph_add(Graph *graph, Node node);
static inline Node *graph_node(const Graph *graph, NodeId id) {
    return &graph->nodes.data[id];
}

static inline OpClass graph_class(const Graph *graph, NodeId id) {
    return op_info(graph_node(graph, id)->op)->cls;
}

static inline bool graph_is_matmul(const Graph *graph, NodeId id) {
    return graph_class(graph, id) == CLASS_MATMUL;
}

static inline bool graph_is_reduction(const Graph *graph, NodeId id) {
    OpClass cls = graph_class(graph, id);
    return cls == CLASS_REDUCE || cls == CLASS_ARGREDUCE || cls == CLASS_MATMUL;
}

static inline bool graph_is_literal(const Graph *graph, NodeId id) {
    return graph_node(graph, id)->op == OP_CONST;
}

static inline bool graph_is_output(const Graph *graph, NodeId id) {
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (graph->outputs.data[i].node == id) return true;
    return false;
}

/* Whether its value comes from outside: an input or a param. */
static inline bool graph_is_bound(const Graph *graph, NodeId id) {
    OpId op = graph_node(graph, id)->op;
    return op == OP_INPUT || op == OP_PARAM;
}

/* The block of this kind that the node is in, plus 1; or 0. */
static inline uint32_t graph_block(const Graph *graph, NodeId id, BlockKind kind) {
    uint32_t k = graph->kernel_of.n ? graph->kernel_of.data[id] : 0;
    return k && graph->fixed_kernels.data[k - 1].kind == kind ? k : 0;
}
/* Whether one `fuse must` block has both. */
static inline bool graph_shares_must(const Graph *graph, NodeId a, NodeId b) {
    uint32_t block = graph_block(graph, a, BLOCK_MUST);
    return block && graph_block(graph, b, BLOCK_MUST) == block;
}

/* Ascending. */
void graph_sort_nodes(NodeId *nodes, uint32_t n);

/* Whether the language reads `name` as the name of a graph or a kernel: letters, digits and `_`, at
 * most GRAPH_MAX_NAME of them, no digit first, and no word of its own. */
enum { GRAPH_MAX_NAME = 255 };
bool graph_is_identifier(const char *name);
/* Whether it may name a value, too, which a dtype's name may not. */
bool graph_is_name(const char *name);

/* Shape helpers. */
bool shape_equal(const Shape *a, const Shape *b);
/* Product of all extents; DIM_NONE on overflow. */
DimId shape_n_elems(DimTab *dims, const Shape *shape);
/* `f32[B, 64]` */
void shape_print(const DimTab *dims, const Shape *shape, Text *out);
/* `(B, 64)`; of rank 1 `(64,)` */
const char *shape_str(const DimTab *dims, Arena *arena, const Shape *shape);
/* `f32[B, 64]` */
const char *shape_type_str(const DimTab *dims, Arena *arena, Dtype dtype, const Shape *shape);
/* NumPy broadcasting of `b` into `*shape`; false, `*shape` unchanged, when they do not broadcast.
 * A symbolic dim is never taken for 1. */
bool shape_broadcast(const DimTab *dims, Shape *shape, const Shape *b);
/* The shape of a reduction of `arg` over the bit set `axes`. */
Shape shape_reduced(DimTab *dims, const Shape *arg, uint32_t axes, bool keep);
/* The shape of a matmul [.., m, k] x [.., k, n] -> [.., m, n], without a look at k; false when the
 * leading axes do not broadcast. */
bool matmul_shape(const DimTab *dims, const Shape *left, const Shape *right, Shape *shape);
/* The shape of a gather of `rows` along `axis` of `data`: at most MAX_RANK axes. */
Shape shape_gathered(const Shape *data, const Shape *rows, uint32_t axis);

/* Bit set of the dim symbols that the params' shapes fix: those that are a whole extent of one. */
uint64_t graph_param_symbols(const Graph *graph);

/* Proofs about dims beyond what ranges tell: they see that d * floor(n / d) lies between n - d + 1
 * and n, and equals n when n is known to be a multiple of d. False means "not proved". */
bool dim_prove_le(DimTab *dims, DimId a, DimId b);
bool dim_prove_equal(DimTab *dims, DimId a, DimId b);

/* The graph as source text: one statement per node in order, inputs in the header, fixed kernels as
 * blocks. With the module's dims before it, it parses back to an equal graph, provided that the
 * inputs come first and that every other node is needed for an output and does something (the front
 * end drops reshapes, slices, casts and the like that change nothing). */
void graph_print(const Graph *graph, Text *out);
/* The module's weights line, dims and graphs: a whole source file. */
void module_print(const Module *module, Text *out);

/* Proves the invariants above (order, arity, dtypes and shapes as the op's rule gives them);
 * returns NULL, or what is wrong. */
const char *graph_verify(const Graph *graph, Arena *arena);

/* Split-K: elements of k of each segment of a matmul but the last, which may have fewer; 0: it has
 * one segment. So it is in a `fuse must`
 * block with another reduction, which would have to start behind the last segment. */
int64_t graph_segment_elems(const Graph *graph, NodeId matmul);

#endif
