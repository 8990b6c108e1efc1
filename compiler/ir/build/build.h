/* The typed graph builder. It has every rule of dtypes, shapes and limits that a new node must
 * keep, so front ends, whether they read text or another program's graph, type graphs alike.
 *
 * A function that makes a node returns the node, or NODE_NONE after it has recorded a BuildError.
 * An argument that is NODE_NONE makes the result NODE_NONE without a new error: one mistake is
 * recorded once, and a front end may build on and look at the errors at the end. An op that would
 * change nothing (a cast to the same dtype, a slice of everything) adds no node; its result is its
 * argument.
 *
 * The builder knows no text. A front end leaves the place that nodes come from in `span` and
 * `call`; an error says which argument is wrong, by its number. Messages are those of the language.
 *
 * Strings that are given to the builder (names, keys) are not copied. */
#ifndef FUSEC_BUILD_H
#define FUSEC_BUILD_H

#include "base/diag.h"
#include "ir/graph.h"
#include "ir/node_flags.h"

/* Where an error lies: in the call as a whole, in an argument, or in one item of an argument that
 * is a list. Both numbers count from 1; 0 means the whole. Arguments are counted as the language's
 * call has them: those of build_slice(b, x, begin, shape, step) from 1 to 4, the operands of
 * build_eltwise from 1 on, for build_concat the list 1 and the axis 2, for build_split the tensor
 * 1, the parts 2 and the axis 3. */
typedef struct BuildPlace {
    uint32_t arg, item;
} BuildPlace;

enum { BUILD_MAX_NODES_SHOWN = 3 };
typedef struct BuildError {
    DiagId id;
    BuildPlace at;
    const char *message; /* one line, lower case, no final period */
    uint32_t n_nodes;    /* nodes to show with their types, in this order */
    NodeId nodes[BUILD_MAX_NODES_SHOWN];
    uint32_t block;   /* the block of the graph that the message names, plus 1; 0: none */
    uint64_t symbols; /* bit set of the dims whose ranges matter */
    Span span;        /* in the graph's source, of an error that is found at the end; all zero: that
                       * of the call */
    const char *help; /* a sentence, or NULL */
    Dtype taken_as;   /* of a number that is none of this dtype */
} BuildError;

/* Of a loop of the graph that is being unrolled. */
typedef struct OpenLoop {
    VecU32 starts;       /* the number of nodes before each step, and after the last */
    VecU32 starts_again; /* the same of Builder.again */
    VecU32 carried;      /* as LoopSteps.carried */
    bool is_uneven;      /* steps carry different numbers of tensors */
} OpenLoop;

/* A step comes upon a node that is there already: a param that an earlier one declared. */
typedef struct ReadAgain {
    NodeId at; /* the node that is made next */
    NodeId node;
} ReadAgain;

typedef struct Builder {
    Arena *arena;
    DimTab *dims;
    Graph *graph;
    Span span;       /* of the nodes made next, in the graph's source */
    uint32_t call;   /* Node.call of the nodes made next */
    uint32_t block;  /* the block of the nodes made next, plus 1; 0: none */
    uint32_t online; /* the `online` block of the nodes made next, plus 1; 0: none */
    Vec(Span) online_blocks;
    Vec(uint32_t) online_of;  /* per node, as `online` */
    bool rewrites;            /* what lies outside of `online` blocks is rewritten like them, where
                               * that can be done; build_finish notes it in the graph */
    uint32_t loop;            /* of Graph.loops that the nodes made next are of, plus 1; 0: none */
    Vec(OpenLoop) open_loops; /* one for each of Graph.loops */
    Vec(ReadAgain) again;     /* in loops, in order */
    bool is_full;             /* the graph has as much as it may, and the error is recorded */
    Vec(bool) is_counted;     /* per dim that an extent of the graph may be: whether one is */
    uint32_t n_extents, n_terms; /* different extents with symbols, and terms of theirs */
    uint32_t n_errors;           /* so far */
    Vec(BuildError) errors;      /* recorded and not taken yet, in order */
} Builder;

/* One extent, or another amount, per axis. A dim may be DIM_NONE: a value that can pass 2^62. */
typedef struct DimList {
    uint32_t n;
    const DimId *dims;
} DimList;

/* An operand: a tensor, or a number. A number takes the dtype of the tensors beside it and becomes
 * a constant of rank 0. */
typedef enum { OPERAND_TENSOR, OPERAND_INT, OPERAND_FLOAT, OPERAND_BOOL } OperandKind;
typedef struct Operand {
    OperandKind kind;
    NodeId node;     /* of a tensor */
    DimId dim;       /* of an integer; only a constant one can become a constant */
    double number;   /* of a float; 0 or 1 of a bool */
    bool is_inexact; /* of an integer: it comes from a division that was rounded down */
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

/* A builder with an empty graph. `source`, the file that spans point into, may be empty; the graphs
 * of a module share its dims. */
Builder *build_new(Arena *arena, DimTab *dims, const Source *source, Str name);
/* Declares a dim with lo <= value <= hi, all values being multiples of `multiple`, and returns it
 * as an extent, which of one value is that number. Bounds that are no multiples are drawn in.
 * DIM_NONE after an error. */
DimId build_dim(Builder *b, Str name, int64_t lo, int64_t hi, int64_t multiple);
NodeId build_input(Builder *b, Str name, Dtype dtype, DimList shape);
/* `key` names the tensor in the weights file; NULL: the param's name does. */
NodeId build_param(Builder *b, Str name, Str key, Dtype dtype, DimList shape);
/* Makes `node` an output. `block` is the block that gave it its name, plus 1, or 0: a kernel block
 * copies an input or a param that is an output. */
bool build_output(Builder *b, Str name, NodeId node, uint32_t block);
/* Names the node, unless it has a name. */
void build_name(Builder *b, NodeId node, Str name);
/* Begins a block after the end of the one before, and returns its number plus 1. The block has all
 * nodes made until build_end_block. `name` is a kernel's; no other kernel of the graph may have it.
 */
uint32_t build_block(Builder *b, BlockKind kind, Str name);
void build_end_block(Builder *b);
/* Begins an `online` block, which has all nodes made until build_end_online gets what this returns.
 * Of blocks in one another the outermost has all nodes. In a block a softmax and the product that
 * contracts its axis become one op, build_online, when the graph is finished: exp(x) or exp2(x), or
 * that of x less its maximum, divided by its sum along the axis before or after the matmul that
 * multiplies it, whatever views, casts between floats, scales by positive literals and factors of
 * the quotient stand between. So do rows over their greatest absolute value and their product
 * (docs/design/online-quantize.md). What does not become one is an error, DIAG_ONLINE. */
uint32_t build_begin_online(Builder *b);
void build_end_online(Builder *b, uint32_t before);
/* The finished graph; NULL after any error. The graph must have an output. Dims, inputs, params and
 * outputs must have different names as of graph_is_name, but a param may be the output of its own
 * name. `online` blocks get their ops. Nodes that compute the same value in one block become one
 * node, then nodes, params and blocks that no output needs are dropped; inputs stay. Nodes are
 * numbered anew. */
Graph *build_finish(Builder *b);
/* Takes the oldest error that is left; false: there is none. */
bool build_take_error(Builder *b, BuildError *error);

/* Numbers, as constants of rank 0. */

/* A number whose dtype the program states: of bool 0 and 1 are false and true. */
Operand build_stated(const Builder *b, const Operand *value, Dtype dtype);
/* A number as a constant of `dtype`, as `build_stated` reads it; a tensor as it is. */
NodeId build_const(Builder *b, const Operand *value, Dtype dtype);
/* A number as a constant of the dtype that it has by itself; a tensor as it is. */
NodeId build_tensor(Builder *b, const Operand *value);
/* dtype[shape], i32 or i64: the index of each element along `axis`. Here as everywhere a negative
 * axis counts from the end. */
NodeId build_iota(Builder *b, DimList shape, int64_t axis, Dtype dtype);
/* dtype[shape]: `n` numbers in row-major order, 0 to BUILD_MAX_TABLE. */
enum { BUILD_MAX_TABLE = 256 };
NodeId build_table(Builder *b, DimList shape, uint32_t n, const Operand *items, Dtype dtype);

/* Ops. */

enum { BUILD_MAX_OPERANDS = 3 };
/* An elementwise op on operands whose shapes broadcast as in NumPy. `n` is what the op takes; the
 * last operand may be left out where the op has a default for it. All operands (a select's
 * condition, which is bool, aside) have one dtype: nothing is promoted. */
NodeId build_eltwise(Builder *b, OpId op, uint32_t n, const Operand *operands);
/* Sets the dtype of a product of operands of `dtype`: `out` (NULL: the same), which must be that or
 * the one in which it is computed. */
bool build_check_out(Builder *b, BuildPlace at, Dtype dtype, const Dtype *out, Dtype *result);
/* x: [d0, d1, ..] -> dtype[d0, d1, ..] */
NodeId build_cast(Builder *b, const Operand *x, Dtype dtype);
/* The bits of x as a dtype of the same width, with the shape of x. */
NodeId build_bitcast(Builder *b, const Operand *x, Dtype dtype);
/* A reduction over the axes of a bit set. x: [d0, d1, ..] -> the same without these axes, or with
 * extents of 1 in their place (`keep`). */
#define BUILD_ALL_AXES UINT32_MAX
NodeId build_reduce(Builder *b, OpId op, NodeId x, uint32_t axes, bool keep);
/* argmax or argmin over one axis, with the shape of a reduction: i32. */
NodeId build_argreduce(Builder *b, OpId op, NodeId x, int64_t axis, bool keep);
/* The function of a scan (Attrs.function): what `results` of the builder's graph, which has two
 * inputs for each, are for single elements. NULL: they are not made by elementwise ops alone, or
 * not of one shape. */
const Graph *build_scan_function(const Builder *trace, const NodeId *results, uint32_t n);
/* Whether two functions have the same ops in the same order. */
bool build_equal_functions(const Graph *a, const Graph *b);
/* Tensor `result` of the scan of `xs`, one for each result of the function, by the function. */
NodeId build_scan_by(Builder *b, const Graph *function, const NodeId *xs, int64_t number,
                     uint32_t result);
/* A scan or a sort along one axis: the shape of x, and its dtype or i32. */
NodeId build_scan(Builder *b, OpId op, NodeId x, int64_t axis);
/* Reductions of segments along one axis. x, ids: [.., n, ..] -> [.., n_segments, ..]. ids are i32
 * or i64 and ascend along the axis; what they number below 0 or from n_segments on is left out. */
NodeId build_segments(Builder *b, OpId op, NodeId x, NodeId ids, DimId n_segments, int64_t axis);
/* left: [.., m, k] or [k], right: [.., k, n] or [k] -> [.., m, n], without m where left has rank 1
 * and without n where right has. Leading axes broadcast. `out` is the dtype of the result: that of
 * the operands (NULL), or the one in which they are computed. With `out` i32 one operand may be i8
 * and the other u8. */
NodeId build_matmul(Builder *b, const Operand *left, const Operand *right, Precision precision,
                    const Dtype *out);
/* The product of x's softmax along its last axis with v, by the recurrence of
 * docs/design/attention.md. x: [.., m, n] scores, of the dtype in which v is multiplied; v: [.., n,
 * c] -> [.., m, c]. Leading axes broadcast. `out` as for build_matmul. `quantize`: how a product
 * without powers makes weights, with numbers that are rounded to the dtype of the scores. NULL: the
 * scale is 1 and the dtype that of v; other ops do not read it. */
NodeId build_online(Builder *b, OpId op, NodeId x, NodeId v, NodeId factor,
                    const QuantizeMap *quantize, const Dtype *out);

/* The sum of products of n operands that an equation such as "ij,jk->ik" states, in NumPy's form: a
 * letter for each axis; `...` for the others, which broadcast; without `->` the letters that stand
 * once, in the order of ASCII. A letter that stands twice in a term is a diagonal. Axes of one
 * letter have equal extents, or 1. Operands are joined from left to right, and an operand's own
 * letters that the result lacks are summed before. Each of these steps gives the dtype `out` as
 * build_matmul does. Arguments are counted as for (equation, x0, ..). */
NodeId build_einsum(Builder *b, const char *equation, uint32_t n, const NodeId *xs,
                    Precision precision, const Dtype *out);

/* Views. */

/* x: [d0, d1, ..] -> [d(perm[0]), d(perm[1]), ..]. `n` is the rank. NULL reverses all axes. */
NodeId build_transpose(Builder *b, NodeId x, uint32_t n, const int64_t *perm);
/* x -> the elements in the same row-major order as [shape]. One extent may be the constant -1,
 * which stands for the extent that follows from the others. */
NodeId build_reshape(Builder *b, NodeId x, DimList shape);
/* x: broadcast to [shape] as in NumPy. An extent of the constant -1 is that of x in this axis. */
NodeId build_expand(Builder *b, NodeId x, DimList shape);
/* x: [d0, ..] -> [low0 + d0 + high0, ..], filled with `value`, by default 0. */
NodeId build_pad(Builder *b, NodeId x, DimList low, DimList high, const Operand *value);
/* x: [d0, ..] -> [(d0 - 1) * (interior0 + 1) + 1, ..]: `value` stands interior0 times between
 * neighbours. An axis that may be empty can have no interior, nor can a tensor of MAX_RANK axes.
 * The numbers are constants. */
NodeId build_spread(Builder *b, NodeId x, DimList interior, const Operand *value);
/* What stands around a padded tensor: a value; its elements mirrored at the first or last one,
 * which is not repeated; the first or last one; or its elements from the other end. */
typedef enum {
    BORDER_CONSTANT,
    BORDER_REFLECT,
    BORDER_REPLICATE,
    BORDER_CIRCULAR,
    BORDER_COUNT
} Border;
const char *border_name(Border border);
/* As build_pad, for borders other than BORDER_CONSTANT. */
NodeId build_pad_border(Builder *b, NodeId x, DimList low, DimList high, Border border);

/* Windows that slide over axes of a tensor. The arrays have an entry for each axis of x. */
typedef struct Windowing {
    NodeId x;
    uint32_t axes; /* bit set of the axes with windows */
    DimId size[MAX_RANK], low[MAX_RANK], high[MAX_RANK];
    int64_t stride[MAX_RANK], dilation[MAX_RANK];
    const Operand *value; /* beyond the tensor; NULL: 0 */
} Windowing;
/* Windows over no axis, of one element each. */
Windowing build_windowing(Builder *b, NodeId x);
/* Sets the padding of an axis whose size and dilation are set, so that with strides of 1 there are
 * as many windows as elements: half before and half after (the odd one after), or all before. */
void build_window_padding(Builder *b, Windowing *w, uint32_t axis, bool is_causal);
/* x: [d0, ..] -> the number of windows in place of the extent of each window axis, and their sizes
 * as axes after the last window axis (windows_axis, windows_tap_axis). */
NodeId build_windows(Builder *b, const Windowing *w);
/* data: [a.., d, c..], indices: i32 or i64[i..] -> [a.., i.., c..], where d is the extent of
 * `axis`. */
NodeId build_gather(Builder *b, NodeId data, NodeId indices, int64_t axis);
/* x with the elements of `update` from the element `starts`, i32 or i64 [rank], on. Each extent of
 * update must be known to be at most that of x. */
NodeId build_update(Builder *b, OpId op, NodeId x, NodeId update, NodeId starts);
/* A value that a loop carries from step to step: `x` in the first (ir/loop.h). */
NodeId build_loop_carry(Builder *b, NodeId x);
bool build_check_loop_count(Builder *b, DimId count);
/* Carried value `at` of n after `count` steps. A step puts next[i], of the type of carries[i], in
 * the place of carries[i]. All results of a loop are made with the same lists. */
NodeId build_loop_result(Builder *b, uint32_t n, const NodeId *carries, const NodeId *next,
                         DimId count, uint32_t at);
/* What a loop that is repeated at run time carries, in the order of its results. A loop that counts
 * its steps carries the number of the step. One that collects a value of each step carries a tensor
 * of all steps, of which a step updates its own element. */
typedef struct Repeat {
    DimId count; /* of the steps */
    Vec(NodeId) carries, next;
} Repeat;
/* Adds a carry, and the value that a step puts in its place. */
void build_repeat_carry(Builder *b, Repeat *r, NodeId carry, NodeId next);
/* A scalar carry, i32 or i64, that is `first` in the first step; and adds it, growing by `step`. */
NodeId build_repeat_counter(Builder *b, DimId first, Dtype dtype);
void build_repeat_count(Builder *b, Repeat *r, NodeId counter, int64_t step);
/* Collects the value of a step, as element `at` of all, i32 or i64: a scalar from 0 to count - 1.
 */
void build_repeat_collect(Builder *b, Repeat *r, NodeId at, NodeId value);
/* Carried value i after all steps; or what was collected as it: [count, ..]. */
NodeId build_repeat_result(Builder *b, const Repeat *r, uint32_t i);
NodeId build_repeat_collected(Builder *b, const Repeat *r, uint32_t i);
/* Notes the steps of a loop of a known number of steps, which is unrolled (ir/steps.h). Its index
 * is `begin` in the first step and grows by `by`. Ahead of each step, and after the last, comes a
 * call of build_loop_step with the tensors that the loop carries; `names` has a name for each. */
void build_begin_loop(Builder *b, Str index, int64_t begin, int64_t by);
void build_loop_step(Builder *b, uint32_t n_carried, const NodeId *carried);
void build_end_loop(Builder *b, const Str *names);
/* Notes that the step declares a param, which `node` is already. */
void build_read_again(Builder *b, NodeId node);
/* The value of a dim, as a scalar of dtype i32 or i64; it must lie in the dtype. */
NodeId build_dim_value(Builder *b, DimId dim, Dtype dtype);
/* n tensors [a.., dk, c..] of one dtype -> [a.., d0 + d1 + .., c..], where dk is the extent of
 * `axis`. n is 1 to MAX_CONCAT_ARGS. */
NodeId build_concat(Builder *b, uint32_t n, const NodeId *xs, int64_t axis);
/* x: [d0, ..] -> [shape]: elements begin, begin + step, .. of each axis. An empty `step` means 1; a
 * negative step goes down.
 * All of them must be known to lie inside for all values of the dims. */
NodeId build_slice(Builder *b, NodeId x, DimList begin, DimList shape, DimList step);
/* Cuts `axis` into slices of the given sizes, which must add up to its extent. `parts` receives
 * sizes.n nodes. */
bool build_split(Builder *b, NodeId x, DimList sizes, int64_t axis, NodeId *parts);
/* Cuts `axis` into n slices of the same size; n is a constant, 1 to MAX_CONCAT_ARGS. `parts`, with
 * room for MAX_CONCAT_ARGS, receives *n_parts = n nodes. */
bool build_split_evenly(Builder *b, NodeId x, DimId n, int64_t axis, NodeId *parts,
                        uint32_t *n_parts);

/* A slice that is made axis by axis, as a subscript says it. An error lies in argument 1 (an index
 * or a begin), 2 (an end) or 3 (a step). */
typedef struct Slicing {
    NodeId x;
    Shape from, to; /* of x; of the slice */
    AxisAttrs per_axis;
    uint32_t dropped; /* bit set of the axes that have an index, which the result does not have */
} Slicing;
/* A slice of all of x. */
Slicing build_slicing(Builder *b, NodeId x);
/* A bound in an axis of this extent. One that is always negative counts from the end. */
bool build_bound(Builder *b, DimId given, DimId extent, DimId *bound);
bool build_slice_index(Builder *b, Slicing *s, uint32_t axis, DimId at);
/* From `begin` to before `end`; downward, if the step is negative, to after `end`, which may be
 * -1. */
bool build_slice_range(Builder *b, Slicing *s, uint32_t axis, DimId begin, DimId end, int64_t step);
NodeId build_slicing_finish(Builder *b, Slicing *s);
static inline bool build_is_step(int64_t step) {
    return step != 0 && step > -INT64_MAX && step < INT64_MAX;
}

/* Single checks out of the functions above. A front end that reads arguments one by one, and
 * reports the first that is wrong, needs them in between. `at` is the place of an error. False
 * after an error. */

bool build_check_arity(Builder *b, OpId op, uint32_t n);
/* A sentence that shows how the elementwise op is called. */
const char *build_arity_help(const Builder *b, OpId op);
bool build_check_dtype(Builder *b, OpId op, Dtype dtype);
/* The dtype that the operands share, which the op must take. */
bool build_common_dtype(Builder *b, OpId op, uint32_t n, const Operand *operands, Dtype *dtype);
/* `value` as an element of `dtype`, which must have it: numbers are rounded, but not to 0, infinity
 * or another integer. */
bool build_literal(Builder *b, BuildPlace at, const Operand *value, Dtype dtype, double *number,
                   int64_t *whole);
/* Whether a tensor may have so many axes. */
bool build_check_rank(Builder *b, uint32_t rank);
/* The same for a tensor of the caller. */
bool build_check_given_rank(Builder *b, uint32_t rank);
/* Whether a list may have an entry for so many axes. */
bool build_check_n_axes(Builder *b, uint32_t n);
/* Whether all extents and the size in bytes are in range. */
bool build_check_shape(Builder *b, const Shape *shape);
/* Whether the list `what` has a number for each axis. */
bool build_check_per_axis(Builder *b, BuildPlace at, const char *what, uint32_t n, uint32_t rank);
/* The axis that a number means, negative ones counted from the end. */
bool build_check_axis(Builder *b, BuildPlace at, int64_t number, uint32_t rank, uint32_t *axis);
/* The next axis of a list, which is added to the bit set; `list` names the list, or is NULL. */
bool build_next_axis(Builder *b, BuildPlace at, int64_t number, uint32_t rank, const char *list,
                     uint32_t *axes, uint32_t *axis);
/* The axis of an iota, argmax or argmin that is given none: a rank of 1 has only one. */
bool build_default_axis(Builder *b, OpId op, uint32_t rank, uint32_t *axis);
bool build_check_perm(Builder *b, NodeId x, uint32_t n);
bool build_check_pad(Builder *b, NodeId x, DimList low, DimList high);
bool build_check_gather(Builder *b, NodeId data, NodeId indices);
bool build_check_n_concat(Builder *b, uint32_t n);
bool build_check_concat(Builder *b, NodeId first);
bool build_check_split(Builder *b, NodeId x);
bool build_check_n_parts(Builder *b, uint32_t n);
bool build_check_part(Builder *b, BuildPlace at, DimId size);
bool build_check_n_dims(Builder *b);
bool build_check_n_outputs(Builder *b, uint32_t n);

/* What the builder's files share. */

STR_PRINTF(4, 5)
BuildError *build_fail(Builder *b, DiagId id, BuildPlace at, const char *format, ...);
/* Appends a node whose type is checked. `at` is the place of the error when the graph is full. */
NodeId build_node(Builder *b, BuildPlace at, Node node);
/* Checks the extents, too. */
NodeId build_checked_node(Builder *b, Node node);
/* The reason why `value` is no element of `dtype`, or NULL and the element. */
const char *build_literal_problem(const Builder *b, const Operand *value, Dtype dtype,
                                  double *number, int64_t *whole);
/* build_const with its errors at `at`. */
NodeId build_const_at(Builder *b, BuildPlace at, const Operand *value, Dtype dtype);
/* x as `shape`, which has as many elements. */
NodeId build_reshaped(Builder *b, NodeId x, const Shape *shape);
/* The list as a shape. */
bool build_shape(Builder *b, DimList list, Shape *shape);

/* Gives `online` blocks their ops; build_finish calls it. */
void build_make_online(Builder *b);
/* Keep the note of steps as build_finish changes the graph. The first lists the nodes of the steps,
 * before any change. The second replaces each node by moved[node]. The third replaces a node by the
 * nodes begins[node] .. begins[node + 1] - 1 that were made of it; moved[node] is the last of
 * these. The last one forgets dropped nodes. */
void build_list_steps(Builder *b);
void build_move_steps(Builder *b, const NodeId *moved);
void build_remake_steps(Builder *b, const NodeId *begins, const NodeId *moved);
void build_drop_steps(Builder *b, NodeFlags live, uint32_t n_nodes);
/* BUILD_LIVE: an input, or a node that an output needs. */
enum { BUILD_LIVE };
NodeFlags build_find_live(Builder *b);
static inline const Shape *build_shape_of(const Builder *b, NodeId node) {
    return &graph_node(b->graph, node)->shape;
}

#endif
