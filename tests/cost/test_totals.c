/* The floor of what a graph moves: no plan moves less, and a floor is no estimate beyond what a
 * plan moves. */
#include "lib/plans.h"

#include <criterion/criterion.h>

typedef struct Floored {
    const char *source; /* the dim, if any, is M */
    int64_t m;
    uint32_t n_launches;
} Floored;

static const Floored floored[] = {
    /* two windows of one weight: what the second reads is not what the first did */
    {"graph g(x: bf16[M, 512], w: bf16[512, 2048], b: bf16[2048], v: bf16[1024, 512])\n"
     "    -> (y: bf16[M, 512]) {\n u, t = split(x @ w + b, 2, axis=1)\n y = (gelu(u) * t) @ v\n}\n",
     100, 2},
    /* halves by kernels of their own, then the whole by one */
    {"graph g(x: f32[M, 512]) -> (p: f32[M, 256], q: f32[M, 256], y: f32[512]) {\n"
     " p = exp(x[:, :256])\n q = tanh(x[:, 256:])\n y = sum(x, axis=0)\n}\n",
     1000, 3},
    /* a position is read under the guard, which does not move it */
    {"graph g(e: f32[1000000, 100], i: i32[M]) -> (y: f32[M, 104]) {\n"
     " y = pad(gather(e, i), low=[0, 2], high=[0, 2], value=0) * 2.0\n}\n",
     100, 1},
    {"graph g(x: f32[M, 28], e: f32[1000000, 100], i: i32[M]) -> (y: f32[M, 128]) {\n"
     " y = concat([x, gather(e, i)], axis=1) * 2.0\n}\n",
     100, 1},
};

static PricedPlan priced(Arena *arena, const Floored *of, bool off) {
    int64_t dims[DIM_MAX_SYMBOLS] = {of->m};
    for (int i = 1; i < DIM_MAX_SYMBOLS; i++) dims[i] = -1;
    const char *source = str_format(arena, "dim M in 1..65536\n%s", of->source);
    return plans_price(arena, plans_parse(arena, source), 0, off, TARGET_SM_90A,
                       card_get(CARD_H200), dims);
}

Test(totals, no_plan_moves_less_and_one_op_each_no_less_than_fused) {
    for (size_t i = 0; i < sizeof floored / sizeof *floored; i++) {
        Arena *arena = arena_new(NULL);
        const PlanCost *fused = priced(arena, &floored[i], false).cost;
        const PlanCost *apart = priced(arena, &floored[i], true).cost;
        double moved = fused->read_bytes + fused->written_bytes;
        double moved_apart = apart->read_bytes + apart->written_bytes;
        cr_expect(moved >= fused->least_bytes, "%zu: %.0f moved, %.0f at least", i, moved,
                  fused->least_bytes);
        cr_expect(moved_apart >= fused->least_bytes, "%zu: %.0f moved apart, %.0f at least", i,
                  moved_apart, fused->least_bytes);
        cr_expect(moved <= 1.07 * fused->least_bytes, "%zu: %.0f moved, %.0f at least", i, moved,
                  fused->least_bytes);
        cr_expect(fused->us <= apart->us, "%zu: %.2f us, %.2f apart", i, fused->us, apart->us);
        cr_expect_eq(fused->n_launches, floored[i].n_launches, "%zu: %u", i, fused->n_launches);
        arena_free(arena);
    }
}

/* The plan without fusion, of which kernels are copies: a plan with traces has none. */
static Plan *planned_apart(Arena *arena, const char *source) {
    Arena *scratch = arena_new(NULL);
    PlanUnit unit = {.graph = plans_parse(arena, source)->graphs.data[0]};
    Planning planning = plans_planning(arena, scratch, TARGET_SM_90A, &unit);
    Diags diags = {.arena = arena};
    planning.diags = &diags;
    planning.trial = arena_new(NULL);
    planning.mode = MODE_UNFUSED;
    planning.has_traces = false;
    cr_assert(pipeline_run(&planning, PASS_SPLIT_K, PASS_SCHEDULE) &&
              pipeline_run(&planning, PASS_PLACE, PASS_PLACE));
    arena_free(planning.trial);
    arena_free(scratch);
    return unit.plan;
}

/* Copies of one op read values in the cache and values that left it, an input first and again. */
Test(totals, copies_of_a_kernel_cost_what_each_costs_alone) {
    Arena *arena = arena_new(NULL);
    Text source = {.arena = arena};
    text_puts(&source, "dim M in 1..65536\ngraph g(x: f32[M, 512]) -> (y: f32[M, 512]) {\n"
                       " v0 = x\n v1 = x * x\n");
    for (int i = 2; i < 60; i++)
        text_printf(&source, " v%d = v%d * v%d + 3\n", i, i - 1, i % 7 ? i - 2 : i / 2);
    text_puts(&source, " y = v59 + x\n}\n");
    Plan *plan = planned_apart(arena, text_str(&source)), alone = *plan;
    uint32_t n = plan->kernels.n, n_copies = 0;
    alone.kernels.data = arena_copy(arena, plan->kernels.data, n * sizeof *alone.kernels.data);
    for (uint32_t k = 0; k < n; k++) {
        n_copies += alone.kernels.data[k].program != 0;
        alone.kernels.data[k].program = 0;
    }
    cr_assert_gt(n_copies, 100, "%u of %u", n_copies, n);
    for (int64_t m = 64; m <= 65536; m *= 8) {
        const int64_t *dims = cost_dims(arena, plan->graph->dims, &m);
        const PlanCost *copies = cost_plan(arena, plan, card_get(CARD_H200), dims);
        const PlanCost *each = cost_plan(arena, &alone, card_get(CARD_H200), dims);
        cr_expect_eq(each->us, copies->us);
        for (uint32_t k = 0; k < n; k++) {
            const KernelCost *one = &each->kernels[k], *other = &copies->kernels[k];
            cr_expect(one->us == other->us && one->read_bytes == other->read_bytes &&
                          one->written_bytes == other->written_bytes &&
                          one->cache_bytes == other->cache_bytes &&
                          one->n_prims == other->n_prims && one->n_blocks == other->n_blocks &&
                          one->memory_us == other->memory_us && one->variant == other->variant &&
                          one->pressure.registers == other->pressure.registers,
                      "M = %ld, kernel %u", (long)m, k);
        }
    }
    arena_free(arena);
}
