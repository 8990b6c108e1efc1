/* See onnx_bytes.h. */
#include "onnx/onnx_bytes.h"
#include "onnx/file/model.h"

#include <stdlib.h>
#include <string.h>

static void put_varint(Text *out, uint64_t value) {
    char byte;
    for (; value >= 0x80; value >>= 7) {
        byte = (char)(0x80 | (value & 0x7F));
        text_add(out, &byte, 1);
    }
    byte = (char)value;
    text_add(out, &byte, 1);
}

void pb_begin(Text *message, uint32_t field, size_t n) {
    put_varint(message, (uint64_t)field << 3 | 2);
    put_varint(message, n);
}

static void put_bytes(Text *out, uint32_t field, const char *bytes, size_t n) {
    pb_begin(out, field, n);
    if (n) text_add(out, bytes, n);
}

void pb_int(Text *message, uint32_t field, int64_t value) {
    put_varint(message, (uint64_t)field << 3);
    put_varint(message, (uint64_t)value);
}

void pb_text(Text *message, uint32_t field, const char *text) {
    put_bytes(message, field, text, strlen(text));
}

void pb_message(Text *message, uint32_t field, const Text *inner) {
    put_bytes(message, field, inner->data, inner->n_bytes);
}

OnnxWriter onnx_writer(Arena *arena) {
    OnnxWriter w = {arena, {.arena = arena}, {.arena = arena}};
    pb_text(&w.graph, 2, "net");
    return w;
}

static void write_value(OnnxWriter *w, uint32_t field, const char *name, int type,
                        const Text *shape) {
    Text tensor = {.arena = w->arena}, any = {.arena = w->arena}, info = {.arena = w->arena};
    pb_int(&tensor, 1, type);
    if (shape) pb_message(&tensor, 2, shape);
    pb_message(&any, 1, &tensor);
    pb_text(&info, 1, name);
    pb_message(&info, 2, &any);
    pb_message(&w->graph, field, &info);
}

void onnx_write_input(OnnxWriter *w, const char *name, int type, uint32_t rank,
                      const char *const *dims) {
    Text shape = {.arena = w->arena};
    for (uint32_t k = 0; k < rank; k++) {
        Text dim = {.arena = w->arena};
        char *end;
        long long value = strtoll(dims[k], &end, 10);
        if (*end)
            pb_text(&dim, 2, dims[k]);
        else
            pb_int(&dim, 1, value);
        pb_message(&shape, 1, &dim);
    }
    write_value(w, 11, name, type, &shape);
}

void onnx_write_output(OnnxWriter *w, const char *name, int type) {
    write_value(w, 12, name, type, NULL);
}

static void write_tensor(OnnxWriter *w, const char *name, int type, uint32_t n, const void *bytes,
                         size_t n_bytes) {
    Text tensor = {.arena = w->arena};
    pb_int(&tensor, 1, n);
    pb_int(&tensor, 2, type);
    pb_text(&tensor, 8, name);
    put_bytes(&tensor, 9, bytes, n_bytes);
    pb_message(&w->graph, 5, &tensor);
}

void onnx_write_ints(OnnxWriter *w, const char *name, uint32_t n, const int64_t *values) {
    write_tensor(w, name, 7, n, values, n * sizeof *values);
}

void onnx_write_floats(OnnxWriter *w, const char *name, uint32_t n, const float *values) {
    write_tensor(w, name, 1, n, values, n * sizeof *values);
}

void onnx_write_external(OnnxWriter *w, const char *name, uint32_t n, const char *location) {
    Text tensor = {.arena = w->arena}, entry = {.arena = w->arena};
    pb_int(&tensor, 1, n);
    pb_int(&tensor, 2, 1);
    pb_text(&tensor, 8, name);
    pb_text(&entry, 1, "location");
    pb_text(&entry, 2, location);
    pb_message(&tensor, 13, &entry);
    pb_int(&tensor, 14, 1);
    pb_message(&w->graph, 5, &tensor);
}

static void put_names(Text *node, uint32_t field, Arena *arena, const char *names) {
    while (*names) {
        size_t n = strcspn(names, " ");
        const char *name = str_format(arena, "%.*s", (int)n, names);
        pb_text(node, field, strcmp(name, "-") == 0 ? "" : name);
        names += n + (names[n] == ' ');
    }
}

Text onnx_node(Arena *arena, const char *op, const char *inputs, const char *outputs,
               const Text *attrs) {
    Text node = {.arena = arena};
    put_names(&node, 1, arena, inputs);
    put_names(&node, 2, arena, outputs);
    pb_text(&node, 4, op);
    if (attrs && attrs->n_bytes) text_add(&node, attrs->data, attrs->n_bytes);
    return node;
}

void onnx_write_node(OnnxWriter *w, const char *op, const char *inputs, const char *outputs,
                     const Text *attrs) {
    Text node = onnx_node(w->arena, op, inputs, outputs, attrs);
    pb_message(&w->graph, 1, &node);
}

void onnx_attr_int(Text *attrs, const char *name, int64_t value) {
    Text attr = {.arena = attrs->arena};
    pb_text(&attr, 1, name);
    pb_int(&attr, 3, value);
    pb_int(&attr, 20, ATTR_INT);
    pb_message(attrs, 5, &attr);
}

void onnx_attr_ints(Text *attrs, const char *name, uint32_t n, const int64_t *values) {
    Text attr = {.arena = attrs->arena};
    pb_text(&attr, 1, name);
    for (uint32_t i = 0; i < n; i++) pb_int(&attr, 8, values[i]);
    pb_int(&attr, 20, ATTR_INTS);
    pb_message(attrs, 5, &attr);
}

void onnx_attr_floats(Text *attrs, const char *name, uint32_t n, const float *values) {
    Text attr = {.arena = attrs->arena};
    pb_text(&attr, 1, name);
    put_bytes(&attr, 7, (const char *)values, n * sizeof *values);
    pb_int(&attr, 20, ATTR_FLOATS);
    pb_message(attrs, 5, &attr);
}

void onnx_attr_domain(Text *attrs, const char *domain) {
    pb_text(attrs, 7, domain);
}

void onnx_attr_graph(Text *attrs, const char *name, const OnnxWriter *inner) {
    Text attr = {.arena = attrs->arena};
    pb_text(&attr, 1, name);
    pb_message(&attr, 6, &inner->graph);
    pb_int(&attr, 20, ATTR_GRAPH);
    pb_message(attrs, 5, &attr);
}

void onnx_attr_text(Text *attrs, const char *name, const char *value) {
    Text attr = {.arena = attrs->arena};
    pb_text(&attr, 1, name);
    pb_text(&attr, 4, value);
    pb_int(&attr, 20, ATTR_STRING);
    pb_message(attrs, 5, &attr);
}

void onnx_attr_texts(Text *attrs, const char *name, uint32_t n, const char *const *values) {
    Text attr = {.arena = attrs->arena};
    pb_text(&attr, 1, name);
    for (uint32_t i = 0; i < n; i++) pb_text(&attr, 9, values[i]);
    pb_int(&attr, 20, ATTR_STRINGS);
    pb_message(attrs, 5, &attr);
}

Text onnx_write_model(const OnnxWriter *w, int64_t opset) {
    Text model = {.arena = w->arena}, import = {.arena = w->arena}, learning = {.arena = w->arena};
    pb_int(&model, 1, 8);
    pb_message(&model, 7, &w->graph);
    pb_text(&learning, 1, "ai.onnx.ml");
    pb_int(&learning, 2, 3);
    pb_message(&model, 8, &learning);
    pb_text(&import, 1, "");
    pb_int(&import, 2, opset);
    pb_message(&model, 8, &import);
    if (w->functions.n_bytes) text_add(&model, w->functions.data, w->functions.n_bytes);
    return model;
}
