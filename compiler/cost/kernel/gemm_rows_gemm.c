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
    if (c->launch->online_softmax.weight || c->launch->n < GEMM_ROWS_GEMM_KERNELS) return 1;
    return kernel_of(c, GEMM_ROWS_GEMM_ROWS)->stages.n;
}

/* The share of tiles that a gemm-rows-gemm launch processes. It is less than 1 if a causal mask
 * excludes some and the online-softmax rewrite skips them. With few blocks, the one that processes
 * all tiles ends last. */
static double seen_share(const Coster *c, const Pricing *p, uint32_t n_blocks) {
    const Kernel *scores = kernel_of(c, GEMM_ROWS_GEMM_SCORES);
    const OnlineSoftmax *online_softmax = &c->launch->online_softmax;
    if (!online_softmax->weight || !online_softmax->is_limited) return 1;
    double m = cost_number(c, kernel_axis_extent(scores, gemm_axis_m(scores)));
    double n = cost_number(c, kernel_axis_extent(scores, gemm_axis_n(scores)));
    double ahead = cost_number(c, online_softmax->ahead);
    double seen = m / 2 + ahead + scores->variants[0].sched.gemm.tile_n / 2.0; /* tiles of one row,
                                                                                * of n */
    double share = n > 0 ? fmin(1, fmax(0, seen / n)) : 1;
    double at_once = (double)c->card->n_processors * n_blocks;
    return p->n_beside > 0 ? fmax(share, fmin(1, at_once / p->n_beside)) : share;
}

/* The instructions of rewritten rows. */
static void count_online(const Coster *c, Pricing *p) {
    const Kernel *kernel = p->kernel;
    ScalarId root = c->launch->online_softmax.weight;
    const bool *needed = kernel_needed_scalars(c->arena, kernel, &root, 1);
    double each = COST_ONLINE_PRIMS;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        if (needed[id]) each += scalar_prims(c->card, kernel, id, 0);
    p->cost->n_prims = p->rows * p->reduced * each;
}

void cost_gemm_rows_gemm_time(const Coster *c, Pricing *p, uint32_t n_blocks) {
    KernelCost *cost = p->cost;
    const Sched *sched = &kernel_of(c, GEMM_ROWS_GEMM_SCORES)->variants[0].sched;
    double busy = engine_info(sched_engine(sched))->uses_warp_groups
                      ? fmax(cost->arithmetic_us, cost->tensor_us)
                      : cost->arithmetic_us + cost->tensor_us;
    busy += cost->spill_us;
    cost->us = cost->launch_us + fmax(cost->memory_us, busy * seen_share(c, p, n_blocks));
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
}

/* The costs of the launch's three kernels: two GEMMs by `mma.sync`, and the row kernel, whose
 * values the GEMMs' threads hold. */

static void count_rows(const Coster *c, Pricing *p, bool *const *live) {
    if (c->launch->online_softmax.weight)
        count_online(c, p);
    else
        cost_loops.count(c, p, live);
}

static const TemplateCost rows = {.base = &cost_gpu_row, .count = count_rows};
const TemplateCost cost_gpu_gemm_rows_gemm_wgmma = {
    .base = &cost_gpu_gemm_wgmma, .rows = &rows, .compute = compute_wgmma};
static void count_weights(const Coster *c, Pricing *p, bool *const *live) {
    cost_gemms.count(c, p, live);
    double columns = cost_number(c, kernel_axis_extent(p->kernel, gemm_axis_n(p->kernel)));
    p->cost->n_prims += columns > 0 ? p->rows * p->reduced / columns * COST_WEIGH_PRIMS : 0;
}

const TemplateCost cost_gpu_online_wgmma = {
    .base = &cost_gpu_gemm_wgmma, .count = count_weights, .compute = compute_wgmma};
const TemplateCost cost_gpu_gemm_rows_gemm = {.base = &cost_gpu_gemm_mma, .rows = &rows};
