/* Bands of strict softmax between two products: which programs have them, the kernels that make
 * them, and where they stand. */
#include "lib/plans.h"
#include "plan/launch.h"

#include <criterion/criterion.h>

/* Attention of [64, n, 64] as ops, where `mask` of i (rows) and j (columns) holds. `result` is made
 * of the masked scores c and of v. */
static const Plan *masked(Arena *arena, int n, const char *inputs, const char *mask,
                          const char *result) {
    const char *source = str_format(
        arena,
        "graph g(q: bf16[64, %d, 64], k: bf16[64, %d, 64], v: bf16[64, %d, 64]%s) -> "
        "(y: bf16[64, %d, 64]) {\n  i = iota([%d, %d], axis=0)\n  j = iota([%d, %d], axis=1)\n"
        "  s = q @ transpose(k, perm=[0, 2, 1])\n  c = where(%s, s, -inf)\n  y = %s\n}\n",
        n, n, n, inputs, n, n, n, n, n, mask, result);
    return plans_of(arena, TARGET_SM_90A, source);
}

static uint32_t n_bands(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        n += plan->kernels.data[k].band.first != SCALAR_NONE;
    return n;
}

#define SOFTMAX "softmax(c, axis=-1) @ v"

Test(band, three_kernels_make_it_for_three) {
    Arena *arena = arena_new(NULL);
    const Plan *plan = masked(arena, 2048, "", "j <= i", SOFTMAX);
    cr_assert_eq(plan->launches.n, 6u);
    cr_expect_null(plan_verify(plan, arena));
    const Kernel *finite = &plan->kernels.data[0], *seen = finite + 1, *tiles = finite + 2;
    const DimTab *dims = plan->graph->dims;
    cr_expect(dim_equals_const(dims, kernel_n_rows(finite), 64 * 64));
    cr_expect(dim_equals_const(dims, kernel_n_rows(seen), 2048)); /* the mask has no batches */
    cr_expect(dim_equals_const(dims, kernel_n_rows(tiles), 64 * 2048 / BAND_ROWS));
    for (uint32_t k = 3; k < 6; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        cr_expect_neq(kernel->band.first, SCALAR_NONE);
        cr_expect_float_eq(kernel->band.share, 0.5, 0.05);
        for (uint32_t i = 0; i < tiles->row_stores.n; i++)
            cr_expect(kernel_only_reads(kernel, tiles->row_stores.data[i].buffer));
    }
    arena_free(arena);
}

Test(band, which_programs_have_them) {
    static const struct {
        int n;
        const char *inputs, *mask, *result;
        bool has;
    } cases[] = {
        {2048, "", "j <= i", SOFTMAX, true},
        {2048, "", "(j <= i) && (i - j < 100)", SOFTMAX, true},
        {2000, "", "j >= i", SOFTMAX, true},
        {2048, "", "j < 300",
         "exp(c - max(c, axis=-1, keep=true)) / "
         "sum(exp(c - max(c, axis=-1, keep=true)), axis=-1, keep=true) @ v",
         true},
        {2048, ", n: i32[64]", "iota([64, 1, 2048], axis=2) < reshape(n, [64, 1, 1])", SOFTMAX,
         true},
        {2048, ", p: bool[2048, 2048]", "p", SOFTMAX, true},
        /* It would save less than its kernels take. */
        {256, "", "j <= i", SOFTMAX, false},
        {2048, "", "j < i + 2000", SOFTMAX, false},
        /* A hidden score has a weight, or scores and weights have other readers. */
        {2048, "", "j <= i", "softmax(maximum(c, -1e4), axis=-1) @ v", false},
        {2048, "", "j <= i", "(softmax(c, axis=-1) + 1) @ v", false},
        {2048, "", "j <= i", "softmax(cast(cast(c, f8e4m3), bf16), axis=-1) @ v", false},
        /* The mask depends on the scores. */
        {2048, "", "(s > 1) && (j <= i)", SOFTMAX, false},
        {2048, "", "j <= i", "softmax(c, axis=-1) @ v + 0.5 * (c @ v)", false},
    };
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Plan *plan =
            masked(arena, cases[i].n, cases[i].inputs, cases[i].mask, cases[i].result);
        cr_expect_eq(n_bands(plan), cases[i].has ? 3u : 0u, "%s, %s: %u bands", cases[i].mask,
                     cases[i].result, n_bands(plan));
    }
    arena_free(arena);
}

/* The values are made between the scores and the product: the launches of the scores move behind
 * them. */
Test(band, stands_behind_what_its_values_need) {
    Arena *arena = arena_new(NULL);
    const char *source =
        "graph g(q: bf16[64, 2048, 64], k: bf16[64, 2048, 64], x: bf16[131072, 64], "
        "w: bf16[64, 64]) -> (y: bf16[64, 2048, 64]) {\n"
        "  s = q @ transpose(k, perm=[0, 2, 1])\n"
        "  c = where(iota([2048, 2048], axis=1) <= iota([2048, 2048], axis=0), s, -inf)\n"
        "  p = softmax(c, axis=-1)\n  v = reshape(x @ w, [64, 2048, 64])\n  y = p @ v\n}\n";
    const Plan *plan = plans_of(arena, TARGET_SM_90A, source);
    cr_expect_eq(n_bands(plan), 3u);
    cr_expect_null(plan_verify(plan, arena));
    uint32_t values = plan->kernels.n, finite = plan->kernels.n;
    for (uint32_t k = plan->kernels.n; k-- > 0;) {
        const Kernel *kernel = &plan->kernels.data[k];
        if (!form_info(kernel->form)->multiplies && kernel->reduces.n == 2 && !kernel->band.first)
            finite = k;
        if (form_info(kernel->form)->multiplies && !kernel->band.first) values = k;
    }
    cr_expect_lt(values, finite);
    cr_expect_lt(finite, plan->kernels.n);
    arena_free(arena);
}
