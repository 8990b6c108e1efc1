/* Cases of ONNX's backend node tests, on the CPU: the smallest of each op. `make onnx-node-tests`
 * runs them all, and writes tests/onnx/node_cases.bin: records of protobuf's wire format, see
 * node_tests.py. */
#include "interp/npy.h"
#include "lib/compile.h"
#include "lib/rig.h"
#include "lib/text_file.h"
#include "onnx/import.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TENSORS = 32 };

typedef struct CaseTensor {
    const char *name;
    Bytes file;
    NpyArray array;
} CaseTensor;

typedef struct Case {
    const char *name;
    Bytes model;
    CaseTensor inputs[MAX_TENSORS], outputs[MAX_TENSORS];
    OnnxConstant constants[MAX_TENSORS];
    uint32_t n_inputs, n_outputs, n_constants;
    double relative, absolute;
} Case;

static Arena *arena;

static char *text_of(Bytes bytes) {
    return str_format(arena, "%.*s", (int)bytes.n, (const char *)bytes.data);
}

static CaseTensor read_tensor(Bytes bytes) {
    CaseTensor tensor = {0};
    WireField field;
    const char *why = "";
    while (wire_next(&bytes, &field)) {
        if (field.number == 1) tensor.name = text_of(field.bytes);
        if (field.number == 2) tensor.file = field.bytes;
    }
    cr_assert(npy_read(arena, (const char *)tensor.file.data, tensor.file.n, &tensor.array, &why),
              "%s: %s", tensor.name, why);
    return tensor;
}

static double number_of(const WireField *field) {
    double number;
    memcpy(&number, &field->value, sizeof number);
    return number;
}

static Case read_case(Bytes bytes) {
    Case it = {0};
    WireField field;
    while (wire_next(&bytes, &field)) {
        if (field.number == 1) it.name = text_of(field.bytes);
        if (field.number == 2) it.model = field.bytes;
        if (field.number == 3) it.inputs[it.n_inputs++] = read_tensor(field.bytes);
        if (field.number == 5) it.outputs[it.n_outputs++] = read_tensor(field.bytes);
        if (field.number == 6) it.relative = number_of(&field);
        if (field.number == 7) it.absolute = number_of(&field);
        if (field.number == 4) {
            CaseTensor tensor = read_tensor(field.bytes);
            it.constants[it.n_constants++] =
                (OnnxConstant){.name = tensor.name, .file = tensor.file};
        }
        cr_assert(it.n_inputs < MAX_TENSORS && it.n_outputs < MAX_TENSORS &&
                  it.n_constants < MAX_TENSORS);
    }
    return it;
}

static bool is_near(const Case *it, double got, double wanted) {
    if (isnan(wanted) || isinf(wanted)) return isnan(wanted) ? isnan(got) : got == wanted;
    return fabs(got - wanted) <= it->absolute + it->relative * fabs(wanted);
}

/* The first difference; or NULL. */
static const char *compare(const Case *it, const CaseTensor *wanted, Dtype dtype,
                           const uint8_t *bytes, size_t n_bytes) {
    size_t size = dtype_bytes(dtype);
    if (!dtype_in(dtype, wanted->array.dtypes) || n_bytes != wanted->array.n_bytes)
        return str_format(arena, "%s has another dtype or shape", wanted->name);
    for (size_t i = 0; i < n_bytes; i += size) {
        double got = dtype_load(dtype, bytes + i),
               want = dtype_load(dtype, wanted->array.bytes + i);
        if (!is_near(it, got, want))
            return str_format(arena, "%s, element %zu: %g, not %g", wanted->name, i / size, got,
                              want);
    }
    return NULL;
}

static const char *fill(Rig *rig, const char *name, const uint8_t *bytes, size_t n_bytes) {
    size_t n;
    uint8_t *to = rig_contents(rig, name, &n);
    if (!to) return NULL; /* an input that no output needs */
    if (n != n_bytes) return str_format(arena, "%s has %zu bytes, not %zu", name, n_bytes, n);
    memcpy(to, bytes, n);
    return NULL;
}

static const char *run(const Case *it, const OnnxImport *model, const Graph *graph, Rig *rig) {
    const char *wrong = NULL;
    for (uint32_t i = 0; i < it->n_inputs && !wrong; i++)
        wrong =
            fill(rig, it->inputs[i].name, it->inputs[i].array.bytes, it->inputs[i].array.n_bytes);
    for (uint32_t i = 0; i < model->weights.n && !wrong; i++) {
        const OnnxWeight *weight = &model->weights.data[i];
        wrong = fill(rig, weight->name, weight->bytes.data, weight->bytes.n);
    }
    if (wrong) return wrong;
    if (!rig_run(rig, 0xF5)) return str_format(arena, "%s", rig->error);
    for (uint32_t i = 0; i < it->n_outputs && !wrong; i++) {
        size_t n;
        const uint8_t *bytes = rig_result(rig, it->outputs[i].name, &n);
        Dtype dtype = graph_node(graph, graph->outputs.data[i].node)->dtype;
        wrong = bytes ? compare(it, &it->outputs[i], dtype, bytes, n) : "an output is missing";
    }
    return wrong;
}

/* What is wrong; or NULL. */
static const char *try_case(const Case *it) {
    Diags diags = {.arena = arena};
    Text text = {.arena = arena}, messages = {.arena = arena};
    OnnxSource source = {.name = it->name,
                         .file = it->model,
                         .n_constants = it->n_constants,
                         .constants = it->constants};
    OnnxImport *model = onnx_import(arena, strtab_new(arena), &diags, &source, "w.safetensors");
    diag_print(&diags, &messages);
    if (!model) return text_str(&messages);
    module_print(model->module, &text);
    Compiled compiled;
    Rig rig;
    RigOptions options = RIG_OPTIONS_INIT;
    int64_t symbols[DIM_MAX_SYMBOLS] = {0};
    options.program.no_weights = true;
    if (!compile_source(&compiled, text_str(&text), target_get(TARGET_CPU), COMPILE_FUSED))
        return compiled.messages;
    const Graph *graph = compiled.module->graphs.data[0];
    bool good = rig_open(&rig, compiled.bytes, compiled.n_bytes, NULL, &options) &&
                rig_place(&rig, graph->dims, symbols);
    const char *wrong = good ? run(it, model, graph, &rig) : str_format(arena, "%s", rig.error);
    rig_close(&rig);
    compile_free(&compiled);
    return wrong;
}

Test(nodes, stored_cases_pass, .timeout = 120) {
    enum { N_LEAST = 150 };
    uint32_t n = 0, n_failed = 0;
    arena = arena_new(NULL);
    size_t n_bytes;
    const char *file = text_file_read(arena, "tests/onnx/node_cases.bin", &n_bytes);
    Bytes records = {(const uint8_t *)file, n_bytes};
    WireField field;
    for (; wire_next(&records, &field); n++) {
        Case it = read_case(field.bytes);
        const char *wrong = try_case(&it);
        if (wrong) fprintf(stderr, "%s: %s\n", it.name, wrong);
        n_failed += wrong != NULL;
    }
    fprintf(stderr, "onnx node cases: %u passed, %u failed\n", n - n_failed, n_failed);
    cr_expect_eq(n_failed, 0);
    cr_expect(n >= N_LEAST && records.n == 0);
    arena_free(arena);
}
