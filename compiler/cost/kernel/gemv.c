/* The cost of GEMV. See template.h. */
#include "cost/kernel/gemm.h"
#include "machine/tuning.h"

/* Registers for accumulators and for the loads of the next rounds; a pair of 16-bit elements shares
 * a register. */
static double own_registers(const Kernel *kernel, const Sched *sched) {
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t bytes = dtype_bytes(scalar_get(kernel->scalars, reduce->lhs)->dtype);
    double outputs = sched->gemv.lanes_along_k ? (double)sched->gemv.tile_m * sched->gemv.tile_n *
                                                     sched->gemv.threads_along_k / sched->threads
                                               : 1;
    double chains = sched->gemv.slots * sched->lanes, loaded = sched->unroll * bytes / 4.0 * chains;
    return chains * outputs * dtype_bytes(reduce->acc) / 4 + loaded * (outputs + 1) + REGS_GEMV;
}

static double registers(const ThreadUse *use) {
    double mainloop = own_registers(use->kernel, use->sched);
    return use->own + (mainloop > use->peak ? mainloop : use->peak);
}

/* Shared memory for the sums of passes and of groups of chains. */
static uint32_t shared_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    const GemvSched *gemv = &variant->sched.gemv;
    GemvPasses p = kernel_gemv_passes(kernel, variant);
    uint32_t n_sums = p.n_kept * p.n_partials + (p.n_groups > 1 ? p.n_groups : 0);
    return n_sums * gemv->tile_m * gemv->tile_n * dtype_bytes(kernel->reduces.data[0].acc);
}

static void load(const Coster *c, Pricing *p, bool *const *live) {
    (void)c, (void)live;
    const Sched *sched = &p->variant->sched;
    const GemvSched *gemv = &sched->gemv;
    double bytes = dtype_bytes(gemm_operand_dtype(p->kernel));
    double per_round = gemv->lanes_along_k ? (double)gemv->threads_along_k * gemv->tile_m *
                                                 gemv->tile_n / sched->threads
                                           : 1;
    p->bytes_in_flight = bytes * sched->unroll * gemv->slots * sched->lanes * per_round;
}

const TemplateCost cost_gpu_gemv = {
    .base = &cost_gemms, .registers = registers, .shared_bytes = shared_bytes, .load = load};
