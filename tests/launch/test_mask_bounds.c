/* Bounds of masks: which launches get them, what kernels in front of them reduce, and who shares
 * them. */
#include "lib/plans.h"
#include "plan/launch.h"

#include <criterion/criterion.h>

/* An attention of [2, 4, m, 64] and [2, 4, n, 64], where keys have `ids` and rows have `own`. */
static const Plan *masked(Arena *arena, TargetId target, int n, const char *inputs,
                          const char *mask) {
    const char *source = str_format(
        arena,
        "graph g(q: bf16[2, 4, 2048, 64], k: bf16[2, 4, %d, 64], v: bf16[2, 4, %d, 64]%s) -> "
        "(y: bf16[2, 4, 2048, 64]) {\n  i = iota([2048, %d], axis=0)\n"
        "  j = iota([2048, %d], axis=1)\n  y = attention(q, k, v, mask=%s)\n}\n",
        n, n, inputs, n, n, mask);
    return plans_of(arena, target, source);
}

static uint32_t n_bounds(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) n += plan->kernels.data[k].bounds.n;
    return n;
}

static void expect(const Plan *plan, uint32_t n_launches, uint32_t n, const char *what) {
    cr_expect_eq(plan->launches.n, n_launches, "%s: %u launches", what, plan->launches.n);
    cr_expect_eq(n_bounds(plan), n, "%s: %u bounds", what, n_bounds(plan));
}

static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A};
enum { N_TARGETS = sizeof targets / sizeof *targets };

#define IDS ", ids: i32[2048], own: i32[2048]"
#define SAME "unsqueeze(own, 1) == unsqueeze(ids, 0)"

Test(mask_bounds, a_kernel_in_front_reduces_each_block_of_keys) {
    Arena *arena = arena_new(NULL);
    for (int t = 0; t < N_TARGETS; t++) {
        const Plan *plan = masked(arena, targets[t], 2048, IDS, SAME);
        expect(plan, 2, 1, "documents");
        const Kernel *first = &plan->kernels.data[0], *scores = &plan->kernels.data[1];
        cr_expect(form_info(first->form)->reduces_rows && first->reduces.n == 2);
        cr_expect(dim_equals_const(plan->graph->dims, kernel_n_rows(first), 16));
        cr_expect(dim_equals_const(plan->graph->dims, kernel_n_reduced(first), ONLINE_BLOCK));
        for (uint32_t i = 0; i < first->row_stores.n; i++) {
            uint32_t buffer = first->row_stores.data[i].buffer;
            cr_expect(kernel_only_reads(scores, buffer));
            cr_expect_eq(plan->buffers.data[buffer].kind, BUFFER_TEMP);
        }
        /* Where blocks walk over tiles, they count them. */
        cr_expect_eq(scores->tiles_taken != SCALAR_NONE, targets[t] == TARGET_SM_90A);
        cr_expect_eq(first->row_stores.n, targets[t] == TARGET_SM_90A ? 3u : 2u);
        cr_expect_null(plan_verify(plan, arena));
    }
    arena_free(arena);
}

Test(mask_bounds, of_ids_for_each_batch_heads_have_the_same) {
    Arena *arena = arena_new(NULL);
    const Plan *plan = masked(arena, TARGET_SM_90A, 2048, ", ids: i64[2, 2048], own: i64[2, 2048]",
                              "reshape(own, [2, 1, 2048, 1]) == reshape(ids, [2, 1, 1, 2048])");
    expect(plan, 2, 1, "batches");
    const Kernel *first = &plan->kernels.data[0];
    cr_expect(dim_equals_const(plan->graph->dims, kernel_n_rows(first), 2 * 16));
    cr_expect_eq(first->reduces.data[0].acc, DT_I64);
    arena_free(arena);
}

Test(mask_bounds, which_masks_need_them) {
    static const struct {
        const char *inputs, *mask;
        uint32_t n_launches, n_bounds;
    } cases[] = {
        {"", "j <= i", 1, 0},
        {IDS, "(" SAME ") & (j <= i)", 2, 1},
        {IDS, "!(" SAME " || unsqueeze(ids, 0) < 3)", 2, 1},
        {IDS, "unsqueeze(own, 1) >= 2 + unsqueeze(ids, 0)", 2, 1},
        {", ids: u8[2048], own: u8[2048]", SAME, 2, 1},
        {", ids: u32[2048], own: u32[2048]", SAME, 2, 1},
        {", ids: f32[2048], own: f32[2048]", SAME, 1, 0},
        {", own: i32[2048]", "j <= unsqueeze(own, 1)", 1, 0},
        {", ids: bool[2048]", "unsqueeze(ids, 0) && j <= i", 2, 1},
        {", ids: f32[2048]", "unsqueeze(ids, 0) > 0.5", 2, 1},
        {", ids: i32[2048, 2048]", "ids == 1", 1, 0},
        {", a: i32[2048], b: i32[2048]", "unsqueeze(a, 0) <= i && i < unsqueeze(b, 0)", 2, 2},
    };
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(masked(arena, TARGET_SM_90A, 2048, cases[i].inputs, cases[i].mask),
               cases[i].n_launches, cases[i].n_bounds, cases[i].mask);
    arena_free(arena);
}

Test(mask_bounds, none_of_few_keys) {
    Arena *arena = arena_new(NULL);
    expect(masked(arena, TARGET_SM_90A, 512, ", ids: i32[512], own: i32[2048]", SAME), 1, 0,
           "few keys");
    arena_free(arena);
}

Test(mask_bounds, launches_of_the_same_ids_share_them) {
    Arena *arena = arena_new(NULL);
    const char *source =
        "graph g(q: bf16[16, 2048, 64], k: bf16[16, 2048, 64], v: bf16[16, 2048, 64], "
        "ids: i32[2048], others: i32[2048]) -> (y: bf16[16, 2048, 64], z: bf16[16, 2048, 64]) {\n"
        "  own = unsqueeze(ids, 1)\n"
        "  x = attention(q, k, v, mask=own == unsqueeze(ids, 0))\n"
        "  y = attention(x, k, v, mask=own == unsqueeze(ids, 0), is_causal=true)\n"
        "  z = attention(y, k, v, mask=own == unsqueeze(others, 0))\n}\n";
    const Plan *plan = plans_of(arena, TARGET_SM_90A, source);
    expect(plan, 5, 3, "three layers");
    uint32_t counts[3], n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        if (!kernel->tiles_taken) continue;
        cr_assert_lt(n, 3u);
        counts[n++] = scalar_get(kernel->scalars, kernel->tiles_taken)->buffer;
    }
    cr_expect(n == 3 && counts[0] == counts[1] && counts[1] != counts[2], "counts of tiles");
    cr_expect_null(plan_verify(plan, arena));
    arena_free(arena);
}

/* The update is in place: both launches load the same buffer. */
Test(mask_bounds, not_if_the_ids_change_between_them) {
    Arena *arena = arena_new(NULL);
    const char *source =
        "graph g(q: bf16[16, 2048, 64], k: bf16[16, 2048, 64], v: bf16[16, 2048, 64], "
        "ids: i32[2048], part: i32[100], at: i32) -> (y: bf16[16, 2048, 64], z: bf16[16, 2048, "
        "64]) {\n"
        "  own = unsqueeze(ids, 1)\n  docs = cumsum(ids, axis=0)\n"
        "  y = attention(q, k, v, mask=own < unsqueeze(docs, 0))\n"
        "  later = dynamic_update_slice(docs, part, [at])\n"
        "  z = attention(q, k, v, mask=own < unsqueeze(later, 0))\n}\n";
    const Plan *plan = plans_of(arena, TARGET_SM_90A, source);
    uint32_t n_rows = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        n_rows += form_info(plan->kernels.data[k].form)->reduces_rows;
    cr_expect_eq(n_bounds(plan), 2u);
    cr_expect_eq(n_rows, 2u, "%u kernels make bounds", n_rows);
    arena_free(arena);
}

/* Strict attention has a band instead. */
Test(mask_bounds, none_where_hidden_tiles_count) {
    Arena *arena = arena_new(NULL);
    const char *source =
        "graph g(q: bf16[16, 2048, 64], k: bf16[16, 2048, 64], v: bf16[16, 2048, 64], "
        "ids: i32[2048]) -> (y: bf16[16, 2048, 64]) {\n"
        "  s = q @ transpose(k, perm=[0, 2, 1])\n"
        "  y = softmax(where(unsqueeze(ids, 1) == unsqueeze(ids, 0), s, -inf)) @ v\n}\n";
    cr_expect_eq(n_bounds(plans_of(arena, TARGET_SM_90A, source)), 0u);
    arena_free(arena);
}
