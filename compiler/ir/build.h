/* The typed graph builder: every rule of dtypes, shapes and limits that a new node must keep. Front
 * ends make their graphs with it, whether from text or from another program's graph, so what they
 * hand on is typed alike.
 *
 * A function that makes a node returns the node, or NODE_NONE after it has recorded a BuildError.
 * An argument that is NODE_NONE makes the result NODE_NONE in silence, so one mistake is recorded
 * once and a front end may go on and look at the errors at the end. What changes nothing (a cast to
 * the same dtype, a slice that takes everything) adds no node: the result is the argument.
 *
 * The builder knows nothing of texts. Where a node comes from is data that the front end leaves in
 * `span` and `call`; where an error lies is said by the number of the argument. */
#ifndef FUSEC_BUILD_H
#define FUSEC_BUILD_H

#include "base/diag.h"
#include "ir/graph.h"

/* Where an error lies: in the call as a whole, in an argument, in an item of an argument that is a
 * list. Both count from 1 and 0 means the whole. Arguments count in the order of the function's
 * parameters behind the builder and the op; `operands` and `xs` stand for their items. */
typedef struct BuildPlace {
    uint32_t arg, item;
} BuildPlace;

enum { BUILD_MAX_SHOWN = 3 };
typedef struct BuildError {
    DiagId id;
    BuildPlace at;
    const char *message; /* one line, lower case, no final period */
    uint32_t n_nodes;    /* to be shown with their types, in this order */
    NodeId nodes[BUILD_MAX_SHOWN];
    uint32_t block;   /* of the graph, that the message is about, plus 1; 0: none */
    uint64_t symbols; /* bit set of dims whose ranges matter */
    const char *help; /* a sentence, or NULL */
} BuildError;

typedef struct Builder {
    Arena *arena;
    DimTab *dims;
    Graph *graph;
    Span span;              /* of the nodes made next, in the graph's source */
    uint32_t call;          /* Node.call of the nodes made next */
    uint32_t block;         /* of the graph, that has the nodes made next, plus 1; 0: none */
    bool is_full;           /* past MAX_NODES: what needs another node fails in silence */
    uint32_t n_errors;      /* so far */
    Vec(BuildError) errors; /* those that nobody took, in order */
} Builder;

/* Extents, or amounts per axis. Any may be DIM_NONE, which stands for one that passes 2^62. */
typedef struct DimList {
    uint32_t n;
    const DimId *dims;
} DimList;

/* An operand of an elementwise op: a tensor, or a number, which takes the dtype of the tensors
 * beside it and becomes a constant. */
typedef enum { OPERAND_TENSOR, OPERAND_INT, OPERAND_FLOAT, OPERAND_BOOL } OperandKind;
typedef struct Operand {
    OperandKind kind;
    NodeId node;     /* of a tensor */
    DimId dim;       /* of an integer; it must be constant to become a number */
    double number;   /* of a float; 0 or 1 of a bool */
    bool is_inexact; /* an integer: a division was rounded down on the way */
    Span span;       /* of the constant that a number becomes; all zero: the builder's */
} Operand;

static inline Operand operand_tensor(NodeId node) {
    return (Operand){.kind = OPERAND_TENSOR, .node = node};
}
static inline Operand operand_int(DimId dim) {
    return (Operand){.kind = OPERAND_INT, .dim = dim};
}
static inline Operand operand_float(double number) {
    return (Operand){.kind = OPERAND_FLOAT, .number = number};
}
static inline Operand operand_bool(bool is_true) {
    return (Operand){.kind = OPERAND_BOOL, .number = is_true};
}
/* The dtype that an operand has with no tensor beside it. */
Dtype build_dtype_of(const Builder *b, const Operand *operand);
/* `the integer 5`, `a tensor f32[B, 4]` */
const char *build_describe(const Builder *b, const Operand *operand);

/* The graph as a whole. */

/* A builder of an empty graph. `source` is where spans point to; dims are shared by the graphs of a
 * module. */
Builder *build_new(Arena *arena, DimTab *dims, const Source *source, Str name);
/* Declares a dim of lo <= value <= hi, a multiple of `multiple`, and returns it. Ends that are no
 * multiples are drawn in. DIM_NONE: recorded. */
DimId build_dim(Builder *b, Str name, int64_t lo, int64_t hi, int64_t multiple);
NodeId build_input(Builder *b, Str name, Dtype dtype, DimList shape);
/* `key` names the tensor in the weights file; NULL: the name does. */
NodeId build_param(Builder *b, Str name, Str key, Dtype dtype, DimList shape);
/* Inside a kernel's block, what is an input or a param as it is, is copied by the kernel. */
bool build_output(Builder *b, Str name, NodeId node);
/* Gives the node this name unless it has one. */
void build_name(Builder *b, NodeId node, Str name);
/* Begins a block, which has the nodes made until build_enter, and returns its number plus 1. `name`
 * is for a kernel, whose name no other kernel of the graph may have. */
uint32_t build_block(Builder *b, BlockKind kind, Str name);
/* Nodes made from now on are in `block`; 0: in none. */
void build_enter(Builder *b, uint32_t block);
/* The finished graph, or NULL when there were errors. It must have an output, and dims,
 * inputs, params and outputs must have names of their own, as of graph_is_name; only a param may be
 * an output by its own name. What is written several times in one block is
 * computed once, and what no output needs is dropped, params and blocks too; inputs stay. Nodes are
 * numbered anew. */
Graph *build_finish(Builder *b);
/* Removes the oldest error; false: there is none. */
bool build_take_error(Builder *b, BuildError *error);

/* Numbers, as constants of rank 0. */

/* `value` as a tensor: a number becomes a constant of `dtype`. */
NodeId build_const(Builder *b, const Operand *value, Dtype dtype);
/* The same with the dtype that it has by itself. */
NodeId build_tensor(Builder *b, const Operand *value);
/* i32 of the given shape: each element's index along `axis`, which counts from the end where it is
 * negative, as axes do everywhere here. */
NodeId build_iota(Builder *b, DimList shape, int64_t axis);

/* Ops of the table. x has the shape [d0, d1, ..] of its node. */

/* Shapes broadcast as in NumPy. Operands: as many as the op takes; the last may be left out where
 * the op has a default for it. Dtypes are never promoted. */
NodeId build_eltwise(Builder *b, OpId op, uint32_t n, const Operand *operands);
NodeId build_cast(Builder *b, const Operand *x, Dtype dtype);
#define BUILD_ALL_AXES UINT32_MAX
/* Over the bit set `axes`; kept ones have the extent 1. */
NodeId build_reduce(Builder *b, OpId op, NodeId x, uint32_t axes, bool keep);
/* argmax and argmin: i32. */
NodeId build_argreduce(Builder *b, OpId op, NodeId x, int64_t axis, bool keep);
/* a: [.., m, k] or [k]; left: [.., k, n] or [k]; result: [.., m, n], without the axes that a vector
 * does not have. Leading axes broadcast. */
NodeId build_matmul(Builder *b, const Operand *left, const Operand *right, Precision precision);

/* Views. */

/* Axis perm[k] of x becomes axis k; NULL: all axes are reversed. */
NodeId build_transpose(Builder *b, NodeId x, uint32_t n, const int64_t *perm);
/* One extent may be the constant -1: it follows from the others. */
NodeId build_reshape(Builder *b, NodeId x, DimList shape);
/* Repeats axes of extent 1, and adds axes in front. */
NodeId build_expand(Builder *b, NodeId x, DimList shape);
/* `low` and `high` elements of `value` (NULL: 0) before and behind each axis. */
NodeId build_pad(Builder *b, NodeId x, DimList low, DimList high, const Operand *value);
/* data: [.., d, ..], indices: i32[i0, i1, ..]; result: [.., i0, i1, .., ..], d being `axis`. */
NodeId build_gather(Builder *b, NodeId data, NodeId indices, int64_t axis);
/* 1 to MAX_CONCAT_ARGS tensors of one dtype that differ in the extent of `axis` at most. */
NodeId build_concat(Builder *b, uint32_t n, const NodeId *xs, int64_t axis);
/* `shape` elements of each axis from `begin` on, `step` apart (no list: 1). They must lie inside
 * for all values of the dims, provably. */
NodeId build_slice(Builder *b, NodeId x, DimList begin, DimList shape, DimList step);
/* `sizes.n` slices side by side, which are all of `axis`. False: recorded. */
bool build_split(Builder *b, NodeId x, DimList sizes, int64_t axis, NodeId *parts);
/* `n` slices of the same extent, which are all of `axis`. n is a constant up to MAX_CONCAT_ARGS,
 * for which `parts` has room; `*n_parts` is n. */
bool build_split_evenly(Builder *b, NodeId x, DimId n, int64_t axis, NodeId *parts,
                        uint32_t *n_parts);

/* A slice made axis by axis, as subscripts are. Errors lie in argument 1 (the index, the begin) or
 * 2 (the end). */
typedef struct Slicing {
    NodeId x;
    Shape from, to; /* of x, of the slice */
    Attrs attrs;
    uint32_t dropped; /* bit set of axes that an index took away */
} Slicing;
/* Takes everything, to begin with. */
Slicing build_slicing(Builder *b, NodeId x);
/* A bound of an axis of this extent: counted from the end where it is always negative. */
bool build_bound(Builder *b, DimId given, DimId extent, DimId *bound);
bool build_slice_index(Builder *b, Slicing *s, uint32_t axis, DimId at);
bool build_slice_range(Builder *b, Slicing *s, uint32_t axis, DimId begin, DimId end, int64_t step);
NodeId build_slicing_finish(Builder *b, Slicing *s);
static inline bool build_is_step(int64_t step) {
    return step > 0;
}

/* Single checks of the above, for a front end that reads its arguments one by one and reports the
 * first that is wrong. `at`: where that is. False: recorded. */

bool build_check_arity(Builder *b, OpId op, uint32_t n);
/* How an elementwise op is called, as a help. */
const char *build_arity_help(const Builder *b, OpId op);
bool build_check_dtype(Builder *b, OpId op, Dtype dtype);
/* The dtype that the operands share, which the op must take. */
bool build_common_dtype(Builder *b, OpId op, uint32_t n, const Operand *operands, Dtype *dtype);
/* `value` as an element of `dtype`, which must have it: numbers are rounded, but not to 0, infinity
 * or another integer. */
bool build_literal(Builder *b, BuildPlace at, const Operand *value, Dtype dtype, double *number);
/* Whether a tensor may have so many axes. */
bool build_check_rank(Builder *b, uint32_t rank);
/* Whether a list may have an entry for so many axes. */
bool build_check_n_axes(Builder *b, uint32_t n);
/* Whether all extents and the size in bytes are in range. */
bool build_check_shape(Builder *b, const Shape *shape);
/* Whether the list `what` has a number for each axis. */
bool build_check_per_axis(Builder *b, BuildPlace at, const char *what, uint32_t n, uint32_t rank);
/* A number of an axis from 0 on. */
bool build_check_axis(Builder *b, BuildPlace at, int64_t number, uint32_t rank, uint32_t *axis);
/* The next axis of a list, which is added to the bit set; `list` names the list, or is NULL. */
bool build_next_axis(Builder *b, BuildPlace at, int64_t number, uint32_t rank, const char *list,
                     uint32_t *axes, uint32_t *axis);
/* The axis of an iota, argmax or argmin that is told none: the only one. */
bool build_only_axis(Builder *b, OpId op, uint32_t rank, uint32_t *axis);
bool build_check_perm(Builder *b, NodeId x, uint32_t n);
bool build_check_pad(Builder *b, NodeId x, DimList low, DimList high);
bool build_check_gather(Builder *b, NodeId data, NodeId indices);
bool build_check_n_joined(Builder *b, uint32_t n);
bool build_check_joined(Builder *b, NodeId first);
bool build_check_split(Builder *b, NodeId x);
bool build_check_n_parts(Builder *b, uint32_t n);
bool build_check_part(Builder *b, BuildPlace at, DimId size);
bool build_check_n_dims(Builder *b);
bool build_check_n_outputs(Builder *b, uint32_t n);

/* What the builder's files share. */

STR_PRINTF(4, 5)
BuildError *build_fail(Builder *b, DiagId id, BuildPlace at, const char *format, ...);
/* Appends a node whose type is known to be right. `at`: where it lies when there are too many. */
NodeId build_node(Builder *b, BuildPlace at, Node node);
/* The same for one whose extents may still be out of range. */
NodeId build_checked_node(Builder *b, Node node);
/* What is wrong with `value` as an element of `dtype`, or NULL. */
const char *build_literal_problem(const Builder *b, const Operand *value, Dtype dtype,
                                  double *number);
/* build_const, where errors lie at `at`. */
NodeId build_const_at(Builder *b, BuildPlace at, const Operand *value, Dtype dtype);
/* x as `shape`, which has as many elements. */
NodeId build_reshaped(Builder *b, NodeId x, const Shape *shape);
/* The list as a shape of as many axes. */
bool build_shape(Builder *b, DimList list, Shape *shape);

static inline const Shape *build_shape_of(const Builder *b, NodeId node) {
    return &graph_node(b->graph, node)->shape;
}

#endif
