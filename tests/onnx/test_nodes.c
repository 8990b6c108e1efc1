/* Cases of ONNX's backend node tests, on the CPU: the smallest of each op. `make onnx-node-tests`
 * runs them all, and writes tests/onnx/node_cases.bin: see sweep/stored.h. And small networks with
 * onnxruntime's outputs, which `make onnx-exports` writes into tests/models. */
#include "lib/compile.h"
#include "sweep/stored.h"
#include "lib/text_file.h"
#include "onnx/import.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>

static Arena *arena;

/* What is wrong; or NULL. The model's weights become inputs. */
static const char *try_case(StoredCase *it) {
    Diags diags = {.arena = arena};
    Text text = {.arena = arena}, messages = {.arena = arena};
    OnnxConstant constants[STORED_MAX_TENSORS];
    for (uint32_t i = 0; i < it->constants.n; i++)
        constants[i] =
            (OnnxConstant){.name = it->constants.data[i].name, .file = it->constants.data[i].file};
    OnnxSource source = {.name = it->name,
                         .file = it->program,
                         .n_constants = it->constants.n,
                         .constants = constants};
    OnnxImport *model = onnx_import(arena, strtab_new(arena), &diags, &source, "w.safetensors");
    diag_print(&diags, &messages);
    if (!model) return text_str(&messages);
    module_print(model->module, &text);
    for (uint32_t i = 0; i < model->weights.n; i++) {
        const OnnxWeight *weight = &model->weights.data[i];
        cr_assert_lt(it->inputs.n, STORED_MAX_TENSORS);
        it->inputs.data[it->inputs.n++] =
            (StoredTensor){.name = weight->name,
                           .array = {.bytes = weight->bytes.data, .n_bytes = weight->bytes.n}};
    }
    return stored_try(arena, it, text_str(&text));
}

/* Prints what is wrong with each case of a file; the number of cases that are right. */
static uint32_t try_file(const char *path, uint32_t *n_failed) {
    uint32_t n_good = 0;
    size_t n_bytes;
    const char *file = text_file_read(arena, path, &n_bytes);
    Bytes records = {(const uint8_t *)file, n_bytes};
    StoredCase it;
    while (stored_next(arena, &records, &it)) {
        const char *wrong = try_case(&it);
        if (wrong) fprintf(stderr, "%s: %s\n", it.name, wrong);
        n_good += wrong == NULL;
        *n_failed += wrong != NULL;
    }
    return n_good;
}

Test(nodes, stored_cases_pass, .timeout = 120) {
    enum { N_LEAST = 150 };
    uint32_t n_failed = 0;
    arena = arena_new(NULL);
    uint32_t n_good = try_file("tests/onnx/node_cases.bin", &n_failed);
    fprintf(stderr, "onnx node cases: %u passed, %u failed\n", n_good, n_failed);
    cr_expect_eq(n_failed, 0);
    cr_expect(n_good >= N_LEAST);
    arena_free(arena);
}

Test(nodes, stored_networks_compute_what_onnxruntime_did, .timeout = 120) {
    enum { N_LEAST = 24 };
    uint32_t n_failed = 0;
    glob_t found;
    cr_assert_eq(glob("tests/models/*.bin", 0, NULL, &found), 0, "no networks");
    cr_assert_geq(found.gl_pathc, N_LEAST);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        arena = arena_new(NULL);
        cr_expect_gt(try_file(found.gl_pathv[i], &n_failed), 0, "%s", found.gl_pathv[i]);
        arena_free(arena);
    }
    cr_expect_eq(n_failed, 0);
    globfree(&found);
}
