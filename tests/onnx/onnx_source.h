/* The source that a model becomes, for tests. */
#ifndef FUSEC_TESTS_ONNX_SOURCE_H
#define FUSEC_TESTS_ONNX_SOURCE_H

#include "onnx/onnx_bytes.h"

/* Or the diagnostics of a model that is wrong. */
const char *onnx_source_of(Arena *arena, const OnnxWriter *w, int64_t opset);

#endif
