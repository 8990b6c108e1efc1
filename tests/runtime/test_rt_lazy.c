/* Code that is loaded function by function, over the fake driver: what, when, by whom, and what a
 * refusal leads to. */
#include "../fake/rt_rig.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const symbols[] = {"k_twice", "k_pack", "k_scale16", "k_scale"};

/* How often each of `symbols` was loaded since the reset. */
static void expect_loads(const char *when, long twice, long pack, long scale16, long scale) {
    const long wanted[] = {twice, pack, scale16, scale};
    for (int i = 0; i < 4; i++) {
        cr_expect_eq(fake_cuda_loads(symbols[i]), wanted[i], "%s: %s was loaded %ld times", when,
                     symbols[i], fake_cuda_loads(symbols[i]));
    }
}

static void expect_info(const RtRig *rig, int32_t n_loaded, const char *when) {
    FRT_INFO(frt_load_info, load);
    cr_assert_eq(frt_program_get_load(rig->program, &load), FRT_OK);
    cr_expect_eq(load.n_kernels, 4);
    cr_expect_eq(load.n_loaded, n_loaded, "%s: %d are loaded", when, (int)load.n_loaded);
    cr_expect_eq(load.is_compiled, n_loaded > 0, "%s", when);
    cr_expect_eq(load.ms > 0, n_loaded > 0, "%s: %g ms", when, load.ms);
    cr_expect(!load.is_cached);
}

static frt_status open_cut(RtRig *rig, const char *text, const frt_program_options *options) {
    frt_status status = rt_open_code(rig, text, rt_cut_ptx, options);
    if (!status) {
        status = frt_program_set_param(rig->program, "w", rt_weights, sizeof rt_weights, &rig->err);
    }
    return status ? status : frt_exec_create(rig->program, &rig->exec, &rig->err);
}

static void start(void) {
    fake_cuda_reset();
    rt_add_kernels();
}

Test(rt_lazy, a_prepare_loads_what_it_chooses_and_a_run_nothing) {
    RtRig rig;
    frt_program_options options = rt_options();
    start();
    cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    expect_loads("created", 0, 0, 0, 0);
    expect_info(&rig, 0, "created");
    cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(frt_exec_variant(rig.exec, 2), 0);
    expect_loads("prepared", 1, 1, 1, 0);
    expect_info(&rig, 3, "prepared");
    cr_expect_eq(fake_cuda.n_modules, 2, "the init steps' kernels came together");
    fake_cuda.n_calls = 0;
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    cr_expect_eq(fake_cuda.n_calls, 4, "a run enqueues two steps");
    rt_expect_y(&rig, 4);
    rig.x += 1;
    cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(frt_exec_variant(rig.exec, 2), 1);
    expect_loads("the other variant", 1, 1, 1, 1);
    expect_info(&rig, 4, "the other variant");
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    rt_expect_y(&rig, 4);
    frt_exec_free(rig.exec);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    rig.x -= 1;
    cr_assert_eq(rt_bind(&rig, 3), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    rt_expect_y(&rig, 3);
    expect_loads("another exec", 1, 1, 1, 1);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after four pieces");
}

/* What the driver gets is the head and the functions that are wanted. */
Test(rt_lazy, a_piece_is_whole_by_itself) {
    RtRig rig;
    FRT_INFO(frt_kernel_info, info);
    frt_program_options options = rt_options();
    start();
    cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_program_get_kernel(rig.program, 1, 0, &info, &rig.err), FRT_OK);
    cr_expect_eq(info.n_registers, 96);
    cr_expect_str_eq(fake_cuda.image_text,
                     ".version 7.0\n.target sm_80\n\n.visible .entry k_pack()\n{\n}\n\n");
    expect_loads("asked about one", 0, 1, 0, 0);
    expect_info(&rig, 1, "asked about one");
    cr_assert_eq(frt_program_get_kernel(rig.program, 1, 0, &info, &rig.err), FRT_OK);
    expect_loads("asked again", 0, 1, 0, 0);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after asking");
}

Test(rt_lazy, all_at_once_if_wanted_or_in_one_piece) {
    RtRig rig;
    frt_program_options options = rt_options();
    start();
    options.load_all = true;
    cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    expect_loads("created", 1, 1, 1, 1);
    expect_info(&rig, 4, "created");
    cr_expect_eq(fake_cuda.n_modules, 1);
    fake_cuda.n_calls = 0;
    cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    cr_expect_eq(fake_cuda_count("cuModuleLoadDataEx"), 0);
    rt_expect_y(&rig, 4);
    rt_close_rig(&rig);
    fake_cuda_reset();
    options.load_all = false;
    cr_assert_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(fake_cuda_count("cuModuleLoadDataEx"), 1);
    expect_info(&rig, 4, "one piece");
    rt_close_rig(&rig);
    rt_expect_nothing_held("after all at once");
}

/* Where the driver can, which drivers for less than 13.0 would refuse to hear of. */
Test(rt_lazy, one_module_is_compiled_by_several_threads) {
    static const struct {
        int driver_version, n_threads, expected;
    } cases[] = {{13000, 3, 3}, {13000, 12, 8}, {13000, 1, 0}, {12090, 3, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        RtRig rig;
        frt_program_options options = rt_options();
        start();
        fake_cuda.driver_version = cases[i].driver_version;
        options.n_threads = cases[i].n_threads;
        options.load_all = true;
        cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
        cr_expect_eq(fake_cuda_count("cuModuleLoadDataEx"), 1);
        cr_expect_eq(fake_cuda.n_compilers, cases[i].expected, "case %zu", i);
        rt_close_rig(&rig);
        options.load_all = false;
        cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
        cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
        cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
        cr_expect_eq(fake_cuda.n_compilers, 0, "one function by itself");
        rt_close_rig(&rig);
    }
}

Test(rt_lazy, nothing_is_loaded_for_launches_of_nothing) {
    RtRig rig;
    frt_program_options options = rt_options();
    frt_tensor empty = {.dtype = FRT_F32, .rank = 2, .dims = {0, 4}};
    start();
    cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_bind(rig.exec, "x", &empty, &rig.err), FRT_OK);
    cr_assert_eq(frt_bind(rig.exec, "y", &empty, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    expect_loads("an empty run", 1, 1, 0, 0);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after an empty run");
}

/* Kernels alike are one function, under whatever variants they stand. */
Test(rt_lazy, variants_share_a_function) {
    RtRig rig;
    frt_program_options options = rt_options();
    char *text = text_replace(rt_manifest, "k_scale16 B 128 B,16,*", "k_scale B 64 49152");
    start();
    cr_assert_eq(open_cut(&rig, text, &options), FRT_OK, "%s", rig.err.message);
    for (int shift = 0; shift < 2; shift++) {
        rig.x = rt_x_storage + shift;
        cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
        cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
        cr_expect_eq(frt_exec_variant(rig.exec, 2), shift);
        rt_expect_y(&rig, 4);
        expect_loads("shared", 1, 1, 0, 1);
        cr_expect_eq(fake_cuda_count("cuFuncSetAttribute"), 1, "one of them wants much");
    }
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a shared function");
    free(text);
}

Test(rt_lazy, a_refused_kernel_is_named_and_may_be_tried_again) {
    RtRig rig;
    frt_program_options options = rt_options();
    start();
    fake_cuda.refused = "k_scale16";
    cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(i ? frt_run(rig.exec, NULL, &rig.err) : frt_prepare(rig.exec, &rig.err),
                     FRT_E_CODE);
        cr_expect(strstr(rig.err.message, "refuses kernel k_scale16: ptxas error"), "%s",
                  rig.err.message);
        cr_expect_eq(rig.err.cuda, 218);
        cr_expect_eq(frt_exec_variant(rig.exec, 2), -1, "nothing is prepared");
        expect_info(&rig, 2, "refused");
    }
    cr_expect_eq(fake_cuda.n_launches, 2, "the init steps, once");
    rig.x += 1;
    cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
    cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "the other one will do");
    rt_expect_y(&rig, 4);
    rig.x -= 1;
    fake_cuda.refused = NULL;
    cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
    cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    rt_expect_y(&rig, 4);
    expect_loads("in the end", 1, 1, 1, 1);
    rt_close_rig(&rig);
    fake_cuda.refused = "k_scale";
    options.load_all = true;
    cr_expect_eq(open_cut(&rig, rt_manifest, &options), FRT_E_CODE, "all at once");
    cr_expect(strstr(rig.err.message, "kernel k_scale: "), "%s", rig.err.message);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a refusal");
}

/* What is loaded together is refused together; the others are there all the same. */
Test(rt_lazy, a_kernel_refused_among_others_is_the_one_that_is_named) {
    RtRig rig;
    frt_program_options options = rt_options();
    start();
    fake_cuda.refused = "k_pack";
    cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
    cr_expect_eq(frt_prepare(rig.exec, &rig.err), FRT_E_CODE);
    cr_expect(strstr(rig.err.message, "refuses kernel k_pack: "), "%s", rig.err.message);
    expect_loads("refused", 1, 0, 0, 0);
    cr_expect_eq(fake_cuda.n_launches, 0);
    fake_cuda.refused = NULL;
    cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
    rt_expect_y(&rig, 4);
    expect_loads("in the end", 1, 1, 1, 0);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a refusal among others");
}

Test(rt_lazy, a_kernel_that_is_not_there_is_missed_at_once) {
    RtRig rig;
    frt_program_options options = rt_options();
    char *text = text_replace(rt_manifest, "k_scale B 64", "k_sca B 64");
    start();
    cr_expect_eq(open_cut(&rig, text, &options), FRT_E_CODE);
    cr_expect(strstr(rig.err.message, "no kernel `k_sca`"), "%s", rig.err.message);
    cr_expect_eq(fake_cuda_count("cuModuleLoadDataEx"), 0);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a missing kernel");
    free(text);
}

Test(rt_lazy, function_lines_have_plain_names) {
    static const char *const bad[] = {"", "%41", "a b", "a\r", " a", "a$"};
    frt_program_options options = rt_options();
    start();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        RtRig rig;
        char code[200];
        snprintf(code, sizeof code, ".version 7.0\n//@ function k_twice\n//@ function %s\n",
                 bad[i]);
        cr_expect_eq(rt_open_code(&rig, rt_manifest, code, &options), FRT_E_ARTIFACT, "`%s`",
                     bad[i]);
        cr_expect(strstr(rig.err.message, "plain name"), "%s", rig.err.message);
        rt_close_rig(&rig);
    }
    char *many = malloc(20 * 65537 + 1);
    size_t n = 0;
    for (int i = 0; i < 65537; i++) n += (size_t)sprintf(many + n, "\n//@ function f\n");
    RtRig rig;
    cr_expect_eq(rt_open_code(&rig, rt_manifest, many, &options), FRT_E_ARTIFACT);
    cr_expect(strstr(rig.err.message, "more than 65536 functions"), "%s", rig.err.message);
    rt_close_rig(&rig);
    free(many);
}

/* Loading would break a capture. */
Test(rt_lazy, a_kept_graph_is_recorded_when_all_is_loaded) {
    RtRig rig;
    frt_program_options options = rt_options();
    start();
    cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_exec_keep_graph(rig.exec, true, &rig.err), FRT_OK);
    for (int shift = 0; shift < 2; shift++) {
        rig.x = rt_x_storage + shift;
        cr_assert_eq(rt_bind(&rig, 4), FRT_OK);
        fake_cuda.n_calls = 0;
        cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK, "%s", rig.err.message);
        bool is_recording = false;
        int n_loads = 0;
        for (int i = 0; i < fake_cuda.n_calls; i++) {
            bool is_load = strcmp(fake_cuda.log[i], "cuModuleLoadDataEx") == 0;
            is_recording = is_recording || strcmp(fake_cuda.log[i], "cuStreamBeginCapture") == 0;
            cr_expect(!is_load || !is_recording);
            n_loads += is_load;
        }
        cr_expect(is_recording && n_loads == (shift ? 1 : 2));
        cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
        rt_expect_y(&rig, 4);
    }
    rt_close_rig(&rig);
    rt_expect_nothing_held("after a kept graph");
}

/* The most functions that are compiled at once where four are wanted. */
static long most_at_once(int32_t n_threads, bool cache) {
    RtRig rig;
    char *folder = rt_folder_make();
    frt_program_options options = rt_options();
    options.load_all = true;
    options.n_threads = n_threads;
    options.cache = cache;
    options.cache_dir = folder;
    fake_cuda_reset();
    fake_cuda.compile_us = 30000;
    cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(frt_program_n_threads(rig.program), 1);
    cr_expect_eq(fake_cuda.n_modules, cache ? 4 : 1);
    expect_loads("all", 1, 1, 1, 1);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after threads");
    rt_folder_remove(folder);
    return fake_cuda.most_compiling;
}

/* The driver compiles in several threads only what its linker gives out, which the cache keeps. */
Test(rt_lazy, several_are_compiled_at_once_where_that_pays) {
    rt_add_kernels();
    cr_expect_eq(most_at_once(1, true), 1);
    cr_expect_eq(most_at_once(2, true), 2);
    cr_expect_eq(most_at_once(64, true), 4, "one for each");
    cr_expect_eq(most_at_once(4, false), 1, "one for all");
    frt_program_options options = rt_options();
    RtRig rig;
    options.n_threads = -1;
    cr_expect_eq(open_cut(&rig, rt_manifest, &options), FRT_E_INVALID_ARGUMENT);
    rt_close_rig(&rig);
}

static pthread_t tester;

static void on_signal(int number) {
    (void)number;
    if (!pthread_equal(pthread_self(), tester)) abort();
}

/* Handlers are the application's, and so are the threads they run on. */
Test(rt_lazy, loading_threads_take_no_signals) {
    tester = pthread_self();
    rt_add_kernels();
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    timer_t timer;
    struct itimerspec every = {{.tv_nsec = 500000}, {.tv_nsec = 500000}};
    cr_assert_eq(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
    cr_assert_eq(timer_settime(timer, 0, &every, NULL), 0);
    cr_expect_eq(most_at_once(4, true), 4);
    timer_delete(timer);
}

enum { N_THREADS = 4, N_ROUNDS = 20 };

typedef struct Thread {
    frt_program *program;
    int shift;
    pthread_barrier_t *begin;
    int n_bad;
} Thread;

/* Prepares and runs in turn over a tensor that is aligned and one that is not. */
static void *run_often(void *arg) {
    Thread *thread = arg;
    frt_error err = FRT_ERROR_INIT;
    frt_exec *exec = NULL;
    float *x = aligned_alloc(16, 128), *y = aligned_alloc(16, 128);
    thread->n_bad += frt_exec_create(thread->program, &exec, &err) != FRT_OK;
    pthread_barrier_wait(thread->begin);
    for (int round = 0; round < N_ROUNDS; round++) {
        float *at = x + (round + thread->shift) % 2;
        for (int i = 0; i < 16; i++) at[i] = (float)(i + round);
        frt_tensor tx = {.data = at, .dtype = FRT_F32, .rank = 2, .dims = {4, 4}}, ty = tx;
        ty.data = y;
        thread->n_bad += frt_bind(exec, "x", &tx, &err) || frt_bind(exec, "y", &ty, &err) ||
                         frt_run(exec, NULL, &err);
        for (int i = 0; i < 16; i++) {
            thread->n_bad += y[i] != (float)(i + round) * rt_weights[i % 4] * 2.0f;
        }
    }
    frt_exec_free(exec);
    free(x);
    free(y);
    return NULL;
}

Test(rt_lazy, threads_load_a_function_once_between_them) {
    char *folder = rt_folder_make();
    frt_program_options options = rt_options();
    options.n_threads = 3;
    options.cache_dir = folder;
    start();
    for (int cache = 0; cache < 2; cache++) {
        RtRig rig;
        pthread_t threads[N_THREADS];
        Thread states[N_THREADS];
        pthread_barrier_t begin;
        fake_cuda_reset();
        fake_cuda.compile_us = 2000;
        options.cache = cache;
        cr_assert_eq(open_cut(&rig, rt_manifest, &options), FRT_OK, "%s", rig.err.message);
        pthread_barrier_init(&begin, NULL, N_THREADS);
        for (int i = 0; i < N_THREADS; i++) {
            states[i] = (Thread){.program = rig.program, .shift = i, .begin = &begin};
            cr_assert_eq(pthread_create(&threads[i], NULL, run_often, &states[i]), 0);
        }
        for (int i = 0; i < N_THREADS; i++) {
            pthread_join(threads[i], NULL);
            cr_expect_eq(states[i].n_bad, 0, "thread %d", i);
        }
        expect_loads("threads", 1, 1, 1, 1);
        pthread_barrier_destroy(&begin);
        rt_close_rig(&rig);
        rt_expect_nothing_held("after threads");
    }
    rt_folder_remove(folder);
}

/* From opening to a run of either variant; with a folder, by the cache there and two threads. */
static frt_status scenario(RtRig *rig, const char *folder) {
    frt_program_options options = rt_options();
    options.cache = folder != NULL;
    options.cache_dir = folder;
    options.n_threads = 2;
    frt_status status = open_cut(rig, rt_manifest, &options);
    for (int shift = 0; !status && shift < 2; shift++) {
        rig->x = rt_x_storage + shift;
        status = rt_bind(rig, 4);
        status = status ? status : frt_run(rig->exec, NULL, &rig->err);
    }
    return status;
}

/* After any failure a second try succeeds, unless the device is lost. */
static bool fail_call(long n, int code, bool cache) {
    RtRig rig;
    char when[80], *folder = cache ? rt_folder_make() : NULL;
    fake_cuda_reset();
    fake_cuda.fail_at = n;
    fake_cuda.fail_code = code;
    frt_status status = scenario(&rig, folder);
    bool has_failed = fake_cuda.has_failed;
    fake_cuda.fail_at = 0;
    snprintf(when, sizeof when, "call %ld, %s, code %d, cache %d", n,
             has_failed ? fake_cuda.failed_in : "none", code, cache);
    cr_expect(status == FRT_OK || rig.err.message[0], "%s: no message", when);
    cr_assert(has_failed || status == FRT_OK, "%s: %s", when, rig.err.message);
    if (rig.exec && rt_bind(&rig, 6) == FRT_OK) {
        frt_status again = frt_run(rig.exec, NULL, &rig.err);
        bool is_lost = code == 719 && status == FRT_E_DEVICE_LOST;
        cr_expect_eq(again, is_lost ? FRT_E_DEVICE_LOST : FRT_OK, "%s: %s", when, rig.err.message);
        if (!again) {
            rt_expect_y(&rig, 6);
            expect_loads(when, 1, 1, fake_cuda_loads("k_scale16"), fake_cuda_loads("k_scale"));
        }
    }
    rt_close_rig(&rig);
    rt_expect_nothing_held(when);
    if (folder) rt_folder_remove(folder);
    return has_failed;
}

Test(rt_lazy, every_driver_call_failed_once_is_a_status_and_can_be_repeated, .timeout = 60) {
    static const int codes[] = {1, 2, 209, 218, 719};
    rt_add_kernels();
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        for (int cache = 0; cache < 2; cache++) {
            long n = 1;
            while (fail_call(n, codes[i], cache)) n++;
            cr_expect_gt(n, 40, "only %ld calls were failed", n);
        }
    }
}

/* Where there is no memory for threads or to look into the cache it goes without. */
Test(rt_lazy, every_failed_allocation_is_a_status_or_done_without) {
    rt_add_kernels();
    for (int cache = 0; cache < 2; cache++) {
        int failed = 1;
        for (long n = 1; failed; n++) {
            RtRig rig;
            char when[60], *folder = cache ? rt_folder_make() : NULL;
            snprintf(when, sizeof when, "host allocation %ld, cache %d", n, cache);
            fake_cuda_reset();
            fake_mem_fail_at(n, 0);
            frt_status status = scenario(&rig, folder);
            failed = fake_mem_failed();
            fake_mem_fail_at(0, 0);
            bool is_good = status == FRT_OK && (!failed || cache);
            cr_expect(is_good || (failed && status == FRT_E_OUT_OF_MEMORY), "%s: %s", when,
                      rig.err.message);
            rt_close_rig(&rig);
            rt_expect_nothing_held(when);
            if (folder) rt_folder_remove(folder);
        }
    }
}
