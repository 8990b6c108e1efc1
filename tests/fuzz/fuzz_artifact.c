/* Fuzz entry: arbitrary bytes as an artifact, once as they are and once with a repaired checksum,
 * so that the code after its check is reached. A loaded module is inspected completely, and a CPU
 * artifact is placed and relocated (its code is never executed). Build: clang
 * -fsanitize=fuzzer,address,undefined with the runtime's sources. */
#include "../../runtime/src/host/crc32c.h"

#include <fusert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void inspect_step(const frt_module *m, int32_t graph, int32_t step) {
    char text[256];
    FRT_INFO(frt_step_info, info);
    frt_module_get_step(m, graph, step, &info);
    for (int32_t v = 0; v < info.n_variants; v++) {
        frt_module_grid_text(m, graph, step, v, text, sizeof text);
        frt_module_shared_text(m, graph, step, v, text, sizeof text);
        frt_module_predicate_text(m, graph, step, v, text, sizeof text);
    }
}

static void inspect(const frt_module *m) {
    FRT_INFO(frt_module_info, info);
    int64_t dims[64];
    frt_module_get_info(m, &info);
    for (int32_t i = 0; i < info.n_dims; i++) {
        FRT_INFO(frt_dim_info, dim);
        frt_module_get_dim(m, i, &dim);
        dims[i] = dim.lo;
    }
    for (int32_t g = 0; g < info.n_graphs; g++) {
        FRT_INFO(frt_graph_info, graph);
        frt_module_get_graph(m, g, &graph);
        for (int32_t t = 0; t < graph.n_tensors; t++) {
            int64_t extents[FRT_MAX_RANK];
            char text[64];
            frt_module_eval_shape(m, g, t, dims, extents, NULL);
            frt_module_extent_text(m, g, t, 0, text, sizeof text);
            frt_module_offset_text(m, g, t, text, sizeof text);
        }
        for (int32_t i = 0; i < graph.n_pitches; i++) {
            char text[64];
            frt_module_pitch_text(m, g, i, text, sizeof text);
        }
        for (int32_t s = 0; s < graph.n_steps; s++) {
            inspect_step(m, g, s);
        }
    }
}

static void load(const void *bytes, size_t n) {
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_error err = FRT_ERROR_INIT;
    if (frt_module_load_memory(bytes, n, &module, &err)) {
        return;
    }
    inspect(module);
    FRT_INFO(frt_module_info, info);
    frt_module_get_info(module, &info);
    FRT_INFO(frt_graph_info, graph);
    frt_module_get_graph(module, 0, &graph);
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.no_weights = true;
    options.n_threads = 1;
    /* Not executed: a shared object would run its constructors, and init steps would run
     * kernels. */
    bool has_init = false;
    for (int32_t s = 0; s < graph.n_steps; s++) {
        FRT_INFO(frt_step_info, step);
        frt_module_get_step(module, 0, s, &step);
        has_init = has_init || step.phase == FRT_PHASE_INIT;
    }
    if (info.code == FRT_CODE_OBJECT && !has_init) {
        frt_program_create(module, graph.name, &options, &program, &err);
    }
    frt_program_free(program);
    frt_module_free(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char word[] = "//@ checksum ";
    const size_t n_word = sizeof word - 1;
    load(data, n);
    char *copy = malloc(n + 1);
    if (!copy) {
        return 0;
    }
    memcpy(copy, data, n);
    for (size_t i = 0; i + n_word + 8 <= n; i++) {
        if (memcmp(copy + i, word, n_word) == 0) {
            char digits[9];
            memcpy(copy + i + n_word, "00000000", 8);
            snprintf(digits, sizeof digits, "%08x", crc32c_update(0, copy, n));
            memcpy(copy + i + n_word, digits, 8);
            load(copy, n);
            break;
        }
    }
    free(copy);
    return 0;
}
