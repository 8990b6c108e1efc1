/* Weights in several files: an index and its files, what may be wrong with them, and their way into
 * a program. */
#include "../../runtime/src/exec/shards.h"
#include "../fake/fake_mem.h"
#include "../fake/rt_artifact.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Folder {
    char *path;
    char index[160];
} Folder;

static void write_part(const Folder *folder, const char *name, const void *bytes, size_t n_bytes) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    rt_file_write(path, bytes, n_bytes);
}

/* A .safetensors file of one tensor, f32[2]. */
static void write_shard(const Folder *folder, const char *name, const char *tensor,
                        const float *values) {
    char bytes[256] = {0};
    int n = snprintf(bytes + 8, sizeof bytes - 8,
                     "{\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", tensor);
    bytes[0] = (char)n;
    memcpy(bytes + 8 + n, values, 8);
    write_part(folder, name, bytes, 16 + (size_t)n);
}

static Folder make_folder(const char *index) {
    static const float one[] = {1, 2}, two[] = {3, 4};
    Folder folder = {.path = rt_folder_make()};
    snprintf(folder.index, sizeof folder.index, "%s/model.safetensors.index.json", folder.path);
    rt_file_write(folder.index, index, strlen(index));
    write_shard(&folder, "one.safetensors", "a", one);
    write_shard(&folder, "two.safetensors", "b", two);
    return folder;
}

static const char index_text[] =
    "{\"metadata\": {\"total_size\": 16},\n"
    " \"weight_map\": {\"b\": \"two.safetensors\", \"a\": \"one.safetensors\"}}\n";

Test(rt_shards, a_tensor_is_found_in_its_file) {
    Folder folder = make_folder(index_text);
    Shards *shards = NULL;
    frt_error err = FRT_ERROR_INIT;
    cr_assert_eq(shards_open(folder.index, &shards, &err), FRT_OK, "%s", err.message);
    static const struct {
        const char *name;
        float first;
    } wanted[] = {{"a", 1}, {"b", 3}};
    for (size_t i = 0; i < 2; i++) {
        const Weights *file = NULL;
        const Weight *weight = NULL;
        float values[2] = {0};
        cr_assert_eq(shards_find(shards, wanted[i].name, &file, &weight, &err), FRT_OK);
        cr_assert_not_null(weight, "%s", wanted[i].name);
        cr_assert_eq(weights_read(file, weight, 0, values, sizeof values, &err), FRT_OK);
        cr_expect_eq(values[0], wanted[i].first, "%s", wanted[i].name);
    }
    const Weights *file = NULL;
    const Weight *weight = NULL;
    cr_expect_eq(shards_find(shards, "c", &file, &weight, &err), FRT_OK);
    cr_expect_null(weight);
    shards_close(shards);
    rt_folder_remove(folder.path);
    cr_expect_eq(fake_mem_live(), 0);
}

Test(rt_shards, what_is_wrong_is_told) {
    static const struct {
        const char *index;
        frt_status status;
        const char *part;
    } cases[] = {
        {"", FRT_E_WEIGHTS_BAD, "index.json"},
        {"[1]", FRT_E_WEIGHTS_BAD, "no JSON object"},
        {"{\"metadata\": {}}", FRT_E_WEIGHTS_BAD, "weight_map"},
        {"{\"weight_map\": {}, \"weight_map\": {}}", FRT_E_WEIGHTS_BAD, "two weight_maps"},
        {"{\"weight_map\": []}", FRT_E_WEIGHTS_BAD, "is no object"},
        {"{\"weight_map\": {}} x", FRT_E_WEIGHTS_BAD, "weight_map"},
        {"{\"weight_map\": {\"a\": 1}}", FRT_E_WEIGHTS_BAD, "no file in its own folder"},
        {"{\"weight_map\": {\"a\": \"../one.safetensors\"}}", FRT_E_WEIGHTS_BAD,
         "no file in its own folder"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\", \"a\": \"two.safetensors\"}}",
         FRT_E_WEIGHTS_BAD, "`a` is there twice"},
        {"{\"weight_map\": {\"a\": \"none.safetensors\"}}", FRT_E_FILE, "none.safetensors"},
        {"{\"weight_map\": {\"a\": \"model.safetensors.index.json\"}}", FRT_E_WEIGHTS_BAD,
         "index.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Folder folder = make_folder(cases[i].index);
        Shards *shards = NULL;
        frt_error err = FRT_ERROR_INIT;
        cr_expect_eq(shards_open(folder.index, &shards, &err), cases[i].status, "case %zu: %s", i,
                     err.message);
        cr_expect(strstr(err.message, cases[i].part), "`%s` lacks `%s`", err.message,
                  cases[i].part);
        rt_folder_remove(folder.path);
        cr_expect_eq(fake_mem_live(), 0, "case %zu", i);
    }
}

Test(rt_shards, a_file_that_lacks_its_tensor_is_told) {
    Folder folder = make_folder("{\"weight_map\": {\"a\": \"two.safetensors\"}}");
    Shards *shards = NULL;
    const Weights *file = NULL;
    const Weight *weight = NULL;
    frt_error err = FRT_ERROR_INIT;
    cr_assert_eq(shards_open(folder.index, &shards, &err), FRT_OK, "%s", err.message);
    cr_expect_eq(shards_find(shards, "a", &file, &weight, &err), FRT_E_WEIGHTS_BAD);
    cr_expect(strstr(err.message, "`a` is not in two.safetensors"), "%s", err.message);
    shards_close(shards);
    rt_folder_remove(folder.path);
}

Test(rt_shards, every_failed_allocation_is_a_status_and_leaks_nothing) {
    Folder folder = make_folder(index_text);
    frt_status status = FRT_E_OUT_OF_MEMORY;
    long n = 1;
    for (; status; n++) {
        Shards *shards = NULL;
        frt_error err = FRT_ERROR_INIT;
        fake_mem_fail_at(n, 0);
        status = shards_open(folder.index, &shards, &err);
        cr_assert_eq(status, fake_mem_failed() ? FRT_E_OUT_OF_MEMORY : FRT_OK, "allocation %ld: %s",
                     n, err.message);
        if (!status) shards_close(shards);
        cr_expect_eq(fake_mem_live(), 0, "allocation %ld", n);
    }
    cr_expect_gt(n, 8, "%ld allocations", n);
    fake_mem_fail_at(0, 0);
    rt_folder_remove(folder.path);
}

static const char manifest[] = "//@ fusec-artifact 1\n"
                               "//@ checksum 00000000\n"
                               "//@ compiler 0.1.0\n"
                               "//@ target cpu x86-64\n"
                               "//@ numerics strict\n"
                               "//@ source m.g\n"
                               "//@ weights model.safetensors.index.json\n"
                               "//@ graph g\n"
                               "//@ param w 0 f32 2 = b\n"
                               "//@ output y 0 f32 2\n"
                               "//@ launch run 1 copy w,y -\n"
                               "//@ variant k_copy 1 1 0 -\n"
                               "//@ end\n";
static const char kernel[] = "void k_copy(void *const *a, const long *d, long begin, long end) {\n"
                             "    for (long i = 0; i < 2 && begin < end; i++)\n"
                             "        ((float *)a[1])[i] = ((const float *)a[0])[i];\n"
                             "    (void)d;\n}\n";

Test(rt_shards, a_program_takes_its_params_from_several_files) {
    Folder folder = make_folder(index_text);
    Artifact artifact = artifact_object(manifest, kernel, 0);
    char path[160];
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    frt_error err = FRT_ERROR_INIT;
    float y[2] = {0};
    frt_tensor t = {.data = y, .dtype = FRT_F32, .rank = 1, .dims = {2}};
    snprintf(path, sizeof path, "%s/m.o", folder.path);
    rt_file_write(path, artifact.bytes, artifact.n_bytes);
    artifact_free(&artifact);
    cr_assert_eq(frt_module_load_file(path, &module, &err), FRT_OK, "%s", err.message);
    cr_assert_eq(frt_program_create(module, NULL, NULL, &program, &err), FRT_OK, "%s", err.message);
    cr_assert_eq(frt_exec_create(program, &exec, &err), FRT_OK);
    cr_assert_eq(frt_bind(exec, "y", &t, &err), FRT_OK);
    cr_assert_eq(frt_run(exec, NULL, &err), FRT_OK, "%s", err.message);
    cr_expect(y[0] == 3 && y[1] == 4, "%g, %g", (double)y[0], (double)y[1]);
    frt_exec_free(exec);
    frt_program_free(program);
    frt_module_free(module);
    rt_folder_remove(folder.path);
    cr_expect_eq(fake_mem_live(), 0);
}
