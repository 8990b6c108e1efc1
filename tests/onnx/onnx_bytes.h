/* Writes ONNX files for tests: messages as bytes, by field number. */
#ifndef FUSEC_TESTS_ONNX_BYTES_H
#define FUSEC_TESTS_ONNX_BYTES_H

#include "base/str.h"

void pb_int(Text *message, uint32_t field, int64_t value);
void pb_text(Text *message, uint32_t field, const char *text);
/* The beginning of a message of n bytes, which the caller adds. */
void pb_begin(Text *message, uint32_t field, size_t n);
void pb_message(Text *message, uint32_t field, const Text *inner);

/* The graph of a model, part by part. */
typedef struct OnnxWriter {
    Arena *arena;
    Text graph, functions;
} OnnxWriter;
OnnxWriter onnx_writer(Arena *arena);
/* A tensor of these dims; a dim that is no number is a dim_param. `type` is ONNX's number. */
void onnx_write_input(OnnxWriter *w, const char *name, int type, uint32_t rank,
                      const char *const *dims);
void onnx_write_output(OnnxWriter *w, const char *name, int type);
void onnx_write_ints(OnnxWriter *w, const char *name, uint32_t n, const int64_t *values);
void onnx_write_floats(OnnxWriter *w, const char *name, uint32_t n, const float *values);
/* n floats that a file beside the model has. */
void onnx_write_external(OnnxWriter *w, const char *name, uint32_t n, const char *location);
/* Names are separated by blanks; `attrs`, made by onnx_attr_*, may be NULL. */
Text onnx_node(Arena *arena, const char *op, const char *inputs, const char *outputs,
               const Text *attrs);
void onnx_write_node(OnnxWriter *w, const char *op, const char *inputs, const char *outputs,
                     const Text *attrs);
void onnx_attr_int(Text *attrs, const char *name, int64_t value);
void onnx_attr_ints(Text *attrs, const char *name, uint32_t n, const int64_t *values);
void onnx_attr_floats(Text *attrs, const char *name, uint32_t n, const float *values);
/* Not an attribute: the domain of the node's op. */
void onnx_attr_domain(Text *attrs, const char *domain);
/* The graph that `inner` has written so far. */
void onnx_attr_graph(Text *attrs, const char *name, const OnnxWriter *inner);
void onnx_attr_text(Text *attrs, const char *name, const char *value);
void onnx_attr_texts(Text *attrs, const char *name, uint32_t n, const char *const *values);
Text onnx_write_model(const OnnxWriter *w, int64_t opset);

#endif
