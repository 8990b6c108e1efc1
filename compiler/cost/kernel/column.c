/* The cost of column reductions. See template.h. */
#include "cost/kernel/loops.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "template/cpu_taps.h"

#include <math.h>

static double acc_size(const Kernel *kernel, uint32_t lanes) {
    double size = 0;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        size += lanes * ((double)dtype_bytes(reduce->acc) / 4 + (reduce->is_arg ? 1 : 0));
    }
    return size;
}

/* Registers for the accumulators of a segment and of the level above, and for addresses of rows. */
static double own_registers(const Kernel *kernel, const Sched *sched) {
    int64_t rows =
        dim_hi(indextab_dims(scalartab_indices(kernel->scalars)), kernel_n_reduced(kernel));
    double size = REGS_COLUMN + 2 * acc_size(kernel, sched->lanes);
    if (rows > 1) size += REGS_COLUMN_ROWS;
    if (rows > REGS_COLUMN_FEW * (int64_t)sched->column.threads_along) size += REGS_COLUMN_LONG;
    return size;
}

static double column_registers(const ThreadUse *use) {
    return use->own + REGS_COLUMN_SHARE * use->peak + own_registers(use->kernel, use->sched);
}

static uint32_t column_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    bool shares_smem;
    return kernel_column_shared(kernel, &variant->sched, &shares_smem);
}

const TemplateCost cost_gpu_column = {
    .base = &cost_loops, .registers = column_registers, .shared_bytes = column_bytes};

const TemplateCost cost_cpu_column = {.base = &cost_loops};

static void count_rows(const Coster *c, Pricing *p, bool *const *live) {
    uint32_t axis = kernel_lane_axis(p->kernel, &p->variant->sched),
             lanes = p->variant->sched.lanes;
    double extent = footprint_points(p->kernel, 1u << axis, c->values);
    CpuTapsSteps steps = cpu_column_steps(c->arena, p->kernel, axis, lanes);
    cost_loops.count(c, p, live);
    if (extent > 0) p->cost->n_prims *= cpu_taps_time(steps, extent, lanes) / ceil(extent / lanes);
}

const TemplateCost cost_cpu_rows_in_lanes = {.base = &cost_loops, .count = count_rows};
