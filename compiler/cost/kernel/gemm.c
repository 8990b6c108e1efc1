/* See gemm.h. */
#include "cost/kernel/gemm.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "cost/kernel/gemm_rows.h"
#include "cost/kernel/gemm_rows_gemm.h"
#include "cost/count/prims.h"
#include "template/wgmma.h"
#include "cost/kernel/loops.h"

#include <math.h>

/* An operand is read once per tile along the other axis. In a gemm-rows-gemm launch a block keeps
 * its lhs tile throughout. */
double cost_gemm_reads(const Coster *c, const Pricing *p, uint32_t axes) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    uint32_t m = gemm_axis_m(kernel), n = gemm_axis_n(kernel);
    bool is_kept = cost_is_gemm_rows_gemm(c) && !(axes >> n & 1);
    if (is_kept) return 1;
    if (!(axes >> n & 1))
        return ceil(footprint_points(kernel, 1u << n, c->values) / sched_tile(sched).n);
    double passes = cost_gemm_rows_gemm_passes(c, kernel);
    if (!(axes >> m & 1))
        return passes * ceil(footprint_points(kernel, 1u << m, c->values) / sched_tile(sched).m) /
               (sched->cluster > 1 ? sched->cluster : 1);
    return passes;
}

bool cost_gemm_has_tiles(const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    const FormInfo *form = form_info(p->kernel->form);
    return (form->multiplies || form->weighs) && sched_tile(sched).k > 0;
}

/* Bytes of the rhs in the columns that all concurrent blocks work on, for the rows of one group. */
static double bytes_at_once(const Coster *c, const Pricing *p, double columns) {
    const Sched *sched = &p->variant->sched;
    double at_once = c->card->n_processors * p->cost->pressure.n_blocks / CODEGEN_GEMM_GROUP_ROWS;
    return fmin(columns, at_once) * sched->gemm.tile_n * wgmma_n_gemms(sched) * p->reduced *
           dtype_bytes(gemm_operand_dtype(p->kernel));
}

/* The lhs is read once if the cache holds a group's rows beside the concurrent columns, else once
 * per wave of the group. The rhs is read once per group, if it is too large to stay in the cache.
 * Blocks that drift apart, with a long k and many waves, read more: twice as much for 16384^3. */
double cost_gemm_dram_reads(const Coster *c, const Pricing *p, uint32_t axes, double bytes) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    uint32_t m = gemm_axis_m(kernel), n = gemm_axis_n(kernel), batch = (1u << m) - 1;
    uint32_t side = axes & (1u << m | 1u << n);
    if (!c->card->has->blocks || cost_is_gemm_rows_gemm(c)) return 1;
    if (side != 1u << m && side != 1u << n) return 1;
    double room = COST_GEMM_READ_SHARE * c->card->cache_bytes;
    double rows = ceil(footprint_points(kernel, 1u << m, c->values) / sched_tile(sched).m);
    double columns = ceil(footprint_points(kernel, 1u << n, c->values) / sched_tile(sched).n);
    double own = bytes / fmax(1, footprint_points(kernel, axes & batch, c->values));
    double groups = ceil(rows / CODEGEN_GEMM_GROUP_ROWS);
    if (side == 1u << n) return own <= room ? 1 : fmax(1, groups);
    double group = own / fmax(1, groups);
    double waves = fmin(rows, CODEGEN_GEMM_GROUP_ROWS) * columns /
                   (c->card->n_processors * fmax(1, p->cost->pressure.n_blocks));
    return group + bytes_at_once(c, p, columns) <= room ? 1 : fmax(1, waves);
}

static void count(const Coster *c, Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    const double *shares =
        footprint_shares(c->arena, kernel, kernel->stages.n, footprint_no_step, c->values);
    double passes = cost_gemm_rows_gemm_passes(c, kernel);
    p->cost->n_flops = 2 * p->rows * p->reduced * passes;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        if (live[kernel->stages.n][id])
            p->cost->n_prims += passes * p->rows * shares[id] *
                                scalar_prims(c->card, kernel, id, p->variant->sched.lanes);
        bool is_fetched =
            template_info(p->variant->sched.template)->uses_copy_engine; /* with the copy engine */
        if (!live[0][id] || is_fetched || scalar_get(kernel->scalars, id)->kind == SCALAR_LOAD)
            continue;
        uint32_t axes = scalar_get(kernel->scalars, id)->axes;
        double points = footprint_points(kernel, axes, c->values);
        if (cost_gemm_has_tiles(p)) points *= cost_gemm_reads(c, p, axes);
        p->cost->n_prims += points * scalar_prims(c->card, kernel, id, p->variant->sched.lanes);
    }
}

double cost_mma_tflops(const Card *card, const Kernel *kernel) {
    switch (dtype_info(gemm_operand_dtype(kernel))->mma) {
    case MMA_DOUBLE:
        return card->mma_tflops[2];
    case MMA_TF32:
        return card->mma_tflops[1];
    case MMA_S8:
    case MMA_U8:
    case MMA_E4M3:
    case MMA_E5M2: /* twice as many of half the width, on every card */
        return 2 * card->mma_tflops[0];
    case MMA_HALF:
    case MMA_BFLOAT:
    case MMA_NONE:
        break;
    }
    return card->mma_tflops[0];
}

double cost_gemm_peak(const Card *card, const Kernel *kernel, GemmEngine engine) {
    Dtype dtype = gemm_operand_dtype(kernel);
    const EngineInfo *info = engine_info(engine);
    if (info->uses_warp_groups && card->wgmma_tflops > 0)
        return card->wgmma_tflops * 2 / dtype_bytes(dtype);
    if (info->uses_tensor_cores) return cost_mma_tflops(card, kernel);
    double lanes = card->lanes * (dtype_is_double(dtype) ? card->f64_rate : 1);
    return 2e-3 * card->n_processors * card->ghz * lanes;
}

/* How busy the processors with the most blocks are, which finish last, if each wanted `wanted`
 * warps. */
double cost_gemm_use_of_busy(const Coster *c, const Pricing *p, double wanted) {
    if (!c->card->has->blocks) return 1;
    double most = ceil(p->n_beside / c->card->n_processors);
    double at_once = fmin(fmax(1, most), p->cost->pressure.n_blocks);
    return fmin(1, at_once * p->variant->sched.threads / WARP_THREADS / wanted);
}

/* In the last round of blocks some processors may be idle. */
double cost_gemm_balance(const Coster *c, const Pricing *p) {
    if (!c->card->has->blocks) return cost_use(c, p, 1);
    double rounds = p->n_beside / c->card->n_processors;
    return rounds > 0 ? rounds / ceil(rounds) : 1;
}

static double use(const Coster *c, const Pricing *p, double wanted) {
    return sqrt(cost_gemm_use_of_busy(c, p, wanted)) * cost_gemm_balance(c, p);
}

/* The kernel's share of the tiles of all parallel kernels. */
double cost_gemm_share(const Coster *c, const Pricing *p) {
    return p->n_beside > 0 ? cost_number(c, p->variant->grid) / p->n_beside : 0;
}

/* The tiles per block, with a fractional last wave. */
double cost_gemm_part_waves(const Coster *c, const Pricing *p) {
    return p->n_beside / ((double)c->card->n_processors * p->cost->pressure.n_blocks);
}

double cost_gemm_waves(const Coster *c, const Pricing *p) {
    return ceil(cost_gemm_part_waves(c, p));
}

/* For a GEMM that a row kernel follows. */
double cost_gemm_least_us(const Coster *c, const Pricing *p) {
    const Kernel *next = p->kernel + 1, *end = launch_kernel(c->plan, c->launch, c->launch->n);
    if (next >= end || !cost_is_sequence_rows(c, next) || !c->card->has->blocks) return 0;
    return cost_rows_gemm_us(&p->variant->sched, cost_gemm_waves(c, p), p->reduced,
                             dtype_bytes(gemm_operand_dtype(p->kernel)));
}

/* With wgmma, the consumer warps process the rows, while the next tiles' operands are copied. */
static double wgmma_rows_us(const Coster *c, const Pricing *p, const Sched *sched, double prims) {
    const KernelCost *gemm = p->cost - 1;
    double busy = gemm->arithmetic_us + gemm->tensor_us + gemm->spill_us +
                  cost_rows_wgmma_us(sched, cost_gemm_part_waves(c, p), p->reduced, prims);
    double both = fmax(busy, gemm->memory_us + p->cost->memory_us);
    return fmax(0, both - (gemm->us - gemm->launch_us));
}

void cost_gemm_time_rows(const Coster *c, Pricing *p) {
    if (!c->card->has->blocks) return;
    const Sched *gemm = &p->kernel[-1].variants[p->cost->variant].sched;
    double points = p->rows * p->reduced, prims = points > 0 ? p->cost->n_prims / points : 0;
    double least = cost_rows_us(gemm, cost_gemm_part_waves(c, p), p->reduced, prims);
    p->cost->us = template_info(gemm->template)->uses_copy_engine ? wgmma_rows_us(c, p, gemm, prims)
                                                                  : fmax(p->cost->us, least);
    p->cost->us += cost_rows_begin_us(gemm, p->reduced);
}

/* For one chain of fmas per output, on any device. */
static void compute(const Coster *c, Pricing *p, double prims_per_us) {
    KernelCost *cost = p->cost;
    double efficiency = COST_FMA_EFFICIENCY;
    if (dtype_is_double(p->kernel->reduces.data[0].acc)) efficiency *= c->card->f64_rate;
    cost->arithmetic_us = cost->n_prims / prims_per_us;
    cost->arithmetic_us +=
        fmax(cost->n_flops / 2 / (prims_per_us * efficiency), cost_gemm_least_us(c, p));
}

/* For operands that come in tiles. */
static void load(const Coster *c, Pricing *p, bool *const *live) {
    (void)c, (void)live;
    const Sched *sched = &p->variant->sched;
    double bytes = dtype_bytes(gemm_operand_dtype(p->kernel));
    GemmTile tile = sched_tile(sched);
    uint32_t stages = sched_gemm(sched).stages;
    p->bytes_in_flight =
        bytes * (stages > 1 ? stages - 1 : 1) * tile.k * (tile.m + tile.n) / sched->threads;
}

static double exposed_us(const Coster *c, const Pricing *p, double busy) {
    (void)c, (void)p, (void)busy;
    return 0;
}

double cost_gemm_registers(const ThreadUse *use, double mainloop) {
    return REGS_TILE + (mainloop > use->peak ? mainloop : use->peak);
}

/* Bytes of a tile of both operands, times the stages. */
static uint32_t shared_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    GemmSched gemm = sched_gemm(&variant->sched);
    return gemm.stages * (gemm.tile_m + gemm.tile_n) * gemm.tile_k *
           dtype_bytes(gemm_operand_dtype(kernel));
}

const TemplateCost cost_gemms = {.shared_bytes = shared_bytes,
                                 .count = count,
                                 .load = load,
                                 .use = use,
                                 .compute = compute,
                                 .exposed_us = exposed_us};
