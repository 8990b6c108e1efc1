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
    double extent = footprint_points(kernel, 1u << axis, c->values);
    double rows = extent > 0 ? p->rows / extent : 0;
    CpuPlanes planes;
    bool has_planes = sched->cpu_taps.has_planes &&
                      cpu_planes_find(c->arena, kernel, axis, sched->lanes, &planes);
    double clocks = cpu_taps_clocks(c->arena, kernel, axis, sched->cpu_taps.walked, sched->lanes,
                                    extent, has_planes ? &planes : NULL, sched->cpu_taps.chunk);
    p->cost->n_flops = 2 * p->rows * p->reduced;
    p->cost->n_prims += c->card->lanes * rows * clocks;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        if (live[last][id])
            p->cost->n_prims +=
                p->rows * shares[id] * scalar_prims(c->card, kernel, id, sched->lanes);
}

const TemplateCost cost_cpu_taps = {.base = &cost_loops, .count = count};
