/* The emulator of GPUs sees what a GPU may forgive: each of these kernels is wrong, or nearly. */
#include "emulator/emu.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { N = 64, SEEDS = 40 };

typedef struct Emulated {
    EmuModule module;
    uint32_t out[N];
    char error[400];
} Emulated;

static uint64_t allowed;

static bool may_access(uint64_t at, uint32_t n_bytes) {
    return at >= allowed && at + n_bytes <= allowed + N * sizeof(uint32_t);
}

/* A block of 64 threads with this body, which has %rd1 for `out` and %r1 for its number. */
static bool run(Emulated *e, const char *body, uint64_t seed) {
    char text[4096];
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90a\n.address_size 64\n"
             ".extern .shared .align 1024 .b8 dynamic_shared[];\n"
             ".visible .entry k(\n\t.param .u64 .ptr .global .align 1 k_param_0\n)\n"
             ".reqntid 64,1,1\n{\n\t.reg .pred %%p<8>;\n\t.reg .b32 %%r<32>;\n"
             "\t.reg .b64 %%rd<8>;\n\tld.param.b64 %%rd1, [k_param_0];\n"
             "\tmov.u32 %%r1, %%tid.x;\n\tmul.wide.u32 %%rd2, %%r1, 4;\n"
             "\tadd.s64 %%rd3, %%rd1, %%rd2;\n%s\n\tret;\n}\n",
             body);
    memset(e, 0, sizeof *e);
    uint64_t at = allowed = (uint64_t)(uintptr_t)e->out;
    void *params[] = {&at};
    EmuLaunch launch = {.n_blocks = 1,
                        .n_threads = N,
                        .dynamic_bytes = 1024,
                        .params = params,
                        .seed = seed,
                        .may_access = may_access};
    bool is_good = emu_module_init(&e->module, text);
    if (is_good)
        is_good = emu_run(e->module.kernels.data[0], &launch, e->error, sizeof e->error);
    else
        snprintf(e->error, sizeof e->error, "%s", e->module.error);
    emu_module_free(&e->module);
    return is_good;
}

static void fails_with(const char *body, const char *error) {
    Emulated e;
    cr_expect_not(run(&e, body, 1), "%s", body);
    cr_expect_not_null(strstr(e.error, error), "`%s` is not in `%s`", error, e.error);
}

/* The product of matrices of ones, f8e4m3 and f8e5m2, added to `acc`. */
#define F8_MMA(acc)                                                                    \
    "mov.b32 %r2, 0x38383838; mov.b32 %r4, 0x3C3C3C3C; mov.b32 %r5, " acc "; "         \
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%r3, %r6, %r7, %r8}, {%r2, " \
    "%r2, %r2, %r2}, {%r4, %r4}, {%r5, %r5, %r5, %r5};"

Test(emulator, instructions_give_what_the_manual_says) {
    static const struct {
        const char *text; /* to %r3 */
        uint32_t result;
    } cases[] = {
        {"mov.b32 %r2, 7; mul.lo.s32 %r3, %r2, -3;", (uint32_t)-21},
        {"mov.b32 %r2, -8; shr.s32 %r3, %r2, 1;", (uint32_t)-4},
        {"mov.b32 %r2, -8; shr.u32 %r3, %r2, 28;", 15},
        {"mov.b32 %r2, 1; shl.b32 %r3, %r2, 32;", 0},
        {"mov.b32 %r2, 2147483647; mul.hi.u32 %r3, %r2, %r2;", 0x3FFFFFFF},
        {"mov.b32 %r2, 0x11223344; prmt.b32 %r3, %r2, 0, 0x0123;", 0x44332211},
        {"mov.b32 %r2, 0f7FC00001; add.rn.f32 %r3, %r2, 0f3F800000;", 0x7FFFFFFF},
        {"mov.b32 %r2, 0f80000000; max.NaN.f32 %r3, %r2, 0f00000000;", 0},
        {"mov.b32 %r2, 0f40490FDB; cvt.rzi.s32.f32 %r3, %r2;", 3},
        {"mov.b32 %r2, 0f4F800000; cvt.rzi.s32.f32 %r3, %r2;", INT32_MAX},
        {"mov.b32 %r2, 0f3F808000; cvt.rn.bf16x2.f32 %r3, %r2, %r2;", 0x3F803F80},
        {"mov.b32 %r2, 0f3F818000; cvt.rn.bf16x2.f32 %r3, %r2, %r2;", 0x3F823F82},
        {"mov.b32 %r2, 0f477FF000; cvt.rn.f16x2.f32 %r3, %r2, %r2;", 0x7C007C00},
        {"mov.b32 %r2, 0f33000001; cvt.rn.f16x2.f32 %r3, %r2, %r2;", 0x00010001},
        {"mov.b32 %r2, 0f40000000; fma.rn.sat.f32 %r3, %r2, %r2, %r2;", 0x3F800000},
        {"mov.b32 %r2, 0f7F000000; rcp.approx.ftz.f32 %r3, %r2;", 0},
        {"mov.b32 %r2, 0f00000001; cvt.f64.f32 %rd4, %r2; rcp.approx.ftz.f64 %rd4, %rd4; "
         "shr.u64 %rd4, %rd4, 32; cvt.u32.u64 %r3, %rd4;",
         0x49400000},
        {F8_MMA("0f00000000"), 0x42000000}, /* 32 ones */
        {F8_MMA("0f45800000"), 0x45810000}, /* beside 2^12, whose last bit is a half */
        {F8_MMA("0f46800000"), 0x46800000}, /* beside 2^14, whose last bit is two */
        {"setp.lt.u32 %p1, %r1, 64; selp.b32 %r3, 5, 6, %p1;", 5},
        {"mov.b32 %r2, -4; mov.b32 %r4, 9; st.shared.b32 [%r2+8], %r4; "
         "ld.shared.b32 %r3, [%r2+8];",
         9},
        {"shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; xor.b32 %r3, %r2, %r1;", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[512];
        Emulated e;
        snprintf(body, sizeof body, "%s st.global.b32 [%%rd3], %%r3;", cases[i].text);
        cr_expect(run(&e, body, 1), "%s: %s", cases[i].text, e.error);
        for (int k = 0; k < N; k++)
            cr_expect_eq(e.out[k], cases[i].result, "%s: %#x, not %#x", cases[i].text, e.out[k],
                         cases[i].result);
    }
}

Test(emulator, what_is_not_there_is_not_accessed) {
    fails_with("st.global.b32 [%rd3+4], %r1;", "stores to where nothing is");
    fails_with("ld.global.b32 %r2, [%rd3+-4];", "loads from where nothing is");
    fails_with("st.shared.b32 [dynamic_shared+1024], %r1;", "line 17: stores to where nothing is");
    fails_with("ld.shared.v2.b32 {%r2, %r3}, [dynamic_shared+4];", "loads from where nothing is");
}

Test(emulator, what_never_comes_is_told) {
    fails_with("mbarrier.init.shared.b64 [dynamic_shared], 1;\n"
               "$L1: mbarrier.try_wait.parity.shared.b64 %p1, [dynamic_shared], 0;\n@!%p1 bra $L1;",
               "waits for what does not come");
    fails_with("mbarrier.init.shared.b64 [dynamic_shared], 1;\n"
               "mbarrier.arrive.shared.b64 _, [dynamic_shared], 2;",
               "more arrivals than wanted");
    fails_with("setp.eq.u32 %p1, %r1, 3;\n@%p1 bra $L2;\nbar.warp.sync -1;\nbra.uni $L3;\n"
               "$L2: bar.sync 0;\n$L3: ",
               "waits for threads that are elsewhere");
}

Test(emulator, what_it_does_not_know_is_refused) {
    fails_with("add.rz.f32 %r2, %r1, %r1;", "not known: add.rz.f32");
    fails_with("frob.b32 %r2, %r1;", "line 17: not known: frob.b32");
    fails_with("mov.b32 %r2, %q9;", "not known");
    fails_with("bra $L9;", "no such label");
}

/* How many of the seeds give each thread the number of the thread 32 away. */
static int n_exchanged(const char *between) {
    int n = 0;
    char body[512];
    snprintf(body, sizeof body,
             "shl.b32 %%r2, %%r1, 2;\nmov.b32 %%r3, dynamic_shared;\nadd.s32 %%r2, %%r2, %%r3;\n"
             "st.shared.b32 [%%r2], %%r1;\n%s\nxor.b32 %%r4, %%r2, 128;\n"
             "ld.shared.b32 %%r5, [%%r4];\nst.global.b32 [%%rd3], %%r5;",
             between);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        Emulated e;
        cr_assert(run(&e, body, seed), "%s", e.error);
        bool is_right = true;
        for (uint32_t k = 0; k < N; k++) is_right = is_right && e.out[k] == (k ^ 32);
        n += is_right;
    }
    return n;
}

Test(emulator, a_barrier_that_is_missing_is_seen) {
    cr_expect_eq(n_exchanged("bar.sync 0;"), SEEDS);
    cr_expect_lt(n_exchanged(""), SEEDS);
    cr_expect_lt(n_exchanged("bar.warp.sync -1;"), SEEDS);
}

/* Copies to shared memory, of which the last is not waited for. */
Test(emulator, a_copy_that_is_not_waited_for_is_seen) {
    static const char text[] = "st.global.b32 [%%rd3], %%r1;\nshl.b32 %%r2, %%r1, 2;\n"
                               "mov.b32 %%r3, dynamic_shared;\nadd.s32 %%r2, %%r2, %%r3;\n"
                               "cp.async.ca.shared.global [%%r2], [%%rd3], 4;\n"
                               "cp.async.commit_group;\ncp.async.wait_group %d;\n"
                               "ld.shared.b32 %%r5, [%%r2];\nst.global.b32 [%%rd3], %%r5;";
    for (int n_left = 0; n_left < 2; n_left++) {
        char body[512];
        Emulated e;
        snprintf(body, sizeof body, text, n_left);
        cr_assert(run(&e, body, 1), "%s", e.error);
        cr_expect_eq(e.out[5] == 5, n_left == 0);
    }
}
