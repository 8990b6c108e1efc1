/* See gemm.h. */
#include "cost/kernel/gemm.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "cost/kernel/gemm_rows.h"
#include "cost/kernel/gemm_rows_gemm.h"
#include "cost/kernel/mma.h"
#include "cost/kernel/prims.h"
#include "cost/kernel/simt.h"
#include "template/wgmma.h"

#include <math.h>

/* Once per tile of the other side. A block of a gemm-rows-gemm launch has its lhs's tile
 * throughout. */
double cost_gemm_reads(const Coster *c, const Pricing *p, uint32_t axes) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    uint32_t m = gemm_axis_m(kernel), n = gemm_axis_n(kernel);
    bool is_kept = cost_is_gemm_rows_gemm(c) && !(axes >> n & 1);
    if (is_kept) return 1;
    if (!(axes >> n & 1))
        return ceil(footprint_points(kernel, 1u << n, c->values) / sched_tile(sched).n);
    double passes = cost_gemm_rows_gemm_passes(c, kernel);
    if (!(axes >> m & 1))
        return passes * ceil(footprint_points(kernel, 1u << m, c->values) / sched_tile(sched).m) /
               (sched->cluster > 1 ? sched->cluster : 1);
    return passes;
}

bool cost_gemm_has_tiles(const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    return p->kernel->form == FORM_GEMM && sched_tile(sched).k > 0;
}

/* The columns that all blocks work on at once, of as many rows as a group has: bytes of the right
 * operand. */
static double bytes_at_once(const Coster *c, const Pricing *p, double columns) {
    const Sched *sched = &p->variant->sched;
    double at_once = c->card->n_processors * p->cost->pressure.n_blocks / GEMM_GROUP_ROWS;
    return fmin(columns, at_once) * sched->gemm.tile_n * wgmma_products(sched) * p->reduced *
           dtype_bytes(gemm_operand_dtype(p->kernel));
}

/* The lhs comes once, if the cache keeps a group's rows beside the columns at work, else
 * once for each wave of the group; the right one once for each group, if it is too large to stay
 * from one to the next. Blocks that drift apart where k is long and waves are many read more:
 * 16384^3 twice as much. */
double cost_gemm_dram_reads(const Coster *c, const Pricing *p, uint32_t axes, double bytes) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    uint32_t m = gemm_axis_m(kernel), n = gemm_axis_n(kernel), batch = (1u << m) - 1;
    uint32_t side = axes & (1u << m | 1u << n);
    if (!c->card->has->blocks || cost_is_gemm_rows_gemm(c)) return 1;
    if (side != 1u << m && side != 1u << n) return 1;
    double room = COST_GEMM_READ_SHARE * c->card->cache_bytes;
    double rows = ceil(footprint_points(kernel, 1u << m, c->values) / sched_tile(sched).m);
    double columns = ceil(footprint_points(kernel, 1u << n, c->values) / sched_tile(sched).n);
    double own = bytes / fmax(1, footprint_points(kernel, axes & batch, c->values));
    double groups = ceil(rows / GEMM_GROUP_ROWS);
    if (side == 1u << n) return own <= room ? 1 : fmax(1, groups);
    double group = own / fmax(1, groups);
    double waves = fmin(rows, GEMM_GROUP_ROWS) * columns /
                   (c->card->n_processors * fmax(1, p->cost->pressure.n_blocks));
    return group + bytes_at_once(c, p, columns) <= room ? 1 : fmax(1, waves);
}

void cost_gemm_count(const Coster *c, Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    const double *shares = footprint_shares(c->arena, kernel, kernel->stages.n, c->values);
    double passes = cost_gemm_rows_gemm_passes(c, kernel);
    p->cost->n_flops = 2 * p->rows * p->reduced * passes;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        if (live[kernel->stages.n][id])
            p->cost->n_prims += passes * p->rows * shares[id] * scalar_prims(c->card, kernel, id);
        bool is_fetched =
            template_info(p->variant->sched.template)->uses_copy_engine; /* by the copy engine */
        if (!live[0][id] || is_fetched || scalar_get(kernel->scalars, id)->kind == SCALAR_LOAD)
            continue;
        uint32_t axes = scalar_get(kernel->scalars, id)->axes;
        double points = footprint_points(kernel, axes, c->values);
        if (cost_gemm_has_tiles(p)) points *= cost_gemm_reads(c, p, axes);
        p->cost->n_prims += points * scalar_prims(c->card, kernel, id);
    }
}

double cost_gemm_bytes_in_flight(const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    double bytes = dtype_bytes(gemm_operand_dtype(p->kernel));
    if (sched_engine(sched) == GEMM_GEMV) {
        const GemvSched *gemv = &sched->gemv;
        double per_round = gemv->lanes_along_k ? (double)gemv->threads_along_k * gemv->tile_m *
                                                     gemv->tile_n / sched->threads
                                               : 1;
        return bytes * sched->unroll * gemv->slots * sched->lanes * per_round;
    }
    GemmTile tile = sched_tile(sched);
    uint32_t stages = sched_gemm(sched).stages;
    return bytes * (stages > 1 ? stages - 1 : 1) * tile.k * (tile.m + tile.n) / sched->threads;
}

static double mma_tflops(const Card *card, const Kernel *kernel) {
    Dtype dtype = gemm_operand_dtype(kernel);
    return card->mma_tflops[dtype == DT_F64 ? 2 : dtype == DT_F32 ? 1 : 0];
}

double cost_gemm_peak(const Card *card, const Kernel *kernel, GemmEngine engine) {
    Dtype dtype = gemm_operand_dtype(kernel);
    if (engine == GEMM_WGMMA && card->wgmma_tflops > 0)
        return card->wgmma_tflops * 2 / dtype_bytes(dtype);
    if (engine == GEMM_MMA || engine == GEMM_WGMMA) return mma_tflops(card, kernel);
    double lanes = card->lanes * (dtype == DT_F64 ? card->f64_rate : 1);
    return 2e-3 * card->n_processors * card->ghz * lanes;
}

/* How busy processors are that have most blocks, and work last, were each with `wanted` warps. */
static double use_of_busy(const Coster *c, const Pricing *p, double wanted) {
    if (!c->card->has->blocks) return 1;
    double most = ceil(p->n_beside / c->card->n_processors);
    double at_once = fmin(fmax(1, most), p->cost->pressure.n_blocks);
    return fmin(1, at_once * p->variant->sched.threads / WARP_THREADS / wanted);
}

/* The last round of blocks may leave processors idle. */
static double balance(const Coster *c, const Pricing *p) {
    if (!c->card->has->blocks) return cost_use(c, p, 1);
    double rounds = p->n_beside / c->card->n_processors;
    return rounds > 0 ? rounds / ceil(rounds) : 1;
}

double cost_gemm_use(const Coster *c, const Pricing *p, double wanted) {
    return sqrt(use_of_busy(c, p, wanted)) * balance(c, p);
}

/* A tile of so many columns: its steps of k, and the storing of its results unless other warps do.
 * A step is 128 bytes long, and takes as long whatever it holds. */
static double wgmma_tile_us(const Coster *c, const Pricing *p, uint32_t tile_n) {
    const Sched *sched = &p->variant->sched;
    double halves = dtype_bytes(gemm_operand_dtype(p->kernel)) / 2.0;
    double tile = 2.0 * sched->gemm.tile_m * tile_n * sched->gemm.tile_k * halves;
    double step = COST_WGMMA_STEP_US / wgmma_products(sched) +
                  tile * c->card->n_processors / (c->card->wgmma_tflops * 1e6);
    double epilogue = sched->gemm.store_warps ? 0 : COST_WGMMA_EPILOGUE_US * tile_n;
    if (p->variant->maps[0].im2col) step = fmax(step, wgmma_windows_us(sched->gemm.tile_m, tile_n));
    return epilogue + ceil(p->reduced / sched->gemm.tile_k) * step;
}

/* The part's, of the tiles of all parts. */
static double share_of_launch(const Coster *c, const Pricing *p) {
    return p->n_beside > 0 ? cost_number(c, p->variant->grid) / p->n_beside : 0;
}

/* All tiles. */
static double wgmma_us(const Coster *c, const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    double own = cost_number(c, p->variant->grid), all = p->n_beside, n_narrow = 0;
    if (sched->gemm.tail_n) n_narrow = own / cost_gemm_reads(c, p, 1u << gemm_axis_m(p->kernel));
    if (all <= 0) return 0;
    return wgmma_waves_us(all - n_narrow, wgmma_tile_us(c, p, sched->gemm.tile_n), n_narrow,
                          wgmma_tile_us(c, p, sched->gemm.tail_n), c->card->n_processors) *
           share_of_launch(c, p);
}

/* How many tiles each block has, the last wave being whole or not. */
static double part_waves(const Coster *c, const Pricing *p) {
    return p->n_beside / ((double)c->card->n_processors * p->cost->pressure.n_blocks);
}

static double n_waves(const Coster *c, const Pricing *p) {
    return ceil(part_waves(c, p));
}

/* Where other warps store, a block stores nothing but its last tile after it has multiplied. The
 * others take slots and power of the next tile's multiplication; and it waits for those warps where
 * they, being fewer, take longer than that. */
static void hide_storing(const Coster *c, Pricing *p) {
    const Sched *sched = &p->variant->sched;
    double waves = fmax(1, n_waves(c, p)), share = share_of_launch(c, p);
    if (share <= 0) return;
    double last =
        p->cost->arithmetic_us / (waves * share) + COST_WGMMA_EPILOGUE_US * sched->gemm.tile_n;
    double others = last * sched->gemm.warps_m / sched->gemm.store_warps;
    double wait =
        fmax(COST_GEMM_STORED_BESIDE * last, others - wgmma_tile_us(c, p, sched->gemm.tile_n));
    p->cost->arithmetic_us = share * (last + (waves - 1) * wait);
}

double cost_gemm_bared_us(const Coster *c, const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    if (!template_info(sched->template)->uses_copy_engine || sched->gemm.store_warps) return 0;
    double waves = part_waves(c, p) * share_of_launch(c, p);
    double epilogue =
        COST_GEMM_EPILOGUE_SHARE * waves * COST_WGMMA_EPILOGUE_US * sched->gemm.tile_n;
    double busy = p->cost->arithmetic_us + p->cost->tensor_us + p->cost->spill_us;
    return fmax(0, fmin(epilogue, p->cost->memory_us + epilogue - busy));
}

/* Of a product that rows follow. */
static double least_us(const Coster *c, const Pricing *p) {
    const Kernel *next = p->kernel + 1, *end = launch_kernel(c->plan, c->launch, c->launch->n);
    if (next >= end || !cost_is_row_phase(c, next) || !c->card->has->blocks) return 0;
    return cost_rows_product_us(&p->variant->sched, n_waves(c, p), p->reduced,
                                dtype_bytes(gemm_operand_dtype(p->kernel)));
}

/* The launch's blocks wait side by side, each at its own steps for what it fetches through
 * registers: no block takes less. How much of that others hide, of more blocks than run at once, is
 * not measured. */
static double fetch_us(const Coster *c, const Pricing *p) {
    const Variant *variant = p->variant;
    double steps = ceil(p->reduced / variant->sched.gemm.tile_k);
    return share_of_launch(c, p) * steps * cost_mma_fetch_step_us(c->arena, p->kernel, variant);
}

/* False: the card has none, or the kernel does not use them. */
static bool time_tensor_cores(const Coster *c, Pricing *p) {
    KernelCost *cost = p->cost;
    GemmEngine engine = sched_engine(&p->variant->sched);
    double rate = mma_tflops(c->card, p->kernel) * 1e6;
    if ((engine != GEMM_MMA && engine != GEMM_WGMMA) || rate <= 0) return false;
    double use = sqrt(use_of_busy(c, p, COST_BUSY_MMA_WARPS));
    if (engine == GEMM_WGMMA && c->card->wgmma_tflops > 0)
        cost->tensor_us = wgmma_us(c, p);
    else
        cost->tensor_us = fmax(cost->n_flops / (rate * use * balance(c, p)),
                               fmax(least_us(c, p), fetch_us(c, p)));
    if (sched_gemm(&p->variant->sched).store_warps) hide_storing(c, p);
    return true;
}

/* The warps that multiply go over the rows, then; meanwhile the next tiles' operands come. */
static double wgmma_rows_us(const Coster *c, const Pricing *p, const Sched *sched, double prims) {
    const KernelCost *product = p->cost - 1;
    double busy = product->arithmetic_us + product->tensor_us + product->spill_us +
                  cost_rows_wgmma_us(sched, part_waves(c, p), p->reduced, prims);
    double both = fmax(busy, product->memory_us + p->cost->memory_us);
    return fmax(0, both - (product->us - product->launch_us));
}

void cost_gemm_time_rows(const Coster *c, Pricing *p) {
    if (!c->card->has->blocks) return;
    const Sched *product = &p->kernel[-1].variants[p->cost->variant].sched;
    double points = p->rows * p->reduced, prims = points > 0 ? p->cost->n_prims / points : 0;
    double least = cost_rows_us(product, part_waves(c, p), p->reduced, prims);
    p->cost->us = template_info(product->template)->uses_copy_engine
                      ? wgmma_rows_us(c, p, product, prims)
                      : fmax(p->cost->us, least);
    p->cost->us += cost_rows_begin_us(product, p->reduced);
}

double cost_gemm_plain_steps(const Pricing *p) {
    uint32_t unroll = p->variant->sched.unroll;
    return p->reduced > NAIVE_MAX_WRITTEN ? unroll * COST_NAIVE_LOOP_STEPS
                                          : unroll * fmax(1, p->reduced);
}

void cost_gemm_time(const Coster *c, Pricing *p, double prims_per_us) {
    const Kernel *kernel = p->kernel;
    KernelCost *cost = p->cost;
    if (time_tensor_cores(c, p)) return;
    if (c->card->has->blocks && sched_engine(&p->variant->sched) == GEMM_FMA) {
        cost->arithmetic_us += fmax(cost_simt_us(c, p), least_us(c, p));
        return;
    }
    if (sched_engine(&p->variant->sched) == GEMM_NAIVE) {
        cost->arithmetic_us += cost->n_flops / 2 * COST_NAIVE_PRIMS / prims_per_us;
        return;
    }
    double efficiency = COST_FMA_EFFICIENCY;
    if (kernel->reduces.data[0].acc == DT_F64) efficiency *= c->card->f64_rate;
    cost->arithmetic_us += fmax(cost->n_flops / 2 / (prims_per_us * efficiency), least_us(c, p));
}
