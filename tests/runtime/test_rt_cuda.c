/* The CUDA path over a fake driver: what is called, with what, and what every failure leads to. */
#include "../fake/rt_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(rt_cuda, a_run_is_two_enqueued_steps_on_the_callers_stream) {
    RtRig rig;
    frt_program_options options = rt_options();
    char stream;
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_expect_str_eq(frt_device_name(rig.program), "Fake GPU 0");
    FRT_INFO(frt_device_info, device);
    cr_expect_eq(frt_program_get_device(rig.program, &device), FRT_OK);
    cr_expect(device.driver_version == 12080 && device.compute_capability == 90 &&
              device.n_processors == 132 && device.clock_mhz == 1980);
    cr_expect_eq(frt_program_get_device(NULL, &device), FRT_E_INVALID_ARGUMENT);
    cr_expect(strncmp(fake_cuda.image, ".version 7.0", 12) == 0, "the driver gets the PTX alone");
    cr_expect_eq(fake_cuda.max_dynamic_shared, 232448 - 1024);
    cr_expect_eq(fake_cuda_count("cuFuncSetAttribute"), 1, "only where it is needed");
    cr_assert_eq(frt_program_set_param(rig.program, "w", rt_weights, sizeof rt_weights, &rig.err),
                 FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(rt_bind(&rig, 5), FRT_OK);
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
    cr_expect(fake_cuda.grid == 5 && fake_cuda_depth() == 1);
    rt_expect_y(&rig, 5);
    int is_aligned = (uintptr_t)rig.x % 16 == 0;
    cr_expect_eq(fake_cuda.block, is_aligned ? 128u : 64u);
    cr_expect_eq(fake_cuda.shared, is_aligned ? 80u : 0u);
    rig.x += 1;
    cr_assert_eq(rt_bind(&rig, 2), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    rt_expect_y(&rig, 2);
    cr_expect_eq(frt_exec_variant(rig.exec, 2), (uintptr_t)rig.x % 16 ? 1 : 0);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a run");
}

Test(rt_cuda, the_driver_tells_what_it_made_of_a_kernel) {
    RtRig rig;
    frt_program_options options = rt_options();
    FRT_INFO(frt_kernel_info, info);
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK);
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
    rt_close_rig(&rig);
    rt_expect_nothing_held("after asking");
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
    cr_expect(x->data == rt_x_storage && x->dtype == 9 && x->swizzle == 3 && x->rank == 3);
    cr_expect(x->sizes[0] == 64 && x->sizes[1] == 3 && x->sizes[2] == 2);
    cr_expect(x->stride_bytes[1] == 16 && x->stride_bytes[2] == 128 && x->box[2] == 256);
    cr_expect(y->data == (char *)rt_y_storage + 128 && y->sizes[1] == 1);
}

static void k_any(void **params, unsigned grid, unsigned block) {
    (void)params;
    (void)grid;
    (void)block;
}

/* Runs over B x C elements, `shift` bytes into the storage. */
static frt_status run_mapped(RtRig *rig, const char *manifest, int64_t b, int64_t c, size_t shift) {
    frt_program_options options = rt_options();
    cr_assert_eq(rt_open_program(rig, manifest, &options), FRT_OK, "%s", rig->err.message);
    frt_tensor x = {.dtype = FRT_BF16, .rank = 2, .dims = {b, c}}, y = x;
    x.data = (char *)rt_x_storage + shift;
    y.data = rt_y_storage;
    cr_assert_eq(frt_exec_create(rig->program, &rig->exec, &rig->err), FRT_OK);
    cr_assert_eq(frt_bind(rig->exec, "x", &x, &rig->err), FRT_OK);
    cr_assert_eq(frt_bind(rig->exec, "y", &y, &rig->err), FRT_OK);
    return frt_run(rig->exec, NULL, &rig->err);
}

/* The variant that such a run takes. */
static int32_t mapped_variant(int64_t b, int64_t c, size_t shift) {
    RtRig rig;
    frt_status status = run_mapped(&rig, mapped, b, c, shift);
    cr_assert_eq(status, FRT_OK, "%s", rig.err.message);
    int32_t variant = frt_exec_variant(rig.exec, 0);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a mapped run");
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

/* The last variant is taken as it is: a map of it that cannot be made is the artifact's fault. */
Test(rt_cuda, maps_of_the_last_variant_must_hold) {
    char certain[sizeof mapped];
    strcpy(certain, mapped);
    char *any = strstr(certain, "//@ variant k_any");
    strcpy(any, "//@ end\n");
    fake_cuda_reset();
    fake_cuda_add_kernel("k_mapped", k_mapped);
    RtRig rig;
    cr_expect_eq(run_mapped(&rig, certain, 2, 64, 0), FRT_OK, "%s", rig.err.message);
    rt_close_rig(&rig);
    cr_expect_eq(run_mapped(&rig, certain, 2, 60, 0), FRT_E_LAUNCH);
    cr_expect(strstr(rig.err.message, "kernel copy: no tensor map of argument 1"), "%s",
              rig.err.message);
    rt_close_rig(&rig);
    fake_cuda.missing = "cuTensorMapEncodeTiled";
    cr_expect_eq(run_mapped(&rig, certain, 2, 64, 0), FRT_E_DRIVER_OLD, "%s", rig.err.message);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after maps that could not be made");
}

static const char parts[] = "//@ fusec-artifact 1\n"
                            "//@ checksum 00000000\n"
                            "//@ compiler 0.1.0\n"
                            "//@ target cuda sm_90a\n"
                            "//@ numerics strict\n"
                            "//@ source m.g\n"
                            "//@ dim B 0 65536 1\n"
                            "//@ graph g\n"
                            "//@ input x 0 bf16 B 64\n"
                            "//@ input w 0 bf16 32 64\n"
                            "//@ output y 0 bf16 B 32\n"
                            "//@ launch run 1 both%2B1 x,w,y,w,x,y B\n"
                            "//@ variant k_parts 1 32 0 -\n"
                            "//@ map 0 128 0 64:1:64 B:64:8\n"
                            "//@ map 1 128 0 64:1:64 32:64:16\n"
                            "//@ map 3 128 0 64:1:64 32:64:8\n"
                            "//@ map 4 128 0 64:1:64 B:64:16\n"
                            "//@ variant k_any 1 64 0 -\n"
                            "//@ end\n";

static _Alignas(64) uint16_t weights[32 * 64 + 1];

static void k_parts(void **params, unsigned grid, unsigned block) {
    const FakeMap *const maps[4] = {params[7], params[8], params[9], params[10]};
    void *const *args[6] = {params[0], params[1], params[2], params[3], params[4], params[5]};
    (void)grid;
    (void)block;
    cr_expect(*(const int64_t *)params[6] == 2, "the dims come between");
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < 2; i++) {
            const FakeMap *map = maps[part * 2 + i];
            cr_expect(map->data == *args[part * 3 + i], "part %d, map %d", part, i);
            cr_expect_eq(map->box[1], i ? 16 : 8);
            cr_expect_eq(map->sizes[1], part == i ? 2 : 32);
        }
}

/* Maps of a launch of several kernels are over arguments of any of them; each is a condition. */
Test(rt_cuda, every_kernel_of_a_launch_has_its_maps) {
    fake_cuda_reset();
    fake_cuda_add_kernel("k_parts", k_parts);
    fake_cuda_add_kernel("k_any", k_any);
    for (size_t shift = 0; shift <= 2; shift += 2) {
        RtRig rig;
        frt_program_options options = rt_options();
        cr_assert_eq(rt_open_program(&rig, parts, &options), FRT_OK, "%s", rig.err.message);
        frt_tensor x = {.dtype = FRT_BF16, .rank = 2, .dims = {2, 64}, .data = rt_x_storage};
        frt_tensor w = {.dtype = FRT_BF16, .rank = 2, .dims = {32, 64}};
        frt_tensor y = {.dtype = FRT_BF16, .rank = 2, .dims = {2, 32}, .data = rt_y_storage};
        w.data = (char *)weights + shift;
        cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
        cr_assert_eq(frt_bind(rig.exec, "x", &x, &rig.err), FRT_OK);
        cr_assert_eq(frt_bind(rig.exec, "w", &w, &rig.err), FRT_OK);
        cr_assert_eq(frt_bind(rig.exec, "y", &y, &rig.err), FRT_OK);
        cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
        cr_expect_eq(frt_exec_variant(rig.exec, 0), shift ? 1 : 0);
        cr_expect_eq(fake_cuda_count("cuTensorMapEncodeTiled"), 4, "none for what is passed over");
        rt_close_rig(&rig);
    }
    rt_expect_nothing_held("after a launch of parts");
}

Test(rt_cuda, empty_tensors_launch_nothing) {
    RtRig rig;
    frt_program_options options = rt_options();
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK);
    cr_assert_eq(frt_program_set_param(rig.program, "w", rt_weights, sizeof rt_weights, &rig.err),
                 FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    frt_tensor empty = {.dtype = FRT_F32, .rank = 2, .dims = {0, 4}};
    cr_assert_eq(frt_bind(rig.exec, "x", &empty, &rig.err), FRT_OK);
    cr_assert_eq(frt_bind(rig.exec, "y", &empty, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(fake_cuda.n_launches, 2, "the init steps alone");
    cr_expect_eq(fake_cuda_count("cuMemcpyDtoDAsync"), 0);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after an empty run");
}

static void expect_open(const char *text, const frt_program_options *options, frt_status status,
                        const char *part) {
    RtRig rig;
    fake_cuda.n_calls = 0;
    frt_status got = rt_open_program(&rig, text, options);
    cr_expect_eq(got, status, "%s instead of %s: %s", frt_status_name(got), frt_status_name(status),
                 rig.err.message);
    cr_expect(strstr(rig.err.message, part), "`%s` lacks `%s`", rig.err.message, part);
    rt_close_rig(&rig);
    rt_expect_nothing_held(part);
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
    frt_program_options options = rt_options();
    fake_cuda_reset();
    rt_add_kernels();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = text_replace(rt_manifest, "sm_80", cases[i].arch);
        fake_cuda.major = cases[i].major;
        fake_cuda.minor = cases[i].minor;
        expect_open(text, &options, cases[i].fits ? FRT_OK : FRT_E_ARCH,
                    cases[i].fits ? "" : cases[i].arch);
        cr_expect_eq(fake_cuda_count("cuModuleLoadDataEx"), cases[i].fits);
        free(text);
    }
}

Test(rt_cuda, driver_and_device_problems_have_their_own_status) {
    frt_program_options options = rt_options();
    fake_cuda_reset();
    rt_add_kernels();
    options.device_ordinal = 1;
    expect_open(rt_manifest, &options, FRT_E_NO_DEVICE, "device 1");
    options.device_ordinal = 0;
    fake_cuda.n_devices = 0;
    expect_open(rt_manifest, &options, FRT_E_NO_DEVICE, "no CUDA device");
    fake_cuda.n_devices = 1;
    fake_cuda.driver_version = 11020;
    expect_open(rt_manifest, &options, FRT_E_DRIVER_OLD, "CUDA 11.2");
    fake_cuda.driver_version = 12080;
    fake_cuda.missing = "cuMemAlloc_v2";
    expect_open(rt_manifest, &options, FRT_E_DRIVER_SYMBOL, "cuMemAlloc_v2");
    fake_cuda.missing = "cuFuncLoad";
    expect_open(rt_manifest, &options, FRT_OK, "");
    char *gone = text_replace(rt_manifest, "k_pack", "k_gone");
    expect_open(gone, &options, FRT_E_CODE, "k_gone");
    free(gone);
}

Test(rt_cuda, the_callers_context_is_used_and_not_released) {
    RtRig rig;
    char context;
    frt_program_options options = rt_options();
    options.cu_context = &context;
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(fake_cuda_count("cuDevicePrimaryCtxRetain"), 0);
    rt_close_rig(&rig);
    cr_expect_eq(fake_cuda_count("cuDevicePrimaryCtxRelease"), 0);
    rt_expect_nothing_held("with the caller's context");
}

/* Everything a caller does, from loading to reading back. */
static frt_status scenario(RtRig *rig) {
    frt_program_options options = rt_options();
    float ms[4];
    void *device = NULL;
    frt_status status = rt_open_program(rig, rt_manifest, &options);
    if (!status) {
        status = frt_program_set_param(rig->program, "w", rt_weights, sizeof rt_weights, &rig->err);
    }
    if (!status) {
        status = frt_exec_create(rig->program, &rig->exec, &rig->err);
    }
    if (!status) {
        status = rt_bind(rig, 4);
    }
    if (!status) {
        status = frt_run(rig->exec, NULL, &rig->err);
    }
    if (!status) {
        status = rt_bind(rig, 6); /* the workspace grows */
    }
    if (!status) {
        status = frt_run(rig->exec, NULL, &rig->err);
    }
    if (!status) {
        status = frt_program_set_param(rig->program, "w", rt_weights, sizeof rt_weights, &rig->err);
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

/* An error is written on failure only, also where a failed attempt was followed by another. */
static void expect_untouched(const RtRig *rig, frt_status status, const char *when) {
    if (status == FRT_OK) {
        cr_expect(rig->err.status == FRT_OK && rig->err.message[0] == '\0', "%s left `%s`", when,
                  rig->err.message);
    }
}

/* Call n of the scenario fails with `code`; returns 0 when there is no call n. */
static int fail_call(long n, int code) {
    RtRig rig;
    char when[80];
    fake_cuda_reset();
    fake_cuda.fail_at = n;
    fake_cuda.fail_code = code;
    frt_status status = scenario(&rig);
    if (!fake_cuda.has_failed && status == FRT_OK) {
        expect_untouched(&rig, status, "no failed call");
        rt_close_rig(&rig);
        return 0;
    }
    snprintf(when, sizeof when, "call %ld, %s, code %d", n, fake_cuda.failed_in, code);
    int is_giving_back =
        strstr(fake_cuda.failed_in, "Free") || strstr(fake_cuda.failed_in, "Destroy") ||
        strstr(fake_cuda.failed_in, "Release") || strstr(fake_cuda.failed_in, "Unload") ||
        strstr(fake_cuda.failed_in, "PopCurrent") ||
        strcmp(fake_cuda.failed_in, "cuDriverGetVersion") == 0;
    int is_cleaning_sync = strcmp(fake_cuda.failed_in, "cuCtxSynchronize") == 0;
    expect_untouched(&rig, status, when);
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
        cr_expect_eq(fake_cuda_depth(), 1, "%s: context left current", when);
    }
    if (rig.exec && rig.program && rt_bind(&rig, 6) == FRT_OK) {
        frt_status again = frt_run(rig.exec, NULL, &rig.err);
        if (status != FRT_OK && is_fatal(code)) {
            cr_expect_eq(again, FRT_E_DEVICE_LOST, "%s: lost is for good", when);
        } else if (!is_fatal(code)) {
            cr_expect_eq(again, FRT_OK, "%s: the exec must go on: %s", when, rig.err.message);
            rt_expect_y(&rig, 6);
        }
    }
    rt_close_rig(&rig);
    rt_expect_nothing_held(when);
    return 1;
}

Test(rt_cuda, every_driver_call_failed_once_is_a_status_and_leaks_nothing, .timeout = 60) {
    static const int codes[] = {1, 2, 46, 209, 218, 222, 700, 715, 719, 999};
    fake_cuda_reset();
    rt_add_kernels();
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
    rt_add_kernels();
    long n = 1;
    for (;; n++) {
        RtRig rig;
        char when[40];
        snprintf(when, sizeof when, "host allocation %ld", n);
        fake_cuda_reset();
        fake_mem_fail_at(n, 0);
        frt_status status = scenario(&rig);
        int failed = fake_mem_failed();
        fake_mem_fail_at(0, 0);
        cr_expect_eq(status, failed ? FRT_E_OUT_OF_MEMORY : FRT_OK, "%s: %s", when,
                     rig.err.message);
        expect_untouched(&rig, status, when);
        rt_close_rig(&rig);
        rt_expect_nothing_held(when);
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
    frt_program_options options = rt_options();
    rt_add_kernels();
    for (size_t i = 0; i < 3; i++) {
        RtRig rig;
        long n = 0;
        frt_status status = FRT_OK;
        do {
            fake_cuda_reset();
            fake_cuda.fail_at = ++n;
            fake_cuda.fail_code = cases[i].code;
            status = rt_open_program(&rig, rt_manifest, &options);
            rt_close_rig(&rig);
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
    RtRig rig;
    frt_program_options options = rt_options();
    options.allocator = (frt_allocator){hook_alloc, hook_free, &hook};
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK);
    cr_assert_eq(frt_program_set_param(rig.program, "w", rt_weights, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(rt_bind(&rig, 6), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    rt_expect_y(&rig, 6);
    cr_expect_eq(hook.n_live, 4, "scratch, param, persistent temp, workspace");
    cr_expect_eq(fake_cuda_count("cuMemAlloc"), 0);
    rt_close_rig(&rig);
    cr_expect(hook.n_live == 0 && hook.n_bytes == 0);
    hook.is_odd = 1;
    expect_open(rt_manifest, &options, FRT_E_ALIGNMENT, "256 bytes");
    hook.is_empty = 1;
    expect_open(rt_manifest, &options, FRT_E_OUT_OF_MEMORY, "caller's allocator");
    cr_expect_eq(hook.n_live, 0);
    options.allocator.free = NULL;
    expect_open(rt_manifest, &options, FRT_E_INVALID_ARGUMENT, "both alloc and free");
}

Test(rt_cuda, grids_beyond_a_launch_are_refused_before_it) {
    RtRig rig;
    frt_program_options options = rt_options();
    char *text = text_replace(rt_manifest, "k_scale16 B 128", "k_scale16 B,65536,*,65536,* 128");
    char *both = text_replace(text, "k_scale B 64", "k_scale B,65536,*,65536,* 64");
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(rt_open_program(&rig, both, &options), FRT_OK);
    cr_assert_eq(frt_program_set_param(rig.program, "w", rt_weights, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(rt_bind(&rig, 6), FRT_OK);
    cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_E_LAUNCH);
    cr_expect(strstr(rig.err.message, "kernel scale would need a grid of 25769803776"), "%s",
              rig.err.message);
    rt_close_rig(&rig);
    free(text);
    free(both);
    rt_expect_nothing_held("after a refused grid");
}

Test(rt_cuda, without_a_driver_the_status_says_so) {
    RtRig rig;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    frt_status status = rt_open_program(&rig, rt_manifest, &options);
    /* On a machine with a GPU this opens or fails later; without libcuda it is exactly this. */
    cr_expect(status != FRT_E_NO_DRIVER || strstr(rig.err.message, "no CUDA driver"));
    cr_expect(status != FRT_OK, "the PTX has no kernels");
    rt_close_rig(&rig);
}

#define STEP(line, name) "//@ launch run " line " " name " y -\n//@ variant k_" name " 1 32 0 -\n"
static const char repeated[] =
    "//@ fusec-artifact 1\n"
    "//@ checksum 00000000\n"
    "//@ compiler 0.1.0\n"
    "//@ target cuda sm_80\n"
    "//@ numerics strict\n"
    "//@ source m.g\n"
    "//@ dim N 0 100 1\n"
    "//@ graph g\n"
    "//@ input x 0 f32 N\n"
    "//@ output y 0 f32 1\n" STEP("1", "first") "//@ repeat N,1,+\n" STEP(
        "2", "double") "//@ odd\n" STEP("2", "add")
        STEP(
            "2",
            "double") "//@ end-repeat\n"
                      "//@ repeat N\n"
                      "//@ odd\n" STEP(
                          "3",
                          "add") "//@ end-repeat\n"
                                 "//@ repeat N\n"
                                 "//@ repeat N\n" STEP("3", "double") "//@ odd\n" STEP("3", "add") "//@ end-repeat\n" STEP(
                                     "3",
                                     "add") "//@ odd\n" STEP("3",
                                                             "double") "//@ repeat 2\n"
                                                                       "//@ odd\n" STEP(
                                                                           "3",
                                                                           "negate") "//@ "
                                                                                     "end-repeat\n"
                                                                                     "//@ "
                                                                                     "end-"
                                                                                     "repeat"
                                                                                     "\n" STEP(
                                                                                         "4",
                                                                                         "negate") "//@ end\n";

static void k_first(void **params, unsigned grid, unsigned block) {
    (void)grid, (void)block;
    **(float **)params[0] = 1;
}

static void k_double(void **params, unsigned grid, unsigned block) {
    (void)grid, (void)block;
    **(float **)params[0] *= 2;
}

static void k_add(void **params, unsigned grid, unsigned block) {
    (void)grid, (void)block;
    **(float **)params[0] += 1;
}

static void k_negate(void **params, unsigned grid, unsigned block) {
    (void)grid, (void)block;
    **(float **)params[0] *= -1;
}

/* What the repeated program gives. */
static float repeated_value(int n) {
    float y = 1;
    for (int turn = 0; turn <= n; turn++) y = turn % 2 ? (y + 1) * 2 : y * 2;
    for (int turn = 0; turn < n; turn++) y += (float)(turn % 2);
    for (int turn = 0; turn < n; turn++) {
        for (int k = 0; turn % 2 == 0 && k < n; k++) y = k % 2 ? y + 1 : y * 2;
        y = turn % 2 ? -(y * 2) : y + 1;
    }
    return -y;
}

/* Steps of a repeat alternate, in a stream and in a kept graph, and nothing but launches is called
 * for them. */
Test(rt_cuda, repeated_steps_alternate) {
    RtRig rig;
    frt_program_options options = rt_options();
    fake_cuda_reset();
    fake_cuda_add_valued_kernel("k_first", k_first, 1, false);
    fake_cuda_add_valued_kernel("k_double", k_double, 1, false);
    fake_cuda_add_valued_kernel("k_add", k_add, 1, false);
    fake_cuda_add_valued_kernel("k_negate", k_negate, 1, false);
    cr_assert_eq(rt_open_program(&rig, repeated, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    frt_tensor y = {.data = rt_y_storage, .dtype = FRT_F32, .rank = 1, .dims = {1}};
    cr_assert_eq(frt_bind(rig.exec, "y", &y, &rig.err), FRT_OK);
    for (int keeps = 0; keeps < 2; keeps++) {
        cr_assert_eq(frt_exec_keep_graph(rig.exec, keeps, &rig.err), FRT_OK);
        for (int n = 0; n < 7; n++) {
            frt_tensor x = {.data = rt_x_storage, .dtype = FRT_F32, .rank = 1, .dims = {n}};
            cr_assert_eq(frt_bind(rig.exec, "x", &x, &rig.err), FRT_OK);
            cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK, "%s", rig.err.message);
            fake_cuda.n_calls = 0;
            cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
            cr_expect_eq(rt_y_storage[0], repeated_value(n), "%d: %g", n, (double)rt_y_storage[0]);
            int n_launches = 2 + n + 1 + (n + 1) / 2 + n / 2 + (n + 1) / 2 * (n + 1) + n / 2 * 2;
            if (!keeps) cr_expect_eq(fake_cuda.n_calls, 2 + n_launches, "%d", n);
        }
    }
    char text[64];
    FRT_INFO(frt_step_info, step);
    cr_expect_eq(frt_module_get_step(rig.module, 0, 2, &step), FRT_OK);
    cr_expect_eq(step.iterations, 2);
    cr_expect_eq(frt_module_iterations_text(rig.module, 0, 2, text, sizeof text), strlen("N+1"));
    cr_expect_str_eq(text, "N+1");
    cr_expect_eq(frt_module_iterations_text(rig.module, 0, 0, text, sizeof text), 0u);
    cr_expect_eq(frt_module_get_step(rig.module, 0, 9, &step), FRT_OK);
    cr_expect_eq(step.iterations,
                 2); /* of the repeat that is inside the odd steps of another one */
    cr_expect_eq(frt_module_iterations_text(rig.module, 0, 9, text, sizeof text), 1u);
    cr_expect_str_eq(text, "2");
    rt_close_rig(&rig);
    rt_expect_nothing_held("after repeats");
}
