/* The runtime on a small stack: every call returns on 64 KiB, also where a kernel takes more. */
#include "../../runtime/src/exec/weights.h"
#include "../../runtime/src/host/port.h"
#include "../fake/rt_rig.h"

#include <criterion/criterion.h>
#include <frt_manifest.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The address sanitizer puts room around each local variable. */
#if defined(__SANITIZE_ADDRESS__)
enum { STACK_BYTES = 256 << 10 };
#else
enum { STACK_BYTES = 64 << 10 };
#endif

/* What a thread did. It asserts nothing itself: that takes stack. */
typedef struct Work {
    Artifact artifact;
    const frt_program_options *options;
    frt_status status;
    frt_error err;
    size_t n_left; /* bytes of stack at its beginning */
    float y[64];
} Work;

static void run_on_small_stack(void *(*body)(void *), Work *work) {
    pthread_attr_t attributes;
    pthread_t thread;
    work->err = (frt_error)FRT_ERROR_INIT;
    cr_assert_eq(pthread_attr_init(&attributes), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, body, work), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    cr_expect_eq(work->status, FRT_OK, "%s", work->err.message);
    cr_expect(work->n_left > 0 && work->n_left < STACK_BYTES, "%zu bytes were left", work->n_left);
}

static const char manifest[] = "//@ fusec-artifact 1\n"
                               "//@ checksum 00000000\n"
                               "//@ compiler 0.1.0\n"
                               "//@ target cpu x86-64\n"
                               "//@ numerics strict\n"
                               "//@ source m.g\n"
                               "//@ graph g\n"
                               "//@ input x 0 f32 64\n"
                               "//@ output y 0 f32 64\n"
                               "//@ launch run 1 twice x,y -\n"
                               "//@ variant k_twice 64 1 0 -\n"
                               "//@ end\n";

/* Touches nearly as much stack as a kernel may have. */
static const char greedy[] =
    "void k_twice(void *const *a, const long *d, long begin, long end) {\n"
    "    volatile char own[1000 << 10];\n"
    "    for (long i = sizeof own - 1; i >= 0; i -= 1024) own[i] = 1;\n"
    "    for (long i = begin; i < end; i++)\n"
    "        ((float *)a[1])[i] = ((const float *)a[0])[i] * (own[1023] + 1);\n"
    "}\n";

static void *run_greedy(void *arg) {
    Work *w = arg;
    static const float x[64] = {1, 2, 3};
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    frt_tensor tx = {.data = (void *)(uintptr_t)x, .dtype = FRT_F32, .rank = 1, .dims = {64}};
    frt_tensor ty = {.data = w->y, .dtype = FRT_F32, .rank = 1, .dims = {64}};
    float ms[4];
    w->n_left = port_stack_left();
    (void)((w->status =
                frt_module_load_memory(w->artifact.bytes, w->artifact.n_bytes, &module, &w->err)) ||
           (w->status = frt_program_create(module, NULL, w->options, &program, &w->err)) ||
           (w->status = frt_exec_create(program, &exec, &w->err)) ||
           (w->status = frt_bind(exec, "x", &tx, &w->err)) ||
           (w->status = frt_bind(exec, "y", &ty, &w->err)) ||
           (w->status = frt_run(exec, NULL, &w->err)) ||
           (w->status = frt_time_launches(exec, NULL, 2, ms, &w->err)));
    frt_exec_free(exec);
    frt_program_free(program);
    frt_module_free(module);
    return NULL;
}

Test(rt_stack, kernels_have_their_stack_whatever_the_callers) {
    for (int i = 0; i < 4; i++) {
        frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
        options.n_threads = i < 2 ? 1 : 3;
        Work work = {.artifact = artifact_object(manifest, greedy, i % 2), .options = &options};
        run_on_small_stack(run_greedy, &work);
        cr_expect(work.y[0] == 2 && work.y[2] == 6 && work.y[63] == 0);
        artifact_free(&work.artifact);
    }
    cr_expect_eq(fake_mem_live(), 0);
}

static void *run_cuda(void *arg) {
    Work *w = arg;
    RtRig rig;
    float ms[4];
    w->n_left = port_stack_left();
    (void)((w->status = rt_open_code(&rig, rt_manifest, rt_cut_ptx, w->options)) ||
           (w->status =
                frt_program_set_param(rig.program, "w", rt_weights, sizeof rt_weights, &rig.err)) ||
           (w->status = frt_exec_create(rig.program, &rig.exec, &rig.err)) ||
           (w->status = frt_exec_keep_graph(rig.exec, true, &rig.err)) ||
           (w->status = rt_bind(&rig, 6)) || (w->status = frt_run(rig.exec, NULL, &rig.err)) ||
           (w->status = frt_time_launches(rig.exec, NULL, 2, ms, &rig.err)));
    w->err = rig.err;
    memcpy(w->y, rig.y, 4 * sizeof *w->y);
    rt_close_rig(&rig);
    return NULL;
}

Test(rt_stack, a_gpu_is_driven_from_a_small_stack) {
    char *folder = rt_folder_make();
    frt_program_options options = rt_options();
    options.cache = true;
    options.cache_dir = folder;
    Work work = {.options = &options};
    fake_cuda_reset();
    rt_add_kernels();
    for (int i = 0; i < 2; i++) { /* without the cache, then from it */
        run_on_small_stack(run_cuda, &work);
        cr_expect(work.y[0] == 0.5f * rt_weights[0] * 2, "%g", (double)work.y[0]);
    }
    rt_expect_nothing_held("after a small stack");
    rt_folder_remove(folder);
}

/* The longest text of an expression, and every call that prints. */
static void *print_all(void *arg) {
    Work *w = arg;
    char text[64];
    frt_module *module = NULL;
    w->n_left = port_stack_left();
    w->status = frt_module_load_memory(w->artifact.bytes, w->artifact.n_bytes, &module, &w->err);
    if (w->status) {
        return NULL;
    }
    w->y[0] = (float)frt_module_workspace_text(module, 0, text, sizeof text);
    frt_module_grid_text(module, 0, 0, 0, text, sizeof text);
    frt_module_shared_text(module, 0, 0, 0, text, sizeof text);
    frt_module_predicate_text(module, 0, 0, 0, text, sizeof text);
    frt_module_extent_text(module, 0, 0, 0, text, sizeof text);
    frt_module_free(module);
    return NULL;
}

Test(rt_stack, the_longest_expression_is_printed) {
    enum { N_SUMS = FRT_MAX_EXPR_TOKENS / 2 - 1 };
    char sum[FRT_MAX_EXPR_TOKENS * 4] = "workspace 1";
    for (int i = 0; i < N_SUMS; i++) {
        strcat(sum, ",1,+");
    }
    char *text = text_replace(manifest, "//@ launch", "//@ WORKSPACE\n//@ launch");
    char *whole = text_replace(text, "WORKSPACE", sum);
    Work work = {.artifact = artifact_object(whole, greedy, 0)};
    run_on_small_stack(print_all, &work);
    cr_expect_eq((int)work.y[0], 2 * N_SUMS + 1, "%g", (double)work.y[0]);
    artifact_free(&work.artifact);
    free(whole);
    free(text);
}

static void *read_deep(void *arg) {
    Work *w = arg;
    Weights *weights = NULL;
    w->n_left = port_stack_left();
    frt_status status =
        weights_parse(w->artifact.bytes, w->artifact.n_bytes, "deep", &weights, &w->err);
    w->status = status == FRT_E_WEIGHTS_BAD ? FRT_OK : FRT_E_INVALID_ARGUMENT;
    weights_close(weights);
    return NULL;
}

Test(rt_stack, a_header_as_deep_as_it_is_long_is_refused) {
    enum { DEPTH = 1 << 20 };
    static char file[DEPTH + 64];
    static const char begin[] = "{\"__metadata__\":{\"a\":";
    uint64_t n_header = sizeof begin - 1 + DEPTH;
    for (int i = 0; i < 8; i++) {
        file[i] = (char)(n_header >> 8 * i & 0xff);
    }
    memcpy(file + 8, begin, sizeof begin - 1);
    memset(file + 8 + sizeof begin - 1, '[', DEPTH);
    Work work = {.artifact = {.bytes = file, .n_bytes = 8 + (size_t)n_header}};
    run_on_small_stack(read_deep, &work);
    cr_expect(strstr(work.err.message, "it nests too deep"), "%s", work.err.message);
}
