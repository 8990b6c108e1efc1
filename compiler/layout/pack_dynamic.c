/* Finds by prices the extent from which on copies pay. See pack_dynamic.h. */
#include "layout/pack_dynamic.h"
#include "plan/must.h"
#include "machine/tuning.h"

#include "layout/price.h"
#include "schedule/gemm.h"

#include <math.h>
#include <string.h>

typedef struct Searcher {
    const Planning *planning;
    Packing *packing;
    uint32_t gemm;
    const PackRequest *requests;
    uint32_t n_requests;
    DimId measure;   /* rows of the other operand (each of them reads a copy again), or k */
    uint32_t symbol; /* the only symbol in `measure` */
} Searcher;

/* Whether a run copies this operand. */
static bool is_copied(const Searcher *c, bool is_left) {
    bool any = false;
    for (uint32_t i = 0; i < c->n_requests; i++)
        any = any || (c->requests[i].is_left == is_left && c->requests[i].phase == PACK_RUN);
    return any;
}

/* Sets the extent that decides: the rows of the other operand, or k. Returns false if the extent is
 * not a function of one declared symbol, or has no influence on the copies. */
static bool take_measure(Searcher *c, uint32_t axis) {
    const Kernel *kernel = &c->packing->plan->kernels.data[c->gemm];
    const DimTab *dims = c->packing->dims;
    DimId extent = kernel_axis_extent(kernel, axis);
    uint64_t used = dim_symbols_used(dims, extent);
    bool is_depth = axis == gemm_axis_k(kernel);
    if (!used || (used & (used - 1)) || (!is_depth && !is_copied(c, axis == gemm_axis_n(kernel))))
        return false;
    c->measure = extent;
    c->symbol = 0;
    while (!(used >> c->symbol & 1)) c->symbol++;
    return !dim_symbol_info(dims, c->symbol)->rule;
}

/* Cost points with ascending values of the symbol; the other dims have their default values. */
static CostPoints sweep(const Searcher *c, int64_t from, int64_t to) {
    Arena *arena = c->packing->arena;
    const DimTab *dims = c->packing->dims;
    const int64_t *others = cost_points(arena, dims, c->planning->target->has).dims[0];
    int64_t step = dim_symbol_info(dims, c->symbol)->multiple;
    CostPoints points = {.n = COST_MAX_POINTS};
    for (uint32_t i = 0; i < points.n; i++) {
        int64_t *values = arena_copy(arena, others, DIM_MAX_SYMBOLS * sizeof *others);
        double share = (double)i / (points.n - 1);
        double value = (double)from * pow((double)to / (double)from, share);
        values[c->symbol] = i + 1 == points.n ? to : (int64_t)ceil(value / (double)step) * step;
        dim_follow_rules(dims, values);
        points.dims[i] = values;
    }
    return points;
}

/* The first point from which on the copies pay at all points; n if there is none. */
static uint32_t first_that_pays(const Searcher *c, const CostPoints *points) {
    LayoutPrices prices;
    uint32_t first = points->n;
    if (!layout_price(c->planning, c->packing, c->gemm, c->requests, c->n_requests, points,
                      &prices))
        return first;
    while (first > 0 && price_is_worth(prices.laid_out.us[first - 1], prices.as_is.us[first - 1]))
        first--;
    return first;
}

/* The value of the measure from which on the copies pay; 0 if they pay nowhere or everywhere. */
static int64_t find_least(const Searcher *c) {
    const DimTab *dims = c->packing->dims;
    const DimSymbol *symbol = dim_symbol_info(dims, c->symbol);
    int64_t from = symbol->lo > symbol->multiple ? symbol->lo : symbol->multiple;
    int64_t to = symbol->hi < COST_LARGE_DIM ? symbol->hi : COST_LARGE_DIM;
    to -= to % symbol->multiple;
    if (from >= to) return 0;
    CostPoints points = sweep(c, from, to);
    uint32_t first = first_that_pays(c, &points);
    if (first == 0 || first == points.n) return 0;
    points = sweep(c, points.dims[first - 1][c->symbol], points.dims[first][c->symbol]);
    first = first_that_pays(c, &points);
    return first < points.n ? (int64_t)dim_number(dims, c->measure, points.dims[first]) : 0;
}

/* Sets the measure that decides and returns the value from which on copies pay; returns 0 if no
 * measure decides. */
static int64_t find_measure(Searcher *c) {
    const Kernel *kernel = &c->packing->plan->kernels.data[c->gemm];
    const uint32_t axes[3] = {gemm_axis_m(kernel), gemm_axis_n(kernel), gemm_axis_k(kernel)};
    int64_t least = 0;
    for (uint32_t i = 0; i < 3 && least == 0; i++)
        if (take_measure(c, axes[i])) least = find_least(c);
    return least;
}

/* Whether the plan may hold the GEMM twice. A GEMM that may get a row epilogue stays one kernel,
 * and so does a GEMM in a `fuse must` block. */
static bool may_be_two(const Plan *plan, const Kernel *kernel) {
    DimTab *dims = plan->graph->dims;
    if (kernel->choice || kernel->is_init ||
        dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_n(kernel))) <=
            sched_gemm_widest_rows(plan, kernel))
        return false;
    return !must_has_kernel(plan->graph, kernel);
}

/* Makes the copy start only in the alternative. */
static void start_in_alternative(Plan *plan, Kernel *copy, const Choice *choice) {
    Buffer *buffer = &plan->buffers.data[copy->stages.data[0].stores.data[0].buffer];
    DimTab *dims = plan->graph->dims;
    if (copy->is_init) return;
    copy->choice = choice;
    copy->version = VERSION_ALTERNATIVE;
    buffer->shape.dims[0] = choice_scale(dims, choice, copy->version, buffer->shape.dims[0]);
}

bool layout_where_it_pays(const Planning *p, Packing *packing, uint32_t gemm,
                          const PackRequest *requests, uint32_t n_requests) {
    Searcher c = {p, packing, gemm, requests, n_requests, DIM_NONE, 0};
    Plan *plan = packing->plan;
    Arena *arena = packing->arena;
    if (!may_be_two(plan, &plan->kernels.data[gemm])) return false;
    int64_t least = find_measure(&c);
    if (least <= 0) return false;
    Condition pays = {.n_unless = 0};
    predicate_set_range(&pays.when, c.measure, least, INT64_MAX);
    const Choice *choice = choice_new(arena, packing->dims, "operands.copied", &pays);
    if (!choice) return false;
    uint32_t n = plan->kernels.n;
    Kernel clone = layout_clone_gemm(arena, plan, &plan->kernels.data[gemm]);
    clone.name = str_format(arena, "%s_copied", clone.name);
    memset(&clone.nodes, 0, sizeof clone.nodes);
    clone.choice = choice;
    clone.version = VERSION_ALTERNATIVE;
    vec_push(arena, &plan->kernels, clone);
    for (uint32_t i = 0; i < n_requests; i++)
        if (!pack_operand(packing, n, requests[i])) ice(arena, "an operand was packed before");
    for (uint32_t k = n + 1; k < plan->kernels.n; k++)
        start_in_alternative(plan, &plan->kernels.data[k], choice);
    uint32_t n_new = plan->kernels.n - n;
    Kernel *moved = arena_copy(arena, &plan->kernels.data[n], n_new * sizeof *moved);
    Kernel *kernels = plan->kernels.data;
    memmove(&kernels[gemm + 1 + n_new], &kernels[gemm + 1], (n - gemm - 1) * sizeof *kernels);
    memcpy(&kernels[gemm + 1], moved + 1, (n_new - 1) * sizeof *kernels);
    kernels[gemm + n_new] = moved[0];
    kernels[gemm].choice = choice;
    kernels[gemm].version = VERSION_DEFAULT;
    return true;
}
