/* The cost of softmax and product. See template.h. */
#include "cost/count/prims.h"
#include "cost/kernel/gemm.h"
#include "cost/kernel/template.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include <math.h>

/* Each score is computed, compared, weighed and summed once for each part of the columns. */
static void count(const Coster *c, Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    double columns = footprint_points(kernel, 1u << gemm_axis_n(kernel), c->values);
    double most = c->card->has->blocks ? SCHED_ONLINE_COLUMNS : SCHED_CPU_ONLINE_COLUMNS;
    double scores = columns > 0 ? p->rows * p->reduced / columns * ceil(columns / most) : 0;
    cost_gemms.count(c, p, live);
    p->cost->n_prims += scores * COST_WEIGH_PRIMS;
}

static void compute(const Coster *c, Pricing *p, double prims_per_us) {
    (void)c;
    p->cost->arithmetic_us = p->cost->n_prims / prims_per_us;
    p->cost->arithmetic_us += p->cost->n_flops / 2 / (prims_per_us * COST_FMA_EFFICIENCY);
}

/* The sums of the warp's rows, their products, and a row's scores. */
static double registers(const ThreadUse *use) {
    double each = SCHED_ONLINE_COLUMNS / WARP_THREADS;
    double words = dtype_bytes(use->kernel->reduces.data[0].acc) / 4;
    return use->own + use->peak + words * (2 * use->sched->unroll * (each + 2) + REGS_SORT);
}

static uint32_t shared_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    uint32_t n_warps = variant->sched.threads / WARP_THREADS;
    return n_warps * variant->sched.unroll * ONLINE_BLOCK *
           dtype_bytes(kernel->reduces.data[0].acc);
}

const TemplateCost cost_gpu_online = {.base = &cost_loops,
                                      .registers = registers,
                                      .shared_bytes = shared_bytes,
                                      .count = count,
                                      .compute = compute};

const TemplateCost cost_cpu_online = {.base = &cost_loops, .count = count, .compute = compute};
