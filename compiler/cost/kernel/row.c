/* The cost of row kernels. See template.h. */
#include "cost/kernel/loops.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "cost/count/registers.h"

#include <math.h>

/* A sum reuses the registers of its terms, but the index of an arg-reduction needs its own. */
static double arg_size(const Kernel *kernel, uint32_t lanes) {
    double size = 0;
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        if (kernel->reduces.data[i].is_arg) size += REGS_ARG_SHARE * lanes;
    return size;
}

/* Registers beside the values of a step. */
static double own_registers(Arena *arena, const Kernel *kernel, const Sched *sched, bool is_least) {
    RowSched row = sched_row(sched);
    double size = (row.threads_per_row > 1 ? REGS_ROW_THREADS : 0) + arg_size(kernel, sched->lanes);
    if (!row.resident) return size + (is_least ? 0 : REGS_ROW_LOOP);
    double kept = registers_kept(arena, kernel, sched);
    if (sched->is_wide) size += row.resident; /* addresses of steps that may not exist */
    double further = row.resident - 1;
    size += kept * (further > 0 ? row.resident : REGS_ONLY_STEP_SHARE);
    if (is_least) return size;
    bool is_single = sched->lanes == 1;
    if (kept > 0) return size + (is_single ? REGS_SINGLE_SHARE : REGS_STEP_SHARE) * further;
    double once = is_single ? REGS_SINGLE_ONCE_SHARE : REGS_ONCE_SHARE;
    double loaded = registers_loaded(arena, kernel, sched);
    return size + (once + REGS_LOADED_SHARE * loaded) *
                      (is_single ? fmin(further, REGS_MOST_ONCE) : further);
}

static double row_registers(const ThreadUse *use) {
    return use->own + use->peak + own_registers(use->arena, use->kernel, use->sched, use->is_least);
}

/* Shared memory for partial results between warps, and between the blocks of a cluster. */
static uint32_t row_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    const Sched *sched = &variant->sched;
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        uint32_t own = dtype_bytes(reduce->acc) + (reduce->is_arg ? 4 : 0);
        if (sched_row(sched).threads_per_row > WARP_THREADS) bytes += WARP_THREADS * own;
        if (sched->cluster > 1) bytes += sched->cluster * own;
    }
    return bytes;
}

static void load(const Coster *c, Pricing *p, bool *const *live) {
    const Sched *sched = &p->variant->sched;
    uint32_t resident = sched_row(sched).resident;
    cost_steps_load(c, p, live, resident ? resident : sched->unroll);
    p->wait_us += COST_ROW_END_US;
}

/* Blocks of a cluster wait for one another after each pass. */
static double exposed_us(const Coster *c, const Pricing *p, double busy) {
    double exposed = cost_loops.exposed_us(c, p, busy);
    if (p->variant->sched.cluster <= 1) return exposed;
    return fmax(exposed, COST_CLUSTER_PASS_US * p->kernel->stages.n);
}

const TemplateCost cost_gpu_row = {.base = &cost_loops,
                                   .registers = row_registers,
                                   .shared_bytes = row_bytes,
                                   .load = load,
                                   .exposed_us = exposed_us};

const TemplateCost cost_cpu_row = {.base = &cost_gpu_row};
