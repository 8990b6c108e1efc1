/* Gemm-rows-gemm launches: which row kernels between two matmuls join a launch, what its plan is,
 * and that the assembler accepts the code. Tests that run on a card check results (soak --shapes,
 * gemm-rows-gemm). */
#include "lib/compile.h"
#include "lib/ptx.h"
#include "plan/launch.h"

#include "template/gemm_rows_gemm.h"

#include <criterion/criterion.h>

#define SCORES "(q @ transpose(k, perm=[0, 2, 1])) * 0.125"
#define CAUSAL(sees) "where(iota([M, N], axis=1) " sees ", " SCORES ", -inf)"

typedef struct Rows {
    const char *dtype, *columns, *depth, *width; /* N, K and columns of the result */
    const char *scores, *rows;
    bool is_launch;
} Rows;

static const Rows rows[] = {
    {"bf16", "N", "64", "64", SCORES, "softmax(s)", true},
    {"bf16", "N", "128", "128", CAUSAL("<= iota([M, N], axis=0)"), "softmax(s)", true},
    {"f16", "N", "80", "40", CAUSAL("< iota([M, N], axis=0) + 3"), "softmax(s)", true},
    {"bf16", "N", "128", "128", CAUSAL(">= iota([M, N], axis=0)"), "softmax(s)", true},
    {"bf16", "1024", "32", "96", "q @ transpose(k, perm=[0, 2, 1])", "softmax(relu(s))", true},
    {"bf16", "N", "64", "64", CAUSAL("<= iota([M, N], axis=0)"), /* no -infinity is left */
     "cast(softmax(cast(cast(s, i32), f32)), bf16)", true},
    {"bf16", "N", "64", "128", SCORES, "log_softmax(s)", true},
    {"bf16", "N", "64", "64", SCORES, "layernorm(s, g, g)", true},
    {"f16", "1000", "64", "64", SCORES, "s / (1 + max(abs(s), keep=true, axis=-1))", true},
    {"bf16", "N", "129", "64", SCORES, "softmax(s)", false},
    {"bf16", "N", "64", "136", SCORES, "softmax(s)", false},
    {"bf16", "N + 1", "64", "64", SCORES, "softmax(s)", false},
    {"bf16", "16386", "64", "64", SCORES, "softmax(s)", false},
    {"f32", "N", "64", "64", SCORES, "softmax(s)", false}};

/* `asks`: a `fuse must` block around the scores and the row kernels' values. */
static const char *source_of(Arena *arena, const Rows *r, bool asks) {
    const char *d = r->dtype, *n = r->columns;
    return str_format(arena,
                      "dim B in 1..64\ndim M in 1..4096\ndim N in 258..8192 mult 2\n"
                      "graph a(q: %s[B, M, %s], k: %s[B, %s, %s], v: %s[B, %s, %s], g: %s[%s])"
                      " -> (o: %s[B, M, %s]) {\n  %s\n    s = %s\n    p = %s\n  %s\n"
                      "  o = p @ v\n}\n",
                      d, r->depth, d, n, r->depth, d, n, r->width, d, n, d, r->width,
                      asks ? "fuse must {" : "", r->scores, r->rows, asks ? "}" : "");
}

/* Checks for one launch of three kernels, whose intermediate values are not in global memory. */
static void check_plan(const Plan *plan, const Rows *r) {
    Launch launch = *plan_launch_of(plan, plan->kernels.n - 3);
    uint32_t n_off_memory = 0;
    cr_assert(launch.n == 3 && launch.mode == LAUNCH_GEMM_ROWS_GEMM, "%s", r->rows);
    for (uint32_t b = 0; b < plan->buffers.n; b++)
        n_off_memory += plan->buffers.data[b].space != BUFFER_GLOBAL;
    cr_expect_eq(n_off_memory, 2);
    cr_expect(launch_kernel(plan, &launch, 0)->form == FORM_GEMM &&
              launch_kernel(plan, &launch, 1)->form == FORM_ROW);
    for (uint32_t v = 0; v < launch_kernel(plan, &launch, 0)->n_variants; v++) {
        GemmTile scores = sched_tile(&launch_kernel(plan, &launch, 0)->variants[v].sched);
        GemmTile result = sched_tile(&launch_kernel(plan, &launch, 2)->variants[v].sched);
        cr_expect(scores.m == result.m && scores.n == result.k);
    }
    const Kernel *first = launch_kernel(plan, &launch, 0);
    const Variant *last = &first->variants[first->n_variants - 1];
    cr_expect(!predicate_asks_extents(&last->predicate));
}

static void check_code(Arena *arena, const Compiled *compiled, const Target *target) {
    PtxReport report;
    PtxOptions assembler = {.target = target->name};
    ptx_assemble(arena, compiled->bytes, compiled->n_bytes, assembler, &report);
}

static void check(const Rows *r, TargetId id) {
    Arena *arena = arena_new(NULL);
    const Target *target = target_get(id);
    const char *source = source_of(arena, r, true);
    Compiled compiled;
    bool ok = compile_source(&compiled, source, target, COMPILE_FUSED);
    cr_expect_eq(ok, r->is_launch, "%s for %s\n%s", compiled.messages, target->name, source);
    if (ok) check_plan(compiled.driver.plans[0], r);
    if (ok) check_code(arena, &compiled, target);
    compile_free(&compiled);
    arena_free(arena);
}

Test(gemm_rows_gemm, rows_between_matmuls_are_in_no_memory, .timeout = 300) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check(&rows[i], TARGET_SM_86);
        check(&rows[i], TARGET_SM_90A);
    }
}

/* Cases in which a property of the three kernels prevents the launch. `must`: a block contains the
 * scores and the rows. */
static const struct {
    const char *what, *q, *k, *scores, *rows, *result, *columns;
    bool is_launch;
} links[] = {
    {"heads that share their k and v", "4, M, 64", "1, N, 64", SCORES, "softmax(s)", "o = p @ v",
     "4, M", true},
    {"one head for several v", "1, M, 64", "1, N, 64", SCORES, "softmax(s)",
     "o = p @ concat([v, v], axis=0)", "2, M", false},
    {"another reader of the rows", "4, M, 64", "4, N, 64", SCORES, "softmax(s)",
     "o = p @ v + max(p, axis=-1, keep=true)", "4, M", false},
    {"a part of the rows", "4, M, 64", "4, N, 64", SCORES, "softmax(s)", "o = p[:, 1:, :] @ v",
     "4, M - 1", false},
    {"rows of another axis", "4, N, 64", "4, N, 64", SCORES, "softmax(s, axis=1)", "o = p @ v",
     "4, N", false},
    {"rows that are transposed", "4, N, 64", "4, N, 64", SCORES, "softmax(s)",
     "o = transpose(p, perm=[0, 2, 1]) @ v", "4, N", false},
    {"rows as the right factor", "4, N, 64", "4, N, 64", SCORES, "softmax(s)",
     "o = transpose(transpose(v, perm=[0, 2, 1]) @ p, perm=[0, 2, 1])", "4, N", false},
};

static const char *link_source(Arena *arena, size_t i) {
    return str_format(arena,
                      "dim M in 2..4096\ndim N in 258..8192 mult 2\n"
                      "graph a(q: bf16[%s], k: bf16[%s], v: bf16[%s]) -> (o: bf16[%s, 64]) {\n"
                      "  fuse must {\n    s = %s\n    p = %s\n  }\n  %s\n}\n",
                      links[i].q, links[i].k, links[i].k, links[i].columns, links[i].scores,
                      links[i].rows, links[i].result);
}

Test(gemm_rows_gemm, each_takes_all_and_nothing_else_of_the_one_before, .timeout = 300) {
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        Arena *arena = arena_new(NULL);
        Compiled compiled;
        const char *source = link_source(arena, i);
        bool ok = compile_source(&compiled, source, target_get(TARGET_SM_80), COMPILE_FUSED);
        cr_expect_eq(ok, links[i].is_launch, "%s: %s%s", links[i].what, compiled.messages, source);
        if (!ok)
            cr_expect(strstr(compiled.messages, "fuse-must"), "%s: %s", links[i].what,
                      compiled.messages);
        compile_free(&compiled);
        arena_free(arena);
    }
}

/* A matmul with the same tiles that reads the result in the launch's blocks is not a kernel of the
 * launch, since the template has no place for it. */
Test(gemm_rows_gemm, nothing_goes_on_in_its_blocks) {
    static const char source[] =
        "graph a(q: bf16[1024, 64, 64], k: bf16[1024, 64, 64], v: bf16[1024, 64, 64],\n"
        "        x: bf16[1024, 64, 512], w: bf16[1024, 512, 64])\n"
        "    -> (o: bf16[1024, 64, 64], z: bf16[1024, 64, 64]) {\n"
        "  fuse must {\n    s = q @ transpose(k, perm=[0, 2, 1])\n    p = softmax(s)\n  }\n"
        "  o = p @ v\n  z = o * (x @ w)\n}\n";
    Compiled compiled;
    cr_assert(compile_source(&compiled, source, target_get(TARGET_SM_80), COMPILE_FUSED));
    Launch launch = *plan_launch_of(compiled.driver.plans[0], 0);
    cr_expect(launch.mode == LAUNCH_GEMM_ROWS_GEMM && launch.n == GEMM_ROWS_GEMM_KERNELS);
    cr_expect_eq(compiled.driver.plans[0]->kernels.n, GEMM_ROWS_GEMM_KERNELS + 1);
    compile_free(&compiled);
}

/* A map after the row kernel has no reduction, so it is no second matmul. */
Test(gemm_rows_gemm, a_map_of_the_rows_is_no_matmul) {
    static const char source[] = "graph g(x: f16[64, 64], w: f16[64, 64]) -> (y: f16[64, 64]) {\n"
                                 "  kernel a { s = x @ w }\n  kernel b { p = softmax(s) }\n"
                                 "  kernel c { y = exp(transpose(p)) }\n}\n";
    Compiled compiled;
    cr_expect(compile_source(&compiled, source, target_get(TARGET_SM_80), COMPILE_FUSED), "%s",
              compiled.messages);
    compile_free(&compiled);
}

Test(gemm_rows_gemm, several_are_found) {
    static const char source[] =
        "graph a(q: bf16[64, 128, 64], r: bf16[64, 128, 64], k: bf16[64, 512, 64])\n"
        "    -> (o: bf16[64, 128, 64], z: bf16[64, 128, 64]) {\n"
        "  fuse must {\n    s = q @ transpose(k, perm=[0, 2, 1])\n    p = softmax(s)\n  }\n"
        "  fuse must {\n    t = r @ transpose(k, perm=[0, 2, 1])\n    u = softmax(t)\n  }\n"
        "  o = p @ k\n  z = u @ k\n}\n";
    Compiled compiled;
    uint32_t n = 0;
    bool ok = compile_source(&compiled, source, target_get(TARGET_SM_80), COMPILE_FUSED);
    cr_assert(ok, "%s", compiled.messages);
    const Plan *plan = compiled.driver.plans[0];
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        Launch launch = plan->launches.data[i];
        n += launch.mode == LAUNCH_GEMM_ROWS_GEMM && launch.n == GEMM_ROWS_GEMM_KERNELS;
    }
    cr_expect_eq(n, 2);
    compile_free(&compiled);
}

/* Attention of the prelude: two kernels whose scores are in no memory, by wgmma with the copy
 * engine and without, or by mma.sync. More columns than there are registers for are kernels of
 * their own. */
Test(gemm_rows_gemm, attention_is_one_launch, .timeout = 300) {
    static const struct {
        const char *columns;
        TargetId target;
        bool is_one;
    } cases[] = {{"64", TARGET_SM_90A, true},   {"128", TARGET_SM_90A, true},
                 {"264", TARGET_SM_90A, false}, {"64", TARGET_SM_80, true},
                 {"128", TARGET_SM_80, true},   {"136", TARGET_SM_80, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        const Target *target = target_get(cases[i].target);
        const char *c = cases[i].columns,
                   *source =
                       str_format(arena,
                                  "dim T in 34..4096 mult 2\n"
                                  "graph a(q: bf16[64, T, 64], k: bf16[64, T, 64], v: bf16[64, T, "
                                  "%s]) -> (o: bf16[64, T, "
                                  "%s]) {\n  o = relu(attention(q, k, v, is_causal=true))\n}\n",
                                  c, c);
        Compiled compiled;
        cr_assert(compile_source(&compiled, source, target, COMPILE_FUSED), "%s",
                  compiled.messages);
        const Plan *plan = compiled.driver.plans[0];
        const Launch *last = plan_launch_of(plan, plan->kernels.n - 1);
        cr_expect_eq(last->mode == LAUNCH_GEMM_ONLINE, cases[i].is_one, "%s columns", c);
        const Kernel *online = &plan->kernels.data[plan->kernels.n - 1];
        cr_expect_eq(online->n_variants, cases[i].is_one ? 2 : online->n_variants);
        if (cases[i].is_one) {
            cr_expect_eq(online->variants[0].n_maps > 0, target->has_wgmma);
            cr_expect(!online->variants[1].n_maps);
        }
        check_code(arena, &compiled, target);
        compile_free(&compiled);
        arena_free(arena);
    }
}

/* No value in a `fuse never` block passes within a launch. */
Test(gemm_rows_gemm, never_keeps_values_in_memory) {
    Compiled compiled;
    static const char source[] =
        "graph a(q: bf16[1024, 64], k: bf16[1024, 64], v: bf16[1024, 64]) -> (o: bf16[1024, 64]) "
        "{\n"
        "  fuse must {\n    s = q @ transpose(k, perm=[1, 0])\n    z = s * 0.125\n  }\n"
        "  fuse never {\n    p = softmax(z)\n  }\n  o = p @ v\n}\n";
    cr_assert(compile_source(&compiled, source, target_get(TARGET_SM_90A), COMPILE_FUSED));
    const Plan *plan = compiled.driver.plans[0];
    for (uint32_t i = 0; i < plan->launches.n; i++)
        cr_expect(plan->launches.data[i].mode != LAUNCH_GEMM_ROWS_GEMM);
    compile_free(&compiled);
}

/* Any kernel may read the rows after a matmul: a map without a reduction, or another row kernel. */
Test(gemm_rows_gemm, readers_that_are_no_matmuls_compile) {
    static const char *const readers[][2] = {{"100, 64", "gather(p, i, axis=0)"},
                                             {"62, 64", "p[2:] + p[1:-1] * p[:-2]"},
                                             {"64, 64", "p + sum(p, axis=[0, 1], keep=true)"},
                                             {"64, 64", "p + max(p, axis=0, keep=true)"},
                                             {"128, 64", "concat([p, p], axis=0)"}};
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A};
    for (size_t i = 0; i < sizeof readers / sizeof *readers * 2; i++) {
        Arena *arena = arena_new(NULL);
        Compiled compiled;
        const char *source =
            str_format(arena,
                       "graph g(x: bf16[64, 64], w: bf16[64, 64], i: i32[100]) -> (y: bf16[%s]) {\n"
                       "  s = x @ w\n  p = softmax(s)\n  y = %s\n}\n",
                       readers[i / 2][0], readers[i / 2][1]);
        cr_expect(compile_source(&compiled, source, target_get(targets[i % 2]), COMPILE_FUSED),
                  "%s%s", source, compiled.messages);
        compile_free(&compiled);
        arena_free(arena);
    }
}

/* Blocks that contain the rows and the matmul that reads them. As an operand the rows would be
 * computed in the matmul's own kernel. The block is kept if a launch passes the rows, and otherwise
 * refused for that reason. */
static const struct {
    const char *dtype, *outputs, *body;
    bool is_launch;
} blocks[] = {
    {"bf16", "y: bf16[8, 8]", "s = x @ w\n  fuse must {\n    p = softmax(s)\n    y = p @ v\n  }",
     true},
    {"f16", "y: f16[8, 8]", "fuse must {\n    s = x @ w\n    p = softmax(s)\n    y = p @ v\n  }",
     true},
    {"f16", "y: f16[8, 8]",
     "s = x @ w\n  fuse must {\n    p = cast(log_softmax(cast(s, f32)), f16)\n"
     "    y = relu(p @ v)\n  }",
     true},
    {"bf16", "y: bf16[8, 8]",
     "s = x @ w\n  fuse must {\n    p = reshape(softmax(s), [1, 8, 8])\n"
     "    y = reshape(p @ v, [8, 8])\n  }",
     true},
    {"bf16", "y: bf16[8, 8], p: bf16[8, 8]",
     "s = x @ w\n  fuse must {\n    p = softmax(s)\n    y = p @ v\n  }", false},
    {"f16", "y: f16[8, 8], z: f16[8, 8]",
     "s = x @ w\n  fuse must {\n    p = softmax(s)\n    y = p @ v\n    z = p @ w\n  }", false},
    {"bf16", "y: bf16[8, 8]", "s = x @ w\n  fuse must {\n    p = softmax(s)\n    y = v @ p\n  }",
     false},
};

static void check_block(size_t i, TargetId id) {
    Arena *arena = arena_new(NULL);
    Compiled compiled;
    const char *d = blocks[i].dtype;
    const char *source =
        str_format(arena, "graph g(x: %s[8, 8], w: %s[8, 8], v: %s[8, 8]) -> (%s) {\n  %s\n}\n", d,
                   d, d, blocks[i].outputs, blocks[i].body);
    bool ok = compile_source(&compiled, source, target_get(id), COMPILE_FUSED);
    cr_expect_eq(ok, blocks[i].is_launch, "%s%s", source, ok ? "" : compiled.messages);
    if (ok) {
        Launch launch = *plan_launch_of(compiled.driver.plans[0], 0);
        cr_expect(launch.mode == LAUNCH_GEMM_ROWS_GEMM && launch.n == GEMM_ROWS_GEMM_KERNELS, "%s",
                  source);
        cr_expect_eq(compiled.driver.plans[0]->kernels.n, GEMM_ROWS_GEMM_KERNELS, "%s", source);
    } else {
        cr_expect(strstr(compiled.messages, "has to be stored before `y` reads it: a matmul's"),
                  "%s%s", source, compiled.messages);
    }
    compile_free(&compiled);
    arena_free(arena);
}

Test(gemm_rows_gemm, blocks_may_hold_the_matmul_of_the_rows) {
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        check_block(i, TARGET_SM_80);
        check_block(i, TARGET_SM_90A);
    }
}
