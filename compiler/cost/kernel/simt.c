/* The cost of tiled SIMT GEMMs on a GPU. See template.h. An output is one chain along k. So the
 * time of a step of k is the longest of four: issuing its instructions, reading fragments from
 * shared memory, the latency of these reads, and the latency of the sum. Blocks on the same
 * processor share the first two. */
#include "cost/kernel/gemm.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "template/simt.h"

#include <math.h>

/* Reads of fragments of `n` elements in one step: instructions that a warp issues, and clocks of
 * shared memory. */
typedef struct Reads {
    double instructions, clocks;
} Reads;

/* A 16-byte fragment takes two clocks. */
static Reads reads_of(double n, double bytes) {
    double in_fragment = fmin(n, SIMT_FRAGMENT_BYTES / bytes), fragments = n / in_fragment;
    return (Reads){fragments, fragments * fmax(1, in_fragment * bytes / 8)};
}

/* The clocks of one step with this many blocks per processor. */
static double step_clocks(const Coster *c, const Pricing *p, double n_blocks) {
    const Sched *sched = &p->variant->sched;
    Dtype acc = p->kernel->reduces.data[0].acc;
    double bytes = dtype_bytes(acc), warps = (double)sched->gemm.warps_m * sched->gemm.warps_n;
    double lanes_m = simt_lanes_m(sched), m = sched->gemm.tile_m / (sched->gemm.warps_m * lanes_m);
    double n = sched->gemm.tile_n / (sched->gemm.warps_n * WARP_THREADS / lanes_m);
    Reads left = reads_of(m, bytes), right = reads_of(n, bytes);
    double rate = fmin(1, c->card->lanes / (PROCESSOR_SCHEDULERS * (double)WARP_THREADS));
    if (dtype_is_double(acc)) rate *= c->card->f64_rate;
    double copied = (sched->gemm.tile_m + sched->gemm.tile_n) * bytes / WORD_BYTES / WARP_THREADS;
    double own = m * n / rate + left.instructions + right.instructions;
    double busiest = ceil(n_blocks * warps / PROCESSOR_SCHEDULERS); /* warps of a scheduler */
    double started =
        busiest * own /
            (m * n >= COST_SIMT_MANY_OUTPUTS ? COST_SIMT_MANY_STARTS : COST_SIMT_STARTS) +
        n_blocks * copied / PROCESSOR_SCHEDULERS;
    double shared = n_blocks * (warps * (left.clocks + right.clocks) + copied);
    double waited = (COST_SIMT_SHARED_CLOCKS + shared / 2) / simt_rows_ahead(sched);
    double busy = fmax(fmax(started, shared), fmax(waited, COST_SIMT_CHAIN_CLOCKS));
    return busy * (sched->gemm.stages > 2 ? COST_SIMT_STREAMED : 1) +
           COST_SIMT_BARRIER_CLOCKS / sched->gemm.tile_k;
}

static double simt_us(const Coster *c, const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    if (p->n_beside <= 0) return 0;
    double steps = ceil(p->reduced / sched->gemm.tile_k) * sched->gemm.tile_k;
    double all = ceil(p->n_beside / c->card->n_processors);
    double at_once = fmin(all, fmax(1, p->cost->pressure.n_blocks));
    double rounds = floor(all / at_once), rest = all - rounds * at_once;
    double clocks = rounds * step_clocks(c, p, at_once);
    if (rest > 0) clocks += step_clocks(c, p, rest);
    double begun = (rounds + (rest > 0)) * COST_SIMT_BLOCK_LATENCIES * c->card->latency_us;
    double share = cost_number(c, p->variant->grid) / p->n_beside;
    return share * (begun + steps * clocks / (c->card->ghz * 1e3));
}

static void compute(const Coster *c, Pricing *p, double prims_per_us) {
    p->cost->arithmetic_us = p->cost->n_prims / prims_per_us;
    p->cost->arithmetic_us += fmax(simt_us(c, p), cost_gemm_least_us(c, p));
}

/* Registers for accumulators and fragments of both operands. */
static double registers(const ThreadUse *use) {
    const GemmSched *gemm = &use->sched->gemm;
    double words = dtype_bytes(use->kernel->reduces.data[0].acc) / 4.0;
    double tile = words * gemm->tile_m * gemm->tile_n / use->sched->threads;
    double sides = (double)gemm->tile_m / gemm->warps_m + (double)gemm->tile_n / gemm->warps_n;
    return cost_gemm_registers(use, tile + sides / 2 * words +
                                        (use->kernel->symbols ? REGS_FRAGMENT : REGS_FIXED));
}

static uint32_t epilogue_bytes(const Kernel *kernel, const Sched *sched) {
    return simt_subtile_bytes(sched, dtype_bytes(kernel->reduces.data[0].acc));
}

const TemplateCost cost_gpu_gemm_simt = {.base = &cost_gemms,
                                         .registers = registers,
                                         .epilogue_bytes = epilogue_bytes,
                                         .compute = compute};
