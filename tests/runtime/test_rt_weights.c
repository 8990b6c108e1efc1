/* Weights files: a good one, every malformed one by name, and their way into a program. */
#include "../../runtime/src/exec/weights.h"
#include "../fake/fake_mem.h"
#include "../fake/rt_artifact.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct File {
    char bytes[2048];
    size_t n_bytes;
} File;

/* A .safetensors file of this header and n_data bytes 0, 1, 2, ... */
static File make_file(const char *header, size_t n_data) {
    File file = {.n_bytes = 8 + strlen(header) + n_data};
    uint64_t n = strlen(header);
    cr_assert_leq(file.n_bytes, sizeof file.bytes);
    for (int i = 0; i < 8; i++) {
        file.bytes[i] = (char)(n >> 8 * i & 0xff);
    }
    memcpy(file.bytes + 8, header, strlen(header));
    for (size_t i = 0; i < n_data; i++) {
        file.bytes[8 + strlen(header) + i] = (char)i;
    }
    return file;
}

static const char header[] =
    "{\"__metadata__\":{\"by\":\"hand\"},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
    "\"a\":{\"dtype\":\"F16\",\"shape\":[2,4],\"data_offsets\":[0,16]},"
    "\"none\":{\"dtype\":\"I32\",\"shape\":[3,0],\"data_offsets\":[24,24]},"
    "\"odd\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[24,26]}}   ";

Test(rt_weights, a_good_file_is_read) {
    File file = make_file(header, 26);
    Weights *w = NULL;
    frt_error err = FRT_ERROR_INIT;
    cr_assert_eq(weights_parse(file.bytes, file.n_bytes, "f", &w, &err), FRT_OK, "%s", err.message);
    const Weight *a = weights_find(w, "a");
    cr_assert_not_null(a);
    cr_expect(a->rank == 2 && a->dims[0] == 2 && a->dims[1] == 4 && a->n_bytes == 16);
    cr_expect_str_eq(a->dtype, "F16");
    const Weight *b = weights_find(w, "b");
    char first = 0;
    cr_assert(b && weights_read(w, b, 0, &first, 1, &err) == FRT_OK);
    cr_expect_eq(first, 16);
    cr_expect(weights_find(w, "none") && weights_find(w, "none")->n_bytes == 0);
    cr_expect_not_null(weights_find(w, "odd"), "a dtype of no interest is no error");
    cr_expect_null(weights_find(w, "__metadata__"));
    cr_expect_null(weights_find(w, "c"));
    weights_close(w);
    cr_expect_eq(fake_mem_live(), 0);
}

#define ENTRY(dtype, shape, from, to) \
    "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #from "," #to "]}"

static const struct {
    const char *header;
    size_t n_data;
    const char *part;
} bad[] = {
    {"", 0, "not a JSON object"},
    {"[1]", 0, "not a JSON object"},
    {" {}", 0, "not a JSON object"},
    {"{\"a\":", 0, "not valid JSON"},
    {"{}x", 0, "not valid JSON"},
    {"{}", 1, "data after the last tensor"},
    {"{\"a\":3}", 0, "tensor `a` is not {dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "tensor `a` is not {dtype"},
    {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "has no dtype"},
    {"{\"a\":" ENTRY("F32", "-1", 0, 4) "}", 4, "has no shape"},
    {"{\"a\":" ENTRY("F32", "1.5", 0, 4) "}", 4, "has no shape"},
    {"{\"a\":" ENTRY("F32", "1,1,1,1,1,1,1,1,1", 0, 4) "}", 4, "has no shape"},
    {"{\"a\":" ENTRY("F32", "9223372036854775808", 0, 4) "}", 4, "has no shape"},
    {"{\"a\":" ENTRY("F32", "4611686018427387904,4", 0, 4) "}", 4, "do not fit its shape"},
    {"{\"a\":" ENTRY("F32", "2", 0, 4) "}", 4, "do not fit its shape"},
    {"{\"a\":" ENTRY("F32", "1", 4, 0) "}", 4, "ascending"},
    {"{\"a\":" ENTRY("F32", "1", 0, 8) "}", 8, "do not fit its shape"},
    {"{\"a\":" ENTRY("F32", "4", 0, 16) "}", 12,
     "ends at byte 16 of the data, but the file has 12"},
    {"{\"a\":" ENTRY("F32", "1", 0, 4) ",\"a\":" ENTRY("F32", "1", 4, 8) "}", 8, "duplicate"},
    {"{\"a\":" ENTRY("F32", "2", 0, 8) ",\"b\":" ENTRY("F32", "1", 4, 8) "}", 8, "overlaps"},
    {"{\"a\":" ENTRY("F32", "1", 0, 4) ",\"b\":" ENTRY("F32", "1", 8, 12) "}", 12, "hole"},
    {"{\"a\":" ENTRY("F32", "1", 4, 8) "}", 8, "hole"},
    {"{\"a\":" ENTRY("F32", "1", 0, 4) "}", 8, "data after the last tensor"},
    {"{\"__metadata__\":1}", 0, "__metadata__"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "is not {dtype"},
    {"{\"a\":" ENTRY("F32", "1", 0, 4) ",}", 4, "not valid JSON"},
    {"{\"a\":" ENTRY("F32", "1,", 0, 4) "}", 4, "not valid JSON: a value is missing, at byte 31"},
    {"{\"\xff\":" ENTRY("F32", "1", 0, 4) "}", 4, "not valid JSON: a string is not UTF-8"},
};

Test(rt_weights, a_file_without_tensors_is_read) {
    File file = make_file("{}", 0);
    Weights *w = NULL;
    frt_error err = FRT_ERROR_INIT;
    cr_expect_eq(weights_parse(file.bytes, file.n_bytes, "f.st", &w, &err), FRT_OK, "%s",
                 err.message);
    weights_close(w);
}

Test(rt_weights, malformed_files_are_refused_by_name) {
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        File file = make_file(bad[i].header, bad[i].n_data);
        Weights *w = NULL;
        frt_error err = FRT_ERROR_INIT;
        frt_status status = weights_parse(file.bytes, file.n_bytes, "f.st", &w, &err);
        cr_expect_eq(status, FRT_E_WEIGHTS_BAD, "%s: %s", bad[i].header, frt_status_name(status));
        cr_expect(strstr(err.message, bad[i].part) && strstr(err.message, "f.st"),
                  "%s: `%s` lacks `%s`", bad[i].header, err.message, bad[i].part);
        weights_close(w);
    }
    cr_expect_eq(fake_mem_live(), 0);
}

/* A header of `n` tensors without elements; malloc'ed, with its length in front. */
static char *long_file(int n, size_t *n_bytes) {
    enum { ENTRY_BYTES = 80 };
    char *file = calloc((size_t)n * ENTRY_BYTES + 16, 1);
    size_t at = 8;
    for (int i = 0; i < n; i++) {
        at += (size_t)sprintf(file + at,
                              "%c\"t%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
                              i ? ',' : '{', i);
    }
    file[at++] = '}';
    *n_bytes = at;
    for (int i = 0; i < 8; i++) {
        file[i] = (char)((at - 8) >> 8 * i & 0xff);
    }
    return file;
}

/* All memory of a reader comes through mem.h, so a full memory has its own status. */
Test(rt_weights, every_failed_allocation_is_a_status_and_leaks_nothing) {
    size_t n_bytes;
    char *file = long_file(500, &n_bytes);
    frt_status status = FRT_E_OUT_OF_MEMORY;
    long n = 1;
    for (; status; n++) {
        Weights *w = NULL;
        frt_error err = FRT_ERROR_INIT;
        fake_mem_fail_at(n, 0);
        status = weights_parse(file, n_bytes, "f", &w, &err);
        cr_assert_eq(status, fake_mem_failed() ? FRT_E_OUT_OF_MEMORY : FRT_OK, "allocation %ld: %s",
                     n, err.message);
        cr_expect(status || (weights_find(w, "t0") && weights_find(w, "t499")));
        weights_close(w);
        cr_expect_eq(fake_mem_live(), 0);
    }
    cr_expect_gt(n, 5, "%ld allocations", n);
    fake_mem_fail_at(0, 0);
    free(file);
}

Test(rt_weights, lengths_that_lie_are_refused) {
    static const uint64_t lengths[] = {100000001, 1000, UINT64_MAX, (uint64_t)1 << 63,
                                       UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        File file = make_file(header, 26);
        Weights *w = NULL;
        memcpy(file.bytes, &lengths[i], 8);
        cr_expect_eq(weights_parse(file.bytes, file.n_bytes, "f", &w, NULL), FRT_E_WEIGHTS_BAD);
    }
    File file = make_file(header, 26);
    for (size_t n = 0; n < file.n_bytes; n++) {
        Weights *w = NULL;
        char *exact = malloc(n ? n : 1); /* so that a sanitizer sees reads past the end */
        cr_assert_not_null(exact);
        memcpy(exact, file.bytes, n);
        cr_expect_eq(weights_parse(exact, n, "f", &w, NULL), FRT_E_WEIGHTS_BAD, "cut to %zu", n);
        free(exact);
    }
}

static const char manifest[] = "//@ fusec-artifact 1\n"
                               "//@ checksum 00000000\n"
                               "//@ compiler 0.1.0\n"
                               "//@ target cpu x86-64\n"
                               "//@ numerics strict\n"
                               "//@ source m.g\n"
                               "//@ dim N 1 64 1\n"
                               "//@ weights w.safetensors\n"
                               "//@ graph g\n"
                               "//@ param w 0 f32 N = b\n"
                               "//@ param v 0 f16 2 N,2,* = a\n"
                               "//@ output y 0 f32 N\n"
                               "//@ launch run 1 copy w,y N\n"
                               "//@ variant k_copy 1 1 0 -\n"
                               "//@ end\n";
static const char kernel[] = "void k_copy(void *const *a, const long *d, long begin, long end) {\n"
                             "    for (long i = 0; i < d[0] && begin < end; i++)\n"
                             "        ((float *)a[1])[i] = ((const float *)a[0])[i];\n"
                             "}\n";

typedef struct Rig {
    char *folder;
    char artifact_path[128], weights_path[128];
    frt_module *module;
    frt_program *program;
    frt_error err;
} Rig;

static void open_rig(Rig *rig, const char *text) {
    *rig = (Rig){.err = FRT_ERROR_INIT, .folder = rt_folder_make()};
    Artifact artifact = artifact_object(text, kernel, 0);
    File file = make_file(header, 26);
    snprintf(rig->artifact_path, sizeof rig->artifact_path, "%s/m.o", rig->folder);
    snprintf(rig->weights_path, sizeof rig->weights_path, "%s/w.safetensors", rig->folder);
    rt_file_write(rig->artifact_path, artifact.bytes, artifact.n_bytes);
    rt_file_write(rig->weights_path, file.bytes, file.n_bytes);
    artifact_free(&artifact);
    cr_assert_eq(frt_module_load_file(rig->artifact_path, &rig->module, &rig->err), FRT_OK, "%s",
                 rig->err.message);
}

static void close_rig(Rig *rig) {
    frt_program_free(rig->program);
    frt_module_free(rig->module);
    rt_folder_remove(rig->folder);
    cr_expect_eq(fake_mem_live(), 0);
}

Test(rt_weights, params_come_from_the_file_beside_the_artifact_and_fix_dims) {
    Rig rig;
    frt_exec *exec = NULL;
    float y[2] = {0};
    int64_t dims[FRT_MAX_RANK];
    int32_t rank;
    open_rig(&rig, manifest);
    cr_assert_eq(frt_program_create(rig.module, NULL, NULL, &rig.program, &rig.err), FRT_OK, "%s",
                 rig.err.message);
    cr_assert_eq(frt_exec_create(rig.program, &exec, &rig.err), FRT_OK);
    cr_assert_eq(frt_output_shape(exec, "y", dims, &rank, &rig.err), FRT_OK);
    cr_expect(rank == 1 && dims[0] == 2, "N is 2 by the file");
    frt_tensor ty = {.data = y, .dtype = FRT_F32, .rank = 1, .dims = {2}};
    cr_assert_eq(frt_bind(exec, "y", &ty, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    static const unsigned char expected[8] = {16, 17, 18, 19, 20, 21, 22, 23};
    cr_expect_eq(memcmp(y, expected, sizeof y), 0);
    frt_exec_free(exec);
    close_rig(&rig);
}

static void expect_create(const char *text, const frt_program_options *options, frt_status status,
                          const char *part) {
    Rig rig;
    open_rig(&rig, text);
    frt_status got = frt_program_create(rig.module, NULL, options, &rig.program, &rig.err);
    cr_expect_eq(got, status, "%s instead of %s: %s", frt_status_name(got), frt_status_name(status),
                 rig.err.message);
    cr_expect(strstr(rig.err.message, part), "`%s` lacks `%s`", rig.err.message, part);
    close_rig(&rig);
}

Test(rt_weights, params_that_do_not_fit_are_refused_by_name) {
    static const struct {
        const char *from, *to;
        frt_status status;
        const char *part;
    } cases[] = {
        {"f32 N = b", "f32 N = gone", FRT_E_WEIGHTS_MISSING, "param w wants `gone`"},
        {"f32 N = b", "f64 N = b", FRT_E_WEIGHTS_MISMATCH,
         "param w is f64 of rank 1, but `b` in the file is F32[2]"},
        {"f32 N = b", "f32 N N = b", FRT_E_WEIGHTS_MISMATCH, "of rank 2"},
        {"f32 N = b", "f32 3 = b", FRT_E_WEIGHTS_MISMATCH,
         "param w is f32[3], but `b` in the file is F32[2]"},
        {"f16 2 N,2,*", "f16 N N", FRT_E_DIM_CONFLICT,
         "dim N is 2 by param w axis 0 but 4 by param v axis 1"},
        {"f16 2 N,2,*", "f16 2 N,3,*", FRT_E_WEIGHTS_MISMATCH, "param v is f16[2, 6]"},
        {"dim N 1 64 1", "dim N 3 64 1", FRT_E_DIM_RANGE, "param w axis 0"},
        {"w.safetensors", "x.safetensors", FRT_E_WEIGHTS_MISSING, "x.safetensors"},
        {"w.safetensors", "m.o", FRT_E_WEIGHTS_BAD, "m.o"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = text_replace(manifest, cases[i].from, cases[i].to);
        expect_create(text, NULL, cases[i].status, cases[i].part);
        free(text);
    }
}

Test(rt_weights, the_caller_chooses_where_weights_come_from) {
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.base_dir = "/nonexistent";
    expect_create(manifest, &options, FRT_E_WEIGHTS_MISSING,
                  "/nonexistent/w.safetensors, where the artifact has it: weights_path");
    options.weights_path = "/nonexistent/other";
    expect_create(manifest, &options, FRT_E_WEIGHTS_MISSING, "/nonexistent/other");
    options.no_weights = true;
    expect_create(manifest, &options, FRT_OK, "");
}

/* A program of `text` without a file. */
static void open_bare(Rig *rig, const char *text) {
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.no_weights = true;
    open_rig(rig, text);
    cr_assert_eq(frt_program_create(rig->module, NULL, &options, &rig->program, &rig->err), FRT_OK,
                 "%s", rig->err.message);
}

static void expect_param(Rig *rig, const char *name, frt_tensor given, frt_status status,
                         const char *part) {
    rig->err.message[0] = '\0';
    frt_status got = frt_program_set_param_tensor(rig->program, name, &given, &rig->err);
    cr_expect_eq(got, status, "%s instead of %s: %s", frt_status_name(got), frt_status_name(status),
                 rig->err.message);
    cr_expect(strstr(rig->err.message, part), "`%s` lacks `%s`", rig->err.message, part);
}

static void expect_dim(const Rig *rig, frt_status status, int64_t wanted) {
    int64_t value = -1;
    cr_expect_eq(frt_program_get_dim(rig->program, 0, &value), status);
    cr_expect_eq(value, wanted, "N is %lld", (long long)value);
}

static float numbers[64] = {1, 2, 3, 4, 5, 6, 7};

static frt_tensor w_of(int64_t n) {
    return (frt_tensor){.data = numbers, .dtype = FRT_F32, .rank = 1, .dims = {n}};
}

static frt_tensor v_of(int64_t n) {
    return (frt_tensor){.data = numbers, .dtype = FRT_F16, .rank = 2, .dims = {2, n}};
}

Test(rt_weights, a_params_shape_fixes_dims) {
    Rig rig;
    frt_exec *exec = NULL;
    float y[7] = {0};
    open_bare(&rig, manifest);
    expect_dim(&rig, FRT_E_DIM_UNKNOWN, -1);
    cr_expect_eq(frt_program_set_param(rig.program, "w", numbers, 8, &rig.err), FRT_E_DIM_UNKNOWN);
    cr_expect(strstr(rig.err.message, "param w has an extent that no param given so far fixes"));
    expect_param(&rig, "v", v_of(5), FRT_E_SHAPE, "param v axis 1 is 5, which N*2 is for no N");
    expect_dim(&rig, FRT_E_DIM_UNKNOWN, -1);
    expect_param(&rig, "v", v_of(6), FRT_OK, "");
    expect_dim(&rig, FRT_OK, 3);
    expect_param(&rig, "w", w_of(5), FRT_E_SHAPE, /* a bare extent fixes N before others do */
                 "param v axis 1 is 6, but N*2 is 10 (N is 5 by param w axis 0)");
    expect_dim(&rig, FRT_OK, 3);
    expect_param(&rig, "w", w_of(3), FRT_OK, "");
    expect_dim(&rig, FRT_OK, 3);
    cr_assert_eq(frt_exec_create(rig.program, &exec, &rig.err), FRT_OK);
    frt_tensor ty = {.data = y, .dtype = FRT_F32, .rank = 1, .dims = {7}};
    cr_assert_eq(frt_bind(exec, "y", &ty, &rig.err), FRT_OK);
    cr_expect_eq(frt_run(exec, NULL, &rig.err), FRT_E_DIM_CONFLICT);
    cr_expect_str_eq(rig.err.message, "dim N is 3 by param w axis 0 but 7 by output y axis 0");
    expect_param(&rig, "v", v_of(14), FRT_E_SHAPE, "param v axis 1 is 14");
    cr_assert_eq(frt_program_set_param_tensor(rig.program, "v", NULL, &rig.err), FRT_OK);
    expect_param(&rig, "w", w_of(7), FRT_OK, ""); /* a new shape, since none objects */
    cr_expect_eq(frt_run(exec, NULL, &rig.err), FRT_E_WEIGHTS_MISSING);
    expect_param(&rig, "v", v_of(14), FRT_OK, "");
    cr_assert_eq(frt_run(exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(memcmp(y, numbers, sizeof y), 0);
    cr_expect_eq(frt_program_set_param(rig.program, "w", numbers + 1, sizeof y, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(memcmp(y, numbers + 1, sizeof y), 0);
    frt_exec_free(exec);
    close_rig(&rig);
}

Test(rt_weights, params_given_wrongly_are_refused_by_name) {
    Rig rig;
    char *text = text_replace(manifest, "dim N 1 64 1", "dim N 2 64 2");
    open_bare(&rig, text);
    frt_tensor wrong = w_of(4);
    expect_param(&rig, "y", wrong, FRT_E_UNKNOWN_NAME, "graph g has no param y");
    expect_param(&rig, "v", wrong, FRT_E_DTYPE, "param v is f32, but the graph has f16");
    wrong.data = NULL;
    expect_param(&rig, "w", wrong, FRT_E_NULL, "param w is at NULL");
    wrong = w_of(4);
    wrong.rank = 2;
    expect_param(&rig, "w", wrong, FRT_E_SHAPE, "param w has rank 2");
    wrong = v_of(4);
    wrong.dims[0] = 3;
    expect_param(&rig, "v", wrong, FRT_E_SHAPE, "param v axis 0 is 3, but the graph has 2");
    expect_param(&rig, "w", w_of(-1), FRT_E_SHAPE, "param w axis 0 is -1");
    expect_param(&rig, "w", w_of(5), FRT_E_DIM_MULTIPLE, "dim N is 5 by param w axis 0");
    expect_param(&rig, "w", w_of(66), FRT_E_DIM_RANGE, "dim N is 66 by param w axis 0");
    expect_dim(&rig, FRT_E_DIM_UNKNOWN, -1);
    int64_t value;
    cr_expect_eq(frt_program_get_dim(rig.program, 1, &value), FRT_E_INVALID_ARGUMENT);
    close_rig(&rig);
    free(text);
}

Test(rt_weights, two_params_must_agree_about_a_dim) {
    Rig rig;
    char *text = text_replace(manifest, "f16 2 N,2,*", "f16 2 N");
    open_bare(&rig, text);
    expect_param(&rig, "w", w_of(5), FRT_OK, "");
    expect_param(&rig, "v", v_of(4), FRT_E_DIM_CONFLICT,
                 "dim N is 5 by param w axis 0 but 4 by param v axis 1");
    expect_param(&rig, "v", v_of(5), FRT_OK, "");
    expect_param(&rig, "w", w_of(4), FRT_E_DIM_CONFLICT,
                 "dim N is 5 by param v axis 1 but 4 by param w axis 0");
    expect_dim(&rig, FRT_OK, 5);
    close_rig(&rig);
    free(text);
}

/* Runs with w of 3 elements as an input beside the param v, which is then replaced. */
static void run_beside_input(const char *text, const char *message, int64_t n_right) {
    Rig rig;
    frt_exec *exec = NULL;
    float y[3] = {0};
    frt_tensor tw = {.data = numbers, .dtype = FRT_F32, .rank = 1, .dims = {3}}, ty = tw;
    ty.data = y;
    open_rig(&rig, text);
    cr_assert_eq(frt_program_create(rig.module, NULL, NULL, &rig.program, &rig.err), FRT_OK, "%s",
                 rig.err.message);
    cr_assert_eq(frt_exec_create(rig.program, &exec, &rig.err), FRT_OK);
    cr_assert_eq(frt_bind(exec, "w", &tw, &rig.err), FRT_OK);
    cr_assert_eq(frt_bind(exec, "y", &ty, &rig.err), FRT_OK);
    cr_expect_neq(frt_run(exec, NULL, &rig.err), FRT_OK);
    cr_expect_str_eq(rig.err.message, message);
    expect_param(&rig, "v", v_of(n_right), FRT_OK, "");
    cr_expect_eq(frt_run(exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    frt_exec_free(exec);
    close_rig(&rig);
}

Test(rt_weights, inputs_agree_with_the_dims_of_params) {
    char *text = text_replace(manifest, "param w 0 f32 N = b", "input w 0 f32 N");
    run_beside_input(text, "dim N is 2 by param v axis 1 but 3 by input w axis 0", 6);
    free(text);
}

Test(rt_weights, a_params_shape_may_wait_for_inputs) {
    char *input = text_replace(manifest, "param w 0 f32 N = b", "input w 0 f32 N");
    char *text = text_replace(input, "N,2,*", "N,5,max");
    run_beside_input(text, "param v axis 1 is 4, but max(N, 5) is 5 (N is 3 by input w axis 0)", 5);
    free(input);
    free(text);
}

/* A host must not die of what others do to a file that it has opened. */
Test(rt_weights, a_file_that_is_cut_short_while_it_is_read_is_an_error) {
    File file = make_file(header, 26);
    char path[] = "/tmp/fusec-cut-XXXXXX";
    int descriptor = mkstemp(path);
    cr_assert(descriptor >= 0);
    cr_assert_eq(write(descriptor, file.bytes, file.n_bytes), (ssize_t)file.n_bytes);
    frt_error err = FRT_ERROR_INIT;
    Weights *weights = NULL;
    char bytes[16];
    cr_assert_eq(weights_open(path, &weights, &err), FRT_OK, "%s", err.message);
    const Weight *a = weights_find(weights, "a"), *b = weights_find(weights, "b");
    cr_assert(a && b);
    cr_expect_eq(weights_read(weights, b, 4, bytes, 4, &err), FRT_OK, "%s", err.message);
    cr_expect(bytes[0] == 20 && bytes[3] == 23);
    cr_assert_eq(ftruncate(descriptor, (off_t)file.n_bytes - 26 + 16), 0);
    cr_expect_eq(weights_read(weights, a, 0, bytes, 16, &err), FRT_OK, "%s", err.message);
    cr_expect_eq(weights_read(weights, b, 0, bytes, 8, &err), FRT_E_WEIGHTS_BAD);
    cr_expect(strstr(err.message, path) && strstr(err.message, "cut short"), "%s", err.message);
    weights_close(weights);
    close(descriptor);
    remove(path);
}

Test(rt_weights, a_fifo_is_refused_and_not_waited_for, .timeout = 20) {
    frt_error err = FRT_ERROR_INIT;
    Weights *weights = NULL;
    char folder[] = "/tmp/fusec-fifo-XXXXXX", path[64];
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(weights_open(path, &weights, &err), FRT_E_FILE);
    cr_expect(strstr(err.message, "no regular file"), "%s", err.message);
    remove(path);
    remove(folder);
}
