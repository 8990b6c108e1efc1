/* Long matmuls in segments: which matmuls have them, that it is the matmul alone that says so, and
 * what the plan does with them. Results are compared by soak's random shapes (split-k). */
#include "search/split_k_segments.h"

#include "lib/plans.h"
#include "plan/launch.h"
#include "verify/probe.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static PricedPlan priced_at(Arena *arena, const char *source, TargetId target, bool off) {
    Module *module = plans_parse(arena, source);
    const Card *card = card_of_target(target_get(target));
    PricedPlan priced = plans_price(arena, module, 0, off, target, card, NULL);
    cr_assert(priced.plan, "%s", source);
    return priced;
}

static PricedPlan priced(Arena *arena, const char *source) {
    return priced_at(arena, source, TARGET_SM_90A, false);
}

static bool is_partial(const Kernel *kernel) {
    return kernel->form == FORM_GEMM && kernel->segment_axis != NO_AXIS;
}

static const Kernel *find_partial(const Plan *plan) {
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        if (is_partial(&plan->kernels.data[k])) return &plan->kernels.data[k];
    return NULL;
}

static int64_t known(const Kernel *kernel, uint32_t axis) {
    int64_t value = -1;
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    dim_is_const(dims, kernel_axis_extent(kernel, axis), &value);
    return value;
}

/* The least segment of the plan's matmuls; 0: none has any. */
static int64_t segment_elems(const Plan *plan) {
    const Kernel *partial = find_partial(plan);
    return partial ? known(partial, partial->first_reduced) : 0;
}

static const char *matmul(Arena *arena, const char *dtype, int m, int n, int k) {
    return str_format(arena,
                      "graph g(a: %s[%d, %d], b: %s[%d, %d]) -> (y: %s[%d, %d]) {\n"
                      "  y = relu(a @ b)\n}\n",
                      dtype, m, k, dtype, k, n, dtype, m, n);
}

/* Most of the time that one sum would take. */
Test(split_k, few_tiles_of_a_long_k_go_over_the_machine) {
    static const struct {
        const char *dtype;
        int m, n, k;
        double most_us;
    } cases[] = {{"bf16", 512, 512, 65536, 60}, {"bf16", 256, 1024, 8192, 14},
                 {"bf16", 16, 64, 65536, 10},   {"bf16", 64, 64, 65536, 12},
                 {"f16", 256, 256, 65536, 30},  {"bf16", 128, 128, 1 << 20, 150},
                 {"bf16", 16, 1024, 16384, 16}, {"bf16", 32, 1024, 8192, 11},
                 {"bf16", 4, 128, 131072, 20},  {"f32", 256, 256, 65536, 200},
                 {"f64", 256, 256, 65536, 200}, {"bf16", 304, 304, 50400, 30},
                 {"bf16", 1, 64, 131072, 12},   {"f32", 64, 1, 131072, 12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        PricedPlan p =
            priced(arena, matmul(arena, cases[i].dtype, cases[i].m, cases[i].n, cases[i].k));
        cr_expect(find_partial(p.plan), "case %zu is one sum", i);
        cr_expect_eq(p.cost->n_launches, 2, "case %zu: %u launches", i, p.cost->n_launches);
        cr_expect_lt(p.cost->us, cases[i].most_us, "case %zu: %.1f us", i, p.cost->us);
        arena_free(arena);
    }
}

Test(split_k, full_machines_and_short_sums_have_none) {
    static const int extents[][3] = {{2048, 2048, 2048}, {256, 8192, 8192}, {16, 8192, 8192},
                                     {16, 4096, 4096},   {1, 8192, 8192},   {128, 128, 512},
                                     {64, 256, 1024},    {4000, 4104, 4072}};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
        Arena *arena = arena_new(NULL);
        const int *e = extents[i];
        PricedPlan p = priced(arena, matmul(arena, "bf16", e[0], e[1], e[2]));
        cr_expect_null(find_partial(p.plan), "%d x %d x %d", e[0], e[1], e[2]);
        arena_free(arena);
    }
}

Test(split_k, extents_decide_whatever_they_may_be) {
    static const struct {
        const char *source;
        TargetId target;
        bool has;
    } cases[] = {
        {"dim M in 1..64\ngraph g(a: bf16[M, 65536], b: bf16[65536, 64]) -> (y: bf16[M, 64]) { y = "
         "a @ b }",
         TARGET_SM_90A, true},
        {"dim M in 1..65536\ngraph g(a: bf16[M, 65536], b: bf16[65536, 64]) -> (y: bf16[M, 64]) { "
         "y = a @ b }",
         TARGET_SM_90A, false},
        {"dim K in 65536..65544\ngraph g(a: bf16[8, K], b: bf16[K, 64]) -> (y: bf16[8, 64]) { y = "
         "a @ b }",
         TARGET_SM_90A, false},
        {"graph g(a: bf16[8, 65536], b: bf16[65536, 64]) -> (y: bf16[8, 64]) { y = a @ b }",
         TARGET_CPU, false},
        {"graph g(a: bf16[8, 65536], b: bf16[65536, 64]) -> (y: bf16[8, 64]) { y = a @ b }",
         TARGET_SM_80, true},
        {"graph g(a: bf16[8, 65536], b: bf16[65536, 64]) -> (y: bf16[8, 64]) { fuse must { y = "
         "relu(a @ b) } }",
         TARGET_SM_90A, true},
        {"graph g(a: bf16[8, 65536], b: bf16[65536, 64]) -> (y: bf16[8, 64]) { fuse must { y = "
         "softmax(a @ b) } }",
         TARGET_SM_90A, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        for (int off = 0; off < 2; off++) {
            PricedPlan p = priced_at(arena, cases[i].source, cases[i].target, off);
            cr_expect_eq(find_partial(p.plan) != NULL, cases[i].has, "case %zu", i);
        }
        arena_free(arena);
    }
}

/* One order of summation: with what stands before and behind, by elements or views, with fusion and
 * without. */
Test(split_k, what_is_fused_changes_none) {
    static const char *const bodies[] = {
        "y = a @ b",
        "y = relu(a @ b + 1)",
        "y = exp(a) @ (b * 2)",
        "y = softmax(a @ b)",
        "h = a @ b\n y = h * (a @ exp(b))",
        "y = concat([slice_of(a @ b), slice_of(exp(a) @ b)], axis=1)",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        Arena *arena = arena_new(NULL);
        const char *source =
            str_format(arena,
                       "def slice_of(x) = x[:, :32]\n"
                       "graph g(a: bf16[48, 16384], b: bf16[16384, 64]) -> (y: bf16[48, 64]) {\n"
                       " %s\n}\n",
                       bodies[i]);
        int64_t alone = segment_elems(priced(arena, matmul(arena, "bf16", 48, 64, 16384)).plan);
        cr_expect_gt(alone, 0);
        for (int off = 0; off < 2; off++) {
            const Plan *plan = priced_at(arena, source, TARGET_SM_90A, off).plan;
            for (uint32_t k = 0; k < plan->kernels.n; k++) {
                const Kernel *kernel = &plan->kernels.data[k];
                if (kernel->form != FORM_GEMM) continue;
                cr_expect(is_partial(kernel), "%s", source);
                cr_expect_eq(known(kernel, kernel->first_reduced), alone, "%s", source);
            }
        }
        arena_free(arena);
    }
}

/* Those alike in one kernel, and the rest beside it; the sum of both has what follows. */
Test(split_k, the_last_may_be_shorter) {
    Arena *arena = arena_new(NULL);
    PricedPlan p = priced(arena, matmul(arena, "f32", 16, 24, 9001));
    const Plan *plan = p.plan;
    cr_assert_eq(plan->kernels.n, 3);
    const Kernel *alike = &plan->kernels.data[0], *rest = alike + 1, *sum = alike + 2;
    cr_expect(is_partial(alike) && is_partial(rest));
    cr_expect_eq(plan_launch_of(plan, 1)->mode, LAUNCH_PARALLEL);
    cr_expect_eq(plan_launch_of(plan, 1)->first, 0);
    int64_t n = known(alike, alike->segment_axis), elems = known(alike, alike->first_reduced);
    cr_expect_eq(known(rest, rest->segment_axis), 1);
    cr_expect_eq(n * elems + known(rest, rest->first_reduced), 9001);
    cr_expect_eq(sum->form, FORM_COLUMN);
    cr_expect_eq(known(sum, sum->first_reduced), n + 1);
    arena_free(arena);
}

Test(split_k, accumulators_are_rounded_once) {
    static const struct {
        const char *dtype;
        Dtype partial, result;
    } cases[] = {{"bf16", DT_F32, DT_BF16},
                 {"f16", DT_F32, DT_F16},
                 {"f32", DT_F32, DT_F32},
                 {"f64", DT_F64, DT_F64},
                 {"i32", DT_I32, DT_I32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = priced(arena, matmul(arena, cases[i].dtype, 16, 24, 16384)).plan;
        const Kernel *partial = find_partial(plan);
        cr_assert(partial, "%s", cases[i].dtype);
        cr_assert_eq(partial->row_stores.n, 1);
        cr_expect_eq(plan->buffers.data[partial->row_stores.data[0].buffer].dtype,
                     cases[i].partial);
        cr_expect_eq(partial->reduces.data[0].result, cases[i].partial);
        cr_expect_eq(partial[1].reduces.data[0].result, cases[i].result);
        arena_free(arena);
    }
}

/* Both kernels are the user's op to the ledger, to pictures and to verify, which finds in the first
 * the values that the operands are made of. */
Test(split_k, kernels_are_of_the_users_ops) {
    Arena *arena = arena_new(NULL);
    const Plan *plan =
        priced(arena, "graph g(a: f32[8, 32768], b: f32[32768, 64]) -> (y: f32[8, 64]) {\n"
                      "  y = relu(exp(a) @ b)\n}\n")
            .plan;
    const Kernel *partial = find_partial(plan), *sum = partial + 1;
    cr_assert(partial);
    cr_expect_eq(strncmp(partial->name, sum->name, strlen(sum->name)), 0);
    cr_expect_eq(partial->span.begin, sum->span.begin);
    cr_expect_eq(partial->nodes.n, sum->nodes.n);
    cr_expect_gt(partial->traces.n, 0);
    for (uint32_t i = 0; i < partial->traces.n; i++)
        cr_expect(!probe_is_idle(arena, partial, i), "trace %u", i);
    arena_free(arena);
}

static const char *plan_text(Arena *arena, const Plan *plan) {
    Text text = {.arena = arena};
    plan_print(plan, &text);
    return text_str(&text);
}

/* A dump says nothing of segments: they follow from what it says. */
Test(split_k, dumps_parse_back_to_the_same_plan) {
    static const char source[] =
        "graph g(a: bf16[32, 16384], b: bf16[16384, 64]) -> (y: bf16[32, 64]) { y = relu(a @ b) }";
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, source);
    const Card *card = card_of_target(target_get(TARGET_SM_90A));
    PricedPlan p = plans_price(arena, module, 0, false, TARGET_SM_90A, card, NULL);
    cr_assert(p.plan && find_partial(p.plan));
    Text dump = {.arena = arena};
    module->graphs.data[0] = explain_fused_graph(arena, module->strings, p.plan);
    module_print(module, &dump);
    PricedPlan again = priced(arena, text_str(&dump));
    cr_expect_str_eq(plan_text(arena, again.plan), plan_text(arena, p.plan));
    arena_free(arena);
}
