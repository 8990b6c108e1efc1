/* See gemm_rows_gemm.h. A processor has eight warps, whose tensor-core work and arithmetic hardly
 * overlap. So the time of a gemm-rows-gemm launch is the sum of its kernels' times; measured times
 * are 0.8 to 1.1 of that. */
#include "cost/kernel/gemm_rows_gemm.h"
#include "machine/tuning.h"

#include "cost/count/prims.h"
#include "cost/kernel/gemm.h"
#include "cost/kernel/template.h"
#include "template/gemm_rows_gemm.h"

#include <math.h>

bool cost_is_gemm_rows_gemm(const Coster *c) {
    switch (c->launch->mode) {
    case LAUNCH_SINGLE:
    case LAUNCH_PARALLEL:
    case LAUNCH_SEQUENCE:
    case LAUNCH_ONE_BLOCK:
        return false;
    case LAUNCH_GEMM_ROWS_GEMM:
    case LAUNCH_GEMM_ONLINE:
        return true;
    }
    return false;
}

static const Kernel *kernel_of(const Coster *c, uint32_t k) {
    return launch_kernel(c->plan, c->launch, k);
}

double cost_gemm_rows_gemm_passes(const Coster *c, const Kernel *kernel) {
    if (!cost_is_gemm_rows_gemm(c) || kernel != kernel_of(c, GEMM_ROWS_GEMM_SCORES)) return 1;
    if (c->launch->n < GEMM_ROWS_GEMM_KERNELS || !c->card->has->blocks) return 1;
    return kernel_of(c, GEMM_ROWS_GEMM_ROWS)->stages.n;
}

void cost_gemm_rows_gemm_time(const Coster *c, Pricing *p) {
    KernelCost *cost = p->cost;
    const Sched *sched = &kernel_of(c, GEMM_ROWS_GEMM_SCORES)->variants[0].sched;
    double busy = engine_info(sched_engine(sched))->uses_warp_groups
                      ? fmax(cost->arithmetic_us, cost->tensor_us)
                      : cost->arithmetic_us + cost->tensor_us;
    busy += cost->spill_us;
    cost->us = cost->launch_us + fmax(cost->memory_us, busy);
}

/* The time of tiles that the copy engine cannot fetch. One warp group of a block computes their
 * elements, and waits for each round of loads. A block has a tile of the scores' lhs, and one tile
 * of the rhs after the other. */
static double element_tiles_us(const Coster *c, const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    bool are_scores = !form_info(p->kernel->form)->weighs;
    double rows = footprint_points(p->kernel, 1u << gemm_axis_n(p->kernel), c->values);
    double extent = are_scores ? rows : p->reduced;
    double n = extent * (are_scores ? sched->gemm.tile_k : sched->gemm.tile_n);
    if (are_scores) n += (double)sched->gemm.tile_m * sched->gemm.tile_k;
    double waves = ceil(cost_number(c, p->variant->grid) / c->card->n_processors);
    return waves * ceil(n / WGMMA_GROUP_THREADS) * COST_WGMMA_ROUND_US;
}

/* By `wgmma`, a consumer's arithmetic overlaps with the other consumer's multiplications. */
static void compute_wgmma(const Coster *c, Pricing *p, double prims_per_us) {
    double rate = c->card->wgmma_tflops * 1e6;
    if (rate <= 0) {
        cost_gpu_gemm_mma.compute(c, p, prims_per_us);
        return;
    }
    p->cost->arithmetic_us = p->cost->n_prims / prims_per_us;
    p->cost->tensor_us = p->cost->n_flops / (rate * cost_gemm_balance(c, p));
    if (!p->variant->n_maps) p->cost->tensor_us = fmax(p->cost->tensor_us, element_tiles_us(c, p));
}

static void count_weights(const Coster *c, Pricing *p, bool *const *live) {
    cost_gemms.count(c, p, live);
    double columns = cost_number(c, kernel_axis_extent(p->kernel, gemm_axis_n(p->kernel)));
    p->cost->n_prims += columns > 0 ? p->rows * p->reduced / columns * COST_WEIGH_PRIMS : 0;
}

/* Of a thread that multiplies: the scores of its tile and their weights of 16 bits, two to a
 * register. */
static double score_registers(const Sched *sched) {
    double n_threads = sched->gemm.warps_m * WARP_THREADS;
    return 1.5 * sched->gemm.tile_m * sched->gemm.tile_k / n_threads;
}

static double mma_registers(const ThreadUse *use) {
    return cost_gpu_gemm_mma.registers(use) + score_registers(use->sched);
}

/* Several consumers divide the registers of a processor. */
static double wgmma_registers(const ThreadUse *use) {
    double own = cost_gpu_gemm_wgmma.registers(use);
    uint32_t n = use->sched->gemm.warps_m / WGMMA_GROUP_WARPS;
    if (n > 1) return own;
    double most = online_registers(use->sched->min_blocks, n, ONLINE_COPYING_REGISTERS).at_first;
    return fmin(own + score_registers(use->sched), fmin(most, MAX_THREAD_REGISTERS));
}

const TemplateCost cost_gpu_online_wgmma = {.base = &cost_gpu_gemm_wgmma,
                                            .registers = wgmma_registers,
                                            .count = count_weights,
                                            .compute = compute_wgmma};
const TemplateCost cost_gpu_online_mma = {
    .base = &cost_gpu_gemm_mma, .registers = mma_registers, .count = count_weights};
const TemplateCost cost_gpu_gemm_online_mma = {.base = &cost_gpu_gemm_mma};
const TemplateCost cost_gpu_gemm_online_wgmma = {.base = &cost_gpu_gemm_wgmma,
                                                 .compute = compute_wgmma};

/* The three kernels of a launch: two GEMMs by `mma.sync`, and the row kernel, whose values the
 * GEMMs' threads hold. */
const TemplateCost cost_gpu_gemm_rows_gemm = {.base = &cost_gpu_gemm_mma, .rows = &cost_gpu_row};
