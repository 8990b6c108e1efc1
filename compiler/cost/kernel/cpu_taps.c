/* The cost of GEMMs of one row or column and a short k, on a CPU. See template.h. */
#include "cost/kernel/loops.h"
#include "cost/count/prims.h"
#include "machine/tuning.h"
#include "template/cpu_taps.h"

static void count(const Coster *c, Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    uint32_t axis = kernel_lane_axis(kernel, sched), last = kernel->stages.n;
    const double *shares = footprint_shares(c->arena, kernel, last, footprint_no_step, c->values);
    CpuTapsSteps steps = cpu_taps_steps(c->arena, kernel, axis, sched->lanes);
    CpuTapsAccesses accesses = cpu_taps_accesses(c->arena, kernel, axis, sched->lanes);
    double extent = footprint_points(kernel, 1u << axis, c->values);
    double rows = extent > 0 ? p->rows / extent : 0;
    double taps = p->reduced * (COST_TAP_CLOCKS + COST_TAP_ACCESS_CLOCKS * accesses.tap);
    double step = COST_TAPS_STEP_CLOCKS + COST_TAP_ACCESS_CLOCKS * accesses.rest + taps;
    p->cost->n_flops = 2 * p->rows * p->reduced;
    p->cost->n_prims += c->card->lanes * rows * cpu_taps_time(steps, extent, sched->lanes) * step;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        if (live[last][id])
            p->cost->n_prims +=
                p->rows * shares[id] * scalar_prims(c->card, kernel, id, sched->lanes);
}

const TemplateCost cost_cpu_taps = {.base = &cost_loops, .count = count};
