/* The messages of an ONNX file as structures: names are interned, all other bytes stay where they
 * lie in the file. Unknown fields are skipped, as the format asks. */
#ifndef FUSEC_ONNX_MODEL_H
#define FUSEC_ONNX_MODEL_H

#include "base/str.h"
#include "base/vec.h"
#include "ir/dtype.h"
#include "onnx/file/wire.h"

typedef enum {
    ELEM_NONE,
#define ELEM(sym, number, ...) ELEM_##sym = number,
#include "onnx/file/onnx_types.def"
    ELEM_COUNT
} ElemType;
typedef enum {
    ELEM_IS_OTHER,
    ELEM_IS_INT,
    ELEM_IS_UINT,
    ELEM_IS_FLOAT,
    ELEM_IS_BOOL,
    ELEM_IS_BIASED
} ElemKind;
typedef struct ElemInfo {
    const char *name, *dtype; /* dtype "": the language has none */
    uint32_t n_bytes;
    ElemKind kind;
} ElemInfo;
/* Of a number in a file; a number of no type gives the row of ELEM_NONE. */
const ElemInfo *elem_info(int64_t type);
/* The dtype of the language; false: it has none. */
bool elem_dtype(int64_t type, Dtype *dtype);
/* The dtype whose format that of a BIASED type is like; false: the type is none. */
bool elem_biased(int64_t type, Dtype *dtype);
ElemType elem_of_dtype(Dtype dtype);

typedef Vec(int64_t) VecInt;
typedef Vec(double) VecDouble;
typedef Vec(Str) VecStr;

typedef struct OnnxTensor {
    Str name;
    int64_t type; /* an ElemType, if the file is good */
    VecInt dims;
    size_t n_elems;
    Bytes raw;              /* little-endian elements; or */
    VecInt ints;            /* int32_data, int64_data, uint64_data; or */
    VecDouble floats;       /* float_data, double_data */
    bool is_external;       /* the elements lie in another file */
    Str location;           /* whose name this is */
    int64_t offset, length; /* length -1: to its end */
} OnnxTensor;

typedef struct OnnxGraph OnnxGraph;
/* Of a number in a file; 0: the file does not say. */
typedef enum {
    ATTR_FLOAT = 1,
    ATTR_INT,
    ATTR_STRING,
    ATTR_TENSOR,
    ATTR_GRAPH,
    ATTR_FLOATS,
    ATTR_INTS,
    ATTR_STRINGS
} OnnxAttrType;
typedef struct OnnxAttr {
    Str name, reference; /* reference: the attribute of the function's call that has the value */
    int64_t type;        /* an OnnxAttrType, if the file is good */
    double number;
    int64_t integer;
    Str string;
    OnnxTensor *tensor;
    OnnxGraph *graph;
    VecInt ints;
    VecDouble floats;
    VecStr strings;
} OnnxAttr;

typedef struct OnnxNode {
    Str name, op, domain;
    VecStr inputs, outputs; /* "": absent */
    Vec(OnnxAttr) attrs;
} OnnxNode;

typedef struct OnnxDim {
    int64_t value; /* negative: not given */
    Str param;     /* NULL: not given */
} OnnxDim;
typedef struct OnnxValueInfo {
    Str name;
    bool is_tensor, has_shape;
    int64_t type;
    Vec(OnnxDim) dims;
} OnnxValueInfo;

struct OnnxGraph {
    Str name;
    Vec(OnnxNode) nodes;
    Vec(OnnxTensor) initializers;
    Vec(OnnxValueInfo) inputs, outputs;
    uint32_t n_sparse; /* sparse initializers, which are not read */
};

typedef struct OnnxOpset {
    Str domain;
    int64_t version;
} OnnxOpset;
typedef Vec(OnnxOpset) VecOpset;

typedef struct OnnxFunction {
    Str name, domain;
    VecStr inputs, outputs;
    Vec(OnnxNode) nodes;
    Vec(OnnxAttr) defaults;
    VecOpset opsets;
} OnnxFunction;

typedef struct OnnxModel {
    int64_t ir_version;
    OnnxGraph *graph; /* NULL: the file has none */
    VecOpset opsets;
    Vec(OnnxFunction) functions;
} OnnxModel;

/* Reads the bytes of a file. NULL, and the reason, if they are no model. */
OnnxModel *onnx_model_read(Arena *arena, StrTab *strings, Bytes file, const char **why);

#endif
