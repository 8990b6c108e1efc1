/* The cost of sorts. See template.h. */
#include "cost/count/prims.h"
#include "cost/kernel/template.h"
#include "machine/tuning.h"

#include <math.h>

/* Two orders of a row. */
static uint32_t sort_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    int64_t most = variant_row_elems(kernel, variant);
    return most <= SORT_LOCAL ? (uint32_t)most * 2 * (uint32_t)sizeof(int32_t) : 0;
}

/* The primitives that compute a key from what is loaded. */
static double key_prims(const Coster *c, const Pricing *p, const bool *live) {
    double prims = 0;
    for (ScalarId id = 1; id <= scalar_count(p->kernel->scalars); id++)
        if (live[id] && scalar_get(p->kernel->scalars, id)->kind != SCALAR_LOAD)
            prims += scalar_prims(c->card, p->kernel, id, p->variant->sched.lanes);
    return prims;
}

/* Each level has one step more of search than the one before. Each step computes a key. */
static double n_steps(const Pricing *p) {
    double levels = ceil(log2(fmax(p->reduced, 1)));
    return p->rows * p->reduced * levels * (levels + 1) / 2;
}

static void count(const Coster *c, Pricing *p, bool *const *live) {
    cost_loops.count(c, p, live);
    p->cost->n_prims += n_steps(p) * (COST_SORT_PRIMS + key_prims(c, p, live[0]));
}

/* A CPU searches for one element after the other. */
static void count_on_cores(const Coster *c, Pricing *p, bool *const *live) {
    cost_loops.count(c, p, live);
    double search = COST_CPU_SEARCH_CLOCKS * c->card->lanes;
    p->cost->n_prims += n_steps(p) * (search + key_prims(c, p, live[0]));
}

static double sort_registers(const ThreadUse *use) {
    return use->own + use->peak + REGS_SORT;
}

const TemplateCost cost_gpu_sort = {
    .base = &cost_loops, .registers = sort_registers, .shared_bytes = sort_bytes, .count = count};

const TemplateCost cost_cpu_sort = {.base = &cost_loops, .count = count_on_cores};
