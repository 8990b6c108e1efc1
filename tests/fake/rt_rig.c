/* See rt_rig.h. */
#include "rt_rig.h"

#include <criterion/criterion.h>
#include <string.h>

const char rt_manifest[] = "//@ fusec-artifact 1\n"
                           "//@ checksum 00000000\n"
                           "//@ compiler 0.1.0\n"
                           "//@ target cuda sm_80\n"
                           "//@ numerics strict\n"
                           "//@ source m.g\n"
                           "//@ dim B 0 65536 1\n"
                           "//@ graph g\n"
                           "//@ input x 0 f32 B 4\n"
                           "//@ param w 0 f32 4\n"
                           "//@ output y 0 f32 B 4\n"
                           "//@ temp packed 0 f32 - 4\n"
                           "//@ temp twice 0 f32 - 4\n"
                           "//@ temp t 0 f32 0 B 4\n"
                           "//@ workspace B,16,*\n"
                           "//@ launch init 1 twice twice,w -\n"
                           "//@ variant k_twice 1 32 0 -\n"
                           "//@ launch init 1 pack packed,twice -\n"
                           "//@ variant k_pack 1 32 0 -\n"
                           "//@ launch run 2 scale x,packed,t B\n"
                           "//@ variant k_scale16 B 128 B,16,* a2:16\n"
                           "//@ map 0 0 0 4:1:4 B:4:8\n"
                           "//@ variant k_scale B 64 0 -\n"
                           "//@ copy run y t B,16,*\n"
                           "//@ end\n";
const char rt_ptx[] = ".version 7.0\n.target sm_80\n";
#define FUNCTION(name) "\n//@ function " name "\n.visible .entry " name "()\n{\n}\n"
const char rt_cut_ptx[] = ".version 7.0\n.target sm_80\n" FUNCTION("k_twice") FUNCTION("k_pack")
    FUNCTION("k_scale16") FUNCTION("k_scale");

static void k_twice(void **params, unsigned grid, unsigned block) {
    float *twice = *(float **)params[0];
    const float *w = *(float **)params[1];
    (void)grid;
    (void)block;
    for (int i = 0; i < 4; i++) {
        twice[i] = w[i] * 2.0f;
    }
}

/* The memory that it reads exists only while init steps run. */
static void k_pack(void **params, unsigned grid, unsigned block) {
    (void)grid;
    (void)block;
    memcpy(*(float **)params[0], *(float **)params[1], 4 * sizeof(float));
}

static void k_scale(void **params, unsigned grid, unsigned block) {
    const float *x = *(float **)params[0];
    const float *packed = *(float **)params[1];
    float *t = *(float **)params[2];
    int64_t b = *(int64_t *)params[3];
    (void)block;
    for (int64_t i = 0; i < b * 4 && b == (int64_t)grid; i++) {
        t[i] = x[i] * packed[i % 4];
    }
}

/* k_scale through a tensor map of x. */
static void k_scale16(void **params, unsigned grid, unsigned block) {
    const FakeMap *map = params[4];
    cr_expect(map->rank == 2 && map->dtype == 7 && map->swizzle == 0);
    cr_expect(map->sizes[0] == 4 && map->sizes[1] == grid && map->stride_bytes[1] == 16);
    cr_expect(map->box[0] == 4 && map->box[1] == 8);
    void *args[] = {(void *)&map->data, params[1], params[2], params[3]};
    k_scale(args, grid, block);
}

void rt_add_kernels(void) {
    fake_cuda_add_kernel("k_twice", k_twice);
    fake_cuda_add_kernel("k_pack", k_pack);
    fake_cuda_add_valued_kernel("k_scale16", k_scale16, 4, true);
    fake_cuda_add_valued_kernel("k_scale", k_scale, 4, true);
}

const float rt_weights[4] = {1.0f, 2.0f, 3.0f, 4.0f};

/* Aligned as device memory is. */
_Alignas(256) float rt_x_storage[RT_MAX_ROWS * 8 + 4];
_Alignas(256) float rt_y_storage[RT_MAX_ROWS * 8];

frt_program_options rt_options(void) {
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.cuda_lookup = fake_cuda_lookup;
    return options;
}

frt_status rt_open_code(RtRig *rig, const char *text, const char *code,
                        const frt_program_options *options) {
    *rig = (RtRig){.err = FRT_ERROR_INIT, .x = rt_x_storage, .y = rt_y_storage};
    Artifact artifact = artifact_text(text, code);
    frt_status status =
        frt_module_load_memory(artifact.bytes, artifact.n_bytes, &rig->module, &rig->err);
    artifact_free(&artifact);
    if (!status) {
        status = frt_program_create(rig->module, "g", options, &rig->program, &rig->err);
    }
    return status;
}

frt_status rt_open_program(RtRig *rig, const char *text, const frt_program_options *options) {
    return rt_open_code(rig, text, rt_ptx, options);
}

frt_status rt_bind(RtRig *rig, int64_t rows) {
    frt_tensor x = {.data = rig->x, .dtype = FRT_F32, .rank = 2, .dims = {rows, 4}};
    frt_tensor y = {.data = rig->y, .dtype = FRT_F32, .rank = 2, .dims = {rows, 4}};
    for (int i = 0; i < RT_MAX_ROWS * 4; i++) {
        rig->x[i] = (float)i + 0.5f;
    }
    memset(rt_y_storage, 0, sizeof rt_y_storage);
    frt_status status = frt_bind(rig->exec, "x", &x, &rig->err);
    return status ? status : frt_bind(rig->exec, "y", &y, &rig->err);
}

void rt_expect_y(const RtRig *rig, int64_t rows) {
    for (int64_t i = 0; i < rows * 4; i++) {
        cr_assert(rig->y[i] == ((float)i + 0.5f) * rt_weights[i % 4] * 2.0f, "y[%ld] = %g", (long)i,
                  (double)rig->y[i]);
    }
}

void rt_close_rig(RtRig *rig) {
    frt_program_free(rig->program);
    frt_module_free(rig->module);
    frt_exec_free(rig->exec);
}

void rt_expect_nothing_held(const char *when) {
    cr_expect_eq(fake_cuda.n_contexts, 0, "%s: %ld contexts", when, fake_cuda.n_contexts);
    cr_expect_eq(fake_cuda.n_modules, 0, "%s: %ld modules", when, fake_cuda.n_modules);
    cr_expect_eq(fake_cuda.n_blocks, 0, "%s: %ld blocks", when, fake_cuda.n_blocks);
    cr_expect_eq(fake_cuda.n_events, 0, "%s: %ld events", when, fake_cuda.n_events);
    cr_expect_eq(fake_cuda.n_links, 0, "%s: %ld links", when, fake_cuda.n_links);
    cr_expect_eq(fake_cuda.n_streams, 0, "%s: %ld streams", when, fake_cuda.n_streams);
    cr_expect_eq(fake_cuda.n_graphs, 0, "%s: %ld graphs", when, fake_cuda.n_graphs);
    cr_expect_eq(fake_cuda_depth(), 1, "%s: context stack %d deep", when, fake_cuda_depth());
    cr_expect_eq(fake_mem_live(), 0, "%s: %ld host blocks", when, fake_mem_live());
}
