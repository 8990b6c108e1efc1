/* The cost of softmax and product. See template.h. */
#include "cost/count/prims.h"
#include "cost/count/stride.h"
#include "cost/kernel/gemm.h"
#include "cost/kernel/template.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "template/online.h"

#include <math.h>

/* Each score is computed, compared, weighed and summed once for each part of the columns. */
static void count(const Coster *c, Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    double columns = footprint_points(kernel, 1u << gemm_axis_n(kernel), c->values);
    double most = online_warp_columns(&p->variant->sched);
    double scores = columns > 0 ? p->rows * p->reduced / columns * ceil(columns / most) : 0;
    cost_gemms.count(c, p, live);
    p->cost->n_prims += scores * COST_WEIGH_PRIMS;
}

/* Whether the matmul that makes the scores is in the same launch, so that they are not in memory.
 */
static bool makes_scores(const Coster *c, const Kernel *kernel) {
    bool makes = false;
    for (uint32_t i = 0; i < kernel->args.n; i++)
        makes = makes || c->plan->buffers.data[kernel->args.data[i]].space == BUFFER_REGISTER;
    return makes;
}

/* A value is computed again for each tile of rows. */
static double value_prims(const Coster *c, const Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    double prims = cost_stride_prims(c, p, live), n_points = p->rows * p->reduced;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (live[0][id] && s->kind != SCALAR_LOAD && (s->axes >> gemm_axis_n(kernel) & 1))
            prims += n_points * scalar_prims(c->card, kernel, id, p->variant->sched.lanes);
    }
    return prims / p->variant->sched.unroll;
}

/* A CPU weighs the scores of whole blocks. */
static void count_on_cores(const Coster *c, Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    double columns = footprint_points(kernel, 1u << gemm_axis_n(kernel), c->values);
    double passes = ceil(columns / SCHED_CPU_ONLINE_COLUMNS);
    double keys = ceil(p->reduced / ONLINE_BLOCK) * ONLINE_BLOCK;
    double scores = columns > 0 ? p->rows * keys / columns * passes : 0;
    double rate = dtype_is_double(kernel->reduces.data[0].acc) ? c->card->f64_rate : 1;
    double prims = COST_CPU_WEIGH_PRIMS;
    if (!makes_scores(c, kernel)) prims += COST_CPU_WEIGH_LOAD_PRIMS;
    cost_gemms.count(c, p, live);
    p->cost->n_prims += scores * prims / rate + value_prims(c, p, live);
}

static void compute(const Coster *c, Pricing *p, double prims_per_us) {
    (void)c;
    p->cost->arithmetic_us = p->cost->n_prims / prims_per_us;
    p->cost->arithmetic_us += p->cost->n_flops / 2 / (prims_per_us * COST_FMA_EFFICIENCY);
}

/* The sums of the warp's rows, their products, and a row's scores. */
static double registers(const ThreadUse *use) {
    double each = online_warp_columns(use->sched) / WARP_THREADS;
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

const TemplateCost cost_cpu_online = {
    .base = &cost_loops, .count = count_on_cores, .compute = compute};
