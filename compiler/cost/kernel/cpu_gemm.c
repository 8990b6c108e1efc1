/* The cost of GEMMs on a CPU. See template.h. */
#include "cost/kernel/gemm.h"
#include "cost/count/prims.h"
#include "machine/tuning.h"
#include "template/cpu_pack.h"
#include "template/cpu_sweep.h"

#include <math.h>

/* Clocks of one packed element. */
static double pack_clocks(CpuPack pack, double lanes) {
    switch (pack.way) {
    case PACK_OWN_AXIS:
    case PACK_K:
        return COST_PACK_STEP_CLOCKS / lanes;
    case PACK_RUNS_OF_K:
        return (COST_PACK_RUN_CLOCKS + ceil(pack.run / lanes) * COST_PACK_STEP_CLOCKS) / pack.run;
    case PACK_STRIDED:
        return COST_PACK_STRIDED_CLOCKS;
    case PACK_STRIPS:
    case PACK_NONE:
        return 0;
    case PACK_SINGLES:
        break;
    }
    return COST_PACK_SINGLE_CLOCKS;
}

/* The rows of an image that a sweep packs, for each tap of a row of outputs. */
static double swept_share(const Coster *c, const Pricing *p, const CpuStrips *strips) {
    double n_outputs = p->variant->sched.cpu_gemm.more_batches + 1, n_rows = 0;
    CpuSweep sweep;
    if (!p->variant->sched.cpu_gemm.sweeps || !cpu_sweep_find(c->arena, p->kernel, strips, &sweep))
        return 1;
    for (uint32_t i = 0; i < sweep.across.n; i++) n_rows += n_outputs + sweep.across.last_shift[i];
    return n_rows / (n_outputs * (double)sweep.across.n_taps);
}

/* The clocks of strips: each tile of columns packs those of each part of a row of the image. */
static double strip_clocks(const Coster *c, const Pricing *p, const CpuStrips *strips) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    uint32_t m = gemm_axis_m(kernel), n = gemm_axis_n(kernel);
    double windows = footprint_points(kernel, 1u << m, c->values);
    double parts = ceil(windows / sched_tile(sched).m);
    double again = ceil(footprint_points(kernel, 1u << n, c->values) / sched_tile(sched).n);
    double rows = footprint_points(kernel, ((1u << m) - 1) | 1u << gemm_axis_k(kernel), c->values);
    double vectors = ceil((windows / parts + strips->reach) / sched->lanes);
    double clocks =
        COST_PACK_STRIP_CLOCKS + vectors * strips->stride * COST_PACK_STRIP_VECTOR_CLOCKS;
    if (strips->is_turned) clocks = vectors * sched->lanes * SCHED_CPU_TURNED_CLOCKS / 16;
    return again * parts * rows / (double)strips->n_taps * strips->n * clocks *
           swept_share(c, p, strips);
}

/* The primitives of the lhs that strips save: each element is computed once for all taps, and asks
 * no guard. */
static double strip_savings(const Coster *c, const Pricing *p, const CpuStrips *strips,
                            bool *const *live) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    const Reduce *reduce = &kernel->reduces.data[0];
    const bool *needed = kernel_needed_scalars(c->arena, kernel, &reduce->lhs, 1);
    double saved = 0, share = 1 - (double)strips->n / (double)strips->n_taps;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!needed[id] || !live[0][id] || s->kind == SCALAR_LOAD) continue;
        bool is_guard = s->kind == SCALAR_INSIDE || (id == reduce->lhs && strips->outside);
        double points = footprint_points(kernel, s->axes, c->values);
        if (cost_gemm_has_tiles(p)) points *= cost_gemm_reads(c, p, s->axes);
        saved += (is_guard ? 1 : share) * points * scalar_prims(c->card, kernel, id, sched->lanes);
    }
    return saved;
}

/* The clocks of an operand: every batch packs it, and each tile along the other axis packs it
 * again. */
static double operand_clocks(const Coster *c, const Pricing *p, ScalarId value, uint32_t axis) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    uint32_t m = gemm_axis_m(kernel), other = axis == m ? gemm_axis_n(kernel) : m;
    bool is_rows = (axis == m) != cpu_pack_is_transposed(sched);
    bool must = !sched->cpu_gemm.is_blocked;
    CpuPack pack = is_rows ? cpu_pack_rows(c->arena, kernel, value, axis, sched->lanes, must)
                           : cpu_pack_columns(c->arena, kernel, value, axis, sched->lanes, must);
    if (axis == m && cost_continues_sequence(c, kernel)) return 0; /* the first GEMM's */
    bool is_packed = is_rows || (sched->cpu_gemm.is_blocked && !kernel->panel_columns);
    if (!is_packed) return 0;
    double tile = other == m ? sched_tile(sched).m : sched_tile(sched).n;
    double again = ceil(footprint_points(kernel, 1u << other, c->values) / tile);
    uint32_t batch = (1u << m) - 1;
    return footprint_points(kernel, batch | 1u << axis | 1u << gemm_axis_k(kernel), c->values) *
           again * pack_clocks(pack, sched->lanes);
}

/* The clocks of register tiles, each of which is opened and closed for every block of k. */
static double tile_clocks(const Coster *c, const Pricing *p) {
    const Kernel *kernel = p->kernel;
    const CpuGemmSched *sched = &p->variant->sched.cpu_gemm;
    uint32_t m = gemm_axis_m(kernel), n = gemm_axis_n(kernel), k = gemm_axis_k(kernel);
    double batches = footprint_points(kernel, (1u << m) - 1, c->values);
    double down = ceil(footprint_points(kernel, 1u << m, c->values) / sched->register_m);
    double across = ceil(footprint_points(kernel, 1u << n, c->values) / sched->register_n);
    double along = ceil(footprint_points(kernel, 1u << k, c->values) / sched->tile_k);
    if (sched->sweeps) /* of several taps */
        across = footprint_points(kernel, 1u << n, c->values) / sched->register_n;
    return COST_CPU_TILE_CLOCKS * batches * down * across * along;
}

static void count(const Coster *c, Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    const Sched *sched = &p->variant->sched;
    uint32_t m = gemm_axis_m(kernel), n = gemm_axis_n(kernel);
    CpuStrips strips;
    bool has_strips =
        sched->cpu_gemm.has_strips && cpu_pack_has_strips(c->arena, kernel, sched->lanes, &strips);
    cost_gemms.count(c, p, live);
    double saved = has_strips ? strip_savings(c, p, &strips, live) : 0;
    double left = has_strips ? strip_clocks(c, p, &strips) : operand_clocks(c, p, reduce->lhs, m);
    p->cost->n_prims +=
        -saved + c->card->lanes * (left + operand_clocks(c, p, reduce->rhs, n) + tile_clocks(c, p));
}

/* The steps of the loop over k beside those of full lanes and rows, each of which starts a
 * multiply-add: a tile also computes what is past its edges, and a tile of one vector has more
 * loads than multiply-adds. */
static double tile_steps(const Coster *c, const Pricing *p) {
    const Kernel *kernel = p->kernel;
    const CpuGemmSched *sched = &p->variant->sched.cpu_gemm;
    double lanes = p->variant->sched.lanes, m = sched->register_m, n = sched->register_n;
    bool is_transposed = cpu_pack_is_transposed(&p->variant->sched);
    double rows = is_transposed ? n : m, vectors = (is_transposed ? m : n) / lanes;
    double down = footprint_points(kernel, 1u << gemm_axis_m(kernel), c->values);
    double across = footprint_points(kernel, 1u << gemm_axis_n(kernel), c->values);
    double computed = ceil(down / m) * m / down;
    if (!sched->sweeps) {
        vectors *= sched->more_batches + 1;
        computed *= ceil(across / n) * n / across;
    }
    return computed * fmax(1, (rows + vectors) / (rows * vectors));
}

static void compute(const Coster *c, Pricing *p, double prims_per_us) {
    double rate = COST_CPU_FMA_EFFICIENCY;
    if (dtype_is_double(p->kernel->reduces.data[0].acc)) rate *= c->card->f64_rate;
    double products = p->cost->n_flops / 2 * tile_steps(c, p);
    p->cost->arithmetic_us = (p->cost->n_prims + products / rate) / prims_per_us;
}

const TemplateCost cost_cpu_gemm = {.base = &cost_gemms, .count = count, .compute = compute};
const TemplateCost cost_cpu_gemm_online = {.base = &cost_cpu_gemm};
