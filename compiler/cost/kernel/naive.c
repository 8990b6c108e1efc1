/* The cost of naive GEMMs, one output per thread. See template.h. */
#include "cost/kernel/loops.h"
#include "machine/tuning.h"

#include <math.h>

/* A short k is unrolled, with all loads first. */
static void load(const Coster *c, Pricing *p, bool *const *live) {
    uint32_t unroll = p->variant->sched.unroll;
    cost_steps_load(c, p, live,
                    p->reduced > SCHED_NAIVE_STEPS ? unroll * COST_NAIVE_LOOP_STEPS
                                                   : unroll * fmax(1, p->reduced));
}

static void compute(const Coster *c, Pricing *p, double prims_per_us) {
    (void)c;
    KernelCost *cost = p->cost;
    cost->arithmetic_us = cost->n_prims / prims_per_us;
    cost->arithmetic_us += cost->n_flops / 2 * COST_NAIVE_PRIMS / prims_per_us;
}

const TemplateCost cost_gpu_gemm_naive = {.base = &cost_gemms, .load = load, .compute = compute};
