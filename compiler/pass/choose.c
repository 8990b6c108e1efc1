/* Greedy: kernel by kernel, the first cheaper plan is taken and the search goes on from it. See
 * choose.h. */
#include "pass/choose.h"

#include "pass/cut.h"
#include "pass/fuse.h"
#include "pass/sched.h"

#include <string.h>

enum {
    MAX_TRIES = 8,
    LONG_ROW = 4096,     /* elements: shorter rows stay in registers or in a near cache */
    FEW_SCALARS = 100,   /* too few for a thread's registers */
    MANY_REGISTERS = 200 /* of values alone, of which more may be needed than there are */
};
static const double WORTH = 0.98; /* of the price: less than that changes the plan */

typedef struct Chooser {
    Arena *arena, *scratch;
    const Graph *graph;
    const Target *target;
    const int64_t *dims;
    Diags *diags;
    bool *apart; /* per node */
    Cut cut;
} Chooser;

static Plan *make_plan(Chooser *c) {
    FuseOptions options = {.pads_rows = c->target->device == DEVICE_GPU,
                           .apart = c->apart,
                           .cut = c->cut.store,
                           .again = c->cut.again,
                           .part = c->cut.part};
    Plan *plan = fuse_graph(c->arena, c->scratch, c->graph, options, c->diags);
    arena_reset(c->scratch);
    return plan;
}

/* The plan is scheduled for this alone, without layouts, which prices do not hang on. On the
 * scratch arena. */
static const PlanCost *price(Chooser *c, Plan *plan) {
    arena_reset(c->scratch);
    sched_plan(c->arena, plan, c->target);
    return cost_plan(c->scratch, plan, card_of_target(c->target), c->dims);
}

/* Several passes over rows that are read anew by each. */
static bool is_candidate(const Chooser *c, const Kernel *kernel) {
    bool is_rows = kernel->form == FORM_ROW || kernel->form == FORM_COLUMN;
    double length = dim_number(c->graph->dims, kernel_n_reduced(kernel), c->dims);
    return is_rows && !kernel->is_init && kernel->stages.n > 1 && length > LONG_ROW;
}

/* Sets the kernel's reductions apart; false when all are, or the source has fixed them. */
static bool set_apart(Chooser *c, const Kernel *kernel, bool value) {
    bool changes = false;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        NodeId node = kernel->reduces.data[i].node;
        if (graph_block(c->graph, node, BLOCK_KERNEL) || graph_block(c->graph, node, BLOCK_MUST))
            return false;
        changes = changes || c->apart[node] != value;
    }
    for (uint32_t i = 0; i < kernel->reduces.n; i++) c->apart[kernel->reduces.data[i].node] = value;
    return changes;
}

/* The same plan with one kernel's reductions apart, if that is cheaper; else NULL. */
static Plan *improve(Chooser *c, const Plan *plan, double us, uint32_t kernel) {
    const Kernel *of = &plan->kernels.data[kernel];
    if (!is_candidate(c, of) || !set_apart(c, of, true)) return NULL;
    Plan *other = make_plan(c);
    if (other && price(c, other)->us < us * WORTH) return other;
    set_apart(c, of, false);
    return NULL;
}

static Cut cut_copy(Arena *arena, const Cut *cut, uint32_t n_nodes) {
    return (Cut){.store = arena_copy(arena, cut->store, n_nodes * sizeof *cut->store),
                 .again = arena_copy(arena, cut->again, n_nodes * sizeof *cut->again),
                 .part = arena_copy(arena, cut->part, n_nodes * sizeof *cut->part)};
}

/* The same plan with a kernel cut in two that needs this many registers, by whichever aim is the
 * cheapest, if that is cheaper than the plan; else NULL. */
static Plan *cut_apart(Chooser *c, const Plan *plan, double us, uint32_t kernel,
                       uint32_t registers) {
    Cut before = c->cut, best_cut = before;
    Plan *best = NULL;
    double best_us = us * WORTH;
    for (int aim = 0; aim < CUT_AIM_COUNT; aim++) {
        c->cut = cut_copy(c->arena, &before, c->graph->nodes.n);
        arena_reset(c->scratch);
        if (!cut_kernel(c->scratch, c->graph, &plan->kernels.data[kernel],
                        card_of_target(c->target), registers, c->dims, (CutAim)aim, &c->cut))
            continue;
        Plan *other = make_plan(c);
        double other_us = other ? price(c, other)->us : 0;
        if (!other || other_us >= best_us) continue;
        best = other, best_us = other_us, best_cut = c->cut;
    }
    c->cut = best_cut;
    return best;
}

/* Whether a look at the kernel's registers is worth it. */
static bool may_spill(Chooser *c, const Kernel *kernel) {
    return c->target->device == DEVICE_GPU && !kernel->is_init &&
           scalar_count(kernel->scalars) > FEW_SCALARS &&
           pressure_live(c->scratch, kernel) > MANY_REGISTERS;
}

static Plan *improve_kernel(Chooser *c, Plan *plan, uint32_t kernel) {
    const PlanCost *cost = price(c, plan);
    double us = cost->us;
    Pressure pressure = cost->kernels[kernel].pressure;
    Plan *better =
        is_candidate(c, &plan->kernels.data[kernel]) ? improve(c, plan, us, kernel) : NULL;
    if (!better && pressure.spills) better = cut_apart(c, plan, us, kernel, pressure.registers);
    return better;
}

Plan *choose_plan(Arena *arena, Arena *scratch, const Graph *graph, const Target *target,
                  Diags *diags) {
    Chooser c = {.arena = arena,
                 .scratch = scratch,
                 .graph = graph,
                 .target = target,
                 .dims = cost_dims(arena, graph->dims, NULL),
                 .diags = diags,
                 .apart = arena_array(arena, bool, graph->nodes.n),
                 .cut = {.store = arena_array(arena, bool, graph->nodes.n),
                         .again = arena_array(arena, bool, graph->nodes.n),
                         .part = arena_array(arena, uint32_t, graph->nodes.n)}};
    Plan *plan = make_plan(&c);
    for (uint32_t k = 0, n_tries = 0; plan && k < plan->kernels.n && n_tries < MAX_TRIES; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        if (!is_candidate(&c, kernel) && !may_spill(&c, kernel)) continue;
        n_tries++;
        Plan *better = improve_kernel(&c, plan, k);
        if (!better) continue;
        plan = better;
        k = UINT32_MAX; /* from the start again */
    }
    for (uint32_t k = 0; plan && k < plan->kernels.n; k++) plan->kernels.data[k].n_variants = 0;
    arena_reset(scratch);
    return plan;
}
