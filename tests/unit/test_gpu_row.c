/* Rows on a GPU as schedules and code: which are resident, how many blocks share one, and that the
 * assembler takes them without spills. Results are checked where there is a GPU, by the sweep. */
#include "lib/compile.h"
#include "lib/ptx.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Program {
    Compiled compiled;
    const Plan *plan;
} Program;

static Program compile(const char *source, TargetId target) {
    Program p;
    bool ok = compile_source(&p.compiled, source, target_get(target), COMPILE_FUSED);
    cr_assert(ok, "%s\n%s", p.compiled.messages, source);
    p.plan = p.compiled.driver.plans[0];
    return p;
}

/* True when there is no assembler to ask. */
static bool assembles_without_spills(const Program *p, TargetId target) {
    PtxReport report;
    PtxOptions options = {.target = target_get(target)->name};
    return !ptx_assemble(p->compiled.driver.arena, p->compiled.bytes, p->compiled.n_bytes, options,
                         &report) ||
           ptx_is_in_registers(&report);
}

/* Softmax over rows of constant length. */
static const struct {
    const char *dtype;
    int length;
    uint32_t lanes, threads, resident, cluster; /* of the first variant */
} softmaxes[] = {{"bf16", 4096, 8, 128, 4, 0},   {"bf16", 8192, 4, 256, 8, 0},
                 {"f32", 8192, 4, 256, 8, 0},    {"bf16", 16384, 2, 512, 16, 0},
                 {"f32", 16384, 2, 512, 16, 0},  {"bf16", 32768, 2, 512, 16, 2},
                 {"f16", 65536, 2, 512, 16, 4},  {"bf16", 131072, 2, 512, 16, 8},
                 {"f32", 131072, 2, 512, 16, 8}, {"bf16", 100003, 1, 1024, 16, 7},
                 {"bf16", 262144, 8, 128, 0, 0}};

Test(gpu_row, long_rows_are_kept_by_clusters) {
    for (size_t i = 0; i < sizeof softmaxes / sizeof softmaxes[0]; i++) {
        char source[256];
        snprintf(
            source, sizeof source,
            "graph g(x: %s[256, %d]) -> (y: %s[256, %d]) {\n  fuse must { y = softmax(x) }\n}\n",
            softmaxes[i].dtype, softmaxes[i].length, softmaxes[i].dtype, softmaxes[i].length);
        Program p = compile(source, TARGET_SM_90A);
        cr_assert_eq(p.plan->kernels.n, 1, "%s", source);
        const Kernel *kernel = &p.plan->kernels.data[0];
        const Sched *s = &kernel->variants[0].sched;
        bool is_wanted = s->lanes == softmaxes[i].lanes && s->threads == softmaxes[i].threads &&
                         s->resident == softmaxes[i].resident && s->cluster == softmaxes[i].cluster;
        cr_expect(is_wanted, "%slanes %u, threads %u, resident %u, cluster %u", source, s->lanes,
                  s->threads, s->resident, s->cluster);
        uint32_t n_clusters = 0;
        for (uint32_t v = 0; v < kernel->n_variants; v++)
            n_clusters += kernel->variants[v].sched.cluster > 1;
        cr_expect_eq(ptx_count(p.compiled.bytes, ".reqnctapercluster"), n_clusters);
        /* Before the first exchange, and in each of two. */
        cr_expect_eq(ptx_count(p.compiled.bytes, "barrier.cluster.wait"), 3 * n_clusters);
        cr_expect(assembles_without_spills(&p, TARGET_SM_90A), "%s", source);
        compile_free(&p.compiled);
    }
}

/* Where clusters are, one launch is predicted to be the fastest. */
Test(gpu_row, one_launch_where_there_are_clusters) {
    static const char source[] =
        "graph g(x: bf16[256, 131072]) -> (y: bf16[256, 131072]) {\n  y = softmax(x)\n}\n";
    Program with = compile(source, TARGET_SM_90A), without = compile(source, TARGET_SM_80);
    cr_expect_eq(with.plan->kernels.n, 1);
    for (uint32_t k = 0; k < without.plan->kernels.n; k++)
        cr_expect_leq(without.plan->kernels.data[k].variants[0].sched.cluster, 1);
    compile_free(&with.compiled);
    compile_free(&without.compiled);
}

/* Of symbolic length: ascending limits, no cluster, and a last variant that takes any row. */
Test(gpu_row, each_length_has_its_variant) {
    static const int64_t limits[] = {1024, 4096, 8192};
    static const char source[] =
        "dim R in 1..4096\ndim D in 1..1048576\n"
        "graph g(x: bf16[R, D]) -> (y: bf16[R, D]) {\n  y = softmax(x)\n}\n";
    Program p = compile(source, TARGET_SM_90A);
    const Kernel *kernel = &p.plan->kernels.data[0];
    cr_assert_eq(p.plan->kernels.n, 1);
    cr_assert_eq(kernel->n_variants, 5);
    for (uint32_t v = 0; v < 5; v++) {
        const Variant *variant = &kernel->variants[v];
        cr_expect_eq(variant->limit_dim != DIM_NONE, v < 3);
        if (v < 3) cr_expect_eq(variant->limit, limits[v]);
        cr_expect_eq(variant->sched.resident > 0, v < 3);
        cr_expect_eq(variant->sched.cluster, 0);
    }
    cr_expect_eq(kernel->variants[4].align_args, 0);
    cr_expect(assembles_without_spills(&p, TARGET_SM_90A));
    compile_free(&p.compiled);
}

/* One divisor for a row: one reciprocal, and no division but one in the loop for unusual lanes. */
Test(gpu_row, a_row_divides_by_its_sum_once) {
    static const char source[] =
        "graph g(x: bf16[256, 4096]) -> (y: bf16[256, 4096]) {\n  y = softmax(x)\n}\n";
    Program p = compile(source, TARGET_SM_90A);
    const char *first = strstr(p.compiled.bytes, ".entry");
    cr_assert(first);
    const Sched *s = &p.plan->kernels.data[0].variants[0].sched;
    uint32_t n_scalar = p.plan->kernels.data[0].variants[1].sched.resident;
    cr_expect_eq(ptx_count(first, "rcp.rn.f32"), 1);
    cr_expect_eq(ptx_count(first, "div.rn.f32"), s->resident + n_scalar);
    compile_free(&p.compiled);
}
