/* The CUDA path on a real GPU, with PTX written by hand: run, capture into a graph, time, and a
 * kernel that faults. Skipped, with the reason, where there is no driver or device. */
#include "../fake/rt_artifact.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fusert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char manifest[] = "//@ fusec-artifact 1\n"
                               "//@ checksum 00000000\n"
                               "//@ compiler 0.1.0\n"
                               "//@ target cuda sm_80\n"
                               "//@ numerics strict\n"
                               "//@ source m.g\n"
                               "//@ dim N 0 1048576 1\n"
                               "//@ graph g\n"
                               "//@ input x 0 f32 N\n"
                               "//@ output y 0 f32 N\n"
                               "//@ output z 0 f32 N\n"
                               "//@ temp t 0 f32 0 N\n"
                               "//@ workspace N,4,*\n"
                               "//@ launch run 1 double x,t N\n"
                               "//@ variant k_double N,255,+,256,/ 256 102400 -\n"
                               "//@ launch run 2 double t,y N\n"
                               "//@ variant k_double N,255,+,256,/ 256 0 -\n"
                               "//@ copy run z t N,4,*\n"
                               "//@ end\n";
static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k_double(.param .u64 a, .param .u64 b, .param .u64 n) {\n"
    " .reg .pred %p; .reg .f32 %f; .reg .b32 %r<4>; .reg .b64 %d<6>;\n"
    " ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [n];\n"
    " mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
    " mad.lo.u32 %r3, %r0, %r1, %r2; cvt.u64.u32 %d3, %r3;\n"
    " setp.ge.u64 %p, %d3, %d2; @%p ret;\n"
    " shl.b64 %d3, %d3, 2; add.u64 %d4, %d0, %d3; add.u64 %d5, %d1, %d3;\n"
    " ld.global.f32 %f, [%d4]; add.f32 %f, %f, %f; st.global.f32 [%d5], %f; ret;\n}\n";

enum { N = 1000 };

typedef struct Rig {
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    void *x, *y, *z;
    frt_error err;
} Rig;

static void bind(Rig *rig, const char *name, void *data) {
    frt_tensor tensor = {.data = data, .dtype = FRT_F32, .rank = 1, .dims = {N}};
    cr_assert_eq(frt_bind(rig->exec, name, &tensor, &rig->err), FRT_OK, "%s", rig->err.message);
}

/* False: there is no GPU here, and the reason has been printed. */
static bool open_rig(Rig *rig, const char *code) {
    float host[N];
    *rig = (Rig){.err = FRT_ERROR_INIT};
    Artifact artifact = artifact_text(manifest, code);
    frt_status status =
        frt_module_load_memory(artifact.bytes, artifact.n_bytes, &rig->module, &rig->err);
    artifact_free(&artifact);
    cr_assert_eq(status, FRT_OK, "%s", rig->err.message);
    status = frt_program_create(rig->module, NULL, NULL, &rig->program, &rig->err);
    if (status == FRT_E_NO_DRIVER || status == FRT_E_NO_DEVICE) {
        printf("SKIPPED GPU test: %s\n", rig->err.message);
        frt_module_free(rig->module);
        return false;
    }
    cr_assert_eq(status, FRT_OK, "%s", rig->err.message);
    for (int i = 0; i < N; i++) {
        host[i] = (float)i;
    }
    cr_assert_eq(frt_device_alloc(rig->program, sizeof host, &rig->x, &rig->err), FRT_OK);
    cr_assert_eq(frt_device_alloc(rig->program, sizeof host, &rig->y, &rig->err), FRT_OK);
    cr_assert_eq(frt_device_alloc(rig->program, sizeof host, &rig->z, &rig->err), FRT_OK);
    status = frt_copy_to_device(rig->program, rig->x, host, sizeof host, &rig->err);
    cr_assert_eq(status, FRT_OK, "%s", rig->err.message);
    cr_assert_eq(frt_exec_create(rig->program, &rig->exec, &rig->err), FRT_OK);
    bind(rig, "x", rig->x);
    bind(rig, "y", rig->y);
    bind(rig, "z", rig->z);
    return true;
}

static void close_rig(Rig *rig) {
    frt_device_free(rig->program, rig->x, N * sizeof(float));
    frt_device_free(rig->program, rig->y, N * sizeof(float));
    frt_device_free(rig->program, rig->z, N * sizeof(float));
    frt_exec_free(rig->exec);
    frt_program_free(rig->program);
    frt_module_free(rig->module);
}

static void expect_outputs(Rig *rig) {
    float y[N];
    float z[N];
    frt_status status = frt_copy_from_device(rig->program, y, rig->y, sizeof y, &rig->err);
    cr_assert_eq(status, FRT_OK, "%s", rig->err.message);
    cr_assert_eq(frt_copy_from_device(rig->program, z, rig->z, sizeof z, &rig->err), FRT_OK);
    for (int i = 0; i < N; i++) {
        cr_assert(y[i] == 4.0f * (float)i && z[i] == 2.0f * (float)i, "element %d: %g, %g", i,
                  (double)y[i], (double)z[i]);
    }
}

Test(rt_gpu, a_run_gives_the_right_numbers_and_times, .timeout = 120) {
    Rig rig;
    float ms[64];
    if (!open_rig(&rig, ptx)) {
        return;
    }
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    expect_outputs(&rig);
    cr_assert_eq(frt_time_runs(rig.exec, NULL, 64, ms, &rig.err), FRT_OK);
    cr_expect(ms[63] > 0.0f && ms[63] < 100.0f);
    printf("%s: one run of three steps %.4f ms\n", frt_device_name(rig.program), (double)ms[63]);
    cr_assert_eq(frt_time_launches(rig.exec, NULL, 9, ms, &rig.err), FRT_OK);
    cr_expect(ms[0] > 0.0f && ms[1] > 0.0f && ms[2] > 0.0f);
    close_rig(&rig);
}

typedef struct GraphApi {
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*retain)(void **context, int device);
    int (*create)(void **stream, unsigned flags);
    int (*begin)(void *stream, int mode);
    int (*end)(void *stream, void **graph);
    int (*instantiate)(void **exec, void *graph, unsigned long long flags);
    int (*launch)(void *exec, void *stream);
} GraphApi;

static void find(void *library, const char *symbol, void *function) {
    void *found = dlsym(library, symbol);
    cr_assert_not_null(found, "the driver lacks %s", symbol);
    memcpy(function, &found, sizeof found);
}

static GraphApi graph_api(void) {
    GraphApi api;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    cr_assert_not_null(library);
    find(library, "cuCtxPushCurrent_v2", &api.push);
    find(library, "cuCtxPopCurrent_v2", &api.pop);
    find(library, "cuDevicePrimaryCtxRetain", &api.retain);
    find(library, "cuStreamCreate", &api.create);
    find(library, "cuStreamBeginCapture_v2", &api.begin);
    find(library, "cuStreamEndCapture", &api.end);
    find(library, "cuGraphInstantiateWithFlags", &api.instantiate);
    find(library, "cuGraphLaunch", &api.launch);
    return api;
}

Test(rt_gpu, a_prepared_run_can_be_captured, .timeout = 120) {
    Rig rig;
    if (!open_rig(&rig, ptx)) {
        return;
    }
    GraphApi api = graph_api();
    void *context = NULL;
    void *stream = NULL;
    void *graph = NULL;
    void *exec = NULL;
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(api.retain(&context, 0), 0);
    cr_assert_eq(api.push(context), 0);
    cr_assert_eq(api.create(&stream, 1), 0);
    cr_assert_eq(api.begin(stream, 0), 0);
    cr_assert_eq(frt_run(rig.exec, stream, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(api.end(stream, &graph), 0, "the run was not capturable");
    cr_assert_eq(api.instantiate(&exec, graph, 0), 0);
    cr_assert_eq(api.launch(exec, stream), 0);
    cr_assert_eq(frt_sync(rig.program, stream, &rig.err), FRT_OK, "%s", rig.err.message);
    expect_outputs(&rig);
    cr_assert_eq(api.pop(&context), 0);
    close_rig(&rig);
}

Test(rt_gpu, ptx_that_does_not_assemble_is_refused_with_the_drivers_words, .timeout = 120) {
    Rig rig = {.err = FRT_ERROR_INIT};
    char *broken = text_replace(ptx, "add.f32 %f, %f, %f", "frobnicate.f32 %f");
    Artifact artifact = artifact_text(manifest, broken);
    cr_assert_eq(frt_module_load_memory(artifact.bytes, artifact.n_bytes, &rig.module, &rig.err),
                 FRT_OK);
    frt_status status = frt_program_create(rig.module, NULL, NULL, &rig.program, &rig.err);
    if (status == FRT_E_NO_DRIVER || status == FRT_E_NO_DEVICE) {
        printf("SKIPPED GPU test: %s\n", rig.err.message);
    } else {
        cr_expect_eq(status, FRT_E_CODE);
        cr_expect(strstr(rig.err.message, "frobnicate"), "%s", rig.err.message);
    }
    frt_module_free(rig.module);
    artifact_free(&artifact);
    free(broken);
}

/* Last: it ends the process's CUDA context. */
Test(rt_gpu, z_a_fault_is_device_lost_for_good, .timeout = 120) {
    Rig rig;
    char *faulty = text_replace(ptx, "st.global.f32 [%d5], %f;", "st.global.f32 [%d2], %f;");
    if (open_rig(&rig, faulty)) {
        frt_status status = frt_run(rig.exec, NULL, &rig.err);
        cr_expect(status == FRT_OK || status == FRT_E_DEVICE_LOST);
        cr_expect_eq(frt_sync(rig.program, NULL, &rig.err), FRT_E_DEVICE_LOST);
        cr_expect(strstr(rig.err.message, "context is lost"), "%s", rig.err.message);
        cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_E_DEVICE_LOST);
        cr_expect_eq(frt_prepare(rig.exec, &rig.err), FRT_E_DEVICE_LOST);
        close_rig(&rig);
    }
    free(faulty);
}
