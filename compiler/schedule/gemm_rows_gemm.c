/* Schedules of gemm-rows-gemm launches (template/gemm_rows_gemm.h). See gemm.h. */
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "schedule/wgmma/wgmma_maps.h"
#include "template/gemm_rows_gemm.h"

enum { LEAST_K = 32, LEAST_COLUMNS = 32 };

static uint32_t power_of_two(int64_t n, uint32_t least) {
    while (least < n) least *= 2;
    return least;
}

/* Both matmuls have the same rows per block, in four warps. */
static Sched gemm_sched(Kernel *const *kernels, uint32_t tile_m, uint32_t tile_n, uint32_t tile_k) {
    bool is_wide = false;
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++)
        is_wide = is_wide || kernels[i]->variants[0].sched.is_wide;
    return (Sched){.template = TEMPLATE_GPU_GEMM_ROWS_GEMM,
                   .lanes = GEMM_ROWS_GEMM_PAIR,
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

/* The width of a tile of scores. Wide tiles are taken only if they divide the columns, because k is
 * padded to whole tiles. */
static uint32_t score_width(const Plan *plan, Kernel *const *kernels) {
    DimId columns = kernel_n_reduced(kernels[GEMM_ROWS_GEMM_ROWS]);
    return dim_multiple(plan->graph->dims, columns) % SCHED_SCORES_WIDE_TILE
               ? SCHED_SCORES_NARROW_TILE
               : SCHED_SCORES_WIDE_TILE;
}

static Variant make_variant(const Plan *plan, Kernel *const *kernels, uint32_t i, bool is_last) {
    const Kernel *scores = kernels[GEMM_ROWS_GEMM_SCORES], *own = kernels[i];
    const Kernel *result = kernels[GEMM_ROWS_GEMM_RESULT];
    const DimTab *dims = plan->graph->dims;
    uint32_t width = score_width(plan, kernels);
    uint32_t depth = power_of_two(dim_hi(dims, kernel_n_reduced(scores)), LEAST_K);
    int64_t n = dim_hi(dims, kernel_axis_extent(result, gemm_axis_n(result)));
    bool is_low =
        dim_hi(dims, kernel_axis_extent(scores, gemm_axis_m(scores))) <= SCHED_SCORES_LOW_TILE;
    uint32_t tile_m = is_low ? SCHED_SCORES_LOW_TILE : SCHED_SCORES_HIGH_TILE;
    Sched of_scores = gemm_sched(kernels, tile_m, width, depth);
    Sched of_result = gemm_sched(kernels, tile_m, power_of_two(n, LEAST_COLUMNS), width);
    of_result.lanes = is_last ? 1 : GEMM_STORE_LANES;
    Variant variant = {.sched = i == GEMM_ROWS_GEMM_RESULT ? of_result : of_scores,
                       .grid = gemm_gpu_grid(result, tile_m, of_result.gemm.tile_n)};
    predicate_align(&variant.predicate, ACCESS_BYTES,
                    is_last ? kernel_own_args(plan, own) : UINT64_MAX >> (64 - own->args.n));
    if (i == GEMM_ROWS_GEMM_SCORES)
        variant.shared_bytes =
            sched_gemm_dynamic_bytes(gemm_rows_gemm_shared_bytes(&of_scores, &of_result));
    return variant;
}

/* By wgmma. */

enum { WGMMA_STAGES = 3 }; /* at most */

typedef struct WgmmaLaunch {
    Wgmma scores, result;
    uint32_t rows, width, depth, columns; /* of the tiles */
    GemmRowsGemmTiles tiles;
} WgmmaLaunch;

static uint32_t up_to(int64_t n, uint32_t multiple) {
    return (uint32_t)((n + multiple - 1) / multiple * multiple);
}

/* Whether wgmma can compute the launch: the rows are an online softmax, and the copy engine can
 * fetch the operands. */
static bool find_wgmma(const Target *target, const Plan *plan, Kernel *const *kernels,
                       const OnlineSoftmax *online, WgmmaLaunch *w) {
    const Kernel *scores = kernels[GEMM_ROWS_GEMM_SCORES], *result = kernels[GEMM_ROWS_GEMM_RESULT];
    const DimTab *dims = plan->graph->dims;
    const GemmLaunch alone = {.n_gemms = 1};
    if (!online->weight || !target->has_wgmma || !wgmma_init(&w->scores, plan, scores, alone) ||
        !wgmma_init(&w->result, plan, result, alone) || w->scores.sides[0].map.im2col ||
        w->result.sides[0].map.im2col)
        return false;
    w->rows = dim_hi(dims, kernel_axis_extent(scores, gemm_axis_m(scores))) <= WGMMA_ROWS
                  ? WGMMA_ROWS
                  : 2 * WGMMA_ROWS;
    w->width = SCHED_SCORES_WGMMA_TILE;
    w->depth = up_to(dim_hi(dims, kernel_n_reduced(scores)), GEMM_ROWS_GEMM_STEP);
    w->columns = up_to(dim_hi(dims, kernel_axis_extent(result, gemm_axis_n(result))), 8);
    w->tiles = (GemmRowsGemmTiles){
        wgmma_operand_bytes(w->rows, w->depth, w->scores.sides[0].is_mn_major),
        wgmma_operand_bytes(w->width, w->depth, w->scores.sides[1].is_mn_major),
        wgmma_operand_bytes(w->columns, w->width, w->result.sides[1].is_mn_major)};
    return true;
}

static TensorMap map_of(const Side *side, uint32_t own, uint32_t depth) {
    TensorMap map = side->map;
    map.axes[1].box = side->is_mn_major ? depth : own;
    return map;
}

/* The variant of kernel `i`. `base`: its variant for aligned pointers by mma. */
static Variant wgmma_variant(const Target *target, const WgmmaLaunch *w, Kernel *const *kernels,
                             uint32_t i, Variant base) {
    Variant variant = base;
    Sched *sched = &variant.sched;
    sched->template = TEMPLATE_GPU_GEMM_ROWS_GEMM_WGMMA;
    sched->gemm = (GemmSched){.tile_m = w->rows,
                              .tile_n = i == GEMM_ROWS_GEMM_RESULT ? w->columns : w->width,
                              .tile_k = i == GEMM_ROWS_GEMM_RESULT ? w->width : w->depth,
                              .warps_m = w->rows / WGMMA_WARP_ROWS,
                              .warps_n = 1,
                              .stages = WGMMA_STAGES};
    sched->threads = (sched->gemm.warps_m + WGMMA_GROUP_WARPS) * WARP_THREADS;
    sched->cluster = 1;
    Sched result = *sched;
    result.gemm.tile_n = w->columns;
    while (result.gemm.stages > 1 &&
           gemm_rows_gemm_wgmma_bytes(w->tiles, &result) > target->block_shared_bytes)
        result.gemm.stages--;
    sched->gemm.stages = result.gemm.stages;
    variant.grid = gemm_gpu_grid(kernels[GEMM_ROWS_GEMM_RESULT], w->rows, w->columns);
    variant.is_persistent = true;
    variant.shared_bytes =
        i == GEMM_ROWS_GEMM_SCORES ? gemm_rows_gemm_wgmma_bytes(w->tiles, &result) : 0;
    if (i == GEMM_ROWS_GEMM_ROWS) return variant;
    const Wgmma *own = i == GEMM_ROWS_GEMM_SCORES ? &w->scores : &w->result;
    variant.n_maps = 2; /* the launch leaves out the map of the result's lhs */
    variant.maps[0] = map_of(&own->sides[0], w->rows, sched->gemm.tile_k);
    variant.maps[1] = map_of(&own->sides[1], sched->gemm.tile_n, sched->gemm.tile_k);
    return variant;
}

void sched_gemm_rows_gemm(Arena *arena, Arena *scratch, const Target *target, const Plan *plan,
                          Kernel *const *kernels, const OnlineSoftmax *online) {
    bool has_conditions = false;
    WgmmaLaunch w;
    bool is_wgmma = find_wgmma(target, plan, kernels, online, &w);
    Variant made[GEMM_ROWS_GEMM_KERNELS][2];
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) {
        Variant *aligned = &made[i][0], *any = &made[i][1];
        const Kernel *kernel = kernels[i];
        *aligned = make_variant(plan, kernels, i, false);
        *any = make_variant(plan, kernels, i, true);
        if (is_wgmma) *aligned = wgmma_variant(target, &w, kernels, i, *aligned);
        aligned->symbol = kernel->variants[0].symbol;
        any->symbol = str_format(arena, "%s_v1", aligned->symbol);
        has_conditions =
            has_conditions || is_wgmma || variant_has_conditions(plan, kernel, aligned);
    }
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++)
        kernel_set_variants(scratch, kernels[i], made[i], has_conditions ? 2 : 1);
}
