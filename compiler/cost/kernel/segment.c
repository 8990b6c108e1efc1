/* The cost of reductions of segments. See template.h. */
#include "cost/count/footprint.h"
#include "cost/kernel/loops.h"
#include "cost/kernel/template.h"
#include "machine/tuning.h"

#include <math.h>

/* The steps of the two searches of a result. */
static double search_steps(const Coster *c, const Pricing *p) {
    return 2 * ceil(log2(cost_number(c, kernel_n_reduced(p->kernel)) + 1));
}

static void count(const Coster *c, Pricing *p, bool *const *live) {
    cost_loops.count(c, p, live);
    p->cost->n_prims += p->rows * search_steps(c, p) * COST_SORT_PRIMS;
}

const bool *cost_searched_loads(const Coster *c, const Kernel *kernel) {
    if (!form_info(kernel->form)->divides || !c->card->has->blocks) return NULL;
    uint32_t n = scalar_count(kernel->scalars) + 1;
    bool *elements = arena_array(c->arena, bool, n);
    bool *searched = scalar_reached(c->arena, kernel->scalars, kernel->reduces.data[0].rhs);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) elements[kernel->reduces.data[i].value] = true;
    scalar_mark_arguments(kernel->scalars, elements);
    for (ScalarId id = 0; id < n; id++)
        searched[id] =
            searched[id] && !elements[id] && scalar_get(kernel->scalars, id)->kind == SCALAR_LOAD;
    return searched;
}

/* Loads of elements are in flight together. A search waits for each of its own. */
static void load(const Coster *c, Pricing *p, bool *const *live) {
    uint32_t n = scalar_count(p->kernel->scalars) + 1;
    const bool *searched = cost_searched_loads(c, p->kernel);
    bool *elements = arena_copy(c->arena, live[0], n * sizeof *elements);
    for (ScalarId id = 0; id < n && searched; id++) elements[id] = elements[id] && !searched[id];
    cost_steps_load(c, p, &elements, p->variant->sched.unroll);
}

static double segment_registers(const ThreadUse *use) {
    return use->own + use->peak + REGS_SEGMENT;
}

const TemplateCost cost_gpu_segment = {
    .base = &cost_loops, .registers = segment_registers, .count = count, .load = load};

/* A unit of a CPU searches once for all its results, each of which takes the elements of its
 * segment. */
static void count_on_cores(const Coster *c, Pricing *p, bool *const *live) {
    const Scalar *segment = scalar_get(p->kernel->scalars, p->kernel->reduces.data[0].arg_index);
    Pricing own = *p;
    own.reduced /= fmax(1, footprint_points(p->kernel, segment->axes, c->values));
    cost_loops.count(c, &own, live);
    double clocks = p->cost->n_blocks * search_steps(c, p) * COST_CPU_SEGMENT_STEP_CLOCKS;
    p->cost->n_prims += clocks * c->card->lanes;
}

const TemplateCost cost_cpu_segment = {.base = &cost_loops, .count = count_on_cores};
