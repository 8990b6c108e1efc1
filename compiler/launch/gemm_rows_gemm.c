/* Finding gemm-rows-gemm launches and sizing them. See gemm-rows-gemm.h. */
#include "launch/gemm_rows_gemm.h"
#include "machine/machine.h"
#include "plan/launch.h"

#include "launch/online_softmax.h"
#include "cost/compare.h"
#include "launch/sequence_state.h"
#include "plan/access.h"
#include "template/gemm_rows_gemm.h"
#include "schedule/gemm.h"

#include <string.h>

enum {
    HIGH_TILE = 128, /* rows of a block */
    LOW_TILE = 64,
    WIDE_TILE = 64, /* columns of a tile of scores */
    NARROW_TILE = 32,
    LEAST_K = 32,
    LEAST_COLUMNS = 32,
    STORE_LANES = 4,
    MOST_SUMS = 4, /* reductions of a pass */
    PAIR = 2,
    MOST_BLOCK_BYTES = 99 * 1024 /* that every target's blocks may have */
};

typedef struct GemmRowsGemmFinder {
    Arena *arena, *scratch;
    Plan *plan;
    const Target *target;
    const CostPoints *points;
    DimTab *dims;
    uint32_t at[GEMM_ROWS_GEMM_KERNELS];     /* kernels: scores, rows, result */
    uint32_t passed[GEMM_ROWS_GEMM_KERNELS]; /* buffers: scores, what the rows make of them */
} GemmRowsGemmFinder;

static const Kernel *kernel_of(const GemmRowsGemmFinder *s, uint32_t i) {
    return &s->plan->kernels.data[s->at[i]];
}

/* Finding. */

static bool is_alone(const Plan *plan, uint32_t k) {
    const Kernel *kernel = &plan->kernels.data[k];
    return kernel->link == LAUNCH_SINGLE && plan_launch(plan, k).n == 1 && !kernel->is_init &&
           kernel->when == DIM_NONE && kernel->spread.n == 0;
}

/* The only kernel that reads what is in the temp; false: there is another, or it is no temp. */
static bool find_reader(const Plan *plan, uint32_t maker, uint32_t buffer, uint32_t *reader) {
    uint32_t n = 0;
    if (plan->buffers.data[buffer].kind != BUFFER_TEMP) return false;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        if (k == maker || kernel_find_arg(&plan->kernels.data[k], buffer) == NO_ARG) continue;
        *reader = k;
        n++;
    }
    return n == 1 && *reader > maker && is_alone(plan, *reader) &&
           !sequence_is_apart(plan, &plan->kernels.data[*reader]) &&
           !graph_block(plan->graph, plan->buffers.data[buffer].node, BLOCK_NEVER);
}

static bool is_plain_store(const GemmRowsGemmFinder *s, const Kernel *kernel, const Store *store,
                           uint32_t n_axes) {
    AccessAxes axes = access_first_axes(n_axes);
    return !store->piece && !store->guard && !store->begin && axes.n > 0 &&
           store->address == access_address(kernel, &axes, &s->plan->buffers.data[store->buffer]);
}

/* On tensor cores, of operands of 16 bits. */
static bool is_product(const Kernel *kernel) {
    if (kernel->form != FORM_GEMM || gemm_operand_dtype(kernel) == DT_F64 ||
        dtype_bytes(gemm_operand_dtype(kernel)) != GEMM_ROWS_GEMM_ELEM_BYTES)
        return false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        if (!engine_info(sched_engine(&kernel->variants[v].sched))->uses_tensor_cores) return false;
    return true;
}

static bool are_scores(const GemmRowsGemmFinder *s, const Kernel *kernel) {
    return is_product(kernel) && kernel->row_stores.n == 1 &&
           dim_hi(s->dims, kernel_n_reduced(kernel)) <= GEMM_ROWS_GEMM_MOST_K &&
           dim_lo(s->dims, kernel_n_reduced(kernel)) > 0 &&
           is_plain_store(s, kernel, kernel->row_stores.data, kernel->n_parallel);
}

/* Passes that reduce, and one that makes what it stores. Chains of one segment; pairs of columns
 * are there or not as a whole. */
static bool are_rows(const GemmRowsGemmFinder *s, const Kernel *kernel) {
    uint32_t n = kernel->stages.n;
    DimId columns = kernel_n_reduced(kernel);
    if (kernel->form != FORM_ROW || kernel->segment_axis != NO_AXIS || kernel->n_reduced != 1 ||
        kernel->row_stores.n || n < 2 || dim_lo(s->dims, columns) <= 0 ||
        dim_multiple(s->dims, columns) % PAIR ||
        dim_hi(s->dims, columns) > reduce_order(FORM_ROW, DEVICE_GPU).segment_elems)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        bool is_last = i + 1 == n;
        if (stage->reduces.n > (is_last ? 0 : MOST_SUMS) || stage->stores.n != (is_last ? 1 : 0))
            return false;
    }
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        if (kernel->reduces.data[i].is_arg || kernel->reduces.data[i].acc != DT_F32) return false;
    return is_plain_store(s, kernel, kernel->stages.data[n - 1].stores.data,
                          kernel->n_parallel + 1);
}

/* Whether the rows are those of the scores. */
static bool goes_over(const GemmRowsGemmFinder *s, const Kernel *rows, const Kernel *scores) {
    AccessAxes axes = access_first_axes(rows->n_parallel + 1);
    DimId n = kernel_axis_extent(scores, gemm_axis_n(scores));
    return kernel_n_reduced(rows) == n &&
           dim_mul(s->dims, kernel_n_rows(rows), n) == kernel_n_rows(scores) &&
           access_reads(s->plan, rows, &axes, s->passed[0]);
}

/* Whether the lhs is what the rows make, and no more of it is read. */
static bool multiplies(const GemmRowsGemmFinder *s, const Kernel *result, const Kernel *scores) {
    if (!is_product(result) || result->n_parallel > MAX_RANK) return false;
    const Scalar *left = scalar_get(result->scalars, result->reduces.data[0].value);
    AccessAxes axes = access_first_axes(result->n_parallel - 1);
    DimId n = kernel_axis_extent(result, gemm_axis_n(result));
    if (left->kind != SCALAR_LOAD || left->buffer != s->passed[1]) return false;
    axes.of[axes.n++] = gemm_axis_k(result);
    return access_reads(s->plan, result, &axes, s->passed[1]) &&
           dim_hi(s->dims, n) <= GEMM_ROWS_GEMM_MOST_COLUMNS && dim_lo(s->dims, n) > 0 &&
           gemm_n_batches(result) == gemm_n_batches(scores) &&
           kernel_axis_extent(result, gemm_axis_m(result)) ==
               kernel_axis_extent(scores, gemm_axis_m(scores));
}

/* From the scores on. */
static bool find_relay(GemmRowsGemmFinder *s, uint32_t first) {
    const Plan *plan = s->plan;
    s->at[0] = first;
    const Kernel *scores = kernel_of(s, 0);
    if (!is_alone(plan, first) || !are_scores(s, scores)) return false;
    s->passed[0] = scores->row_stores.data[0].buffer;
    if (!find_reader(plan, first, s->passed[0], &s->at[1])) return false;
    const Kernel *rows = kernel_of(s, 1);
    if (!are_rows(s, rows) || !goes_over(s, rows, scores)) return false;
    s->passed[1] = rows->stages.data[rows->stages.n - 1].stores.data[0].buffer;
    if (!find_reader(plan, s->at[1], s->passed[1], &s->at[2])) return false;
    uint32_t n_args = scores->args.n + rows->args.n + kernel_of(s, 2)->args.n;
    return n_args <= MAX_KERNEL_ARGS && multiplies(s, kernel_of(s, 2), scores);
}

/* Variants. */

static uint32_t power_of_two(int64_t n, uint32_t least) {
    while (least < n) least *= 2;
    return least;
}

/* The same rows for both products, four warps below one another. */
static Sched product_sched(const GemmRowsGemmFinder *s, uint32_t tile_m, uint32_t tile_n,
                           uint32_t tile_k) {
    bool is_wide = false;
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++)
        is_wide = is_wide || kernel_of(s, i)->variants[0].sched.is_wide;
    return (Sched){.template = TEMPLATE_GPU_GEMM_ROWS_GEMM,
                   .lanes = PAIR,
                   .unroll = 1,
                   .threads = GEMM_ROWS_GEMM_WARPS * WARP_THREADS,
                   .is_wide = is_wide,
                   .gemm = {.tile_m = tile_m,
                            .tile_n = tile_n,
                            .tile_k = tile_k,
                            .warps_m = GEMM_ROWS_GEMM_WARPS,
                            .warps_n = 1,
                            .stages = 2}};
}

/* k is padded as everywhere: tiles of scores that are wider pad no more where they come out even.
 */
static uint32_t score_width(const GemmRowsGemmFinder *s) {
    DimId columns = kernel_n_reduced(kernel_of(s, 1));
    return dim_multiple(s->dims, columns) % WIDE_TILE ? NARROW_TILE : WIDE_TILE;
}

static Variant gemm_rows_gemm_variant(const GemmRowsGemmFinder *s, uint32_t i, bool is_last) {
    const Kernel *scores = kernel_of(s, 0), *result = kernel_of(s, 2), *own = kernel_of(s, i);
    uint32_t width = score_width(s);
    uint32_t depth = power_of_two(dim_hi(s->dims, kernel_n_reduced(scores)), LEAST_K);
    int64_t n = dim_hi(s->dims, kernel_axis_extent(result, gemm_axis_n(result)));
    bool is_low = dim_hi(s->dims, kernel_axis_extent(scores, gemm_axis_m(scores))) <= LOW_TILE;
    uint32_t tile_m = is_low ? LOW_TILE : HIGH_TILE;
    Sched of_scores = product_sched(s, tile_m, width, depth);
    Sched of_result = product_sched(s, tile_m, power_of_two(n, LEAST_COLUMNS), width);
    of_result.lanes = is_last ? 1 : STORE_LANES;
    Variant variant = {.sched = i == 2 ? of_result : of_scores,
                       .grid = gemm_gpu_grid(result, tile_m, of_result.gemm.tile_n)};
    predicate_align(&variant.predicate, ACCESS_BYTES,
                    is_last ? kernel_own_args(s->plan, own) : UINT64_MAX >> (64 - own->args.n));
    if (i == 0)
        variant.shared_bytes =
            sched_gemm_dynamic_bytes(gemm_rows_gemm_shared_bytes(&of_scores, &of_result));
    return variant;
}

/* One for aligned pointers, and one for any. */
static void set_variants(GemmRowsGemmFinder *s) {
    bool has_conditions = false;
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) {
        Kernel *kernel = &s->plan->kernels.data[s->at[i]];
        Variant aligned = gemm_rows_gemm_variant(s, i, false),
                any = gemm_rows_gemm_variant(s, i, true);
        aligned.symbol = kernel->variants[0].symbol;
        any.symbol = str_format(s->arena, "%s_v1", aligned.symbol);
        kernel->variants[0] = aligned;
        kernel->variants[1] = any;
    }
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) {
        const Kernel *kernel = kernel_of(s, i);
        has_conditions =
            has_conditions || variant_has_conditions(s->plan, kernel, &kernel->variants[0]);
    }
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++)
        s->plan->kernels.data[s->at[i]].n_variants = has_conditions ? 2 : 1;
}

/* Linking. */

static void set_on_chip(const GemmRowsGemmFinder *s, bool is_on_chip) {
    for (uint32_t i = 0; i + 1 < GEMM_ROWS_GEMM_KERNELS; i++)
        s->plan->buffers.data[s->passed[i]].is_on_chip = is_on_chip;
}

/* Moves the first two down to the third, before which all is made that any of them reads. */
static void move_together(const GemmRowsGemmFinder *s) {
    Kernel *kernels = s->plan->kernels.data;
    Kernel moved[2] = {kernels[s->at[0]], kernels[s->at[1]]};
    uint32_t to = s->at[0];
    for (uint32_t k = s->at[0] + 1; k < s->at[2]; k++)
        if (k != s->at[1]) kernels[to++] = kernels[k];
    kernels[to] = moved[0];
    kernels[to + 1] = moved[1];
    kernels[to + 1].link = kernels[to + 2].link = LAUNCH_GEMM_ROWS_GEMM;
}

static Prices price_of(const GemmRowsGemmFinder *s, const Kernel *kernels) {
    Plan alone = *s->plan;
    alone.kernels.data = arena_copy(s->scratch, kernels, GEMM_ROWS_GEMM_KERNELS * sizeof *kernels);
    alone.kernels.n = alone.kernels.capacity = GEMM_ROWS_GEMM_KERNELS;
    return prices_of_plan(s->scratch, &alone, s->target, s->points);
}

static Prices price_now(const GemmRowsGemmFinder *s) {
    Kernel *kernels = arena_array(s->scratch, Kernel, GEMM_ROWS_GEMM_KERNELS);
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) kernels[i] = *kernel_of(s, i);
    return price_of(s, kernels);
}

/* Whether the source asks for what passes: the value and a user of it are in one block. */
static bool is_asked(const GemmRowsGemmFinder *s, uint32_t i) {
    const Graph *graph = s->plan->graph;
    NodeId value = s->plan->buffers.data[s->passed[i]].node;
    uint32_t block = graph_block(graph, value, BLOCK_MUST);
    return block && sequence_has_user(graph, kernel_of(s, i + 1), value, block);
}

/* Whether it is one now. */
static bool try_relay(GemmRowsGemmFinder *s) {
    Kernel *saved = arena_array(s->scratch, Kernel, GEMM_ROWS_GEMM_KERNELS);
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) saved[i] = *kernel_of(s, i);
    Prices apart = price_now(s);
    set_variants(s);
    set_on_chip(s, true);
    Kernel *rows = &s->plan->kernels.data[s->at[1]];
    if (s->plan->may_rewrite)
        rows->online_softmax = online_softmax_find(kernel_of(s, 0), rows, s->passed[0]);
    for (uint32_t i = 1; i < GEMM_ROWS_GEMM_KERNELS; i++)
        s->plan->kernels.data[s->at[i]].link = LAUNCH_GEMM_ROWS_GEMM;
    Prices together = price_now(s);
    bool is_wanted = is_asked(s, 0) || is_asked(s, 1) ||
                     !prices_are_better(s->points, &together, &apart, &apart);
    uint32_t bytes = kernel_of(s, 0)->variants[0].shared_bytes;
    if (is_wanted && bytes <= MOST_BLOCK_BYTES) {
        move_together(s);
        return true;
    }
    set_on_chip(s, false);
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++)
        s->plan->kernels.data[s->at[i]] = saved[i];
    return false;
}

void gemm_rows_gemm_kernels(Arena *arena, Arena *scratch, Plan *plan, const Target *target,
                            const CostPoints *points) {
    GemmRowsGemmFinder s = {.arena = arena,
                            .scratch = scratch,
                            .plan = plan,
                            .target = target,
                            .points = points,
                            .dims = plan->graph->dims};
    if (target->device != DEVICE_GPU) return;
    ArenaMark mark = arena_mark(scratch);
    /* One that was made leaves another kernel at its first one's place. */
    for (uint32_t k = 0; k < plan->kernels.n;)
        if (!find_relay(&s, k) || !try_relay(&s)) k++;
    arena_rewind(scratch, mark);
}
