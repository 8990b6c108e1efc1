/* Launches that overlap and an exec's own graph, over the fake driver. */
#include "../fake/rt_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* rt_manifest with kernels that wait; the caller frees it. */
static char *waiting_manifest(void) {
    char *a = text_replace(rt_manifest, "k_twice 1 32 0 -", "k_twice 1 32 0 - waits");
    char *b = text_replace(a, "k_pack 1 32 0 -", "k_pack 1 32 0 - waits");
    char *c = text_replace(b, "B,16,* a2:16", "B,16,* a2:16 waits");
    char *d = text_replace(c, "k_scale B 64 0 -", "k_scale B 64 0 - waits");
    free(a);
    free(b);
    free(c);
    return d;
}

static frt_status open_bound(RtRig *rig, const char *text, const frt_program_options *options) {
    frt_status status = rt_open_program(rig, text, options);
    if (!status) {
        status = frt_program_set_param(rig->program, "w", rt_weights, sizeof rt_weights, &rig->err);
    }
    if (!status) {
        status = frt_exec_create(rig->program, &rig->exec, &rig->err);
    }
    return status ? status : rt_bind(rig, 4);
}

/* How many of the two init launches and the one of a run overlap. */
static void expect_overlaps(const char *text, const frt_program_options *options, int32_t n,
                            const char *when) {
    RtRig rig;
    cr_assert_eq(open_bound(&rig, text, options), FRT_OK, "%s: %s", when, rig.err.message);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s: %s", when, rig.err.message);
    rt_expect_y(&rig, 4);
    cr_expect_eq(fake_cuda.n_launches, 3);
    cr_expect_eq(fake_cuda.n_overlapping, n, "%s: %ld launches overlap", when,
                 fake_cuda.n_overlapping);
    rt_close_rig(&rig);
    rt_expect_nothing_held(when);
}

Test(rt_graph, a_launch_overlaps_where_kernel_driver_and_options_say_so) {
    char *text = waiting_manifest();
    char *half = text_replace(rt_manifest, "k_pack 1 32 0 -", "k_pack 1 32 0 - waits");
    frt_program_options options = rt_options();
    rt_add_kernels();
    fake_cuda_reset();
    expect_overlaps(text, &options, 3, "all wait");
    fake_cuda_reset();
    expect_overlaps(half, &options, 1, "one waits");
    fake_cuda_reset();
    expect_overlaps(rt_manifest, &options, 0, "none waits");
    fake_cuda_reset();
    fake_cuda.driver_version = 12020;
    expect_overlaps(text, &options, 0, "an old driver");
    fake_cuda_reset();
    fake_cuda.missing = "cuLaunchKernelEx";
    expect_overlaps(text, &options, 0, "a driver without the call");
    fake_cuda_reset();
    options.in_order = true;
    expect_overlaps(text, &options, 0, "not wanted");
    options.struct_size = offsetof(frt_program_options, cache);
    options.cuda_lookup = fake_cuda_lookup;
    fake_cuda_reset();
    expect_overlaps(text, &options, 3, "a caller built before there was a switch");
    free(text);
    free(half);
}

/* A step that is timed by itself must not begin in the time of the one before it. */
Test(rt_graph, timed_steps_do_not_overlap) {
    RtRig rig;
    float ms[8];
    char *text = waiting_manifest();
    frt_program_options options = rt_options();
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(open_bound(&rig, text, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK);
    fake_cuda.n_overlapping = 0;
    cr_assert_eq(frt_time_launches(rig.exec, NULL, 5, ms, &rig.err), FRT_OK);
    cr_expect_eq(fake_cuda.n_overlapping, 0);
    cr_assert_eq(frt_time_runs(rig.exec, NULL, 5, ms, &rig.err), FRT_OK);
    cr_expect_eq(fake_cuda.n_overlapping, 5);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after timing");
    free(text);
}

Test(rt_graph, the_manifest_says_that_a_kernel_waits_in_one_word) {
    static const struct {
        const char *from, *to;
    } bad[] = {{"- waits\n//@ copy", "- wait\n//@ copy"},
               {"- waits\n//@ copy", "- waits waits\n//@ copy"},
               {"cuda sm_80", "cpu x86-64"}};
    char *text = waiting_manifest();
    RtRig rig;
    frt_program_options options = rt_options();
    FRT_INFO(frt_variant_info, variant);
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(rt_open_program(&rig, text, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_module_get_variant(rig.module, 0, 2, 1, &variant), FRT_OK);
    cr_expect(variant.waits);
    rt_close_rig(&rig);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *wrong = text_replace(text, bad[i].from, bad[i].to);
        cr_expect_eq(rt_open_program(&rig, wrong, &options), FRT_E_ARTIFACT, "%s", bad[i].to);
        rt_close_rig(&rig);
        free(wrong);
    }
    free(text);
}

static void expect_run(RtRig *rig, void *stream, int64_t rows, const char *when) {
    fake_cuda.n_calls = 0;
    memset(rt_y_storage, 0, sizeof rt_y_storage);
    cr_assert_eq(frt_run(rig->exec, stream, &rig->err), FRT_OK, "%s: %s", when, rig->err.message);
    rt_expect_y(rig, rows);
}

Test(rt_graph, a_kept_graph_is_one_launch_and_follows_what_is_bound) {
    RtRig rig;
    char stream, *text = waiting_manifest();
    frt_program_options options = rt_options();
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(open_bound(&rig, text, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(frt_exec_keep_graph(rig.exec, true, &rig.err), FRT_OK);
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(fake_cuda_count("cuGraphInstantiateWithFlags"), 1);
    for (int i = 0; i < 2; i++) {
        static const char *const calls[] = {"cuCtxPushCurrent", "cuStreamIsCapturing",
                                            "cuGraphLaunch", "cuCtxPopCurrent"};
        expect_run(&rig, &stream, 4, "kept");
        cr_expect_eq(fake_cuda.n_calls, 4);
        for (int k = 0; k < 4; k++) cr_expect_str_eq(fake_cuda.log[k], calls[k]);
        cr_expect_eq(fake_cuda.stream, &stream);
    }
    cr_assert_eq(frt_exec_keep_graph(rig.exec, true, &rig.err), FRT_OK, "again");
    expect_run(&rig, NULL, 4, "said again");
    cr_expect_eq(fake_cuda_count("cuStreamBeginCapture"), 0, "nothing changed");
    /* Another place and size, of the same variant: the graph is updated. */
    cr_expect_eq(frt_exec_variant(rig.exec, 2), 0);
    rig.x += 4;
    cr_assert_eq(rt_bind(&rig, 6), FRT_OK);
    expect_run(&rig, NULL, 6, "moved");
    cr_expect_eq(fake_cuda_count("cuGraphExecUpdate"), 1);
    cr_expect_eq(fake_cuda_count("cuGraphInstantiateWithFlags"), 0);
    cr_expect_eq(fake_cuda_count("cuGraphLaunch"), 1);
    /* Another variant is another kernel, by which a graph cannot be updated. */
    rig.x -= 3;
    cr_assert_eq(rt_bind(&rig, 2), FRT_OK);
    expect_run(&rig, NULL, 2, "another variant");
    cr_expect_eq(frt_exec_variant(rig.exec, 2), 1);
    cr_expect_eq(fake_cuda_count("cuGraphExecDestroy"), 1);
    cr_expect_eq(fake_cuda_count("cuGraphInstantiateWithFlags"), 1);
    cr_assert_eq(frt_exec_keep_graph(rig.exec, false, &rig.err), FRT_OK);
    cr_expect(fake_cuda.n_graphs == 0 && fake_cuda.n_streams == 0, "given back at once");
    expect_run(&rig, NULL, 2, "no longer kept");
    cr_expect_eq(fake_cuda_count("cuGraphLaunch"), 0);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a kept graph");
    free(text);
}

/* New values of a param go through init steps, and what they leave may lie elsewhere. */
Test(rt_graph, a_kept_graph_follows_params) {
    static const float doubled[4] = {2.0f, 4.0f, 6.0f, 8.0f};
    RtRig rig;
    frt_program_options options = rt_options();
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(open_bound(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_exec_keep_graph(rig.exec, true, &rig.err), FRT_OK);
    expect_run(&rig, NULL, 4, "before");
    cr_assert_eq(frt_program_set_param(rig.program, "w", doubled, sizeof doubled, &rig.err),
                 FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(rig.y[5], 5.5f * doubled[1] * 2.0f);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a param");
}

Test(rt_graph, a_stream_that_is_captured_gets_the_steps) {
    RtRig rig;
    char stream;
    frt_program_options options = rt_options();
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(open_bound(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_exec_keep_graph(rig.exec, true, &rig.err), FRT_OK);
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK, "%s", rig.err.message);
    fake_cuda.capturing = &stream;
    fake_cuda.n_calls = 0;
    cr_assert_eq(frt_run(rig.exec, &stream, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(fake_cuda_count("cuGraphLaunch"), 0);
    cr_expect_eq(fake_cuda_count("cuLaunchKernel") + fake_cuda_count("cuMemcpyDtoDAsync"), 2);
    cr_expect_eq(rig.y[0], 0.0f, "recorded, not run");
    fake_cuda.capturing = NULL;
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a capture");
}

Test(rt_graph, a_driver_without_graphs_says_so) {
    static const char *const needed[] = {"cuStreamCreate", "cuStreamIsCapturing",
                                         "cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags"};
    frt_program_options options = rt_options();
    fake_cuda_reset();
    rt_add_kernels();
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        RtRig rig;
        fake_cuda.missing = needed[i];
        cr_assert_eq(open_bound(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
        cr_expect_eq(frt_exec_keep_graph(rig.exec, true, &rig.err), FRT_E_DRIVER_OLD, "%s",
                     needed[i]);
        cr_expect_eq(frt_exec_keep_graph(rig.exec, false, &rig.err), FRT_OK);
        expect_run(&rig, NULL, 4, needed[i]);
        rt_close_rig(&rig);
    }
    fake_cuda.missing = "cuGraphExecUpdate_v2";
    RtRig rig;
    cr_assert_eq(open_bound(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_exec_keep_graph(rig.exec, true, &rig.err), FRT_OK);
    expect_run(&rig, NULL, 4, "first");
    cr_assert_eq(rt_bind(&rig, 5), FRT_OK);
    expect_run(&rig, NULL, 5, "made anew");
    cr_expect_eq(fake_cuda_count("cuGraphInstantiateWithFlags"), 1);
    rt_close_rig(&rig);
    rt_expect_nothing_held("without update");
    cr_expect_eq(frt_exec_keep_graph(NULL, true, NULL), FRT_E_INVALID_ARGUMENT);
}

static frt_status scenario(RtRig *rig, const char *text) {
    frt_program_options options = rt_options();
    frt_status status = open_bound(rig, text, &options);
    if (!status) {
        status = frt_exec_keep_graph(rig->exec, true, &rig->err);
    }
    for (int64_t rows = 3; !status && rows < 6; rows++) {
        status = rt_bind(rig, rows);
        if (!status) {
            status = frt_run(rig->exec, NULL, &rig->err);
        }
    }
    return status;
}

/* After any failure the exec goes on, and in the end nothing is held. */
Test(rt_graph, every_driver_call_failed_once_is_a_status_or_made_up_for, .timeout = 60) {
    static const int codes[] = {1, 2, 900, 719};
    char *text = waiting_manifest();
    fake_cuda_reset();
    rt_add_kernels();
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        bool has_failed = true;
        for (long n = 1; has_failed; n++) {
            RtRig rig;
            char when[80];
            fake_cuda_reset();
            fake_cuda.fail_at = n;
            fake_cuda.fail_code = codes[i];
            frt_status status = scenario(&rig, text);
            has_failed = fake_cuda.has_failed;
            fake_cuda.fail_at = 0;
            snprintf(when, sizeof when, "call %ld, %s, code %d", n,
                     has_failed ? fake_cuda.failed_in : "none", codes[i]);
            cr_expect(status == FRT_OK || rig.err.message[0], "%s: no message", when);
            cr_expect(!fake_cuda.capturing, "%s: still recording", when);
            cr_assert(has_failed || status == FRT_OK, "%s: %s", when, rig.err.message);
            if (rig.exec && codes[i] != 719 && rt_bind(&rig, 6) == FRT_OK) {
                cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s: %s", when,
                             rig.err.message);
                rt_expect_y(&rig, 6);
            }
            rt_close_rig(&rig);
            rt_expect_nothing_held(when);
        }
    }
    free(text);
}
