/* Launches of a matmul and the softmax and product that reads its scores: which widths share one,
 * and where the scores lie. */
#include "lib/plans.h"
#include "plan/launch.h"

#include <criterion/criterion.h>

/* The plan of a program for queries [m, k] and values [n, c]. */
static const Plan *plan_of(Arena *arena, TargetId target, const char *dtype, int m, int n, int k,
                           int c) {
    const char *source =
        str_format(arena,
                   "graph g(q: %s[2, %d, %d], k: %s[2, %d, %d], v: %s[2, %d, %d]) -> (y: %s[2, %d, "
                   "%d]) {\n  y = attention(q, k, v, is_causal=true)\n}\n",
                   dtype, m, k, dtype, n, k, dtype, n, c, dtype, m, c);
    return plans_price(arena, plans_parse(arena, source), 0, false, target,
                       card_of_target(target_get(target)), NULL)
        .plan;
}

/* The number of launches of the mode in it. */
static uint32_t n_joined(Arena *arena, TargetId target, const char *dtype, int m, int n, int k,
                         int c) {
    const Plan *plan = plan_of(arena, target, dtype, m, n, k, c);
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        const Launch *launch = &plan->launches.data[i];
        if (launch->mode != LAUNCH_GEMM_ONLINE) continue;
        uint32_t scores = launch_kernel(plan, launch, 0)->row_stores.data[0].buffer;
        cr_expect_eq(plan->buffers.data[scores].space, BUFFER_REGISTER);
        count++;
    }
    return count;
}

Test(gemm_online, by_wgmma_keys_and_values_have_up_to_256_columns) {
    static const int widths[] = {32, 40, 64, 128, 136, 192, 256};
    enum { N = sizeof widths / sizeof *widths };
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j += 3)
            cr_expect_eq(n_joined(arena, TARGET_SM_90A, "bf16", 4096, 4096, widths[i], widths[j]),
                         1u, "keys of %d, values of %d", widths[i], widths[j]);
    cr_expect_eq(n_joined(arena, TARGET_SM_90A, "bf16", 4096, 4096, 264, 64), 0u);
    cr_expect_eq(n_joined(arena, TARGET_SM_90A, "bf16", 4096, 4095, 64, 64), 1u, "an odd number");
    arena_free(arena);
}

/* Blocks of a multiprocessor, of few rows: every thread begins with an equal part of its registers,
 * of which one instruction takes half the columns of its result. */
Test(gemm_online, blocks_share_registers_if_an_instruction_has_enough) {
    static const int columns[] = {128, 192, 200, 232}, n_blocks[] = {2, 2, 1, 1};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const Plan *plan = plan_of(arena, TARGET_SM_90A, "bf16", 14, 9, 48, columns[i]);
        uint32_t found = 0;
        for (uint32_t k = 0; k < plan->kernels.n; k++)
            if (form_info(plan->kernels.data[k].form)->weighs)
                found = plan->kernels.data[k].variants[0].sched.min_blocks;
        cr_expect_eq(found, (uint32_t)n_blocks[i], "%d columns: %u", columns[i], found);
    }
    arena_free(arena);
}

Test(gemm_online, a_cpu_makes_the_scores_in_the_unit_that_weighs_them) {
    Arena *arena = arena_new(NULL);
    cr_expect_eq(n_joined(arena, TARGET_CPU, "f32", 512, 512, 64, 64), 1u);
    cr_expect_eq(n_joined(arena, TARGET_CPU, "bf16", 100, 300, 80, 96), 1u);
    cr_expect_eq(n_joined(arena, TARGET_CPU, "f32", 512, 512, 300, 64), 0u, "deep");
    cr_expect_eq(n_joined(arena, TARGET_CPU, "f32", 15, 512, 64, 64), 0u, "few rows");
    cr_expect_eq(n_joined(arena, TARGET_CPU, "f32", 64, 512, 64, 64), 1u);
    arena_free(arena);
}

/* The variants of the launch that weighs values by scores. */
static uint32_t n_variants(Arena *arena, TargetId target, const char *source) {
    const Plan *plan = plans_price(arena, plans_parse(arena, source), 0, false, target,
                                   card_of_target(target_get(target)), NULL)
                           .plan;
    for (uint32_t i = 0; i < plan->launches.n; i++)
        if (plan->launches.data[i].mode == LAUNCH_GEMM_ONLINE)
            return launch_kernel(plan, &plan->launches.data[i], 0)->n_variants;
    return 0;
}

/* Addresses of temporaries are known to be aligned. The manifest takes no variant behind another
 * that always applies. */
Test(gemm_online, one_variant_where_the_plan_makes_all_operands) {
    static const char made[] =
        "graph g(x: bf16[128, 4096], w: bf16[4096, 4096]) -> (y: bf16[128, 4096]) {\n"
        "  q = transpose(reshape(x @ w, [128, 32, 128]), perm=[1, 0, 2])\n"
        "  k = transpose(reshape(abs(x) @ w, [128, 32, 128]), perm=[1, 0, 2])\n"
        "  v = transpose(reshape(exp(x) @ w, [128, 32, 128]), perm=[1, 0, 2])\n"
        "  y = reshape(transpose(attention(q, k, v, is_causal=true), perm=[1, 0, 2]), [128, 4096]) "
        "@ w\n}\n";
    static const char bound[] =
        "graph g(q: bf16[32, 128, 128], k: bf16[32, 128, 128], v: bf16[32, 128, 128]) -> "
        "(y: bf16[32, 128, 128]) {\n  y = attention(q, k, v, is_causal=true)\n}\n";
    Arena *arena = arena_new(NULL);
    cr_expect_eq(n_variants(arena, TARGET_SM_80, made), 1u);
    cr_expect_eq(n_variants(arena, TARGET_SM_90A, made), 1u);
    cr_expect_eq(n_variants(arena, TARGET_SM_80, bound), 2u);
    cr_expect_eq(n_variants(arena, TARGET_SM_90A, bound), 2u);
    arena_free(arena);
}
