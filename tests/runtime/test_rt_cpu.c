/* The runtime on the CPU: objects made by the system's C compiler, loaded, bound and run; every
 * refusal with its status and what its message must name. */
#include "../fake/fake_mem.h"
#include "../fake/rt_artifact.h"

#include <criterion/criterion.h>
#include <fusert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static const char kernel_source[] =
    "typedef long i64;\n"
    "static const float table[4] = {0.5f, 1.5f, 2.5f, 3.5f};\n"
    "const float *const indirect[2] = {table, table + 2};\n"
    "static float pick(i64 i) { return indirect[i / 2 % 2][i % 2]; }\n"
    "/* y[b][k] = x[b][k] * 2 + table[k % 4], through the workspace */\n"
    "void k_scale(void *const *a, const i64 *d, i64 begin, i64 end) {\n"
    "    const float *x = a[0]; float *t = a[1];\n"
    "    for (i64 i = begin * d[1]; i < end * d[1]; i++) t[i] = x[i] * 2.0f;\n"
    "}\n"
    "void k_add(void *const *a, const i64 *d, i64 begin, i64 end) {\n"
    "    const float *t = a[0]; float *y = a[1];\n"
    "    for (i64 i = begin * d[1]; i < end * d[1]; i++) y[i] = t[i] + pick(i % d[1]);\n"
    "}\n"
    "void k_add4(void *const *a, const i64 *d, i64 begin, i64 end) { k_add(a, d, begin, end); }\n";

static const char manifest[] = "//@ fusec-artifact 1\n"
                               "//@ checksum 00000000\n"
                               "//@ compiler 0.1.0\n"
                               "//@ target cpu x86-64\n"
                               "//@ numerics strict\n"
                               "//@ source scale.g\n"
                               "//@ dim B 0 4096 1\n"
                               "//@ dim K 2 512 2\n"
                               "//@ graph scale\n"
                               "//@ input x 0 f32 B K\n"
                               "//@ input s 0 i32\n"
                               "//@ output y 0 f32 B K\n"
                               "//@ output z 0 f32 B K,2,*\n"
                               "//@ temp t 0 f32 256 B K\n"
                               "//@ workspace B,K,*,4,*,256,+\n"
                               "//@ launch run 3 scale x,t B,K\n"
                               "//@ variant k_scale B 1 0 -\n"
                               "//@ launch run 4 add t,y B,K\n"
                               "//@ variant k_add4 B 1 0 m:K:4&a1:16\n"
                               "//@ variant k_add B 1 0 -\n"
                               "//@ copy run z y B,K,*,4,*\n"
                               "//@ end\n";

typedef struct Rig {
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    frt_error err;
    float x[64 * 16], y[64 * 16], z[64 * 32];
    int32_t s;
} Rig;

static frt_tensor matrix(void *data, int64_t rows, int64_t columns) {
    return (frt_tensor){.data = data, .dtype = FRT_F32, .rank = 2, .dims = {rows, columns}};
}

static void bind_all(Rig *rig, int64_t b, int64_t k) {
    frt_tensor x = matrix(rig->x, b, k);
    frt_tensor y = matrix(rig->y, b, k);
    frt_tensor z = matrix(rig->z, b, 2 * k);
    frt_tensor s = {.data = &rig->s, .dtype = FRT_I32};
    cr_assert_eq(frt_bind(rig->exec, "x", &x, &rig->err), FRT_OK, "%s", rig->err.message);
    cr_assert_eq(frt_bind(rig->exec, "y", &y, &rig->err), FRT_OK, "%s", rig->err.message);
    cr_assert_eq(frt_bind(rig->exec, "z", &z, &rig->err), FRT_OK, "%s", rig->err.message);
    cr_assert_eq(frt_bind(rig->exec, "s", &s, &rig->err), FRT_OK, "%s", rig->err.message);
}

static float expected(const Rig *rig, int64_t i, int64_t k) {
    static const float table[] = {0.5f, 1.5f, 2.5f, 3.5f};
    return rig->x[i] * 2.0f + table[i % k % 4];
}

static void expect_results(const Rig *rig, int64_t b, int64_t k) {
    for (int64_t i = 0; i < b * k; i++) {
        cr_assert(rig->y[i] == expected(rig, i, k), "y[%ld] = %g, not %g", (long)i,
                  (double)rig->y[i], (double)expected(rig, i, k));
        cr_assert(rig->z[i] == rig->y[i], "z[%ld] was not copied", (long)i);
    }
}

static void rig_open(Rig *rig, Artifact artifact, const frt_program_options *options) {
    *rig = (Rig){.err = FRT_ERROR_INIT};
    for (int i = 0; i < 64 * 16; i++) {
        rig->x[i] = (float)(i % 97) - 48.0f;
    }
    cr_assert_eq(frt_module_load_memory(artifact.bytes, artifact.n_bytes, &rig->module, &rig->err),
                 FRT_OK, "%s", rig->err.message);
    cr_assert_eq(frt_program_create(rig->module, NULL, options, &rig->program, &rig->err), FRT_OK,
                 "%s", rig->err.message);
    cr_assert_eq(frt_exec_create(rig->program, &rig->exec, &rig->err), FRT_OK);
}

/* Freed in the order that is hardest for reference counts. */
static void rig_close(Rig *rig) {
    frt_module_free(rig->module);
    frt_program_free(rig->program);
    frt_exec_free(rig->exec);
    cr_expect_eq(fake_mem_live(), 0, "%ld blocks leaked", fake_mem_live());
}

Test(rt_cpu, object_and_shared_object_run_for_every_size) {
    static const int64_t sizes[][2] = {{1, 2},   {0, 2}, {3, 4},   {63, 14},
                                       {64, 16}, {2, 2}, {300, 2}, {129, 2}};
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        Artifact artifact = artifact_object(manifest, kernel_source, is_shared);
        Rig rig;
        rig_open(&rig, artifact, NULL);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            bind_all(&rig, sizes[i][0], sizes[i][1]);
            memset(rig.y, 0xff, sizeof rig.y);
            cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
            expect_results(&rig, sizes[i][0], sizes[i][1]);
            for (int64_t k = sizes[i][0] * sizes[i][1]; k < 64 * 16; k++) {
                cr_assert(rig.y[k] != rig.y[k], "y[%ld] behind the output was written", (long)k);
            }
            int is_four = sizes[i][1] % 4 == 0 && (uintptr_t)rig.y % 16 == 0;
            cr_expect_eq(frt_exec_variant(rig.exec, 1), is_four ? 0 : 1);
        }
        rig_close(&rig);
        artifact_free(&artifact);
    }
}

Test(rt_cpu, two_shared_objects_live_side_by_side) {
    char *other = text_replace(kernel_source, "* 2.0f", "* 4.0f");
    Artifact first = artifact_object(manifest, kernel_source, 1);
    Artifact second = artifact_object(manifest, other, 1);
    Rig a;
    Rig b;
    rig_open(&a, first, NULL);
    rig_open(&b, second, NULL);
    bind_all(&a, 2, 4);
    bind_all(&b, 2, 4);
    cr_assert_eq(frt_run(a.exec, NULL, &a.err), FRT_OK);
    cr_assert_eq(frt_run(b.exec, NULL, &b.err), FRT_OK);
    expect_results(&a, 2, 4);
    cr_expect(b.y[1] == b.x[1] * 4.0f + 1.5f);
    frt_exec_free(a.exec);
    frt_program_free(a.program);
    frt_module_free(a.module);
    rig_close(&b);
    artifact_free(&first);
    artifact_free(&second);
    free(other);
}

Test(rt_cpu, threads_and_callers_loop_change_no_bit) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    for (int n_threads = 1; n_threads <= 5; n_threads++) {
        frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
        options.n_threads = n_threads;
        Rig rig;
        rig_open(&rig, artifact, &options);
        cr_expect_eq(frt_program_n_threads(rig.program), n_threads);
        bind_all(&rig, 61, 16);
        for (int i = 0; i < 200; i++) {
            memset(rig.y, 0xff, sizeof rig.y);
            cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
            expect_results(&rig, 61, 16);
        }
        rig_close(&rig);
    }
    artifact_free(&artifact);
}

static void backwards(void *ctx, int64_t n, frt_parallel_body body, void *body_ctx) {
    *(int64_t *)ctx += n;
    while (n-- > 0) {
        body(body_ctx, n);
    }
}

/* One run for (b, k): the caller's parallel_for gets so many chunks, and the results are right. */
static void expect_chunks(const char *text, int32_t n_threads, int64_t b, int64_t k,
                          int64_t n_wanted, const char *what) {
    Artifact artifact = artifact_object(text, kernel_source, 0);
    int64_t n_chunks = 0;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.parallel_for = backwards;
    options.parallel_ctx = &n_chunks;
    options.n_threads = n_threads;
    Rig rig;
    rig_open(&rig, artifact, &options);
    bind_all(&rig, b, k);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    expect_results(&rig, b, k);
    cr_expect_eq(n_chunks, n_wanted, "%s", what);
    rig_close(&rig);
    artifact_free(&artifact);
}

Test(rt_cpu, callers_parallel_for_gets_every_chunk) {
    expect_chunks(manifest, 4, 64, 16, 128, "two launches of 64 units");
    expect_chunks(manifest, 4, 512, 2, 128, "units in chunks of 8");
    expect_chunks(manifest, 1, 512, 2, 2, "whole launches");
}

static void expect_bind(Rig *rig, const char *name, frt_tensor tensor, frt_status status,
                        const char *part) {
    frt_status got = frt_bind(rig->exec, name, &tensor, &rig->err);
    cr_expect_eq(got, status, "%s: %s instead of %s", name, frt_status_name(got),
                 frt_status_name(status));
    cr_expect(strstr(rig->err.message, part), "`%s` lacks `%s`", rig->err.message, part);
}

Test(rt_cpu, bad_bindings_are_refused_by_name) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    Rig rig;
    rig_open(&rig, artifact, NULL);
    frt_tensor f16 = {.data = rig.x, .dtype = FRT_F16, .rank = 2, .dims = {2, 4}};
    frt_tensor odd = matrix((char *)rig.x + 2, 2, 4);
    frt_tensor rank1 = {.data = rig.x, .dtype = FRT_F32, .rank = 1, .dims = {4}};
    frt_tensor unknown = {.data = rig.x, .dtype = (frt_dtype)77, .rank = 2, .dims = {2, 4}};
    expect_bind(&rig, "q", matrix(rig.x, 2, 4), FRT_E_UNKNOWN_NAME, "q");
    expect_bind(&rig, "t", matrix(rig.x, 2, 4), FRT_E_UNKNOWN_NAME, "temp");
    expect_bind(&rig, "x", f16, FRT_E_DTYPE, "input x is f16, but the graph has f32");
    expect_bind(&rig, "x", unknown, FRT_E_DTYPE, "no known dtype");
    expect_bind(&rig, "x", rank1, FRT_E_SHAPE, "input x has rank 1");
    expect_bind(&rig, "x", matrix(rig.x, -2, 4), FRT_E_SHAPE, "axis 0 is -2");
    expect_bind(&rig, "x", matrix(rig.x, INT64_MAX, 4), FRT_E_SHAPE, "input x axis");
    expect_bind(&rig, "x", matrix(NULL, 2, 4), FRT_E_NULL, "input x is at NULL");
    expect_bind(&rig, "x", odd, FRT_E_ALIGNMENT, "4-byte");
    rig_close(&rig);
    artifact_free(&artifact);
}

static void expect_run(Rig *rig, frt_status status, const char *part) {
    frt_status got = frt_run(rig->exec, NULL, &rig->err);
    cr_expect_eq(got, status, "%s instead of %s: %s", frt_status_name(got), frt_status_name(status),
                 rig->err.message);
    cr_expect(strstr(rig->err.message, part), "`%s` lacks `%s`", rig->err.message, part);
    cr_expect_eq(frt_exec_variant(rig->exec, 1), -1);
    /* The exec survives every refusal. */
    bind_all(rig, 3, 4);
    cr_assert_eq(frt_run(rig->exec, NULL, &rig->err), FRT_OK, "%s", rig->err.message);
    expect_results(rig, 3, 4);
}

static void rebind(Rig *rig, const char *name, frt_tensor tensor) {
    cr_assert_eq(frt_bind(rig->exec, name, &tensor, &rig->err), FRT_OK, "%s", rig->err.message);
}

Test(rt_cpu, bad_dims_are_refused_by_name_and_the_exec_goes_on) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    Rig rig;
    rig_open(&rig, artifact, NULL);
    frt_tensor x = matrix(rig.x, 3, 4);
    rebind(&rig, "x", x);
    expect_run(&rig, FRT_E_UNBOUND, "input s of graph scale is not bound");
    rebind(&rig, "y", matrix(rig.y, 4, 4));
    expect_run(&rig, FRT_E_DIM_CONFLICT, "dim B is 3 by input x axis 0 but 4 by output y axis 0");
    rebind(&rig, "x", matrix(rig.x, 3, 5));
    expect_run(&rig, FRT_E_DIM_MULTIPLE, "dim K is 5 by input x axis 1");
    rebind(&rig, "x", matrix(rig.x, 3, 0));
    expect_run(&rig, FRT_E_DIM_RANGE, "dim K is 0 by input x axis 1, outside its range 2 to 512");
    rebind(&rig, "z", matrix(rig.z, 3, 9));
    expect_run(&rig, FRT_E_SHAPE, "output z axis 1 is 9, but K*2 is 8");
    rebind(&rig, "y", x);
    expect_run(&rig, FRT_E_OVERLAP, "output y shares memory with input x");
    rebind(&rig, "z", matrix(rig.y + 11, 3, 8));
    expect_run(&rig, FRT_E_OVERLAP, "output z shares memory with output y");
    cr_expect_eq(frt_set_dim(rig.exec, "Q", 3, &rig.err), FRT_E_UNKNOWN_NAME);
    cr_expect_eq(frt_set_dim(rig.exec, "K", 3, &rig.err), FRT_E_DIM_MULTIPLE);
    cr_expect_eq(frt_set_dim(rig.exec, "B", -1, &rig.err), FRT_E_DIM_RANGE);
    cr_expect_eq(frt_set_dim(rig.exec, "B", 7, &rig.err), FRT_OK);
    cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_E_DIM_CONFLICT);
    cr_expect(strstr(rig.err.message, "dim B is 7 by the caller but 3 by input x axis 0"));
    rig_close(&rig);
    artifact_free(&artifact);
}

Test(rt_cpu, output_shapes_and_workspace_follow_the_inputs) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    Rig rig;
    int64_t dims[FRT_MAX_RANK];
    int32_t rank = -1;
    size_t n_bytes = 0;
    rig_open(&rig, artifact, NULL);
    cr_expect_eq(frt_output_shape(rig.exec, "z", dims, &rank, &rig.err), FRT_E_DIM_UNKNOWN);
    cr_expect(strstr(rig.err.message, "output z axis 0 needs dim B"), "%s", rig.err.message);
    rebind(&rig, "x", matrix(rig.x, 5, 6));
    cr_assert_eq(frt_output_shape(rig.exec, "z", dims, &rank, &rig.err), FRT_OK);
    cr_expect(rank == 2 && dims[0] == 5 && dims[1] == 12);
    cr_assert_eq(frt_exec_workspace_bytes(rig.exec, &n_bytes, &rig.err), FRT_OK);
    cr_expect_eq(n_bytes, 5 * 6 * 4 + 256);
    bind_all(&rig, 5, 6);

    char *memory = aligned_alloc(256, 1024);
    cr_assert_not_null(memory);
    cr_expect_eq(frt_exec_set_workspace(rig.exec, NULL, 8, &rig.err), FRT_E_NULL);
    cr_expect_eq(frt_exec_set_workspace(rig.exec, memory + 4, 512, &rig.err), FRT_E_ALIGNMENT);
    cr_assert_eq(frt_exec_set_workspace(rig.exec, memory, n_bytes - 1, &rig.err), FRT_OK);
    cr_expect_eq(frt_prepare(rig.exec, &rig.err), FRT_E_WORKSPACE);
    cr_expect(strstr(rig.err.message, "375 bytes, but 376"), "%s", rig.err.message);
    cr_assert_eq(frt_exec_set_workspace(rig.exec, memory, n_bytes, &rig.err), FRT_OK);
    memset(memory, 0x5a, 1024);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    expect_results(&rig, 5, 6);
    for (size_t i = n_bytes; i < 1024; i++) {
        cr_assert_eq(memory[i], 0x5a, "byte %zu after the workspace was written", i);
    }
    cr_assert_eq(frt_exec_set_workspace(rig.exec, NULL, 0, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    free(memory);
    rig_close(&rig);
    artifact_free(&artifact);
}

static void expect_create(const char *text, const char *source, frt_status status,
                          const char *part) {
    Artifact artifact = artifact_object(text, source, 0);
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program *program = NULL;
    cr_assert_eq(frt_module_load_memory(artifact.bytes, artifact.n_bytes, &module, &err), FRT_OK,
                 "%s", err.message);
    frt_status got = frt_program_create(module, NULL, NULL, &program, &err);
    cr_expect_eq(got, status, "%s instead of %s", frt_status_name(got), frt_status_name(status));
    cr_expect(strstr(err.message, part), "`%s` lacks `%s`", err.message, part);
    cr_expect_null(program);
    frt_program_free(program);
    frt_module_free(module);
    cr_expect_eq(fake_mem_live(), 0);
    artifact_free(&artifact);
}

Test(rt_cpu, code_that_cannot_be_loaded_is_refused) {
    char *missing = text_replace(manifest, "variant k_add ", "variant k_gone ");
    expect_create(missing, kernel_source, FRT_E_CODE, "no kernel `k_gone`");
    free(missing);
    char *undefined = text_replace(kernel_source, "t[i] = x[i] * 2.0f", "t[i] = outside(x[i])");
    char *declared = text_replace(undefined, "typedef", "float outside(float);\ntypedef");
    expect_create(manifest, declared, FRT_E_CODE, "needs symbol `outside`");
    free(undefined);
    free(declared);
    char *writable = text_replace(kernel_source, "typedef",
                                  "int counter = 3; int *next(void) { return &counter; }\ntypedef");
    expect_create(manifest, writable, FRT_E_CODE, "section .data");
    free(writable);
    char *local =
        text_replace(kernel_source, "void k_add4(", "__attribute__((used)) static void k_add4(");
    expect_create(manifest, local, FRT_E_CODE, "no kernel `k_add4`");
    free(local);
    char *arch = text_replace(manifest, "cpu x86-64\n", "cpu quark1000\n");
    expect_create(arch, kernel_source, FRT_E_HOST_CPU, "quark1000");
    free(arch);
    char *feature = text_replace(manifest, "cpu x86-64\n", "cpu x86-64 popcnt,warp9\n");
    expect_create(feature, kernel_source, FRT_E_HOST_CPU, "warp9");
    free(feature);
}

Test(rt_cpu, bad_options_and_names_are_refused) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program *program = NULL;
    cr_assert_eq(frt_module_load_memory(artifact.bytes, artifact.n_bytes, &module, &err), FRT_OK);
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.n_threads = -1;
    cr_expect_eq(frt_program_create(module, NULL, &options, &program, &err),
                 FRT_E_INVALID_ARGUMENT);
    options.n_threads = 0;
    options.struct_size = 1 << 20;
    cr_expect_eq(frt_program_create(module, NULL, &options, &program, &err),
                 FRT_E_INVALID_ARGUMENT);
    cr_expect_eq(frt_program_create(module, "other", NULL, &program, &err), FRT_E_UNKNOWN_NAME);
    cr_expect(strstr(err.message, "other"));
    cr_expect_eq(frt_program_create(NULL, NULL, NULL, &program, &err), FRT_E_INVALID_ARGUMENT);
    cr_expect_eq(frt_module_load_file("/nonexistent/a.o", &module, &err), FRT_E_FILE);
    cr_expect(strstr(err.message, "/nonexistent/a.o"));
    cr_expect_eq(frt_module_load_file("/tmp", &module, &err), FRT_E_FILE);
    frt_module_free(module);
    cr_expect_eq(fake_mem_live(), 0);
    artifact_free(&artifact);
}

#if defined(__x86_64__)
/* 2^-127 is subnormal: flushed to zero unless the kernel runs with the default state. */
Test(rt_cpu, kernels_see_default_floating_point_and_the_caller_keeps_its_own) {
    static const unsigned states[] = {0x1f80, 0x9fc0, 0x3f80, 0x5f80, 0x7f80, 0xffc0};
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    for (int n_threads = 1; n_threads < 4; n_threads += 2) {
        for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
            frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
            Rig rig;
            options.n_threads = n_threads;
            _mm_setcsr(states[i]);
            rig_open(&rig, artifact, &options);
            bind_all(&rig, 64, 2);
            uint32_t tiny = 0x00400000;
            memcpy(&rig.x[0], &tiny, sizeof tiny);
            rig.x[1] = 1e-9f;
            frt_status status = frt_run(rig.exec, NULL, &rig.err);
            unsigned after = _mm_getcsr();
            _mm_setcsr(0x1f80);
            uint32_t doubled;
            cr_assert_eq(status, FRT_OK);
            memcpy(&doubled, &rig.z[1], sizeof doubled);
            cr_expect_eq(after & 0xffc0, states[i] & 0xffc0, "state %x became %x", states[i],
                         after);
            cr_expect(rig.y[1] == 1.5f, "rounded up: %.9g", (double)rig.y[1]);
            rig_close(&rig);
        }
    }
    artifact_free(&artifact);
}
#endif

typedef struct Worker {
    frt_program *program;
    int n_bad;
} Worker;

static void *work(void *arg) {
    Worker *worker = arg;
    Rig rig = {.err = FRT_ERROR_INIT, .program = worker->program};
    if (frt_exec_create(worker->program, &rig.exec, &rig.err)) {
        worker->n_bad++;
        return NULL;
    }
    for (int i = 0; i < 64 * 16; i++) {
        rig.x[i] = (float)i;
    }
    for (int i = 0; i < 300; i++) {
        bind_all(&rig, 1 + i % 60, 2 + i % 7 * 2);
        worker->n_bad += frt_run(rig.exec, NULL, &rig.err) != FRT_OK;
        expect_results(&rig, 1 + i % 60, 2 + i % 7 * 2);
    }
    frt_exec_free(rig.exec);
    return NULL;
}

Test(rt_cpu, execs_of_one_program_run_in_many_threads) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.n_threads = 3;
    Rig rig;
    rig_open(&rig, artifact, &options);
    pthread_t threads[4];
    Worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (Worker){rig.program, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(workers[i].n_bad, 0);
    }
    rig_close(&rig);
    artifact_free(&artifact);
}

/* y[b] = x[b] + p[b % 1000], where p = w * 2 is prepared. */
static const char prepared_source[] =
    "typedef long i64;\n"
    "void k_twice(void *const *a, const i64 *d, i64 begin, i64 end) {\n"
    "    const float *w = a[0]; float *p = a[1]; (void)d;\n"
    "    for (i64 i = begin; i < end; i++) p[i] = w[i] * 2.0f;\n"
    "}\n"
    "void k_add(void *const *a, const i64 *d, i64 begin, i64 end) {\n"
    "    const float *x = a[0], *p = a[1]; float *y = a[2]; (void)d;\n"
    "    for (i64 i = begin; i < end; i++) y[i] = x[i] + p[i % 1000];\n"
    "}\n";

static const char prepared_manifest[] = "//@ fusec-artifact 1\n"
                                        "//@ checksum 00000000\n"
                                        "//@ compiler 0.1.0\n"
                                        "//@ target cpu x86-64\n"
                                        "//@ numerics strict\n"
                                        "//@ source add.g\n"
                                        "//@ dim B 0 4096 1\n"
                                        "//@ graph add\n"
                                        "//@ input x 0 f32 B\n"
                                        "//@ param w 0 f32 1000\n"
                                        "//@ output y 0 f32 B\n"
                                        "//@ temp p 0 f32 - 1000\n"
                                        "//@ launch init 3 twice w,p -\n"
                                        "//@ variant k_twice 1000 1 0 -\n"
                                        "//@ launch run 4 add x,p,y -\n"
                                        "//@ variant k_add B 1 0 -\n"
                                        "//@ end\n";

enum { N_ADDED = 1500 };

typedef struct Adder {
    frt_program *program;
    float factor; /* of w: what p must be twice of */
    int n_bad;
} Adder;

static void *add_many(void *ctx) {
    Adder *adder = ctx;
    frt_error err = FRT_ERROR_INIT;
    frt_exec *exec = NULL;
    float x[N_ADDED];
    float y[N_ADDED];
    frt_tensor tx = {.data = x, .dtype = FRT_F32, .rank = 1, .dims = {N_ADDED}};
    frt_tensor ty = {.data = y, .dtype = FRT_F32, .rank = 1, .dims = {N_ADDED}};
    for (int i = 0; i < N_ADDED; i++) {
        x[i] = (float)i;
    }
    adder->n_bad += frt_exec_create(adder->program, &exec, &err) != FRT_OK ||
                    frt_bind(exec, "x", &tx, &err) != FRT_OK ||
                    frt_bind(exec, "y", &ty, &err) != FRT_OK;
    for (int run = 0; run < 5 && !adder->n_bad; run++) {
        adder->n_bad += frt_run(exec, NULL, &err) != FRT_OK;
        for (int i = 0; i < N_ADDED; i++) {
            adder->n_bad += y[i] != x[i] + (float)(i % 1000) * adder->factor * 2.0f;
        }
    }
    frt_exec_free(exec);
    return NULL;
}

Test(rt_cpu, init_steps_run_once_whichever_thread_comes_first) {
    Artifact artifact = artifact_object(prepared_manifest, prepared_source, 0);
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    FRT_INFO(frt_init_info, init);
    options.n_threads = 2;
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_error err = FRT_ERROR_INIT;
    cr_assert_eq(frt_module_load_memory(artifact.bytes, artifact.n_bytes, &module, &err), FRT_OK);
    cr_assert_eq(frt_program_create(module, NULL, &options, &program, &err), FRT_OK, "%s",
                 err.message);
    for (int round = 1; round <= 20; round++) {
        float w[1000];
        pthread_t threads[4];
        Adder adders[4];
        for (int i = 0; i < 1000; i++) {
            w[i] = (float)(i * round);
        }
        cr_assert_eq(frt_program_set_param(program, "w", w, sizeof w, &err), FRT_OK);
        for (int i = 0; i < 4; i++) {
            adders[i] = (Adder){program, (float)round, 0};
            cr_assert_eq(pthread_create(&threads[i], NULL, add_many, &adders[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            cr_expect_eq(adders[i].n_bad, 0);
        }
        cr_assert_eq(frt_program_get_init(program, &init), FRT_OK);
        cr_expect(init.n_steps == 1 && init.n_runs == round && init.kept_bytes == 4000 &&
                  init.passing_bytes == 0);
    }
    frt_program_free(program);
    frt_module_free(module);
    cr_expect_eq(fake_mem_live(), 0);
    artifact_free(&artifact);
}

Test(rt_cpu, times_are_taken_per_run_and_per_step) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    Rig rig;
    float ms[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    rig_open(&rig, artifact, NULL);
    bind_all(&rig, 64, 16);
    cr_assert_eq(frt_time_runs(rig.exec, NULL, 8, ms, &rig.err), FRT_OK);
    for (int i = 0; i < 8; i++) {
        cr_expect(ms[i] > 0.0f, "run %d took %g ms", i, (double)ms[i]);
    }
    cr_assert_eq(frt_time_launches(rig.exec, NULL, 7, ms, &rig.err), FRT_OK);
    cr_expect(ms[0] > 0.0f && ms[1] > 0.0f && ms[2] > 0.0f);
    cr_expect_eq(frt_time_runs(rig.exec, NULL, 0, ms, &rig.err), FRT_E_INVALID_ARGUMENT);
    rig_close(&rig);
    artifact_free(&artifact);
}

static frt_status scenario(Artifact artifact, Rig *rig) {
    *rig = (Rig){.err = FRT_ERROR_INIT};
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.n_threads = 2;
    frt_status status =
        frt_module_load_memory(artifact.bytes, artifact.n_bytes, &rig->module, &rig->err);
    if (!status) {
        status = frt_program_create(rig->module, NULL, &options, &rig->program, &rig->err);
    }
    if (!status) {
        status = frt_exec_create(rig->program, &rig->exec, &rig->err);
    }
    if (!status) {
        bind_all(rig, 5, 4);
        status = frt_run(rig->exec, NULL, &rig->err);
    }
    return status;
}

Test(rt_cpu, every_failed_allocation_is_a_status_and_leaks_nothing) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    long n_failures = 0;
    for (long n = 1;; n++) {
        Rig rig;
        fake_mem_fail_at(n, 0);
        frt_status status = scenario(artifact, &rig);
        if (!fake_mem_failed()) {
            cr_expect_eq(status, FRT_OK);
            fake_mem_fail_at(0, 0);
            rig_close(&rig);
            break;
        }
        n_failures++;
        cr_expect_eq(status, FRT_E_OUT_OF_MEMORY, "allocation %ld: %s", n, frt_status_name(status));
        fake_mem_fail_at(0, 0);
        if (rig.exec) {
            cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "the same call works later");
            expect_results(&rig, 5, 4);
        }
        rig_close(&rig);
    }
    cr_expect_gt(n_failures, 15);
    artifact_free(&artifact);
}

/* Loading the damaged bytes gives an error, or the very same result. */
static bool is_harmless(Artifact artifact, size_t n_bytes) {
    frt_module *module = NULL;
    frt_error err = FRT_ERROR_INIT;
    frt_status status = frt_module_load_memory(artifact.bytes, n_bytes, &module, &err);
    frt_module_free(module);
    return status != FRT_OK && err.message[0] != '\0';
}

Test(rt_cpu, every_truncation_and_bit_flip_is_caught) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    for (size_t n = 0; n < artifact.n_bytes; n++) {
        cr_assert(is_harmless(artifact, n), "cut to %zu of %zu bytes", n, artifact.n_bytes);
    }
    for (size_t bit = 0; bit < artifact.n_bytes * 8; bit++) {
        artifact.bytes[bit / 8] = (char)(artifact.bytes[bit / 8] ^ 1 << bit % 8);
        cr_assert(is_harmless(artifact, artifact.n_bytes), "bit %zu of byte %zu", bit % 8, bit / 8);
        artifact.bytes[bit / 8] = (char)(artifact.bytes[bit / 8] ^ 1 << bit % 8);
    }
    cr_expect_eq(fake_mem_live(), 0);
    artifact_free(&artifact);
}

/* The same flips with the checksum repaired reach the structural checks: no crash, and whatever
 * still loads can be freed again. The code itself is not executed. */
Test(rt_cpu, restamped_damage_reaches_the_loader_without_harm) {
    Artifact artifact = artifact_object(manifest, kernel_source, 0);
    long n_loaded = 0;
    for (size_t byte = 0; byte < artifact.n_bytes; byte++) {
        char kept = artifact.bytes[byte];
        artifact.bytes[byte] = (char)(kept ^ 1 << byte % 8);
        artifact_stamp(&artifact);
        frt_module *module = NULL;
        frt_program *program = NULL;
        frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
        options.n_threads = 1;
        if (frt_module_load_memory(artifact.bytes, artifact.n_bytes, &module, NULL) == FRT_OK) {
            n_loaded++;
            frt_program_create(module, NULL, &options, &program, NULL);
        }
        frt_program_free(program);
        frt_module_free(module);
        artifact.bytes[byte] = kept;
    }
    cr_expect_eq(fake_mem_live(), 0);
    cr_expect_gt(n_loaded, 0);
    artifact_free(&artifact);
}

/* Chunks are whole blocks, however many there are. */
Test(rt_cpu, chunks_are_whole_blocks) {
    char blocks_of_3[sizeof manifest];
    memcpy(blocks_of_3, manifest, sizeof manifest);
    strstr(blocks_of_3, "k_scale B 1")[strlen("k_scale B ")] = '3';
    expect_chunks(blocks_of_3, 4, 512, 2, 57 + 64, "512 units in chunks of 9 and of 8");
}

/* Chunks are worth a thread; a number that overflows says nothing. */
Test(rt_cpu, chunks_are_worth_a_thread) {
    static const struct {
        const char *worth;
        int64_t n_chunks;
    } cases[] = {{"1", 64},   {"100", 5},   {"257", 1},
                 {"4000", 1}, {"B,4,/", 4}, {"9223372036854775807,B,*", 64},
                 {"0", 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char variant[100];
        snprintf(variant, sizeof variant, "k_scale B 1 %s", cases[i].worth);
        char *text = text_replace(manifest, "k_scale B 1 0", variant);
        expect_chunks(text, 4, 512, 2, cases[i].n_chunks + 64, cases[i].worth);
        free(text);
    }
}
