/* What the importer's files share. */
#ifndef FUSEC_ONNX_IMPORT_STATE_H
#define FUSEC_ONNX_IMPORT_STATE_H

#include "base/hashids.h"
#include "ir/build/build.h"
#include "onnx/import.h"
#include "onnx/file/model.h"

/* Elements that are known while importing: integers and bools as dims, floats as numbers. */
enum { MAX_KNOWN = 4096 };
typedef struct Known {
    int64_t type; /* an ElemType */
    uint32_t rank;
    int64_t dims[MAX_RANK];
    uint32_t n;
    DimId *ints;    /* NULL: floats */
    double *floats; /* NULL: integers or bools */
} Known;

/* A value of the model: a node of the graph, elements that are known, elements in the file, or
 * several of them. */
typedef struct Scope Scope;
typedef struct Value Value;
struct Value {
    Str name;
    NodeId node; /* NODE_NONE: not made yet */
    Known *known;
    /* Of floats that follow from dims: these integers over `below`; 0 stands for 1. Else NULL. */
    const Known *whole;
    int64_t below;
    /* Of elements that dims decide once this one is at least 0, as those of a Min; or DIM_NONE. */
    DimId undecided;
    const OnnxTensor *tensor;
    bool is_absent; /* of a function's input that the call leaves out */
    Value *given;   /* of a function's input: the value of the call, whose node it has; or NULL */
    Scope *given_scope;
};

/* The value under a name of its own. */
static inline void value_copy(Value *to, const Value *from) {
    Str name = to->name;
    *to = *from;
    to->name = name;
}

/* The values that names stand for, in a graph, a function or a branch. */
struct Scope {
    const Scope *outer; /* of a branch: the graph around it */
    HashIds ids;        /* index + 1 by name */
    Vec(Value *) values;
    const VecOpset *opsets;
    const struct Call *call; /* of a function: the call, for its attributes */
    const OnnxFunction *function;
    bool is_repeated; /* other scopes may have values of the same names: of a function, or a step */
};

/* A range that a dim must lie in, by its name in the graph. */
typedef struct DimBound {
    Str name;
    int64_t least, most;
} DimBound;

/* A dim of the model's inputs: a number times a dim of the graph, or a number. */
typedef struct InputDim {
    Str param, name; /* the model's name, or NULL; the one that a caller may give a range */
    DimBound bound;  /* of the unit, with its name */
    DimId unit, dim;
} InputDim;

/* A node of u8 that holds elements of a type that the language has no dtype for. */
typedef struct HeldNode {
    NodeId node;
    int64_t type; /* an ElemType */
} HeldNode;

typedef struct Import Import;
struct Import {
    Arena *arena;
    StrTab *strings;
    Diags *diags;
    const OnnxSource *source;
    const OnnxModel *model;
    Builder *b;
    OnnxImport *result;
    HashIds names; /* that the graph uses */
    HashIds keys;  /* of weights */
    Vec(InputDim) dims;
    Vec(DimBound) bounds; /* found by an import that was given up, since it had not known them */
    int64_t highest_dim;  /* the largest value of a dim that nobody bounds */
    bool is_given_up;
    Vec(HeldNode) held;
    VecStr outputs;        /* the names of the graph's outputs */
    struct Sema *language; /* of expressions; NULL: none yet */
    Diags language_diags;
    uint32_t depth;     /* of functions and branches */
    uint32_t n_repeats; /* loops around the node that are repeated at run time */
    uint64_t n_calls;
    /* Lowers the nodes of a graph or a function into the scope, which has the inputs. */
    bool (*run)(Import *im, Scope *scope, const OnnxNode *nodes, uint32_t n);
};

/* One node that is lowered. */
typedef struct Call Call;
typedef struct OnnxOp OnnxOp;
struct Call {
    Import *im;
    Scope *scope;
    const OnnxNode *node;
    const OnnxOp *op;
    int64_t opset;
    bool has_failed; /* an error was reported */
    DimId undecided; /* of the outputs, as in Value */
};

typedef bool (*OnnxLower)(Call *c);
struct OnnxOp {
    const char *domain, *name;
    int64_t since, until; /* opsets; until 0: to the newest */
    uint32_t min_inputs, max_inputs;
    OnnxLower lower;
    OnnxLower fold;       /* makes the outputs known, if it can; NULL: none */
    OpId id;              /* of rows that are one op */
    const char *spelling; /* of the language */
    const char *doc;      /* what is not supported; "": nothing */
};

/* scope.c */

/* Reports an error of the model as a whole; false. `name` may be NULL. */
bool onnx_fail_model(Import *im, DiagId id, const char *what, const char *name);
/* Reports that the node is not supported or wrong; false. */
STR_PRINTF(3, 4) bool onnx_fail(Call *c, DiagId id, const char *format, ...);
/* Where a dim of the model with a narrower range makes the value at least a bound for all dims,
 * the import is given up, and begins again with that range: false. Else true, though the value may
 * be below the bound. */
bool onnx_need_least(Call *c, DimId value, int64_t least);
/* Reports the builder's first error as the node's; false if there is one. */
bool onnx_check(Call *c);
/* Reports an `auto_pad` that the standard does not have; false if it is one. */
bool onnx_check_auto_pad(Call *c, Str given);
bool onnx_add_initializers(Import *im, Scope *scope, const OnnxGraph *graph);
Scope *onnx_scope_new(Import *im, const Scope *outer, const VecOpset *opsets);
/* The value of this very scope; or NULL. */
Value *onnx_scope_own(const Scope *scope, Str name);
Value *onnx_scope_find(const Scope *scope, Str name);
Value *onnx_scope_add(Import *im, Scope *scope, Str name);
/* Whether the language can bind a value to the name: `_` binds none. */
bool onnx_may_name(const char *name);
/* The name with `_` for all but letters, digits and `_`. */
char *onnx_plain_name(Import *im, const char *name, const char *otherwise);
/* A name of the language for a name of the model, that no other value has. */
Str onnx_unique_name(Import *im, const char *name, const char *otherwise);
/* The key of a weight: the model's name, or that of the graph where another weight has the model's,
 * as in another body. */
Str onnx_unique_key(Import *im, const char *name, Str otherwise);
bool onnx_inline_function(Call *c, const OnnxFunction *function);
const OnnxOp *onnx_op_find(Str domain, Str name, int64_t opset, bool *is_other_opset);
/* The newest opset that is known, of a domain that is. */
int64_t onnx_newest_opset(Str domain);
/* Why an op has no lowering, and what it would need; NULL: the op is not known. */
const char *onnx_why_refused(Str domain, Str name);
int64_t onnx_scope_opset(const Scope *scope, Str domain);

/* dims.c: a dim of an input, whose `call` an error names. Names and expressions become dims of the
 * graph. */
bool onnx_input_dim(Call *c, const OnnxDim *dim, const char *axis_name, DimId *made);
/* Whether all ranges that are given are those of dims of the inputs, which have been made. */
bool onnx_check_ranges(Import *im);

/* control.c */

/* Lowers a graph inside the node, which has the given values as its inputs, and gives the first
 * n_made of its outputs. */
bool onnx_run_body(Call *c, const OnnxGraph *body, bool is_repeated, uint32_t n_given,
                   const Value *given, uint32_t n_made, Value **made);

/* constants.c */

/* Whether the input is given as a constant; adds it as a value then known. */
bool onnx_is_constant(Import *im, const OnnxValueInfo *info);
bool onnx_add_constant(Import *im, Scope *scope, const OnnxValueInfo *info);
/* Whether all constants that are given are inputs of the model. */
bool onnx_check_constants(Import *im);
/* What a message adds about a value that is not known: the inputs that would make it known. */
const char *onnx_constants_needed(Import *im, NodeId node);

/* value.c */

/* The node of a value, made of its known elements or of the file's if needed. */
NodeId value_node(Call *c, Value *value);
/* The elements, if they are known; else NULL. */
const Known *value_known(Import *im, Value *value);
/* The dtype without a node being made; false: the language has none. */
bool value_type(Import *im, const Value *value, int64_t *type);
/* The type of the elements that a node of u8 holds; ELEM_NONE: its own. */
int64_t held_type(const Import *im, NodeId node);
/* The node, which now holds elements of a type. */
NodeId held_as(Import *im, NodeId node, int64_t type);
bool value_shape(Import *im, const Value *value, Shape *shape);
Known *known_new(Import *im, int64_t type, uint32_t rank, const int64_t *dims);
/* A list of n integers. */
Known *known_list(Import *im, uint32_t n);
bool known_int(Import *im, const Known *known, uint32_t i, int64_t *value);
/* The tensor as a param with this name, or as a constant. */
NodeId tensor_node(Call *c, const char *name, const OnnxTensor *tensor);
Known *tensor_known(Import *im, const OnnxTensor *tensor);
/* The elements as numbers, however many; NULL: there are none. */
const double *tensor_numbers(Import *im, const OnnxTensor *tensor);

/* Inputs, outputs and attributes of a call. Missing inputs are NODE_NONE or NULL. */
bool has_input(const Call *c, uint32_t i);
Value *input_value(Call *c, uint32_t i);
NodeId input(Call *c, uint32_t i);
const Known *input_known(Call *c, uint32_t i);
/* Names the value's node after it, unless a function's body or another value has named it. */
void name_node(Call *c, const Value *value);
bool has_output(const Call *c, uint32_t i);
bool output(Call *c, uint32_t i, NodeId node);
bool output_known(Call *c, uint32_t i, Known *known);
const OnnxAttr *find_attr(const Call *c, const char *name);
/* The same; another type than this one is an error. */
const OnnxAttr *typed_attr(Call *c, const char *name, OnnxAttrType type);
int64_t attr_int(Call *c, const char *name, int64_t otherwise);
double attr_float(Call *c, const char *name, double otherwise);
Str attr_string(Call *c, const char *name, Str otherwise);
/* A list of integers; false: there is none. */
bool attr_ints(Call *c, const char *name, const VecInt **ints);
/* A list of `n` numbers from `least` to `most`; all are `least` if the attribute is not there or
 * empty. */
bool attr_list(Call *c, const char *name, uint32_t n, int64_t least, int64_t most, int64_t *values);
/* The integers of an attribute or, in newer opsets, of an input. An error if they are not known. */
typedef struct IntList {
    bool is_given;
    uint32_t n;
    DimId *dims;
} IntList;
bool list_argument(Call *c, const char *attr, uint32_t i, IntList *list);
bool constant_list(Call *c, const IntList *list, const char *what, int64_t *values, uint32_t max);
/* Axes as a bit set. */
bool axes_argument(Call *c, const char *attr, uint32_t i, uint32_t rank, uint32_t *axes,
                   bool *is_given);
/* One number that must be known; `otherwise` without the input. */
bool int_argument(Call *c, uint32_t i, int64_t otherwise, int64_t *value);
bool float_argument(Call *c, uint32_t i, double otherwise, double *value);
/* Reports that input i must be known while importing; false. */
bool fail_unknown(Call *c, uint32_t i);
bool axis_of(Call *c, int64_t number, uint32_t rank, uint32_t *axis);

/* The builder, in short. */
static inline const Shape *shape_of(const Call *c, NodeId node) {
    return build_shape_of(c->im->b, node);
}
static inline Dtype dtype_of(const Call *c, NodeId node) {
    return graph_node(c->im->b->graph, node)->dtype;
}
static inline DimId number(const Call *c, int64_t value) {
    return dim_const(c->im->b->dims, value);
}
NodeId op1(Call *c, OpId op, NodeId x);
NodeId op2(Call *c, OpId op, NodeId x, NodeId y);
NodeId op2n(Call *c, OpId op, NodeId x, double number);
NodeId op3(Call *c, OpId op, NodeId x, NodeId y, NodeId z);
NodeId cast_to(Call *c, NodeId x, Dtype dtype);
/* A constant of the dtype of `like`. */
NodeId constant(Call *c, double number, NodeId like);
NodeId reshape_to(Call *c, NodeId x, const Shape *shape);
NodeId reduce(Call *c, OpId op, NodeId x, uint32_t axes, bool keep);

/* short.c */

/* All extents of x as numbers; an error if one is no constant. */
bool const_dims(Call *c, NodeId x, int64_t *dims);
/* The same, but the axes of a bit set may be no constants: these are -1. */
bool const_dims_but(Call *c, NodeId x, uint32_t free_axes, int64_t *dims);
Shape const_shape(const Call *c, uint32_t rank, const int64_t *extents);
NodeId reshape_const(Call *c, NodeId x, uint32_t rank, const int64_t *extents);
NodeId expand_to(Call *c, NodeId x, const Shape *shape);
/* i32[shape]: each element's index along the axis. */
NodeId index_along(Call *c, const Shape *shape, uint32_t axis);
NodeId transpose(Call *c, NodeId x, const int64_t *perm);
/* Axis `from` becomes axis `to`; the others keep their order. */
NodeId move_axis(Call *c, NodeId x, uint32_t from, uint32_t to);
NodeId matmul(Call *c, NodeId a, NodeId b);
/* The dtype of sums of products that do not wrap to the dtype of the factors. */
Dtype wide_dtype(Dtype dtype);
/* The same, with sums of that dtype. */
NodeId matmul_wide(Call *c, NodeId a, NodeId b);
NodeId concat(Call *c, NodeId a, NodeId b, uint32_t axis);
/* The elements begin to begin + extent of an axis. */
NodeId part_of(Call *c, NodeId x, uint32_t axis, DimId begin, DimId extent);
/* One index of an axis, which the result does not have. */
NodeId at_index(Call *c, NodeId x, uint32_t axis, int64_t index);
/* x with an axis of extent 1. */
NodeId with_axis(Call *c, NodeId x, uint32_t axis);
/* n tensors of one shape along a new axis. */
NodeId stacked(Call *c, uint32_t n, const NodeId *parts, uint32_t axis);
/* Numbers that the import computes, as a param. */
NodeId table_node(Call *c, Dtype dtype, uint32_t rank, const int64_t *dims, const double *values);
/* Indices as i32, negative ones counted from the end. */
NodeId negative_from_end(Call *c, NodeId indices, DimId extent);
/* Begins a loop of so many steps that is repeated at run time, whose step the caller makes before
 * it calls repeat_end; `index` receives the number of the step, a scalar. */
bool repeat_begin(Call *c, DimId count, Dtype dtype, Repeat *r, NodeId *index);
/* Ends the step, after the caller has added all else that the loop carries. */
void repeat_end(Call *c, Repeat *r, NodeId index);
/* The element of an axis at a place that is a scalar. */
NodeId element_at(Call *c, NodeId x, uint32_t axis, NodeId at);
/* A dim as a scalar, i32 or i64: a constant, or the last element of an iota. */
NodeId number_node(Call *c, DimId dim, Dtype dtype);

/* express.c: the value of an expression of the language, in which the tensors are x, w, b, mean and
 * variance, or the first of these. */
NodeId express(Call *c, const char *expression, uint32_t n, const NodeId *tensors);
/* `[1, 2]` */
const char *int_list(Call *c, uint32_t n, const int64_t *numbers);

/* Lowerings that several ops share. */

/* x before its cast to `dtype`, which matters to 8-bit floats. With `saturates` what lies outside
 * becomes the largest number, as the language has it where the dtype lacks infinity; else infinity,
 * or NaN where the dtype lacks that. */
NodeId within_range(Call *c, NodeId x, Dtype dtype, bool saturates);
/* The numbers as f32 that a node holds; or the node, if it holds none of a BIASED type. */
NodeId biased_value(Call *c, NodeId bits);
/* x rounded to a BIASED type. With `saturates` what lies outside becomes the largest number, else
 * NaN. */
NodeId biased_bits(Call *c, NodeId x, int64_t type, bool saturates);
/* A vector [c] as [1, c, 1, ..], beside a tensor [n, c, ..]. */
NodeId per_channel(Call *c, NodeId vector, uint32_t rank);
/* Softmax over a bit set of axes. */
NodeId softmax_over(Call *c, NodeId x, uint32_t axes);
/* The elements of an axis from last to first. */
NodeId reversed(Call *c, NodeId x, uint32_t axis);
/* data: [n, r..], places: i32[m], updates: [m, r..]. Of several updates of one place the last
 * counts, or all, by the reduction. */
NodeId scattered(Call *c, NodeId data, NodeId places, NodeId updates, Str reduction);
/* x: [n, c, d..], weights: [m, c / g, k..], bias: [m], or NODE_NONE -> [n, m, o..], by the node's
 * attributes; `beyond` stands around x. */
NodeId convolution(Call *c, NodeId x, NodeId weights, NodeId bias, double beyond);
/* The input of an op of ai.onnx.ml, as f64 if it is, else as f32: [n, features]; a vector is one
 * row. */
NodeId onnx_ml_rows(Call *c, int64_t *n_features);
/* Numbers of an attribute as a table of these dims; NODE_NONE after an error if it has another
 * count. */
NodeId onnx_ml_table(Call *c, const char *name, Dtype dtype, uint32_t rank, const int64_t *dims);
/* The number of floats of an attribute. */
int64_t onnx_ml_n_floats(const Call *c, const char *name);
/* Scores [n, k] as the attribute `post_transform` asks. */
NodeId onnx_ml_transformed(Call *c, NodeId scores);
/* The integers that name the classes, two or more; false after an error. */
bool onnx_ml_labels(Call *c, const char *name, const VecInt **labels);
/* The label of the class with the highest score; and with it the scores. */
bool onnx_ml_output_best(Call *c, NodeId scores, const VecInt *labels);
bool onnx_ml_output_classes(Call *c, NodeId scores, const VecInt *labels);
static inline NodeId where(Call *c, NodeId condition, NodeId yes, NodeId no) {
    return op3(c, OP_WHERE, condition, yes, no);
}

/* Lowerings of the rows of onnx_ops.def, and what makes their outputs known. */
#define ONNX(domain, name, since, until, min, max, lower, fold, id, spelling, doc) \
    bool lower(Call *c);
#include "onnx/onnx_ops.def"
#define onnx_fold_none NULL
/* For every row, where all inputs are known. */
bool onnx_fold_known(Call *c);
bool onnx_fold_eltwise(Call *c);
bool onnx_fold_shape(Call *c);
bool onnx_fold_size(Call *c);
bool onnx_fold_gather(Call *c);
bool onnx_fold_concat(Call *c);
bool onnx_fold_slice(Call *c);
bool onnx_fold_reshape(Call *c);
bool onnx_fold_transpose(Call *c);
bool onnx_fold_cast(Call *c);
bool onnx_fold_constant(Call *c);
bool onnx_fold_constant_of_shape(Call *c);
bool onnx_fold_range(Call *c);
bool onnx_fold_identity(Call *c);
bool onnx_fold_reduce(Call *c);
bool onnx_fold_where(Call *c);
bool onnx_fold_mod(Call *c);
bool onnx_fold_nonzero(Call *c);
bool onnx_fold_has_element(Call *c);
/* whole.c: notes that the first output, a float, follows from dims, if it does. */
void onnx_note_whole(Call *c);
/* The integers that a cast makes of input i, floats that follow from dims; or NULL. */
Known *onnx_whole_known(Call *c, uint32_t i);
/* The begin and the extent of a Slice in one axis, of an extent. */
typedef struct SliceRange {
    uint32_t axis;
    DimId begin, extent;
    int64_t step;
} SliceRange;
bool slice_ranges(Call *c, const Shape *shape, SliceRange *ranges, uint32_t *n);

#endif
