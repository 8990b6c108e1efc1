/* Schedules and prices a plan of the GEMM alone, with and without the copies. See price.h. */
#include "layout/price.h"

#include "layout/pad_dynamic.h"
#include "plan/rebuild.h"

#include <string.h>

Kernel layout_clone_gemm(Arena *arena, const Plan *plan, const Kernel *gemm) {
    const IndexTab *from = scalartab_indices(gemm->scalars);
    IndexTab *to = indextab_new(arena, plan->graph->dims);
    Rebuild rebuild = {.arena = arena, .from = gemm->scalars, .to = scalartab_new(arena, to)};
    Kernel clone = *gemm;
    Reduce reduce = gemm->reduces.data[0];
    for (uint32_t k = 0; k < gemm->n_parallel + gemm->n_reduced; k++)
        rebuild.axes[k] = index_axis(to, index_new_axis(to, index_axis_extent(from, k)));
    reduce.value = rebuild_scalar(&rebuild, reduce.value);
    reduce.rhs = rebuild_scalar(&rebuild, reduce.rhs);
    if (reduce.factor) reduce.factor = rebuild_scalar(&rebuild, reduce.factor);
    ScalarId result = scalar_stage(rebuild.to, reduce.result, 0, kernel_parallel_axes(gemm));
    rebuild.results = arena_copy(arena, &result, sizeof result);
    memset(&clone.reduces, 0, sizeof clone.reduces);
    memset(&clone.row_stores, 0, sizeof clone.row_stores);
    memset(&clone.traces, 0, sizeof clone.traces);
    vec_push(arena, &clone.reduces, reduce);
    for (uint32_t i = 0; i < gemm->row_stores.n; i++) {
        Store store = rebuild_store(&rebuild, gemm->row_stores.data[i]);
        store.trace = 0;
        vec_push(arena, &clone.row_stores, store);
    }
    clone.scalars = rebuild.to;
    memset(&clone.args, 0, sizeof clone.args);
    kernel_note_interface(arena, &clone);
    return clone;
}

/* The plan with that kernel only; it may grow. Its buffers are those of the plan, and new ones lie
 * behind them, where the plan has none. */
static Plan alone(Arena *arena, const Plan *plan, Kernel kernel) {
    Plan own = *plan;
    memset(&own.kernels, 0, sizeof own.kernels);
    vec_push(arena, &own.kernels, kernel);
    return own;
}

static Prices price(const Planning *p, Plan *plan, const CostPoints *points) {
    pipeline_retry(p, p->scratch, NULL, MODE_ALONE, plan, PASS_SCHEDULE, PASS_SCHEDULE);
    return prices_of_plan(p->scratch, plan, p->target, points);
}

static bool price_both(const Planning *p, const Packing *packing, uint32_t gemm,
                       const PackRequest *requests, uint32_t n_requests, const CostPoints *points,
                       LayoutPrices *prices) {
    const Plan *plan = packing->plan;
    Kernel clone = layout_clone_gemm(p->scratch, plan, &plan->kernels.data[gemm]);
    Plan as_is = alone(p->scratch, plan, clone);
    prices->as_is = price(p, &as_is, points);
    Plan laid_out = alone(p->scratch, plan, layout_clone_gemm(p->scratch, plan, &clone));
    Packing own = {.arena = p->scratch, .plan = &laid_out, .dims = packing->dims};
    for (uint32_t i = 0; i < n_requests; i++)
        if (!pack_operand(&own, 0, requests[i])) return false;
    pad_dynamic_place_copies(p->scratch, &laid_out, 1);
    plan_move_init(p->scratch, &laid_out);
    prices->laid_out = price(p, &laid_out, points);
    return true;
}

bool layout_price(const Planning *p, const Packing *packing, uint32_t gemm,
                  const PackRequest *requests, uint32_t n_requests, const CostPoints *points,
                  LayoutPrices *prices) {
    ArenaMark mark = arena_mark(p->scratch);
    bool ok = price_both(p, packing, gemm, requests, n_requests, points, prices);
    arena_rewind(p->scratch, mark);
    return ok;
}
