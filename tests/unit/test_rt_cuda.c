/* The CUDA path over a fake driver: what is called, with what, and what every failure leads to. */
#include "../fake/fake_cuda.h"
#include "../fake/fake_mem.h"
#include "../fake/rt_artifact.h"

#include <criterion/criterion.h>
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
static const char ptx[] = ".version 7.0\n.target sm_80\n";

static void k_twice(void **params, unsigned grid, unsigned block) {
    float *twice = *(float **)params[0];
    const float *w = *(float **)params[1];
    (void)grid;
    (void)block;
    for (int i = 0; i < 4; i++) {
        twice[i] = w[i] * 2.0f;
    }
}

/* What it reads is only there while init steps run. */
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

/* The same through a tensor map of x. */
static void k_scale16(void **params, unsigned grid, unsigned block) {
    const FakeMap *map = params[4];
    cr_expect(map->rank == 2 && map->dtype == 7 && map->swizzle == 0);
    cr_expect(map->sizes[0] == 4 && map->sizes[1] == grid && map->stride_bytes[1] == 16);
    cr_expect(map->box[0] == 4 && map->box[1] == 8);
    void *args[] = {(void *)&map->data, params[1], params[2], params[3]};
    k_scale(args, grid, block);
}

static void add_kernels(void) {
    fake_cuda_add_kernel("k_twice", k_twice);
    fake_cuda_add_kernel("k_pack", k_pack);
    fake_cuda_add_kernel("k_scale16", k_scale16);
    fake_cuda_add_kernel("k_scale", k_scale);
}

static const float weights[4] = {1.0f, 2.0f, 3.0f, 4.0f};

enum { MAX_ROWS = 8 };

typedef struct Rig {
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    float *x, *y; /* "device" memory of the fake is host memory, so the caller's own will do */
    frt_error err;
} Rig;

/* Aligned as device memory is. */
static _Alignas(256) float x_storage[MAX_ROWS * 8 + 4];
static _Alignas(256) float y_storage[MAX_ROWS * 8];

static frt_program_options fake_options(void) {
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.cuda_lookup = fake_cuda_lookup;
    return options;
}

static frt_status open_program(Rig *rig, const char *text, const frt_program_options *options) {
    *rig = (Rig){.err = FRT_ERROR_INIT, .x = x_storage, .y = y_storage};
    Artifact artifact = artifact_text(text, ptx);
    frt_status status =
        frt_module_load_memory(artifact.bytes, artifact.n_bytes, &rig->module, &rig->err);
    artifact_free(&artifact);
    if (!status) {
        status = frt_program_create(rig->module, "g", options, &rig->program, &rig->err);
    }
    return status;
}

static frt_status bind(Rig *rig, int64_t rows) {
    frt_tensor x = {.data = rig->x, .dtype = FRT_F32, .rank = 2, .dims = {rows, 4}};
    frt_tensor y = {.data = rig->y, .dtype = FRT_F32, .rank = 2, .dims = {rows, 4}};
    for (int i = 0; i < MAX_ROWS * 4; i++) {
        rig->x[i] = (float)i + 0.5f;
    }
    memset(y_storage, 0, sizeof y_storage);
    frt_status status = frt_bind(rig->exec, "x", &x, &rig->err);
    return status ? status : frt_bind(rig->exec, "y", &y, &rig->err);
}

static void expect_y(const Rig *rig, int64_t rows) {
    for (int64_t i = 0; i < rows * 4; i++) {
        cr_assert(rig->y[i] == ((float)i + 0.5f) * weights[i % 4] * 2.0f, "y[%ld] = %g", (long)i,
                  (double)rig->y[i]);
    }
}

static void close_rig(Rig *rig) {
    frt_program_free(rig->program);
    frt_module_free(rig->module);
    frt_exec_free(rig->exec);
}

static void expect_nothing_held(const char *when) {
    cr_expect_eq(fake_cuda.n_contexts, 0, "%s: %ld contexts", when, fake_cuda.n_contexts);
    cr_expect_eq(fake_cuda.n_modules, 0, "%s: %ld modules", when, fake_cuda.n_modules);
    cr_expect_eq(fake_cuda.n_blocks, 0, "%s: %ld blocks", when, fake_cuda.n_blocks);
    cr_expect_eq(fake_cuda.n_events, 0, "%s: %ld events", when, fake_cuda.n_events);
    cr_expect_eq(fake_cuda.depth, 1, "%s: context stack %d deep", when, fake_cuda.depth);
    cr_expect_eq(fake_mem_live(), 0, "%s: %ld host blocks", when, fake_mem_live());
}

Test(rt_cuda, a_run_is_two_enqueued_steps_on_the_callers_stream) {
    Rig rig;
    frt_program_options options = fake_options();
    char stream;
    fake_cuda_reset();
    add_kernels();
    cr_assert_eq(open_program(&rig, manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_expect_str_eq(frt_device_name(rig.program), "Fake GPU 0");
    cr_expect(strncmp(fake_cuda.image, ".version 7.0", 12) == 0, "the driver gets the PTX alone");
    cr_expect_eq(fake_cuda.max_dynamic_shared, 232448 - 1024);
    cr_expect_eq(fake_cuda_count("cuFuncSetAttribute"), 1, "only where it is needed");
    cr_assert_eq(frt_program_set_param(rig.program, "w", weights, sizeof weights, &rig.err),
                 FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(bind(&rig, 5), FRT_OK);
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(fake_cuda.n_launches, 2, "the init steps");
    fake_cuda.n_calls = 0;
    cr_assert_eq(frt_run(rig.exec, &stream, &rig.err), FRT_OK);
    static const char *const calls[] = {"cuCtxPushCurrent", "cuLaunchKernel", "cuMemcpyDtoDAsync",
                                        "cuCtxPopCurrent"};
    cr_assert_eq(fake_cuda.n_calls, 4);
    for (int i = 0; i < 4; i++) {
        cr_expect_str_eq(fake_cuda.log[i], calls[i]);
    }
    cr_expect_eq(fake_cuda.stream, &stream);
    cr_expect(fake_cuda.grid == 5 && fake_cuda.depth == 1);
    expect_y(&rig, 5);
    int is_aligned = (uintptr_t)rig.x % 16 == 0;
    cr_expect_eq(fake_cuda.block, is_aligned ? 128u : 64u);
    cr_expect_eq(fake_cuda.shared, is_aligned ? 80u : 0u);
    rig.x += 1;
    cr_assert_eq(bind(&rig, 2), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    expect_y(&rig, 2);
    cr_expect_eq(frt_exec_variant(rig.exec, 2), (uintptr_t)rig.x % 16 ? 1 : 0);
    close_rig(&rig);
    expect_nothing_held("after a run");
}

Test(rt_cuda, the_driver_tells_what_it_made_of_a_kernel) {
    Rig rig;
    frt_program_options options = fake_options();
    FRT_INFO(frt_kernel_info, info);
    fake_cuda_reset();
    add_kernels();
    cr_assert_eq(open_program(&rig, manifest, &options), FRT_OK);
    cr_expect_eq(frt_program_get_kernel(rig.program, 2, 1, &info, &rig.err), FRT_OK);
    cr_expect(info.n_registers == 96 && info.local_bytes == 24 && info.shared_bytes == 1024);
    cr_expect_eq(info.struct_size, sizeof info);
    static const int32_t bad[][2] = {{-1, 0}, {0, -1}, {0, 1}, {2, 2}, {3, 0}, {4, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(frt_program_get_kernel(rig.program, bad[i][0], bad[i][1], &info, &rig.err),
                     FRT_E_INVALID_ARGUMENT, "step %d, variant %d", bad[i][0], bad[i][1]);
    }
    cr_expect_eq(frt_program_get_kernel(NULL, 0, 0, &info, NULL), FRT_E_INVALID_ARGUMENT);
    cr_expect_eq(frt_program_get_kernel(rig.program, 0, 0, NULL, NULL), FRT_E_INVALID_ARGUMENT);
    frt_kernel_info older = {.struct_size = offsetof(frt_kernel_info, local_bytes),
                             .local_bytes = -1};
    cr_expect_eq(frt_program_get_kernel(rig.program, 0, 0, &older, NULL), FRT_OK);
    cr_expect(older.n_registers == 96 && older.local_bytes == -1, "past the caller's struct");
    close_rig(&rig);
    expect_nothing_held("after asking");
}

static const char mapped[] = "//@ fusec-artifact 1\n"
                             "//@ checksum 00000000\n"
                             "//@ compiler 0.1.0\n"
                             "//@ target cuda sm_80\n"
                             "//@ numerics strict\n"
                             "//@ source m.g\n"
                             "//@ dim B 0 65536 1\n"
                             "//@ dim C 0 65536 1\n"
                             "//@ graph g\n"
                             "//@ input x 0 bf16 B C\n"
                             "//@ output y 0 bf16 B C\n"
                             "//@ launch run 1 copy x,y B,C\n"
                             "//@ variant k_mapped 1 32 0 -\n"
                             "//@ map 1 128 C 64:1:64 B,1,-:C:256\n"
                             "//@ map 0 128 0 C:1:64 3:0,8,+:1 B:C:256\n"
                             "//@ variant k_any 1 64 0 -\n"
                             "//@ end\n";

static void k_mapped(void **params, unsigned grid, unsigned block) {
    const FakeMap *y = params[4], *x = params[5];
    (void)grid;
    (void)block;
    cr_expect(x->data == x_storage && x->dtype == 9 && x->swizzle == 3 && x->rank == 3);
    cr_expect(x->sizes[0] == 64 && x->sizes[1] == 3 && x->sizes[2] == 2);
    cr_expect(x->stride_bytes[1] == 16 && x->stride_bytes[2] == 128 && x->box[2] == 256);
    cr_expect(y->data == (char *)y_storage + 128 && y->sizes[1] == 1);
}

static void k_any(void **params, unsigned grid, unsigned block) {
    (void)params;
    (void)grid;
    (void)block;
}

/* The variant that one run over B x C elements, `shift` bytes into the storage, takes. */
static int32_t mapped_variant(int64_t b, int64_t c, size_t shift) {
    Rig rig;
    frt_program_options options = fake_options();
    cr_assert_eq(open_program(&rig, mapped, &options), FRT_OK, "%s", rig.err.message);
    frt_tensor x = {.dtype = FRT_BF16, .rank = 2, .dims = {b, c}}, y = x;
    x.data = (char *)x_storage + shift;
    y.data = y_storage;
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(frt_bind(rig.exec, "x", &x, &rig.err), FRT_OK);
    cr_assert_eq(frt_bind(rig.exec, "y", &y, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    int32_t variant = frt_exec_variant(rig.exec, 0);
    close_rig(&rig);
    expect_nothing_held("after a mapped run");
    return variant;
}

/* A variant applies only where each of its maps can be made. */
Test(rt_cuda, maps_are_made_or_their_variant_is_passed_over) {
    fake_cuda_reset();
    fake_cuda_add_kernel("k_mapped", k_mapped);
    fake_cuda_add_kernel("k_any", k_any);
    cr_expect_eq(mapped_variant(2, 64, 0), 0);
    cr_expect_eq(fake_cuda_count("cuTensorMapEncodeTiled"), 2);
    cr_expect_eq(mapped_variant(2, 60, 0), 1, "a stride of 120 bytes");
    cr_expect_eq(mapped_variant(2, 64, 2), 1, "an address that is not aligned");
    cr_expect_eq(mapped_variant(1, 64, 0), 1, "an axis without elements");
    cr_expect_eq(mapped_variant(0, 64, 0), 1, "a negative size");
    fake_cuda.missing = "cuTensorMapEncodeTiled";
    cr_expect_eq(mapped_variant(2, 64, 0), 1, "a driver that knows no maps");
    cr_expect_eq(fake_cuda_count("cuTensorMapEncodeTiled"), 2, "nothing else is encoded");
}

Test(rt_cuda, empty_tensors_launch_nothing) {
    Rig rig;
    frt_program_options options = fake_options();
    fake_cuda_reset();
    add_kernels();
    cr_assert_eq(open_program(&rig, manifest, &options), FRT_OK);
    cr_assert_eq(frt_program_set_param(rig.program, "w", weights, sizeof weights, &rig.err),
                 FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    frt_tensor empty = {.dtype = FRT_F32, .rank = 2, .dims = {0, 4}};
    cr_assert_eq(frt_bind(rig.exec, "x", &empty, &rig.err), FRT_OK);
    cr_assert_eq(frt_bind(rig.exec, "y", &empty, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(fake_cuda.n_launches, 2, "the init steps alone");
    cr_expect_eq(fake_cuda_count("cuMemcpyDtoDAsync"), 0);
    close_rig(&rig);
    expect_nothing_held("after an empty run");
}

Test(rt_cuda, params_are_wanted_checked_and_replaceable) {
    Rig rig;
    frt_program_options options = fake_options();
    fake_cuda_reset();
    add_kernels();
    cr_assert_eq(open_program(&rig, manifest, &options), FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(bind(&rig, 3), FRT_OK);
    cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_E_WEIGHTS_MISSING);
    cr_expect(strstr(rig.err.message, "param w has no values"));
    cr_expect_eq(frt_program_set_param(rig.program, "w", weights, 12, &rig.err),
                 FRT_E_WEIGHTS_MISMATCH);
    cr_expect(strstr(rig.err.message, "param w has 16 bytes, but 12"));
    cr_expect_eq(frt_program_set_param(rig.program, "x", weights, 16, &rig.err),
                 FRT_E_UNKNOWN_NAME);
    cr_expect_eq(frt_program_set_param(rig.program, "w", NULL, 16, &rig.err), FRT_E_NULL);
    cr_assert_eq(frt_program_set_param(rig.program, "w", weights, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    expect_y(&rig, 3);
    static const float ones[4] = {1, 1, 1, 1};
    cr_assert_eq(frt_program_set_param(rig.program, "w", ones, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    cr_expect(rig.y[3] == 7.0f, "init steps ran again: %g", (double)rig.y[3]);
    close_rig(&rig);
    expect_nothing_held("after params");
}

/* Sets w twice, the second time longer: it moves, and so does what init steps made of it. */
static frt_status grow_param(Rig *rig, const char *text) {
    static const float longer[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    frt_program_options options = fake_options();
    frt_tensor w = {.data = (void *)(uintptr_t)longer, .dtype = FRT_F32, .rank = 1, .dims = {4}};
    frt_status status = open_program(rig, text, &options);
    for (int64_t n = 4; n <= 8 && !status; n += 4) {
        w.dims[0] = n;
        status = frt_program_set_param_tensor(rig->program, "w", &w, &rig->err);
        if (!status && !rig->exec) {
            status = frt_exec_create(rig->program, &rig->exec, &rig->err);
        }
        if (!status) {
            status = bind(rig, 3);
        }
        if (!status) {
            status = frt_run(rig->exec, NULL, &rig->err);
        }
    }
    return status;
}

Test(rt_cuda, a_param_of_another_shape_moves_with_what_init_steps_made) {
    Rig rig;
    char *with_dim = text_replace(manifest, "//@ graph g", "//@ dim N 4 8 4\n//@ graph g");
    char *with_param = text_replace(with_dim, "param w 0 f32 4", "param w 0 f32 N");
    char *text = text_replace(with_param, "packed 0 f32 - 4", "packed 0 f32 - N");
    bool has_failed = true;
    add_kernels();
    for (long n = 0; has_failed; n++) { /* call 0: none fails */
        fake_cuda_reset();
        fake_cuda.fail_at = n;
        fake_cuda.fail_code = 2; /* out of memory */
        frt_status status = grow_param(&rig, text);
        has_failed = n == 0 || fake_cuda.has_failed;
        if (status == FRT_OK) {
            int64_t value = 0;
            expect_y(&rig, 3);
            cr_expect_eq(frt_program_get_dim(rig.program, 1, &value), FRT_OK);
            cr_expect_eq(value, 8);
            cr_expect_eq(fake_cuda.n_blocks, 4, "scratch, param, persistent temp, workspace");
        }
        cr_assert(n > 0 || status == FRT_OK, "%s", rig.err.message);
        close_rig(&rig);
        expect_nothing_held("after a longer param");
    }
    free(with_dim);
    free(with_param);
    free(text);
}

Test(rt_cuda, init_steps_run_once_for_a_program_and_after_a_change) {
    Rig rig;
    frt_program_options options = fake_options();
    FRT_INFO(frt_init_info, init);
    fake_cuda_reset();
    add_kernels();
    cr_assert_eq(open_program(&rig, manifest, &options), FRT_OK);
    cr_assert_eq(frt_program_get_init(rig.program, &init), FRT_OK);
    cr_expect(init.n_steps == 2 && init.n_runs == 0 && init.kept_bytes == 0, "w has no values");
    cr_assert_eq(frt_program_set_param(rig.program, "w", weights, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(bind(&rig, 3), FRT_OK);
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK);
    long n_blocks = fake_cuda.n_blocks;
    frt_exec *other = NULL;
    cr_assert_eq(frt_exec_create(rig.program, &other, &rig.err), FRT_OK);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    }
    cr_assert_eq(frt_program_get_init(rig.program, &init), FRT_OK);
    cr_expect(init.n_runs == 1 && init.kept_bytes == 16 && init.passing_bytes == 16);
    cr_expect(init.ms >= 0.0 && init.struct_size == sizeof init);
    cr_assert_eq(frt_program_set_param(rig.program, "w", weights, 16, &rig.err), FRT_OK);
    fake_cuda.n_calls = 0;
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    cr_expect_eq(fake_cuda_count("cuMemAlloc"), 1, "what passes between the init steps");
    cr_expect_eq(fake_cuda_count("cuMemFree"), 1);
    cr_expect_eq(fake_cuda_count("cuCtxSynchronize"), 1, "the run comes after them");
    expect_y(&rig, 3);
    cr_assert_eq(frt_program_get_init(rig.program, &init), FRT_OK);
    cr_expect(init.n_runs == 2 && init.kept_bytes == 16);
    cr_expect_eq(fake_cuda.n_blocks, n_blocks);
    frt_exec_free(other);
    close_rig(&rig);
    expect_nothing_held("after init steps");
    cr_expect_eq(frt_program_get_init(NULL, &init), FRT_E_INVALID_ARGUMENT);
}

static void expect_open(const char *text, const frt_program_options *options, frt_status status,
                        const char *part) {
    Rig rig;
    fake_cuda.n_calls = 0;
    frt_status got = open_program(&rig, text, options);
    cr_expect_eq(got, status, "%s instead of %s: %s", frt_status_name(got), frt_status_name(status),
                 rig.err.message);
    cr_expect(strstr(rig.err.message, part), "`%s` lacks `%s`", rig.err.message, part);
    close_rig(&rig);
    expect_nothing_held(part);
}

Test(rt_cuda, architectures_are_compared_before_anything_is_loaded) {
    static const struct {
        const char *arch;
        int major, minor, fits;
    } cases[] = {
        {"sm_80", 8, 0, 1},   {"sm_80", 9, 0, 1},   {"sm_90", 8, 9, 0},    {"sm_90a", 9, 0, 1},
        {"sm_90a", 10, 0, 0}, {"sm_90a", 8, 0, 0},  {"sm_100f", 10, 3, 1}, {"sm_100f", 12, 0, 0},
        {"sm_120", 12, 1, 1}, {"sm_90ab", 9, 0, 0}, {"gfx90a", 9, 0, 0},   {"sm_", 9, 0, 0},
    };
    frt_program_options options = fake_options();
    fake_cuda_reset();
    add_kernels();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = text_replace(manifest, "sm_80", cases[i].arch);
        fake_cuda.major = cases[i].major;
        fake_cuda.minor = cases[i].minor;
        expect_open(text, &options, cases[i].fits ? FRT_OK : FRT_E_ARCH,
                    cases[i].fits ? "" : cases[i].arch);
        cr_expect_eq(fake_cuda_count("cuModuleLoadDataEx"), cases[i].fits);
        free(text);
    }
}

Test(rt_cuda, driver_and_device_problems_have_their_own_status) {
    frt_program_options options = fake_options();
    fake_cuda_reset();
    add_kernels();
    options.device_ordinal = 1;
    expect_open(manifest, &options, FRT_E_NO_DEVICE, "device 1");
    options.device_ordinal = 0;
    fake_cuda.n_devices = 0;
    expect_open(manifest, &options, FRT_E_NO_DEVICE, "no CUDA device");
    fake_cuda.n_devices = 1;
    fake_cuda.driver_version = 11020;
    expect_open(manifest, &options, FRT_E_DRIVER_OLD, "CUDA 11.2");
    fake_cuda.driver_version = 12080;
    fake_cuda.missing = "cuMemAlloc_v2";
    expect_open(manifest, &options, FRT_E_DRIVER_SYMBOL, "cuMemAlloc_v2");
    fake_cuda.missing = "cuFuncLoad";
    expect_open(manifest, &options, FRT_OK, "");
    char *gone = text_replace(manifest, "k_pack", "k_gone");
    expect_open(gone, &options, FRT_E_CODE, "k_gone");
    free(gone);
}

Test(rt_cuda, the_callers_context_is_used_and_not_released) {
    Rig rig;
    char context;
    frt_program_options options = fake_options();
    options.cu_context = &context;
    fake_cuda_reset();
    add_kernels();
    cr_assert_eq(open_program(&rig, manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(fake_cuda_count("cuDevicePrimaryCtxRetain"), 0);
    close_rig(&rig);
    cr_expect_eq(fake_cuda_count("cuDevicePrimaryCtxRelease"), 0);
    expect_nothing_held("with the caller's context");
}

/* Everything a caller does, from loading to reading back. */
static frt_status scenario(Rig *rig) {
    frt_program_options options = fake_options();
    float ms[4];
    void *device = NULL;
    frt_status status = open_program(rig, manifest, &options);
    if (!status) {
        status = frt_program_set_param(rig->program, "w", weights, sizeof weights, &rig->err);
    }
    if (!status) {
        status = frt_exec_create(rig->program, &rig->exec, &rig->err);
    }
    if (!status) {
        status = bind(rig, 4);
    }
    if (!status) {
        status = frt_run(rig->exec, NULL, &rig->err);
    }
    if (!status) {
        status = bind(rig, 6); /* the workspace grows */
    }
    if (!status) {
        status = frt_run(rig->exec, NULL, &rig->err);
    }
    if (!status) {
        status = frt_program_set_param(rig->program, "w", weights, sizeof weights, &rig->err);
    }
    if (!status) {
        status = frt_time_runs(rig->exec, NULL, 3, ms, &rig->err);
    }
    if (!status) {
        status = frt_time_launches(rig->exec, NULL, 2, ms, &rig->err);
    }
    if (!status) {
        FRT_INFO(frt_kernel_info, info);
        status = frt_program_get_kernel(rig->program, 1, 0, &info, &rig->err);
    }
    if (!status) {
        status = frt_sync(rig->program, NULL, &rig->err);
    }
    if (!status) {
        status = frt_device_alloc(rig->program, 64, &device, &rig->err);
    }
    if (!status) {
        status = frt_copy_to_device(rig->program, device, rig->y, 64, &rig->err);
    }
    if (!status) {
        status = frt_copy_from_device(rig->program, rig->y, device, 64, &rig->err);
    }
    frt_device_free(rig->program, device, 64);
    return status;
}

static int is_fatal(int code) {
    return code == 700 || code == 715 || code == 719;
}

/* Call n of the scenario fails with `code`; returns 0 when there is no call n. */
static int fail_call(long n, int code) {
    Rig rig;
    char when[80];
    fake_cuda_reset();
    fake_cuda.fail_at = n;
    fake_cuda.fail_code = code;
    frt_status status = scenario(&rig);
    if (!fake_cuda.has_failed && status == FRT_OK) {
        close_rig(&rig);
        return 0;
    }
    snprintf(when, sizeof when, "call %ld, %s, code %d", n, fake_cuda.failed_in, code);
    int is_giving_back =
        strstr(fake_cuda.failed_in, "Free") || strstr(fake_cuda.failed_in, "Destroy") ||
        strstr(fake_cuda.failed_in, "Release") || strstr(fake_cuda.failed_in, "Unload") ||
        strstr(fake_cuda.failed_in, "PopCurrent") ||
        strcmp(fake_cuda.failed_in, "cuDriverGetVersion") == 0;
    int is_cleaning_sync = strcmp(fake_cuda.failed_in, "cuCtxSynchronize") == 0;
    cr_expect(status != FRT_OK || is_giving_back || is_cleaning_sync ||
                  strcmp(fake_cuda.failed_in, "cuCtxPushCurrent") == 0,
              "%s went unnoticed", when);
    if (status != FRT_OK) {
        cr_expect(rig.err.message[0] != '\0', "%s: no message", when);
        if (code == 2) {
            cr_expect_eq(status, FRT_E_OUT_OF_MEMORY, "%s: %s", when, frt_status_name(status));
        }
        if (is_fatal(code)) {
            cr_expect_eq(status, FRT_E_DEVICE_LOST, "%s: %s", when, frt_status_name(status));
            cr_expect_eq(rig.err.cuda, code);
        }
        cr_expect_eq(fake_cuda.depth, 1, "%s: context left current", when);
    }
    if (rig.exec && rig.program && bind(&rig, 6) == FRT_OK) {
        frt_status again = frt_run(rig.exec, NULL, &rig.err);
        if (status != FRT_OK && is_fatal(code)) {
            cr_expect_eq(again, FRT_E_DEVICE_LOST, "%s: lost is for good", when);
        } else if (!is_fatal(code)) {
            cr_expect_eq(again, FRT_OK, "%s: the exec must go on: %s", when, rig.err.message);
            expect_y(&rig, 6);
        }
    }
    close_rig(&rig);
    expect_nothing_held(when);
    return 1;
}

Test(rt_cuda, every_driver_call_failed_once_is_a_status_and_leaks_nothing, .timeout = 60) {
    static const int codes[] = {1, 2, 46, 209, 218, 222, 700, 715, 719, 999};
    fake_cuda_reset();
    add_kernels();
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        long n = 1;
        while (fail_call(n, codes[i])) {
            n++;
        }
        cr_expect_gt(n, 60, "only %ld calls were failed", n);
    }
}

Test(rt_cuda, every_failed_allocation_is_a_status_and_leaks_nothing) {
    fake_cuda_reset();
    add_kernels();
    long n = 1;
    for (;; n++) {
        Rig rig;
        char when[40];
        snprintf(when, sizeof when, "host allocation %ld", n);
        fake_cuda_reset();
        fake_mem_fail_at(n, 0);
        frt_status status = scenario(&rig);
        int failed = fake_mem_failed();
        fake_mem_fail_at(0, 0);
        cr_expect_eq(status, failed ? FRT_E_OUT_OF_MEMORY : FRT_OK, "%s: %s", when,
                     rig.err.message);
        close_rig(&rig);
        expect_nothing_held(when);
        if (!failed) {
            break;
        }
    }
    cr_expect_gt(n, 20);
}

Test(rt_cuda, jit_errors_carry_the_drivers_words) {
    static const struct {
        int code;
        frt_status status;
    } cases[] = {{218, FRT_E_CODE}, {209, FRT_E_ARCH}, {222, FRT_E_DRIVER_OLD}};
    frt_program_options options = fake_options();
    add_kernels();
    for (size_t i = 0; i < 3; i++) {
        Rig rig;
        long n = 0;
        frt_status status = FRT_OK;
        do {
            fake_cuda_reset();
            fake_cuda.fail_at = ++n;
            fake_cuda.fail_code = cases[i].code;
            status = open_program(&rig, manifest, &options);
            close_rig(&rig);
        } while (n < 50 &&
                 (!fake_cuda.failed_in || strcmp(fake_cuda.failed_in, "cuModuleLoadDataEx") != 0));
        cr_expect_eq(status, cases[i].status);
        cr_expect(strstr(rig.err.message, "fake complaint line two: CUDA_ERROR"), "%s",
                  rig.err.message);
        cr_expect_eq(rig.err.cuda, cases[i].code);
    }
}

typedef struct Hook {
    long n_live;
    size_t n_bytes;
    int is_odd, is_empty;
} Hook;

static void *hook_alloc(void *ctx, size_t n_bytes) {
    Hook *hook = ctx;
    if (hook->is_empty) {
        return NULL;
    }
    hook->n_live++;
    hook->n_bytes += n_bytes;
    char *memory = aligned_alloc(256, (n_bytes + 511) / 256 * 256);
    return memory + (hook->is_odd ? 16 : 0);
}

static void hook_free(void *ctx, void *data, size_t n_bytes) {
    Hook *hook = ctx;
    hook->n_live--;
    hook->n_bytes -= n_bytes;
    free((char *)data - (hook->is_odd ? 16 : 0));
}

Test(rt_cuda, the_callers_allocator_gets_every_block_back) {
    Hook hook = {0};
    Rig rig;
    frt_program_options options = fake_options();
    options.allocator = (frt_allocator){hook_alloc, hook_free, &hook};
    fake_cuda_reset();
    add_kernels();
    cr_assert_eq(open_program(&rig, manifest, &options), FRT_OK);
    cr_assert_eq(frt_program_set_param(rig.program, "w", weights, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(bind(&rig, 6), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    expect_y(&rig, 6);
    cr_expect_eq(hook.n_live, 4, "scratch, param, persistent temp, workspace");
    cr_expect_eq(fake_cuda_count("cuMemAlloc"), 0);
    close_rig(&rig);
    cr_expect(hook.n_live == 0 && hook.n_bytes == 0);
    hook.is_odd = 1;
    expect_open(manifest, &options, FRT_E_ALIGNMENT, "256 bytes");
    hook.is_empty = 1;
    expect_open(manifest, &options, FRT_E_OUT_OF_MEMORY, "caller's allocator");
    cr_expect_eq(hook.n_live, 0);
    options.allocator.free = NULL;
    expect_open(manifest, &options, FRT_E_INVALID_ARGUMENT, "both alloc and free");
}

Test(rt_cuda, grids_beyond_a_launch_are_refused_before_it) {
    Rig rig;
    frt_program_options options = fake_options();
    char *text = text_replace(manifest, "k_scale16 B 128", "k_scale16 B,65536,*,65536,* 128");
    char *both = text_replace(text, "k_scale B 64", "k_scale B,65536,*,65536,* 64");
    fake_cuda_reset();
    add_kernels();
    cr_assert_eq(open_program(&rig, both, &options), FRT_OK);
    cr_assert_eq(frt_program_set_param(rig.program, "w", weights, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(bind(&rig, 6), FRT_OK);
    cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_E_LAUNCH);
    cr_expect(strstr(rig.err.message, "kernel scale would need a grid of 25769803776"), "%s",
              rig.err.message);
    close_rig(&rig);
    free(text);
    free(both);
    expect_nothing_held("after a refused grid");
}

Test(rt_cuda, without_a_driver_the_status_says_so) {
    Rig rig;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    frt_status status = open_program(&rig, manifest, &options);
    /* On a machine with a GPU this opens or fails later; without libcuda it is exactly this. */
    cr_expect(status != FRT_E_NO_DRIVER || strstr(rig.err.message, "no CUDA driver"));
    cr_expect(status != FRT_OK, "the PTX has no kernels");
    close_rig(&rig);
}
