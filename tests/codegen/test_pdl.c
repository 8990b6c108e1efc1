/* Kernels that may be launched while the one before them ends: each waits before it touches memory,
 * what others may have written is read in order, and the artifact says so. */
#include "lib/compiled.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char let_in[] = "griddepcontrol.launch_dependents;";
static const char wait[] = "griddepcontrol.wait;";

/* What may not stand before the wait: anything that goes to memory beside the parameters and hints
 * to L2, and anything by which the wait could be passed by. */
static const char *const early[] = {
    "\n$",   "bra",      "ld.global",  "st.global",       "ld.shared",       "st.shared",
    "atom",  "red.",     "cp.async.c", "cp.async.bulk.t", "cp.async.bulk.s", "bar.",
    "fence", "mbarrier", let_in};

/* Returns the number of kernels in the PTX. */
static uint32_t check_kernels(const char *ptx, bool waits, const char *name) {
    uint32_t n = 0;
    for (const char *at = ptx; (at = strstr(at, ".entry ")); n++) {
        const char *body = strstr(at, "\n{"), *end = strstr(at, "\n}");
        cr_assert(body && end, "%s: kernel %u has no body", name, n);
        const char *waited = strstr(body, wait);
        cr_expect_eq(waited && waited < end, waits, "%s: %.40s", name, at);
        if (waits && waited) {
            for (size_t i = 0; i < sizeof early / sizeof early[0]; i++) {
                const char *found = strstr(body, early[i]);
                cr_expect(!found || found > waited, "%s: `%s` before the wait of %.40s", name,
                          early[i], at);
            }
            const char *again = strstr(waited + 1, wait);
            cr_expect(!again || again > end, "%s: waits twice: %.40s", name, at);
        }
        at = end;
    }
    return n;
}

static bool has(const char *ptx, const char *word) {
    return strstr(ptx, word) != NULL;
}

static void check_manifest(const char *artifact, bool waits, const char *name) {
    const char *line = artifact;
    for (; (line = strstr(line, "\n//@ variant ")); line++) {
        const char *end = strchr(line + 1, '\n');
        const char *at = strstr(line + 1, " waits"); /* a price may follow */
        bool says = end && at && at < end;
        cr_expect_eq(says, waits, "%s: %.60s", name, line + 1);
    }
}

static void check_source(const char *source, const char *name) {
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90, TARGET_SM_90A};
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
        const Target *target = target_get(targets[t]);
        for (int mode = 0; mode < 2; mode++) {
            Compiled compiled =
                compiled_as(source, targets[t], mode ? COMPILE_UNFUSED : COMPILE_FUSED);
            uint32_t n = check_kernels(compiled.bytes, target->has_pdl, name);
            cr_expect_gt(n, 0, "%s has no kernels", name);
            check_manifest(compiled.bytes, target->has_pdl, name);
            compile_free(&compiled);
        }
    }
}

Test(pdl, every_kernel_waits_before_it_touches_memory, .timeout = 300) {
    glob_t files;
    cr_assert_eq(glob("dsl/examples/*.g", 0, NULL, &files), 0);
    cr_assert_gt(files.gl_pathc, 5);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        Arena *arena = arena_new(NULL);
        size_t n_bytes;
        const char *source = text_file_read(arena, files.gl_pathv[i], &n_bytes);
        cr_assert(source, "%s", files.gl_pathv[i]);
        check_source(source, files.gl_pathv[i]);
        arena_free(arena);
    }
    globfree(&files);
}

/* Little but loads, in kernels of one block of code. */
static const char sums[] = "dim N in 1..1048576\n"
                           "graph g(a: f32[N], b: f32[N], c: f32[N]) -> (y: f32[N], z: f32[N]) {\n"
                           "  y = a * b + c\n"
                           "  z = a + b * c\n"
                           "}\n";

Test(pdl, loads_stay_behind_the_wait, .timeout = 60) {
    check_source(sums, "map");
    check_source("graph g(a: f32[4]) -> (y: f32[4]) {\n  y = a + a\n}\n", "small");
}

static char *compile_for(TargetId target, const char *source) {
    Compiled compiled = compiled_new(source, target);
    char *ptx = strdup(compiled.bytes);
    compile_free(&compiled);
    return ptx;
}

static void expect_word(TargetId target, const char *source, const char *word, bool is_there,
                        const char *name) {
    char *ptx = compile_for(target, source);
    cr_expect_eq(has(ptx, word), is_there, "%s: %s", name, word);
    free(ptx);
}

/* An assembler moves loads that say that their memory never changes past the wait, as it may: seen
 * with ptxas 13.0. So only params say so, where a kernel can begin before the one ahead has ended.
 */
Test(pdl, only_what_is_given_for_good_is_read_out_of_order, .timeout = 60) {
    static const char unchanging[] = "ld.global.nc";
    static const char param[] = "graph g(a: f32[1024]) -> (y: f32[1024]) {\n"
                                "  param w: f32[1024] = \"w\"\n"
                                "  y = a * w\n"
                                "}\n";
    expect_word(TARGET_SM_80, sums, unchanging, true, "inputs, sm_80");
    expect_word(TARGET_SM_90A, sums, unchanging, false, "inputs, sm_90a");
    expect_word(TARGET_SM_90A, param, unchanging, true, "a param, sm_90a");
}

/* The same by the machine code of kernels without loops, where nothing else holds a load back. */
static void check_code(const char *source, const char *name) {
    static const char *const reads[] = {"LDG", "LD.E", "UTMA", "UBLKCP", "STG", "ATOM", "RED"};
    Arena *arena = arena_new(NULL);
    char *ptx = compile_for(TARGET_SM_90A, source);
    PtxReport report;
    PtxOptions options = {.target = "sm_90a", .wants_sass = true};
    uint32_t n = 0;
    if (ptx_assemble(arena, ptx, strlen(ptx), options, &report) && report.sass) {
        for (const char *at = report.sass; (at = strstr(at, "\n.text.")); n++) {
            const char *end = strstr(at, "ACQBULK");
            cr_assert(end, "%s does not wait", name);
            for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
                const char *found = strstr(at, reads[i]);
                cr_expect(!found || found > end, "%s: %.60s", name, found);
            }
            at = end;
        }
        cr_expect_gt(n, 0);
    }
    free(ptx);
    arena_free(arena);
}

Test(pdl, the_assembler_leaves_loads_behind_the_wait, .timeout = 120) {
    check_code(sums, "map");
    check_code("graph g(x: bf16[1, 2048], w: bf16[8192, 2048]) -> (y: bf16[1, 8192]) {\n"
               "  y = x @ transpose(w)\n"
               "}\n",
               "product");
    check_code("graph g(x: f32[512, 1024]) -> (y: f32[512, 1024]) {\n"
               "  y = softmax(x, axis=-1)\n"
               "}\n",
               "rows");
}

/* The next launch is let in early where both are small. */
Test(pdl, small_launches_begin_while_others_end, .timeout = 60) {
    static const char rows[] =
        "graph g(x: bf16[%s, 2048], v: bf16[2048, 2048], w: bf16[2048, 2048])"
        " -> (y: bf16[%s, 2048]) {\n"
        "  y = relu(x @ transpose(v)) @ transpose(w)\n"
        "}\n";
    static const char mixed[] = "graph g(x: bf16[1, 8192], w: bf16[8192, 8192]) -> (y: bf16[1]) {\n"
                                "  y = sum(relu(x @ transpose(w)), axis=[1])\n"
                                "}\n";
    static const char one_block[] = "graph g(x: f32[1, 64], v: f32[64, 64], w: f32[64, 16])"
                                    " -> (y: f32[1, 16]) {\n"
                                    "  y = softmax(relu(x @ v) @ w, axis=-1)\n"
                                    "}\n";
    char one[512], many[512];
    snprintf(one, sizeof one, rows, "1", "1");
    snprintf(many, sizeof many, rows, "512", "512");
    expect_word(TARGET_SM_90A, one, let_in, true, "one row");
    expect_word(TARGET_SM_90A, many, let_in, false, "many rows");
    expect_word(TARGET_SM_90A, mixed, let_in, false, "a product and a sum");
    expect_word(TARGET_SM_90A, one_block, let_in, true, "one block");
    expect_word(TARGET_SM_80, one, let_in, false, "sm_80");
}

/* A product lets it in when its matrix is read. */
Test(pdl, a_gemv_reads_its_matrix_before_the_next_launch_may_begin, .timeout = 60) {
    char *ptx = compile_for(
        TARGET_SM_90A, "graph g(x: bf16[1, 8192], w: bf16[8192, 8192]) -> (y: bf16[1, 8192]) {\n"
                       "  y = x @ transpose(w)\n"
                       "}\n");
    const char *begin = strstr(ptx, let_in), *end = begin ? strstr(begin, "\n}") : NULL;
    const char *load = begin ? strstr(begin, "ld.global") : NULL;
    cr_assert(begin && end);
    cr_expect(!load || load > end, "%.60s", load);
    cr_expect(strstr(begin, "shfl") < end);
    free(ptx);
}

/* Turns ask for all that they copy while they wait. */
Test(pdl, one_block_prefetches_what_it_copies, .timeout = 60) {
    static const char ask[] = "cp.async.bulk.prefetch.L2.global";
    char *ptx = compile_for(TARGET_SM_90A, "graph g(x: f32[1, 64], v: f32[64, 64], w: f32[64, 16])"
                                           " -> (y: f32[1, 16]) {\n"
                                           "  y = softmax(relu(x @ v) @ w, axis=-1)\n"
                                           "}\n");
    const char *waited = strstr(ptx, wait);
    uint32_t n = 0;
    for (const char *at = ptx; (at = strstr(at, ask)) && at < waited; at++) n++;
    cr_expect_eq(n, 3, "%u requests", n);
    free(ptx);
}
