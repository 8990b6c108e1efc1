/* ONNX in: a model file as a module of one graph, and its weights. Nodes are lowered one after the
 * other over the typed builder by the rows of onnx_ops.def; shapes are those of the builder's
 * rules. Integers that shapes are computed from are known while importing: they become dims and
 * constants and leave no op behind. */
#ifndef FUSEC_ONNX_IMPORT_H
#define FUSEC_ONNX_IMPORT_H

#include "base/diag.h"
#include "ir/graph.h"
#include "onnx/file/wire.h"

/* A param of the graph with its elements. */
typedef struct OnnxWeight {
    Str name, key; /* of the param; in the weights file, and in the model */
    Dtype dtype;
    uint32_t rank;
    int64_t dims[MAX_RANK];
    Bytes bytes;
} OnnxWeight;

typedef struct OnnxImport {
    Module *module;
    Vec(OnnxWeight) weights; /* in the order of the graph's params */
} OnnxImport;

/* An input whose values are given to the import, which takes them for constants. */
typedef struct OnnxConstant {
    const char *name; /* the model's, or the graph's */
    const char *text; /* numbers between commas; NULL: */
    Bytes file;       /* the bytes of a .npy file */
} OnnxConstant;

/* The values that a dim of the model may have. */
typedef struct OnnxRange {
    const char *name; /* the model's, or the graph's */
    int64_t least, most, multiple;
} OnnxRange;

typedef struct OnnxSource {
    const char *name; /* for messages */
    Bytes file;
    /* Finds the file of external data beside the model; false: it cannot be read. NULL: the model
     * may have none. The location is in the model's folder or below, and names no folder above. The
     * bytes live as long as the import. */
    bool (*external)(void *user, const char *location, Bytes *bytes);
    void *user;
    uint32_t n_constants;
    const OnnxConstant *constants;
    uint32_t n_ranges;
    const OnnxRange *ranges; /* of dims; one of a single value makes the dim a number */
} OnnxSource;

/* NULL after diagnostics. `weights` is the name that the module gives its weights file. The weights
 * point into the file, or into the arena. */
OnnxImport *onnx_import(Arena *arena, StrTab *strings, Diags *diags, const OnnxSource *source,
                        const char *weights);

/* The beginning of a .safetensors file, which the weights' bytes follow in their order. */
void onnx_weights_header(const OnnxImport *import, Text *out);

/* The table of ops as rows of Markdown. */
void onnx_ops_print(Text *out);

#endif
