/* See onnx_source.h. */
#include "onnx/onnx_source.h"
#include "onnx/import.h"

const char *onnx_source_of(Arena *arena, const OnnxWriter *w, int64_t opset) {
    Diags diags = {.arena = arena};
    Text text = {.arena = arena}, model = onnx_write_model(w, opset);
    OnnxSource source = {.name = "m.onnx", .file = {(const uint8_t *)model.data, model.n_bytes}};
    OnnxImport *made = onnx_import(arena, strtab_new(arena), &diags, &source, "m.safetensors");
    if (made)
        module_print(made->module, &text);
    else
        diag_print(&diags, &text);
    return text_str(&text);
}
