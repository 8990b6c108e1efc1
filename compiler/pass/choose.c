/* Greedy: kernel by kernel, the first cheaper plan is taken and the search goes on from it. See
 * choose.h. */
#include "pass/choose.h"

#include "pass/fuse.h"
#include "pass/sched.h"

enum {
    MAX_TRIES = 8,
    LONG_ROW = 4096 /* elements: shorter rows stay in registers or in a near cache */
};
static const double WORTH = 0.98; /* of the price: less than that changes the plan */

typedef struct Chooser {
    Arena *arena, *scratch;
    const Graph *graph;
    const Target *target;
    const int64_t *dims;
    Diags *diags;
    bool *apart; /* per node */
} Chooser;

static Plan *make_plan(Chooser *c) {
    FuseOptions options = {.apart = c->apart};
    Plan *plan = fuse_graph(c->arena, c->scratch, c->graph, options, c->diags);
    arena_reset(c->scratch);
    if (plan) sched_plan(c->arena, plan, c->target);
    return plan;
}

static double price(Chooser *c, const Plan *plan) {
    double us = cost_plan(c->scratch, plan, card_of_target(c->target), c->dims)->us;
    arena_reset(c->scratch);
    return us;
}

/* Several passes over rows that are read anew by each. */
static bool is_candidate(const Chooser *c, const Kernel *kernel) {
    bool is_rows = kernel->form == FORM_ROW || kernel->form == FORM_COLUMN;
    double length = dim_number(c->graph->dims, kernel_n_reduced(kernel), c->dims);
    return is_rows && kernel->stages.n > 1 && length > LONG_ROW;
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
    if (other && price(c, other) < us * WORTH) return other;
    set_apart(c, of, false);
    return NULL;
}

Plan *choose_plan(Arena *arena, Arena *scratch, const Graph *graph, const Target *target,
                  Diags *diags) {
    Chooser c = {.arena = arena,
                 .scratch = scratch,
                 .graph = graph,
                 .target = target,
                 .dims = cost_dims(arena, graph->dims, NULL),
                 .diags = diags,
                 .apart = arena_array(arena, bool, graph->nodes.n)};
    Plan *plan = make_plan(&c);
    for (uint32_t k = 0, n_tries = 0; plan && k < plan->kernels.n && n_tries < MAX_TRIES; k++) {
        if (!is_candidate(&c, &plan->kernels.data[k])) continue;
        n_tries++;
        Plan *better = improve(&c, plan, price(&c, plan), k);
        if (!better) continue;
        plan = better;
        k = UINT32_MAX; /* from the start again */
    }
    return plan;
}
