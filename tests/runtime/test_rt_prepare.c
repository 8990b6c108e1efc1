/* Preparing again and again, over the fake driver: dims and addresses that change from run to run
 * cost what changed, and no memory but the workspace's. */
#include "../fake/rt_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* A product y = x @ w, up to its launches. */
#define HEAD                    \
    "//@ fusec-artifact 1\n"    \
    "//@ checksum 00000000\n"   \
    "//@ compiler 0.1.0\n"      \
    "//@ target cuda sm_90a\n"  \
    "//@ numerics strict\n"     \
    "//@ source m.g\n"          \
    "//@ dim B 1 65536 1\n"     \
    "//@ graph g\n"             \
    "//@ input x 0 f32 B 64\n"  \
    "//@ input w 0 f32 64 64\n" \
    "//@ output y 0 f32 B 64\n"

/* y = x @ w as far as the runtime knows, by way of a temporary t of B kilobytes. */
static const char product[] = HEAD "//@ temp t 0 f32 0 B 256\n"
                                   "//@ workspace B,1024,*\n"
                                   "//@ launch run 1 product x,w,t,y B\n"
                                   "//@ variant k_mapped B 32 0 l:B:1000\n"
                                   "//@ map 0 128 0 64:1:32 B:64:8\n"
                                   "//@ map 1 128 0 64:1:32 64:64:8\n"
                                   "//@ variant k_plain B 64 0 -\n"
                                   "//@ end\n";

/* The maps that the last launch was given. */
static FakeMap maps[2];

static void k_mapped(void **params, unsigned grid, unsigned block) {
    (void)grid;
    (void)block;
    maps[0] = *(const FakeMap *)params[5];
    maps[1] = *(const FakeMap *)params[6];
}

static void k_plain(void **params, unsigned grid, unsigned block) {
    (void)params;
    (void)grid;
    (void)block;
}

static void open_rig(RtRig *rig) {
    frt_program_options options = rt_options();
    fake_cuda_reset();
    fake_cuda_add_kernel("k_mapped", k_mapped);
    fake_cuda_add_kernel("k_plain", k_plain);
    cr_assert_eq(rt_open_program(rig, product, &options), FRT_OK, "%s", rig->err.message);
    cr_assert_eq(frt_exec_create(rig->program, &rig->exec, &rig->err), FRT_OK);
}

/* Addresses that nobody reads. */
enum { X = 1 << 28, W = 2 << 28, Y = 3 << 28, ELSEWHERE = 1 << 20 };

static frt_status run(RtRig *rig, int64_t rows, uintptr_t x, uintptr_t w) {
    frt_tensor t = {.dtype = FRT_F32, .rank = 2, .dims = {rows, 64}};
    t.data = (void *)x;
    cr_assert_eq(frt_bind(rig->exec, "x", &t, &rig->err), FRT_OK, "%s", rig->err.message);
    t.data = (void *)(uintptr_t)Y;
    cr_assert_eq(frt_bind(rig->exec, "y", &t, &rig->err), FRT_OK, "%s", rig->err.message);
    t.data = (void *)w;
    t.dims[0] = 64;
    cr_assert_eq(frt_bind(rig->exec, "w", &t, &rig->err), FRT_OK, "%s", rig->err.message);
    return frt_run(rig->exec, NULL, &rig->err);
}

typedef struct Case {
    const char *what;
    int64_t rows;
    uintptr_t x, w;
    int n_encoded, variant;
} Case;

Test(rt_prepare, a_map_is_encoded_when_something_of_it_changed) {
    static const Case cases[] = {
        {"the first run", 3, X, W, 2, 0},
        {"nothing changed", 3, X, W, 0, 0},
        {"more rows of x", 5, X, W, 1, 0},
        {"w elsewhere", 5, X, W + ELSEWHERE, 1, 0},
        {"x elsewhere, where w was", 5, W, W + ELSEWHERE, 1, 0},
        {"a variant without maps", 2000, W, W + ELSEWHERE, 0, 1},
        {"as it was before that", 5, W, W + ELSEWHERE, 0, 0},
        {"all of it", 7, X, W, 2, 0},
    };
    RtRig rig;
    open_rig(&rig);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        long before = fake_cuda_count("cuTensorMapEncodeTiled");
        cr_assert_eq(run(&rig, c->rows, c->x, c->w), FRT_OK, "%s: %s", c->what, rig.err.message);
        cr_expect_eq(fake_cuda_count("cuTensorMapEncodeTiled") - before, c->n_encoded, "%s",
                     c->what);
        cr_assert_eq(frt_exec_variant(rig.exec, 0), c->variant, "%s", c->what);
        if (c->variant == 1) continue;
        cr_expect(maps[0].data == (void *)c->x && maps[1].data == (void *)c->w, "%s", c->what);
        cr_expect(maps[0].sizes[1] == (uint64_t)c->rows && maps[1].sizes[1] == 64, "%s", c->what);
    }
    rt_close_rig(&rig);
    rt_expect_nothing_held("after maps");
}

Test(rt_prepare, a_shared_grid_has_a_block_for_each_processor_of_the_device) {
    static const struct {
        int n_processors;
        const char *resident;
        int64_t rows;
        unsigned grid;
    } cases[] = {
        {132, "resident:1", 2000, 132},   {114, "resident:1", 2000, 114},
        {114, "resident:1", 50, 50},      {113, "resident:2", 2000, 112},
        {132, "resident:4", 2000, 132},   {1, "resident:2", 2000, 2},
        {0, "resident:1", 2000, 1},       {132, "waits resident:1", 2000, 132},
        {132, "resident:1:2", 2000, 264}, {113, "resident:2:1", 2000, 112},
        {113, "resident:2:3", 2000, 338}, {132, "resident:1:2", 200, 200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RtRig rig;
        char option[64];
        frt_program_options options = rt_options();
        snprintf(option, sizeof option, "k_plain B 64 0 - %s", cases[i].resident);
        char *shared = text_replace(product, "k_plain B 64 0 -", option);
        char *text = text_replace(shared, "l:B:1000", "l:B:1");
        fake_cuda_reset();
        fake_cuda.n_processors = cases[i].n_processors;
        fake_cuda_add_kernel("k_mapped", k_mapped);
        fake_cuda_add_kernel("k_plain", k_plain);
        cr_assert_eq(rt_open_program(&rig, text, &options), FRT_OK, "%s", rig.err.message);
        cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
        cr_assert_eq(run(&rig, cases[i].rows, X, W), FRT_OK, "%s", rig.err.message);
        cr_expect_eq(fake_cuda.grid, cases[i].grid, "case %zu: %u blocks", i, fake_cuda.grid);
        rt_close_rig(&rig);
        free(shared);
        free(text);
    }
    rt_expect_nothing_held("after shared grids");
}

/* Of 10 blocks a wave. Of a group the cheapest is taken of those that apply and have maps: k_a to
 * k_c, then k_d of a group that would be cheaper, and k_e without a price. */
static const char group[] = HEAD "//@ launch run 1 product x,w,y B\n"
                                 "//@ measures B 2\n"
                                 "//@ variant k_a B 32 0 a0:16 price:B,3,+,4,/:10:0:100:1:0\n"
                                 "//@ map 0 128 0 64:1:32 B:64:8\n"
                                 "//@ variant k_b B 32 0 a0:16 waits price:B:10:0:10:0:5\n"
                                 "//@ map 0 128 0 64:1:32 B:B,33,/,64,*,64,+:8\n"
                                 "//@ variant k_c B 32 0 l:B:40 price:B:10:100:30:0:0\n"
                                 "//@ map 1 128 0 64:1:32 64:64:8\n"
                                 "//@ measures\n"
                                 "//@ variant k_d B 32 0 a1:16 price:1:10:0:0\n"
                                 "//@ map 1 128 0 64:1:32 64:64:8\n"
                                 "//@ variant k_e B 64 0 -\n"
                                 "//@ end\n";

Test(rt_prepare, the_cheapest_of_a_group_is_taken) {
    static const struct {
        const char *what;
        int64_t rows;
        uintptr_t x, w;
        int variant;
    } cases[] = {
        {"three blocks by 30 for a wave of nearly 10 by 20", 3, X, W, 2},
        {"a wave of 10 by 20 for 10 blocks by 30", 10, X, W, 1},
        {"11 blocks by 30 for nearly two waves by 20", 11, X, W, 2},
        {"nearly two waves by 20 for 14 blocks by 30", 14, X, W, 1},
        {"seven waves by 20 for two by 164", 64, X, W, 1},
        {"an odd x: what is dearer and applies", 14, X + 4, W, 2},
        {"an odd w too: nothing has maps", 14, X + 4, W + 4, 4},
        {"an odd x and too many: the other group", 64, X + 4, W, 3},
        {"an odd w: the next of the group", 11, X, W + 4, 1},
    };
    static const char *const names[] = {"k_a", "k_b", "k_c", "k_d", "k_e"};
    RtRig rig;
    frt_program_options options = rt_options();
    fake_cuda_reset();
    for (int i = 0; i < 5; i++) fake_cuda_add_kernel(names[i], k_plain);
    cr_assert_eq(rt_open_program(&rig, group, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(run(&rig, cases[i].rows, cases[i].x, cases[i].w), FRT_OK, "%s: %s",
                     cases[i].what, rig.err.message);
        cr_expect_eq(frt_exec_variant(rig.exec, 0), cases[i].variant, "%s: %d", cases[i].what,
                     frt_exec_variant(rig.exec, 0));
    }
    FRT_INFO(frt_variant_info, info);
    frt_module_get_variant(rig.module, 0, 0, 1, &info);
    cr_expect(info.has_price && info.waits);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after groups");
}

/* What could not be encoded is, the next time. */
Test(rt_prepare, a_map_that_failed_is_encoded_again) {
    RtRig rig;
    open_rig(&rig);
    cr_assert_eq(run(&rig, 3, X, W), FRT_OK, "%s", rig.err.message);
    for (int n = 1; n <= 8; n++) {
        fake_cuda.has_failed = 0;
        fake_cuda.fail_at = n;
        fake_cuda.fail_code = 1;
        run(&rig, 3 + n, X + ELSEWHERE * (uintptr_t)n, W);
        fake_cuda.fail_at = 0;
        cr_assert_eq(run(&rig, 3 + n, X + ELSEWHERE * (uintptr_t)n, W), FRT_OK, "%s",
                     rig.err.message);
        cr_expect_eq(maps[0].sizes[1], (uint64_t)(3 + n), "after call %d, %s", n,
                     fake_cuda.failed_in);
        cr_expect_eq(maps[1].sizes[1], 64, "after call %d, %s", n, fake_cuda.failed_in);
    }
    rt_close_rig(&rig);
    rt_expect_nothing_held("after maps that failed");
}

/* Rows that count up, as where a cache of keys grows with every word. */
Test(rt_prepare, a_workspace_that_grows_makes_room_for_more) {
    RtRig rig;
    open_rig(&rig);
    long before = fake_cuda_count("cuMemAlloc");
    for (int64_t rows = 100; rows <= 1000; rows++)
        cr_assert_eq(run(&rig, rows, X, W), FRT_OK, "%ld: %s", (long)rows, rig.err.message);
    long n = fake_cuda_count("cuMemAlloc") - before;
    cr_expect_eq(n, 12, "%ld allocations", n);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after workspaces");
}

typedef struct Hook {
    size_t most; /* bytes of a block */
    size_t last; /* bytes of the last one */
} Hook;

static void *hook_alloc(void *ctx, size_t n_bytes) {
    Hook *hook = ctx;
    if (n_bytes > hook->most) return NULL;
    hook->last = n_bytes;
    return aligned_alloc(256, (n_bytes + 255) / 256 * 256);
}

static void hook_free(void *ctx, void *data, size_t n_bytes) {
    (void)ctx;
    (void)n_bytes;
    free(data);
}

Test(rt_prepare, a_workspace_has_what_is_needed_where_there_is_no_more) {
    RtRig rig;
    Hook hook = {.most = 110 * 1024};
    frt_program_options options = rt_options();
    options.allocator = (frt_allocator){hook_alloc, hook_free, &hook};
    fake_cuda_reset();
    fake_cuda_add_kernel("k_mapped", k_mapped);
    fake_cuda_add_kernel("k_plain", k_plain);
    cr_assert_eq(rt_open_program(&rig, product, &options), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(run(&rig, 80, X, W), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(hook.last, 80 * 1024, "the first has what is needed");
    cr_assert_eq(run(&rig, 81, X, W), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(hook.last, 100 * 1024, "then by a quarter more");
    cr_assert_eq(run(&rig, 105, X, W), FRT_OK, "%s", rig.err.message);
    cr_expect_eq(hook.last, 105 * 1024, "there are no 125 kilobytes");
    cr_expect_eq(run(&rig, 111, X, W), FRT_E_OUT_OF_MEMORY);
    cr_assert_eq(run(&rig, 110, X, W), FRT_OK, "%s", rig.err.message);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after workspaces that could not grow");
}

Test(rt_prepare, no_host_memory_is_allocated) {
    RtRig rig;
    open_rig(&rig);
    cr_assert_eq(run(&rig, 2000, X, W), FRT_OK, "%s", rig.err.message);
    cr_assert_eq(run(&rig, 20, X, W), FRT_OK, "%s", rig.err.message);
    fake_mem_fail_at(1, 1);
    for (int64_t rows = 1; rows <= 2000; rows += 37)
        cr_expect_eq(run(&rig, rows, X + ELSEWHERE * (uintptr_t)(rows % 2), W), FRT_OK, "%ld: %s",
                     (long)rows, rig.err.message);
    cr_expect(!fake_mem_failed());
    fake_mem_fail_at(0, 0);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after runs without memory");
}
