/* Fuzz entry: arbitrary bytes as an ONNX model. The importer reports errors or returns a graph that
 * keeps all rules, and whose text parses. */
#include "front/sema.h"
#include "onnx/import.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(bool holds) {
    if (!holds) abort();
}

static void check(Arena *arena, const uint8_t *data, size_t n_bytes) {
    Diags diags = {.arena = arena};
    OnnxSource source = {.name = "fuzz.onnx", .file = {data, n_bytes}};
    Text text = {.arena = arena}, messages = {.arena = arena};
    OnnxImport *made = onnx_import(arena, strtab_new(arena), &diags, &source, "fuzz.safetensors");
    diag_print(&diags, &messages);
    require((made == NULL) == (diags.n_errors > 0));
    if (!made) return;
    require(graph_verify(made->module->graphs.data[0], arena) == NULL);
    module_print(made->module, &text);
    onnx_weights_header(made, &messages);
    Diags again = {.arena = arena};
    require(front_parse(arena, strtab_new(arena), &again,
                        source_new(arena, "fuzz.g", text_str(&text), text.n_bytes)) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    Escape escape = {.message = ""};
    Arena *arena = arena_new(&escape);
    if (!arena) return 0;
    /* An escape may only mean that memory is out, never a broken invariant. */
    if (setjmp(escape.jump) == 0)
        check(arena, data, n_bytes);
    else
        require(escape.message[0] == '\0');
    arena_free(arena);
    return 0;
}
