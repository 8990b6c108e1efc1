/* The cost of GEMMs by `wgmma`. See template.h. */
#include "cost/kernel/gemm.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "template/wgmma.h"

#include <math.h>

/* The time of a tile with this many columns: its steps of k, and the store of its results unless
 * store warps do it. A step is 128 bytes long, and takes the same time for any content. */
static double wgmma_tile_us(const Coster *c, const Pricing *p, uint32_t tile_n) {
    const Sched *sched = &p->variant->sched;
    double halves = dtype_bytes(gemm_operand_dtype(p->kernel)) / 2.0;
    double tile = 2.0 * sched->gemm.tile_m * tile_n * sched->gemm.tile_k * halves;
    double step = COST_WGMMA_STEP_US / wgmma_n_gemms(sched) +
                  tile * c->card->n_processors / (c->card->wgmma_tflops * 1e6);
    double epilogue = sched->gemm.store_warps ? 0 : COST_WGMMA_EPILOGUE_US * tile_n;
    if (p->variant->maps[0].im2col) step = fmax(step, wgmma_windows_us(sched->gemm.tile_m, tile_n));
    return epilogue + ceil(p->reduced / sched->gemm.tile_k) * step;
}

/* The time of all tiles. */
static double wgmma_us(const Coster *c, const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    double own = cost_number(c, p->variant->grid), all = p->n_beside, n_narrow = 0;
    if (sched->gemm.tail_n) n_narrow = own / cost_gemm_reads(c, p, 1u << gemm_axis_m(p->kernel));
    if (all <= 0) return 0;
    return wgmma_waves_us(all - n_narrow, wgmma_tile_us(c, p, sched->gemm.tile_n), n_narrow,
                          wgmma_tile_us(c, p, sched->gemm.tail_n), c->card->n_processors) *
           cost_gemm_share(c, p);
}

/* With store warps, a block's own store after the multiplication is that of its last tile only.
 * Store warps take issue slots and power from the next tile's multiplication. The block waits for
 * them if they, being fewer, take longer than that. */
static void hide_storing(const Coster *c, Pricing *p) {
    const Sched *sched = &p->variant->sched;
    double waves = fmax(1, cost_gemm_waves(c, p)), share = cost_gemm_share(c, p);
    if (share <= 0) return;
    double last =
        p->cost->arithmetic_us / (waves * share) + COST_WGMMA_EPILOGUE_US * sched->gemm.tile_n;
    double others = last * sched->gemm.warps_m / sched->gemm.store_warps;
    double wait =
        fmax(COST_GEMM_STORED_BESIDE * last, others - wgmma_tile_us(c, p, sched->gemm.tile_n));
    p->cost->arithmetic_us = share * (last + (waves - 1) * wait);
}

/* The memory time that is not hidden while blocks store results, if stores take longer than
 * multiplications. */
static double exposed_us(const Coster *c, const Pricing *p, double busy) {
    const Sched *sched = &p->variant->sched;
    if (sched->gemm.store_warps) return 0;
    double waves = cost_gemm_part_waves(c, p) * cost_gemm_share(c, p);
    double epilogue =
        COST_GEMM_EPILOGUE_SHARE * waves * COST_WGMMA_EPILOGUE_US * sched->gemm.tile_n;
    return fmax(0, fmin(epilogue, p->cost->memory_us + epilogue - busy));
}

/* On a card without a rate for wgmma, predicts `mma.sync`. */
static void compute(const Coster *c, Pricing *p, double prims_per_us) {
    bool has_mma = cost_mma_tflops(c->card, p->kernel) > 0;
    if (has_mma && c->card->wgmma_tflops > 0) {
        p->cost->arithmetic_us = p->cost->n_prims / prims_per_us;
        p->cost->tensor_us = wgmma_us(c, p);
    } else {
        cost_gpu_gemm_mma.compute(c, p, prims_per_us);
    }
    if (has_mma && p->variant->sched.gemm.store_warps) hide_storing(c, p);
}

/* Consumer warps hold a tile's accumulators. With two consumer groups, the producer gives up
 * registers, and a thread starts with its share of all registers. */
static double registers(const ThreadUse *use) {
    const Sched *sched = use->sched;
    double tile = (double)sched->gemm.tile_m * sched->gemm.tile_n * wgmma_n_gemms(sched) /
                  (sched->gemm.warps_m * WARP_THREADS);
    if (dtype_in(gemm_operand_dtype(use->kernel), DTS_STORED)) tile *= 2;
    double own = tile + REGS_FRAGMENT;
    bool is_shared_out = sched->gemm.warps_m > WGMMA_GROUP_WARPS;
    double most = PROCESSOR_REGISTERS / sched->threads / REGISTER_STEP * REGISTER_STEP - REGS_TILE;
    return cost_gemm_registers(use, own < most && !is_shared_out ? own : most);
}

const TemplateCost cost_gpu_gemm_wgmma = {
    .base = &cost_gemms, .registers = registers, .compute = compute, .exposed_us = exposed_us};
