/* Schedules of softmax and product. See scheduler.h. */
#include "machine/machine.h"
#include "machine/tuning.h"
#include "schedule/gemm.h"
#include "schedule/scheduler.h"
#include "template/online.h"

static DimId n_blocks(const Scheduler *s, const Sched *sched) {
    DimId warps = online_n_units(s->dims, s->kernel, sched->unroll, online_warp_columns(sched));
    return dim_ceil_div(s->dims, warps, sched->threads / WARP_THREADS);
}

/* A warp takes several rows, if there are, so that it reads the values once for all of them. A
 * result of rows has no values. */
static void propose(Scheduler *s, Access access) {
    if (access == ACCESS_WIDE) return;
    Variant variant = {.sched = sched_gpu(s, TEMPLATE_GPU_ONLINE)};
    DimId rows = kernel_axis_extent(s->kernel, gemm_axis_m(s->kernel));
    variant.sched.threads = SCHED_ONLINE_THREADS;
    bool shares_values = dim_hi(s->dims, rows) > 1 && !s->kernel->reduces.data[0].row;
    variant.sched.unroll = shares_values ? SCHED_ONLINE_ROWS : 1;
    variant.grid = n_blocks(s, &variant.sched);
    sched_add(s, variant);
}

static bool may(const Scheduler *s) {
    return !schedule_gpu_online_wgmma.may(s) && !schedule_gpu_online_mma.may(s);
}

const TemplateSchedule schedule_gpu_online = {.may = may, .propose = propose};

/* Half as many rows as two vectors of columns have registers for. */
static void propose_cpu(Scheduler *s, Access access) {
    if (access == ACCESS_SINGLE) return;
    Variant variant = {.sched = sched_cpu(s, TEMPLATE_CPU_ONLINE)};
    variant.sched.unroll = s->target->vector_bytes / 8;
    variant.grid =
        online_n_units(s->dims, s->kernel, SCHED_CPU_ONLINE_ROWS, SCHED_CPU_ONLINE_COLUMNS);
    sched_add(s, variant);
}

const TemplateSchedule schedule_cpu_online = {.propose = propose_cpu};

/* With the matmul that makes the scores: its register tile is as wide as divides a block of keys,
 * and as high as divides a unit's rows. Few rows do not pay for the packing of the keys. */

enum { WIDE_VECTOR_BYTES = 64, WIDE_ROWS = 8, NARROW_ROWS = 4, TILE_VECTORS = 2 };

bool sched_cpu_gemm_online_may(const Kernel *scores, const Kernel *result, const Target *target) {
    const Reduce *reduce = &scores->reduces.data[0];
    const DimTab *dims = indextab_dims(scalartab_indices(scores->scalars));
    uint32_t acc_bytes = dtype_bytes(reduce->acc);
    uint32_t lanes = target_level(target, 0)->vector_bytes / acc_bytes;
    DimId rows = kernel_axis_extent(result, gemm_axis_m(result));
    bool may_be_fewer = result->segment_axis != NO_AXIS && result->choice;
    int64_t n_rows = may_be_fewer ? dim_lo(dims, rows) : dim_hi(dims, rows);
    bool is_packed = scores->panel_columns == 0 && scores->segment_axis == NO_AXIS;
    for (uint32_t v = 0; v < scores->n_variants; v++)
        is_packed = is_packed && template_info(scores->variants[v].sched.template)->joins_gemms;
    return is_packed && n_rows >= SCHED_CPU_GEMM_ONLINE_LEAST_ROWS &&
           reduce->acc == result->reduces.data[0].acc &&
           dim_hi(dims, kernel_n_reduced(scores)) <= SCHED_CPU_ONLINE_DEPTH_BYTES / acc_bytes &&
           dim_hi(dims, kernel_n_reduced(result)) >= lanes;
}

static void tile_scores(const Target *level, const Kernel *scores, const Kernel *result,
                        Variant *made) {
    DimTab *dims = indextab_dims(scalartab_indices(scores->scalars));
    uint32_t lanes = level->vector_bytes / dtype_bytes(scores->reduces.data[0].acc);
    uint32_t high = level->vector_bytes == WIDE_VECTOR_BYTES ? WIDE_ROWS : NARROW_ROWS;
    int64_t rows = dim_hi(dims, kernel_axis_extent(result, gemm_axis_m(result)));
    int64_t depth = dim_hi(dims, kernel_n_reduced(scores));
    uint32_t most = SCHED_CPU_GEMM_ONLINE_ROWS;
    while (most > high && most / 2 >= rows) most /= 2;
    made->sched.template = TEMPLATE_CPU_GEMM_ONLINE;
    made->sched.lanes = lanes;
    made->sched.unroll = level->vector_bytes == WIDE_VECTOR_BYTES ? 1 : 4;
    made->sched.cpu_gemm = (CpuGemmSched){.register_m = most < high ? most : high,
                                          .register_n = TILE_VECTORS * lanes,
                                          .tile_m = most,
                                          .tile_n = ONLINE_BLOCK,
                                          .unit_m = most,
                                          .unit_n = ONLINE_BLOCK,
                                          .tile_k = (uint32_t)(depth + lanes - 1) / lanes * lanes,
                                          .is_blocked = true};
    made->grid = online_n_units(dims, result, most, SCHED_CPU_ONLINE_COLUMNS);
    made->grid = choice_scale(dims, result->choice, result->version, made->grid);
}

/* The result has one variant for each level. */
void sched_cpu_gemm_online(Arena *scratch, const Target *target, Kernel *scores, Kernel *result) {
    Variant made[MAX_VARIANTS], own[MAX_VARIANTS];
    uint32_t n = result->n_variants;
    for (uint32_t v = 0; v < n; v++) {
        Str name = predicate_level(&result->variants[v].predicate);
        const Target *last = target_level(target, target_n_levels(target) - 1);
        made[v] = scores->variants[kernel_last_of_level(scores, name)];
        own[v] = result->variants[v];
        tile_scores(name ? target_by_name(name) : last, scores, result, &made[v]);
        own[v].grid = made[v].grid;
        own[v].sched.is_wide = made[v].sched.is_wide =
            own[v].sched.is_wide || made[v].sched.is_wide;
    }
    kernel_set_variants(scratch, scores, made, n);
    kernel_set_variants(scratch, result, own, n);
}
