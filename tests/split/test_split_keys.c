/* Softmax and product in parts of the keys: which kernels have them, and what the plan is made of.
 * Results are compared by test_online.c and by soak's random attention. */
#include "split/split.h"

#include "lib/plans.h"
#include "plan/launch.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Counts {
    uint32_t gemms, online, parts, joins, choices;
} Counts;

static Counts count(const Plan *plan) {
    Counts n = {0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        n.gemms += kernel->form == FORM_GEMM;
        n.online += kernel->form == FORM_ONLINE;
        n.parts += kernel->form == FORM_ONLINE && kernel->segment_axis != NO_AXIS;
        n.joins += kernel->form == FORM_ONLINE && kernel->reduces.data[0].count != SCALAR_NONE;
        n.choices += kernel->choice != NULL;
    }
    return n;
}

static Plan *planned(Arena *arena, const char *dims, const char *m, const char *n,
                     TargetId target) {
    const char *source = str_format(arena,
                                    "%sgraph g(q: bf16[64, %s, 64], k: bf16[64, %s, 64], v: "
                                    "bf16[64, %s, 64]) -> (y: bf16[64, %s, "
                                    "64]) {\n  y = attention(q, k, v)\n}\n",
                                    dims, m, n, n, m);
    PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, target,
                                    card_of_target(target_get(target)), NULL);
    cr_assert(priced.plan, "%s", source);
    return priced.plan;
}

/* Rows and keys alone say so, on every target. */
Test(split_keys, few_rows_have_parts_of_the_keys) {
    static const struct {
        const char *m, *n;
        uint32_t parts;
    } cases[] = {
        {"1", "4096", 1}, {"8", "4096", 1}, {"32", "258", 1}, {"32", "256", 0}, {"33", "4096", 0}};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < 2; t++) {
            TargetId target = t ? TARGET_SM_90A : TARGET_CPU;
            Counts n = count(planned(arena, "", cases[i].m, cases[i].n, target));
            cr_expect(n.parts == cases[i].parts && n.joins == n.parts && !n.choices &&
                          n.online == 1 + n.parts,
                      "%s rows, %s keys", cases[i].m, cases[i].n);
        }
    arena_free(arena);
}

/* Parts are twice as long whenever there would be more than 64; a dim has those of its value. */
Test(split_keys, long_keys_have_long_parts) {
    static const int64_t cases[][2] = {{1, 256},      {16384, 256},  {16385, 512},  {32768, 512},
                                       {32769, 1024}, {65537, 2048}, {100000, 2048}};
    Arena *arena = arena_new(NULL);
    DimTab *dims = dimtab_new(arena);
    uint32_t symbol = dim_declare(dims, (DimSymbol){.name = "N", .hi = 1 << 20, .multiple = 1});
    DimId part = online_part_keys(dims, dim_symbol(dims, symbol));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t of_dim, keys = cases[i][0];
        DimId of_number = online_part_keys(dims, dim_const(dims, keys));
        cr_expect(dim_equals_const(dims, of_number, cases[i][1]), "%lld keys", (long long)keys);
        cr_expect(dim_eval(dims, part, &keys, &of_dim) && of_dim == cases[i][1], "N = %lld",
                  (long long)keys);
    }
    arena_free(arena);
}

/* Batches that share keys and values are no rows: m alone says whether keys have parts. */
Test(split_keys, batches_are_no_rows) {
    static const char source[] =
        "graph g(x: f32[2, 30, 1548], v: f16[1548, 56]) -> (y: f16[2, 30, 56]) {\n"
        "  y = softmax_matmul(x, v)\n}\n";
    Arena *arena = arena_new(NULL);
    for (int t = 0; t < 2; t++) {
        TargetId target = t ? TARGET_SM_90A : TARGET_CPU;
        PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, target,
                                        card_of_target(target_get(target)), NULL);
        cr_expect_eq(count(priced.plan).parts, 1u);
    }
    arena_free(arena);
}

/* Where rows may be few, both versions of the matmul share a launch with their reader. */
Test(split_keys, a_run_chooses_by_its_rows) {
    Arena *arena = arena_new(NULL);
    const Plan *plan =
        planned(arena, "dim M in 1..4096\ndim N in 2..4096 mult 2\n", "M", "N", TARGET_SM_90A);
    Counts n = count(plan);
    uint32_t n_joined = 0;
    for (uint32_t i = 0; i < plan->launches.n; i++)
        n_joined += plan->launches.data[i].mode == LAUNCH_GEMM_ONLINE;
    cr_expect_eq(n.gemms, 2u);
    cr_expect_eq(n.online, 3u);
    cr_expect_eq(n.choices, 5u);
    cr_expect_eq(n_joined, 2u);
    cr_expect_null(plan_verify(plan, arena));
    arena_free(arena);
}

/* Rows of N elements are badly aligned, so that both matmuls may read a copy with another pitch. */
Test(split_keys, both_matmuls_have_operands_of_their_own) {
    static const char source[] =
        "dim M in 1..700\ndim N in 2..3000 mult 2\n"
        "graph g(a: bf16[M, 48], b: bf16[48, N], c: bf16[N, 40]) -> (y: bf16[M, 40]) {\n"
        "  fuse must {\n    x = cast(a @ b, f32)\n    y = softmax_matmul(x, c)\n  }\n}\n";
    Arena *arena = arena_new(NULL);
    const Target *target = target_get(TARGET_SM_90A);
    PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_SM_90A,
                                    card_of_target(target), NULL);
    cr_assert(priced.plan);
    cr_expect_null(plan_verify(priced.plan, arena));
    arena_free(arena);
}

/* A matmul that makes operands has one version, whoever reads them. */
Test(split_keys, only_the_matmul_of_scores_has_versions) {
    static const char *const bodies[] = {"  y = attention(x @ w, x @ u, x @ w)\n",
                                         "  b = x @ w\n  y = attention(b, b, b)\n",
                                         "  y = attention(x, x, x @ w)\n"};
    static const uint32_t n_gemms[] = {4, 3, 3};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const char *source = str_format(
            arena,
            "dim T in 1..16384\ngraph g(x: bf16[8, T, 64], w: bf16[64, 64], u: bf16[64, 64]) -> "
            "(y: bf16[8, T, 64]) {\n%s}\n",
            bodies[i]);
        PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_SM_90A,
                                        card_of_target(target_get(TARGET_SM_90A)), NULL);
        Counts n = count(priced.plan);
        cr_expect_eq(n.gemms, n_gemms[i], "%s: %u matmuls", source, n.gemms);
        cr_expect_eq(n.choices, 5u, "%s: %u kernels with versions", source, n.choices);
        cr_expect_null(plan_verify(priced.plan, arena));
    }
    arena_free(arena);
}
