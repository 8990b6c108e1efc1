/* See stored.h. */
#include "sweep/stored.h"

#include "lib/compile.h"
#include "lib/rig.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static char *text_of(Arena *arena, Bytes bytes) {
    return str_format(arena, "%.*s", (int)bytes.n, (const char *)bytes.data);
}

static void add_tensor(Arena *arena, StoredTensors *tensors, Bytes bytes) {
    StoredTensor tensor = {0};
    WireField field;
    const char *why = "";
    while (wire_next(&bytes, &field)) {
        if (field.number == 1) tensor.name = text_of(arena, field.bytes);
        if (field.number == 2) tensor.file = field.bytes;
    }
    cr_assert(npy_read(arena, (const char *)tensor.file.data, tensor.file.n, &tensor.array, &why),
              "%s: %s", tensor.name, why);
    cr_assert_lt(tensors->n, STORED_MAX_TENSORS);
    tensors->data[tensors->n++] = tensor;
}

static double number_of(const WireField *field) {
    double number;
    memcpy(&number, &field->value, sizeof number);
    return number;
}

static StoredCase read_case(Arena *arena, Bytes bytes) {
    StoredCase it = {0};
    WireField field;
    while (wire_next(&bytes, &field)) {
        if (field.number == 1) it.name = text_of(arena, field.bytes);
        if (field.number == 2) it.program = field.bytes;
        if (field.number == 3) add_tensor(arena, &it.inputs, field.bytes);
        if (field.number == 4) add_tensor(arena, &it.constants, field.bytes);
        if (field.number == 5) add_tensor(arena, &it.outputs, field.bytes);
        if (field.number == 6) it.relative = number_of(&field);
        if (field.number == 7) it.absolute = number_of(&field);
    }
    return it;
}

bool stored_next(Arena *arena, Bytes *file, StoredCase *stored) {
    WireField field;
    if (!wire_next(file, &field)) {
        cr_assert_eq(file->n, 0, "a record is broken");
        return false;
    }
    *stored = read_case(arena, field.bytes);
    return true;
}

static bool is_near(const StoredCase *it, double got, double wanted) {
    if (isnan(wanted) || isinf(wanted)) return isnan(wanted) ? isnan(got) : got == wanted;
    return fabs(got - wanted) <= it->absolute + it->relative * fabs(wanted);
}

/* The first difference; or NULL. */
static const char *compare(Arena *arena, const StoredCase *it, const StoredTensor *wanted,
                           Dtype dtype, const uint8_t *bytes, size_t n_bytes) {
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

static const char *fill(Arena *arena, Rig *rig, const StoredTensor *input) {
    size_t n;
    uint8_t *to = rig_contents(rig, input->name, &n);
    if (!to) return NULL; /* an input that no output needs */
    if (n != input->array.n_bytes)
        return str_format(arena, "%s has %zu bytes, not %zu", input->name, input->array.n_bytes, n);
    memcpy(to, input->array.bytes, n);
    return NULL;
}

static const char *run(Arena *arena, const StoredCase *it, const Graph *graph, Rig *rig) {
    const char *wrong = NULL;
    for (uint32_t i = 0; i < it->inputs.n && !wrong; i++)
        wrong = fill(arena, rig, &it->inputs.data[i]);
    if (wrong) return wrong;
    if (!rig_run(rig, 0xF5)) return str_format(arena, "%s", rig->error);
    if (it->outputs.n != graph->outputs.n) return "the program has another number of outputs";
    for (uint32_t i = 0; i < it->outputs.n && !wrong; i++) {
        size_t n;
        const uint8_t *bytes = rig_result(rig, it->outputs.data[i].name, &n);
        Dtype dtype = graph_node(graph, graph->outputs.data[i].node)->dtype;
        wrong = bytes ? compare(arena, it, &it->outputs.data[i], dtype, bytes, n)
                      : "an output is missing";
    }
    return wrong;
}

/* The values of dims that are extents of inputs. */
static void find_symbols(const Graph *graph, const StoredCase *stored, int64_t *symbols) {
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        for (uint32_t k = 0; k < stored->inputs.n; k++) {
            const StoredTensor *given = &stored->inputs.data[k];
            const Shape *shape = &graph_node(graph, graph->inputs.data[i].node)->shape;
            if (strcmp(given->name, graph->inputs.data[i].name) != 0) continue;
            for (uint32_t a = 0, symbol; a < shape->rank && a < given->array.rank; a++)
                if (dim_is_symbol(graph->dims, shape->dims[a], &symbol))
                    symbols[symbol] = given->array.dims[a];
        }
}

const char *stored_try(Arena *arena, const StoredCase *stored, const char *source) {
    Compiled compiled;
    Rig rig;
    RigOptions options = RIG_OPTIONS_INIT;
    int64_t symbols[DIM_MAX_SYMBOLS] = {0};
    options.program.no_weights = true;
    if (!compile_source(&compiled, source, target_get(TARGET_CPU), COMPILE_FUSED)) {
        const char *why = str_format(arena, "%s", compiled.messages);
        compile_free(&compiled);
        return why;
    }
    const Graph *graph = compiled.module->graphs.data[0];
    find_symbols(graph, stored, symbols);
    bool good = rig_open(&rig, compiled.bytes, compiled.n_bytes, NULL, &options) &&
                rig_place(&rig, graph->dims, symbols);
    const char *wrong = good ? run(arena, stored, graph, &rig) : str_format(arena, "%s", rig.error);
    rig_close(&rig);
    compile_free(&compiled);
    return wrong;
}
