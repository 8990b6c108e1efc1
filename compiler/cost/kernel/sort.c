/* The cost of sorts. See template.h. */
#include "cost/count/prims.h"
#include "cost/kernel/template.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "template/sort.h"

#include <math.h>

/* Two orders of a row; of a selection two items for each warp. */
static uint32_t sort_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    uint32_t n_warps = variant->sched.threads / WARP_THREADS;
    if (sort_selects(kernel, false))
        return n_warps > 1 ? 2 * n_warps * (uint32_t)sizeof(int64_t) : 0;
    int64_t most = variant_row_elems(kernel, variant);
    return most <= SORT_LOCAL ? (uint32_t)most * 2 * (uint32_t)sizeof(int32_t) : 0;
}

/* The primitives that compute a key from what is loaded. */
static double key_prims(const Coster *c, const Pricing *p) {
    ScalarId key = p->kernel->reduces.data[0].value;
    const bool *needed = kernel_needed_scalars(c->arena, p->kernel, &key, 1);
    double prims = 0;
    for (ScalarId id = 1; id <= scalar_count(p->kernel->scalars); id++)
        if (needed[id] && scalar_get(p->kernel->scalars, id)->kind != SCALAR_LOAD)
            prims += scalar_prims(c->card, p->kernel, id, p->variant->sched.lanes);
    return prims;
}

/* Comparisons of all rows: in the network that makes the first runs, and in each level one for each
 * place and those of a binary search for each chunk of `span` places. Runs of as many places as are
 * kept do not grow, so half of the places are left. */
static double n_steps(const Pricing *p, double span) {
    double steps = (SORT_RUN - 1) / 2.0, places = 1;
    double kept = ldexp(1, (int)sort_kept_log2(p->kernel));
    for (double run = SORT_RUN; run < p->reduced; run *= 2) {
        if (run >= kept) places /= 2;
        steps += places * (1 + (log2(fmin(run, kept)) + 1) / fmin(span, 2 * run));
    }
    return p->rows * p->reduced * steps;
}

/* Elements that a walk along a row in random order inserts among the first `kept`. */
static double n_inserts(const Pricing *p) {
    double kept = (double)sort_kept(p->kernel);
    return p->reduced > kept ? kept * (1 + log(p->reduced / kept)) : p->reduced;
}

/* A GPU's thread computes a key in each step. */
static void count(const Coster *c, Pricing *p, bool *const *live) {
    cost_loops.count(c, p, live);
    if (sort_selects(p->kernel, false)) {
        double threads = p->variant->sched.threads, rounds = (double)sort_kept(p->kernel);
        double steps = p->reduced * COST_SELECT_PRIMS + threads * COST_SELECT_ROUND_PRIMS;
        p->cost->n_prims += p->rows * rounds * steps;
        return;
    }
    double span = ldexp(1, (int)sort_span_log2(variant_row_elems(p->kernel, p->variant)));
    p->cost->n_prims += n_steps(p, span) * (COST_SORT_PRIMS + key_prims(c, p));
}

/* A CPU's thread merges whole runs. It computes each key once. */
static void count_on_cores(const Coster *c, Pricing *p, bool *const *live) {
    cost_loops.count(c, p, live);
    uint32_t key_bytes = dtype_bytes(p->kernel->reduces.data[0].acc);
    bool is_wide = key_bytes > sizeof(int32_t);
    if (sort_selects(p->kernel, true)) {
        double vectors = p->reduced / c->card->lanes * key_bytes / sizeof(float);
        double own = vectors * COST_CPU_SELECT_CLOCKS + n_inserts(p) * COST_CPU_INSERT_CLOCKS;
        p->cost->n_prims += p->rows * own * c->card->lanes;
        return;
    }
    double clocks = is_wide ? COST_CPU_SORT_WIDE_CLOCKS : COST_CPU_SORT_CLOCKS;
    p->cost->n_prims += n_steps(p, INFINITY) * clocks * c->card->lanes;
}

static double sort_registers(const ThreadUse *use) {
    return use->own + use->peak + REGS_SORT;
}

/* A row has one block, and a processor without a block is idle. */
static double use(const Coster *c, const Pricing *p, double wanted) {
    double n_processors = c->card->n_processors;
    double at_once = fmin(p->n_beside, n_processors * p->cost->pressure.n_blocks);
    double busy = fmin(at_once, n_processors);
    double warps = at_once * p->variant->sched.threads / WARP_THREADS / busy;
    return busy / n_processors * fmin(1, warps / wanted);
}

/* A long row is read in many levels, and is in the cache after the first. */
static double exposed_us(const Coster *c, const Pricing *p, double busy) {
    bool is_long = variant_row_elems(p->kernel, p->variant) > SORT_LOCAL;
    return is_long && !sort_selects(p->kernel, false) ? 0 : cost_loops.exposed_us(c, p, busy);
}

const TemplateCost cost_gpu_sort = {.base = &cost_loops,
                                    .registers = sort_registers,
                                    .shared_bytes = sort_bytes,
                                    .count = count,
                                    .use = use,
                                    .exposed_us = exposed_us};

const TemplateCost cost_cpu_sort = {.base = &cost_loops, .count = count_on_cores};
