/* Tensor core contractions as code: what is scheduled, which instructions each layout of the
 * factors becomes, and that the assembler takes it without spills. That results are right is for
 * the tests that run on a GPU. */
#include "lib/compile.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A};
static const char *const dtypes[] = {"bf16", "f16"};

typedef struct Program {
    Compiled compiled;
    const Kernel *kernel;
} Program;

static Program compile(const char *source, TargetId target) {
    Program p;
    bool ok = compile_source(&p.compiled, source, target_get(target), COMPILE_FUSED);
    cr_assert(ok, "%s\n%s", p.compiled.messages, source);
    const Plan *plan = p.compiled.driver.plans[0];
    cr_assert_eq(plan->kernels.n, 1, "%u kernels\n%s", plan->kernels.n, source);
    p.kernel = &plan->kernels.data[0];
    cr_assert_eq(p.kernel->form, FORM_CONTRACT);
    return p;
}

/* The text of a variant's function: from its entry to the line of its closing brace. */
static char *function_text(const Program *p, uint32_t variant) {
    char head[128];
    snprintf(head, sizeof head, ".entry %s(", p->kernel->variants[variant].symbol);
    const char *begin = strstr(p->compiled.bytes, head);
    cr_assert(begin, "no %s", head);
    const char *end = strstr(begin, "\n}");
    cr_assert(end);
    size_t n = (size_t)(end - begin);
    char *text = malloc(n + 1);
    cr_assert(text);
    memcpy(text, begin, n);
    text[n] = '\0';
    return text;
}

static uint32_t count(const char *text, const char *what) {
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}

/* Assembles all variants; true when there is no assembler to ask. */
static bool assembles_without_spills(const Program *p, TargetId target) {
    if (system("command -v ptxas > /dev/null 2>&1") != 0) {
        cr_log_warn("ptxas is not here: not assembled");
        return true;
    }
    char path[] = "/tmp/fusec-mma-XXXXXX", command[256], line[512];
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    cr_assert(file);
    cr_assert_eq(fwrite(p->compiled.bytes, 1, p->compiled.n_bytes, file), p->compiled.n_bytes);
    fclose(file);
    snprintf(command, sizeof command, "ptxas -v -arch=%s -o /dev/null %s 2>&1",
             target_get(target)->name, path);
    FILE *messages = popen(command, "r");
    cr_assert(messages);
    uint32_t n_functions = 0, n_clean = 0;
    while (fgets(line, sizeof line, messages)) {
        if (strstr(line, "Compiling entry function")) n_functions++;
        if (strstr(line, "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"))
            n_clean++;
    }
    bool ok = pclose(messages) == 0 && n_functions == p->kernel->n_variants;
    remove(path);
    return ok && n_clean == n_functions;
}

/* Instructions of a function that its schedule calls for. */
static void check_loop(const Program *p, uint32_t variant, const char *text) {
    const Sched *s = &p->kernel->variants[variant].sched;
    uint32_t steps = s->tile_k / 16, m = s->tile_m / s->warps_m / 16;
    uint32_t n = s->tile_n / s->warps_n / 8;
    cr_expect_eq(s->engine, CONTRACT_MMA);
    cr_expect_eq(s->threads, s->warps_m * s->warps_n * 32);
    cr_expect_eq(count(text, "mma.sync.aligned.m16n8k16"), steps * m * n);
    /* one step's fragments are loaded before the loop too */
    cr_expect_eq(count(text, "ldmatrix.sync"), (steps + 1) * (m + n / 2));
    cr_expect_eq(count(text, ".local"), 0, "a local array");
}

/* Large constant matrices, every layout: both factors are copied, and only what lies along m or n
 * is turned on its way into registers. */
static void check_layout(const char *dtype, int left_turned, int right_turned, TargetId target) {
    char source[512];
    snprintf(source, sizeof source,
             "graph g(a: %s[%s], b: %s[%s]) -> (y: %s[1416, 1304]) {\n"
             "  y = %s @ %s\n"
             "}\n",
             dtype, left_turned ? "200, 1416" : "1416, 200", dtype,
             right_turned ? "200, 1304" : "1304, 200", dtype,
             left_turned ? "transpose(a, perm=[1, 0])" : "a",
             right_turned ? "b" : "transpose(b, perm=[1, 0])");
    Program p = compile(source, target);
    char *text = function_text(&p, 0);
    check_loop(&p, 0, text);
    const Sched *s = &p.kernel->variants[0].sched;
    uint32_t steps = s->tile_k / 16 + 1;
    uint32_t left = steps * s->tile_m / s->warps_m / 16;
    uint32_t right = steps * s->tile_n / s->warps_n / 16;
    uint32_t turned = (left_turned ? left : 0) + (right_turned ? right : 0);
    uint32_t chunks = (s->tile_m + s->tile_n) * s->tile_k / 8 / s->threads;
    cr_expect_eq(s->tile_m, 128);
    cr_expect_eq(count(text, ".trans."), turned, "%s", source);
    cr_expect_eq(count(text, "cp.async.cg.shared.global"), chunks * s->stages, "%s", source);
    cr_expect_eq(count(text, dtype[0] == 'b' ? ".f32.bf16.bf16.f32" : ".f32.f16.f16.f32"),
                 count(text, "mma.sync"));
    cr_expect(assembles_without_spills(&p, target), "%s", source);
    free(text);
    compile_free(&p.compiled);
}

Test(gpu_mma, every_layout_is_copied_and_turned_where_it_must) {
    for (int i = 0; i < 16; i++)
        check_layout(dtypes[i & 1], i >> 1 & 1, i >> 2 & 1, targets[i >> 3 & 1]);
}

/* Epilogues of every input class, batches and symbolic extents. */
Test(gpu_mma, epilogues_assemble_without_spills) {
    static const char *const bodies[] = {
        "y: T[M, 256]) {\n  y = relu(a @ b + c)\n",
        "y: T[M, 256]) {\n  p = gelu(a @ b) * r\n  y = where(p > t, p, t)\n",
        "y: T[M, 256], z: bool[M, 256]) {\n  p = a @ b\n  y = tanh(p)\n  z = p > c\n",
        "y: T[M, 256], w: T[256, M]) {\n  y = a @ b + c\n  w = transpose(y, perm=[1, 0])\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies * 4; i++) {
        const char *dtype = dtypes[i & 1], *body = bodies[i / 4];
        char source[1024] = "dim M in 0..65536\ngraph g(a: T[M, 512], b: T[512, 256], c: T[256], "
                            "r: T[M, 1], t: T[M, 256]) -> (";
        strcat(source, body);
        strcat(source, "}\n");
        char typed[1024];
        size_t n = 0;
        for (const char *at = source; *at; at++)
            n += at[0] == 'T' && at[1] == '[' ? (size_t)sprintf(typed + n, "%s", dtype)
                                              : (size_t)sprintf(typed + n, "%c", *at);
        TargetId target = targets[i >> 1 & 1];
        Program p = compile(typed, target);
        for (uint32_t v = 0; v < p.kernel->n_variants; v++) {
            char *text = function_text(&p, v);
            check_loop(&p, v, text);
            free(text);
        }
        cr_expect(assembles_without_spills(&p, target), "%s", typed);
        compile_free(&p.compiled);
    }
}

/* What cannot be copied goes through registers: odd pitches in one variant that asks for nothing;
 * guarded but aligned factors by wide loads. */
Test(gpu_mma, odd_pitches_and_computed_factors_are_not_copied) {
    Program p = compile("graph g(a: bf16[300, 77], b: bf16[77, 131]) -> (y: bf16[300, 131]) {\n"
                        "  y = a @ b\n"
                        "}\n",
                        TARGET_SM_90A);
    cr_assert_eq(p.kernel->n_variants, 1);
    cr_expect_eq(p.kernel->variants[0].align_bytes, 1);
    char *text = function_text(&p, 0);
    check_loop(&p, 0, text);
    cr_expect_eq(count(text, "cp.async.cg"), 0);
    cr_expect_gt(count(text, "st.shared.v4"), 0);
    cr_expect_eq(count(text, "ld.global.nc.v4"), 0);
    cr_expect(assembles_without_spills(&p, TARGET_SM_90A));
    free(text);
    compile_free(&p.compiled);
    p = compile("graph g(a: f16[300, 64], b: f16[64, 128]) -> (y: f16[308, 128]) {\n"
                "  y = pad(a, low=[8, 0], high=[0, 0]) @ b\n"
                "}\n",
                TARGET_SM_90A);
    text = function_text(&p, 0);
    check_loop(&p, 0, text);
    cr_expect_gt(count(text, "cp.async.cg"), 0, "the right factor is copied");
    cr_expect_gt(count(text, "st.shared.v4"), 0, "the left one is not");
    cr_expect_gt(count(text, "ld.global.nc.v4"), 0, "but loaded 8 elements at a time");
    free(text);
    compile_free(&p.compiled);
}

/* k is padded to tile_k, which is arithmetic: so it may not differ between variants. */
Test(gpu_mma, variants_differ_in_tiles_but_not_in_steps_of_k) {
    Program p = compile("dim M in 1..65536\n"
                        "dim K in 1..65536\n"
                        "graph g(a: f16[M, K], b: f16[4096, K]) -> (y: f16[M, 4096]) {\n"
                        "  y = a @ transpose(b, perm=[1, 0])\n"
                        "}\n",
                        TARGET_SM_90A);
    bool is_large = false, is_small = false;
    for (uint32_t i = 0; i < p.kernel->n_variants; i++) {
        const Variant *variant = &p.kernel->variants[i];
        is_large = is_large || variant->sched.tile_m == 128;
        is_small = is_small || variant->sched.tile_m == 64;
        cr_expect_eq(variant->sched.tile_k, p.kernel->variants[0].sched.tile_k);
    }
    cr_expect(is_large && is_small);
    const Variant *last = &p.kernel->variants[p.kernel->n_variants - 1];
    cr_expect_eq(last->align_bytes, 1);
    cr_expect_eq(last->multiple_dim, DIM_NONE);
    cr_expect_eq(last->limit_dim, DIM_NONE);
    cr_expect_eq(p.kernel->variants[0].multiple_of, 8, "K is asked to be a multiple of 8");
    compile_free(&p.compiled);
}

/* Few large tiles leave most of a GPU idle. */
Test(gpu_mma, small_problems_get_small_tiles) {
    static const struct {
        int n;
        uint32_t tile;
    } cases[] = {{256, 32}, {1024, 64}, {4096, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[256];
        int n = cases[i].n;
        snprintf(source, sizeof source,
                 "graph g(a: bf16[%d, 64], b: bf16[64, %d]) -> (y: bf16[%d, %d]) {\n"
                 "  y = a @ b\n"
                 "}\n",
                 n, n, n, n);
        Program p = compile(source, TARGET_SM_80);
        cr_expect_eq(p.kernel->variants[0].sched.tile_m, cases[i].tile, "%s", source);
        compile_free(&p.compiled);
    }
}

/* Few rows of weights: small tiles with deep stages under a condition on how many there are, which
 * large products do not meet. What is deeper than the padding of k divides k. */
static void check_few_rows(int k, bool is_deep) {
    char source[256];
    snprintf(source, sizeof source,
             "dim M in 1..8192\n"
             "graph g(a: bf16[M, %d], b: bf16[%d, 4096]) -> (y: bf16[M, 4096]) {\n  y = a @ b\n}\n",
             k, k);
    Program p = compile(source, TARGET_SM_90A);
    const Variant *first = &p.kernel->variants[0];
    uint32_t in_flight = (first->sched.stages - 1) * first->sched.tile_n * first->sched.tile_k * 2;
    cr_expect_eq(first->sched.tile_m, 32);
    cr_expect_eq(first->sched.tile_n, 32);
    cr_expect(first->limit_dim != DIM_NONE && first->limit >= 128);
    cr_expect_geq(in_flight, 32 * 1024, "bytes of weights in flight");
    for (uint32_t i = 0; i < p.kernel->n_variants; i++) {
        const Variant *variant = &p.kernel->variants[i];
        const Sched *s = &variant->sched;
        uint32_t n_bytes = (s->tile_m + s->tile_n) * s->tile_k * 2 * s->stages;
        cr_expect_eq(variant->shared_bytes, n_bytes > 48 * 1024 ? n_bytes : 0);
        cr_expect_leq(n_bytes, 96 * 1024);
        cr_expect(s->tile_k == 32 || k % (int)s->tile_k == 0);
    }
    cr_expect_eq(first->sched.tile_k > 32, is_deep);
    cr_expect(assembles_without_spills(&p, TARGET_SM_90A), "%s", source);
    compile_free(&p.compiled);
}

Test(gpu_mma, few_rows_keep_much_in_flight) {
    check_few_rows(4096, true);
    check_few_rows(4000, false);
}
