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

void sched_gemm_rows_gemm(Arena *arena, Arena *scratch, const Plan *plan, Kernel *const *kernels) {
    bool has_conditions = false;
    Variant made[GEMM_ROWS_GEMM_KERNELS][2];
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) {
        Variant *aligned = &made[i][0], *any = &made[i][1];
        const Kernel *kernel = kernels[i];
        *aligned = make_variant(plan, kernels, i, false);
        *any = make_variant(plan, kernels, i, true);
        aligned->symbol = kernel->variants[0].symbol;
        any->symbol = str_format(arena, "%s_v1", aligned->symbol);
        has_conditions = has_conditions || variant_has_conditions(plan, kernel, aligned);
    }
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++)
        kernel_set_variants(scratch, kernels[i], made[i], has_conditions ? 2 : 1);
}

/* Online kernels by mma.sync, alone or with the matmul of their scores: a warp has 16 rows. */

static Variant online_mma_variant(const Plan *plan, const Kernel *scores, const Kernel *result,
                                  const Kernel *own, Variant base, bool is_wide) {
    const DimTab *dims = plan->graph->dims;
    int64_t columns = dim_hi(dims, kernel_axis_extent(result, gemm_axis_n(result)));
    bool is_low =
        result->segment_axis != NO_AXIS ||
        dim_hi(dims, kernel_axis_extent(result, gemm_axis_m(result))) <= SCHED_SCORES_LOW_TILE;
    Sched of_result = base.sched;
    of_result.template = TEMPLATE_GPU_ONLINE_MMA;
    of_result.lanes = is_wide ? GEMM_STORE_LANES : 1;
    of_result.unroll = 1;
    of_result.cluster = 1;
    of_result.gemm = (GemmSched){.tile_m = is_low ? SCHED_SCORES_LOW_TILE : SCHED_SCORES_HIGH_TILE,
                                 .tile_n = power_of_two(columns, LEAST_COLUMNS),
                                 .tile_k = ONLINE_BLOCK,
                                 .warps_n = 1,
                                 .stages = 2};
    of_result.gemm.warps_m = of_result.gemm.tile_m / ONLINE_MMA_WARP_ROWS;
    of_result.threads = of_result.gemm.warps_m * WARP_THREADS;
    Sched of_scores = of_result;
    of_scores.template = TEMPLATE_GPU_GEMM_ONLINE_MMA;
    of_scores.lanes = GEMM_ROWS_GEMM_PAIR;
    of_scores.gemm.tile_n = ONLINE_BLOCK;
    if (scores)
        of_scores.gemm.tile_k = power_of_two(dim_hi(dims, kernel_n_reduced(scores)), LEAST_K);
    base.sched = own == result ? of_result : of_scores;
    base.grid = gemm_gpu_grid(result, of_result.gemm.tile_m, of_result.gemm.tile_n);
    if (own != result || !scores)
        base.shared_bytes = sched_gemm_dynamic_bytes(
            online_mma_shared_bytes(scores ? &of_scores : NULL, &of_result));
    if (is_wide) predicate_align(&base.predicate, ACCESS_BYTES, UINT64_MAX >> (64 - own->args.n));
    return base;
}

/* Online kernels by wgmma, alone or with the matmul of their scores. */

enum {
    WGMMA_STAGES = 4,           /* at most */
    MOST_COLUMNS_OF_THREE = 64, /* of the result: three consumers of a block have the registers */
    MOST_DEPTH_OF_THREE = 128   /* of the scores' product: their rows have the shared memory */
};

typedef struct WgmmaLaunch {
    Wgmma scores, result;
    bool has_scores, has_maps;
    uint32_t rows, width, depth, columns; /* of the tiles */
    GemmRowsGemmTiles tiles;
} WgmmaLaunch;

static uint32_t up_to(int64_t n, uint32_t multiple) {
    return (uint32_t)((n + multiple - 1) / multiple * multiple);
}

/* Three consumers weigh more scores beside products than two, but their tile of rows suits many
 * rows alone, and rows that are short. */
static uint32_t n_consumers(const WgmmaLaunch *w, const Kernel *result) {
    const DimTab *dims = indextab_dims(scalartab_indices(result->scalars));
    DimId rows = kernel_axis_extent(result, gemm_axis_m(result));
    if (result->segment_axis != NO_AXIS || dim_hi(dims, rows) <= WGMMA_ROWS) return 1;
    bool has_room =
        w->has_maps && w->columns <= MOST_COLUMNS_OF_THREE && w->depth <= MOST_DEPTH_OF_THREE;
    return has_room && dim_lo(dims, rows) >= SCHED_SCORES_WGMMA_MANY_ROWS ? 3 : 2;
}

/* Sizes the tiles. `scores`: NULL, or the matmul that makes them. Tiles without maps are straight,
 * those of the values transposed. */
static void size_tiles(WgmmaLaunch *w, const Kernel *scores, const Kernel *result) {
    const DimTab *dims = indextab_dims(scalartab_indices(result->scalars));
    bool left = w->has_maps && w->scores.sides[0].is_mn_major;
    bool right = w->has_maps && w->scores.sides[1].is_mn_major;
    bool values = !w->has_maps || w->result.sides[1].is_mn_major;
    w->has_scores = scores != NULL;
    w->width = SCHED_SCORES_WGMMA_TILE;
    if (dim_hi(dims, kernel_n_reduced(result)) <= w->width / 2) w->width /= 2;
    w->columns = up_to(dim_hi(dims, kernel_axis_extent(result, gemm_axis_n(result))), 8);
    if (scores) w->depth = up_to(dim_hi(dims, kernel_n_reduced(scores)), GEMM_ROWS_GEMM_STEP);
    w->rows = n_consumers(w, result) * WGMMA_ROWS;
    w->tiles =
        (GemmRowsGemmTiles){.values_bytes = wgmma_operand_bytes(w->columns, w->width, values)};
    if (!scores) return;
    w->tiles.left_bytes = wgmma_operand_bytes(w->rows, w->depth, left);
    w->tiles.right_bytes = wgmma_operand_bytes(w->width, w->depth, right);
}

static TensorMap map_of(const Side *side, uint32_t own, uint32_t depth) {
    TensorMap map = side->map;
    map.axes[1].box = side->is_mn_major ? depth : own;
    return map;
}

/* The maps of a kernel. A launch leaves out the first map of its last kernel, that of the lhs. */
static void set_maps(const WgmmaLaunch *w, bool are_scores, Variant *variant) {
    const GemmSched *gemm = &variant->sched.gemm;
    const Side *sides = are_scores ? w->scores.sides : w->result.sides;
    TensorMap right = map_of(&sides[1], gemm->tile_n, gemm->tile_k);
    if (!w->has_maps) return;
    if (w->has_scores)
        variant->maps[variant->n_maps++] =
            are_scores ? map_of(&sides[0], w->rows, gemm->tile_k) : right;
    variant->maps[variant->n_maps++] = right;
}

/* Whether a multiprocessor has shared memory for `n` blocks, each beside what the driver keeps. */
static bool has_shared(const Target *target, const WgmmaLaunch *w, const Sched *last, uint32_t n) {
    uint32_t own = gemm_rows_gemm_wgmma_bytes(w->tiles, last) + RESERVED_SHARED_BYTES;
    return n * own <= target->block_shared_bytes + RESERVED_SHARED_BYTES;
}

/* Whether consumers that are alone in `n` blocks of a multiprocessor have the registers: those of
 * their sums, their scores and the weights, and before, for ptxas, those of one instruction. */
static bool has_registers(const WgmmaLaunch *w, uint32_t n) {
    OnlineRegisters registers = online_registers(n, 1, ONLINE_COPYING_REGISTERS);
    uint32_t of_sums = w->columns / 2, of_scores = w->width / 2;
    uint32_t of_one = (of_sums > of_scores ? of_sums : of_scores) + ONLINE_INSTRUCTION_REGISTERS;
    uint32_t all = online_product_registers(w->columns, w->width) + SCHED_ONLINE_WGMMA_REGISTERS;
    return all <= registers.consumer && of_one <= registers.at_first;
}

/* Blocks of a multiprocessor. The weights of one consumer's scores keep tensor cores and memory
 * waiting, so there are several blocks of it, if it multiplies scores and there is room. */
static uint32_t n_resident(const Target *target, const WgmmaLaunch *w, const Sched *last) {
    bool has_several = w->has_scores && w->has_maps && w->rows <= WGMMA_ROWS;
    uint32_t n = has_several ? SCHED_ONLINE_WGMMA_BLOCKS : 1;
    Sched least = *last;
    least.gemm.stages = 1;
    while (n > 1 && !(has_registers(w, n) && has_shared(target, w, &least, n))) n--;
    return n;
}

/* The variant of the kernel that makes the scores, or of the online one, `result`. `base`: the
 * conditions. */
static Variant wgmma_variant(const Target *target, const WgmmaLaunch *w, const Kernel *result,
                             const Kernel *own, Variant base) {
    Variant variant = base;
    Sched *sched = &variant.sched;
    bool is_result = own == result;
    sched->template = is_result ? TEMPLATE_GPU_ONLINE_WGMMA : TEMPLATE_GPU_GEMM_ONLINE_WGMMA;
    sched->gemm = (GemmSched){.tile_m = w->rows,
                              .tile_n = is_result ? w->columns : w->width,
                              .tile_k = is_result ? w->width : w->depth,
                              .warps_m = w->rows / WGMMA_WARP_ROWS,
                              .warps_n = 1,
                              .stages = WGMMA_STAGES};
    sched->threads = (sched->gemm.warps_m + WGMMA_GROUP_WARPS) * WARP_THREADS;
    sched->cluster = 1;
    Sched last = *sched;
    last.gemm.tile_n = w->columns;
    sched->min_blocks = n_resident(target, w, &last);
    while (last.gemm.stages > 1 && !has_shared(target, w, &last, sched->min_blocks))
        last.gemm.stages--;
    sched->gemm.stages = last.gemm.stages;
    variant.grid = gemm_gpu_grid(result, w->rows, w->columns);
    variant.is_persistent = true;
    variant.n_maps = 0;
    variant.shared_bytes =
        is_result && w->has_scores ? 0 : gemm_rows_gemm_wgmma_bytes(w->tiles, &last);
    set_maps(w, !is_result, &variant);
    return variant;
}

/* Whether tensor cores multiply the values, of at most `most` columns, by powers. */
static bool online_fits(const Scheduler *s, int64_t most) {
    const Kernel *kernel = s->kernel;
    Dtype values = scalar_get(kernel->scalars, kernel->reduces.data[0].rhs)->dtype;
    DimId columns = kernel_axis_extent(kernel, gemm_axis_n(kernel));
    return kernel->reduces.data[0].power && dtype_bytes(values) == GEMM_ROWS_GEMM_ELEM_BYTES &&
           dtype_in(values, DTS_FLOAT) && dim_hi(s->dims, columns) <= most &&
           dim_lo(s->dims, columns) > 0;
}

static bool online_may(const Scheduler *s) {
    return s->target->has_wgmma && online_fits(s, GEMM_ONLINE_MOST_COLUMNS);
}

static bool online_mma_may(const Scheduler *s) {
    return !s->target->has_wgmma && online_fits(s, GEMM_ROWS_GEMM_MOST_COLUMNS);
}

/* With maps, and vectors of results; or for pointers and layouts that the copy engine refuses. */
static Variant online_variant(const Target *target, const Plan *plan, const Kernel *scores,
                              const Kernel *result, const Kernel *own, Variant base, bool is_wide) {
    WgmmaLaunch w = {.has_maps = is_wide};
    const GemmLaunch alone = {.n_gemms = 1};
    if (!target->has_wgmma) return online_mma_variant(plan, scores, result, own, base, is_wide);
    w.has_maps =
        is_wide && wgmma_init_right(&w.result, plan, result) &&
        (!scores || (wgmma_init(&w.scores, plan, scores, alone) && !w.scores.sides[0].map.im2col));
    size_tiles(&w, scores, result);
    base.sched.lanes = own == result && is_wide ? GEMM_STORE_LANES : 1;
    base.sched.unroll = 1;
    if (is_wide) predicate_align(&base.predicate, ACCESS_BYTES, UINT64_MAX >> (64 - own->args.n));
    return wgmma_variant(target, &w, result, own, base);
}

static void propose_online(Scheduler *s, Access access) {
    Variant base = {.sched = sched_gpu(s, TEMPLATE_GPU_ONLINE_WGMMA)};
    sched_add(s, online_variant(s->target, s->plan, NULL, s->kernel, s->kernel, base,
                                access == ACCESS_WIDE));
}

const TemplateSchedule schedule_gpu_online_wgmma = {.may = online_may, .propose = propose_online};
const TemplateSchedule schedule_gpu_online_mma = {.may = online_mma_may, .propose = propose_online};

void sched_gemm_online(Arena *arena, Arena *scratch, const Target *target, const Plan *plan,
                       Kernel *scores, Kernel *result) {
    Kernel *const kernels[] = {scores, result};
    Variant made[2][2];
    bool is_wide = scores->variants[0].sched.is_wide || result->variants[0].sched.is_wide;
    bool has_conditions = false;
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t v = 0; v < 2; v++) {
            Variant base = {.sched = {.is_wide = is_wide}};
            made[i][v] = online_variant(target, plan, scores, result, kernels[i], base, v == 0);
            made[i][v].grid =
                choice_scale(plan->graph->dims, result->choice, result->version, made[i][v].grid);
            made[i][v].symbol = kernels[i]->variants[0].symbol;
            if (v) made[i][v].symbol = str_format(arena, "%s_v1", made[i][v].symbol);
        }
        has_conditions = has_conditions || variant_has_conditions(plan, kernels[i], made[i]);
    }
    for (uint32_t i = 0; i < 2; i++)
        kernel_set_variants(scratch, kernels[i], made[i], has_conditions ? 2 : 1);
}
