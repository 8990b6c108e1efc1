/* The cost of sorts. See template.h. */
#include "cost/count/prims.h"
#include "cost/kernel/template.h"
#include "machine/tuning.h"
#include "template/sort.h"

#include <math.h>

/* Two orders of a row. */
static uint32_t sort_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
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
 * place and those of a binary search for each chunk of `span` places. */
static double n_steps(const Pricing *p, double span) {
    double steps = (SORT_RUN - 1) / 2.0;
    for (double run = SORT_RUN; run < p->reduced; run *= 2)
        steps += 1 + (log2(run) + 1) / fmin(span, 2 * run);
    return p->rows * p->reduced * steps;
}

/* A GPU's thread computes a key in each step. */
static void count(const Coster *c, Pricing *p, bool *const *live) {
    cost_loops.count(c, p, live);
    double span = ldexp(1, (int)sort_span_log2(variant_row_elems(p->kernel, p->variant)));
    p->cost->n_prims += n_steps(p, span) * (COST_SORT_PRIMS + key_prims(c, p));
}

/* A CPU's thread merges whole runs. It computes each key once. */
static void count_on_cores(const Coster *c, Pricing *p, bool *const *live) {
    cost_loops.count(c, p, live);
    bool is_wide = dtype_bytes(p->kernel->reduces.data[0].acc) > sizeof(int32_t);
    double clocks = is_wide ? COST_CPU_SORT_WIDE_CLOCKS : COST_CPU_SORT_CLOCKS;
    p->cost->n_prims += n_steps(p, INFINITY) * clocks * c->card->lanes;
}

static double sort_registers(const ThreadUse *use) {
    return use->own + use->peak + REGS_SORT;
}

const TemplateCost cost_gpu_sort = {
    .base = &cost_loops, .registers = sort_registers, .shared_bytes = sort_bytes, .count = count};

const TemplateCost cost_cpu_sort = {.base = &cost_loops, .count = count_on_cores};
