/* The cost of sorts. See template.h. */
#include "cost/kernel/template.h"
#include "machine/tuning.h"

#include <math.h>

/* Two orders of a row. */
static uint32_t sort_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    int64_t most = variant_row_elems(kernel, variant);
    return most <= SORT_LOCAL ? (uint32_t)most * 2 * (uint32_t)sizeof(int32_t) : 0;
}

/* Each level has one step more of search than the one before. */
static void count(const Coster *c, Pricing *p, bool *const *live) {
    double levels = ceil(log2(fmax(p->reduced, 1)));
    cost_loops.count(c, p, live);
    p->cost->n_prims += p->rows * p->reduced * levels * (levels + 1) / 2 * COST_SORT_PRIMS;
}

static double sort_registers(const ThreadUse *use) {
    return use->own + use->peak + REGS_SORT;
}

const TemplateCost cost_gpu_sort = {
    .base = &cost_loops, .registers = sort_registers, .shared_bytes = sort_bytes, .count = count};

const TemplateCost cost_cpu_sort = {.base = &cost_loops, .count = count};
