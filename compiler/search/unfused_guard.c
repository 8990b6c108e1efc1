/* Compares whole plans with one kernel per op. Regions that are priced alone do not show all:
 * values that kernels leave in the cache for each other, and maps for which no candidate exists.
 *
 * There are three steps, each on the result of the one before: all kernels of a plan that is slower
 * somewhere get their candidates; candidates that do not pay in the whole plan are taken back; if
 * the plan is still slower somewhere, single kernels are split into their ops, then whole connected
 * components. See search_state.h. */
#include "search/search_state.h"
#include "plan/must.h"
#include "machine/tuning.h"

/* The decisions without the directives of candidates for the nodes with the mark. Directives that
 * keep `fuse must` blocks stay. */
static Decisions *without(const Searcher *c, unsigned mark) {
    const NodeBits kept = 1u << DIRECTIVE_MUST_HOLD | 1u << DIRECTIVE_MUST_RELEASE;
    Decisions *rest = decisions_copy(c->arena, c->decisions);
    for (NodeId id = 0; id < rest->directives.n; id++)
        if (node_has(c->marks, id, mark)) rest->directives.bits[id] &= kept;
    return rest;
}

/* A candidate that paid for a region alone, with inputs from memory, may not pay in the whole plan.
 * Takes it back if the plan without it is better and nowhere slower. */
static bool take_back(Searcher *c, Evaluation *now, const Prices *unfused) {
    bool any = false;
    for (uint32_t i = 0; i < c->n_taken; i++) {
        Evaluation other;
        Decisions *decisions = without(c, MARK_TAKEN + i);
        if (!search_evaluate(c, decisions, &other) || other.n_broken > now->n_broken ||
            !search_is_worth(c, now, &other, unfused) ||
            !prices_are_within(&c->points, &other.prices, &now->prices, PRICES_NO_SLOWER))
            continue;
        c->decisions = decisions;
        *now = other;
        any = true;
    }
    return any;
}

/* One kernel per op. */

static bool is_op(const Graph *graph, NodeId id) {
    return graph_class(graph, id) != CLASS_SOURCE;
}

/* Tries the plan with the nodes marked `mark` as kernels of their own. Keeps it if its excess is
 * smaller than that of the best so far, or if both have none and it is faster. */
static void try_unfused(const Searcher *c, const uint32_t *marks, uint32_t mark,
                        const Prices *unfused, Decisions **best, Evaluation *evaluation) {
    Decisions *decisions = decisions_copy(c->arena, c->decisions);
    Evaluation other;
    bool changes = false;
    for (NodeId id = 0; id < decisions->directives.n; id++)
        if (marks[id] == mark && is_op(c->graph, id))
            changes = decisions_add(decisions, id, DIRECTIVE_OWN_KERNEL) || changes;
    if (!changes || !search_evaluate(c, decisions, &other) || other.n_broken > evaluation->n_broken)
        return;
    double lost = prices_excess(&c->points, &evaluation->prices, unfused),
           left = prices_excess(&c->points, &other.prices, unfused);
    bool is_faster =
        left == 0 && lost == 0 && prices_mean(&c->points, &other.prices, &evaluation->prices) < 1;
    if (!price_is_worth(left, lost) && !is_faster) return;
    *best = decisions;
    *evaluation = other;
}

/* Splits the ops of one marked set after another, each time the set that reduces the excess most,
 * as long as the excess falls. */
static bool unfuse_sets(Searcher *c, const uint32_t *marks, uint32_t n_sets, const Prices *unfused,
                        Evaluation *now) {
    bool any = false;
    for (uint32_t n_tries = 0;
         n_tries < SEARCH_GUARD_TRIES && prices_excess(&c->points, &now->prices, unfused) > 0;) {
        Decisions *best = c->decisions;
        Evaluation evaluation = *now;
        for (uint32_t mark = 1; mark <= n_sets && n_tries < SEARCH_GUARD_TRIES; mark++, n_tries++)
            try_unfused(c, marks, mark, unfused, &best, &evaluation);
        if (best == c->decisions) break;
        c->decisions = best;
        *now = evaluation;
        any = true;
    }
    return any;
}

/* Marks the ops of each kernel of a run. An op of several kernels belongs to the first. */
static uint32_t mark_kernels(const Plan *plan, uint32_t *marks) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        bool may_unfuse = !kernel->is_init && !must_has_kernel(plan->graph, kernel);
        for (uint32_t i = 0; i < kernel->nodes.n && may_unfuse; i++)
            if (!marks[kernel->nodes.data[i]]) marks[kernel->nodes.data[i]] = k + 1;
    }
    return plan->kernels.n;
}

/* Marks connected components, over values that are no inputs. */
static uint32_t mark_components(const Graph *graph, uint32_t *marks) {
    uint32_t n = graph->nodes.n, n_sets = 0;
    for (NodeId id = 0; id < n; id++) {
        const Node *node = graph_node(graph, id);
        if (!is_op(graph, id)) continue;
        marks[id] = ++n_sets;
        for (uint32_t i = 0; i < node->n_args; i++) {
            uint32_t other = marks[node->args[i]], own = marks[id];
            for (NodeId k = 0; k <= id && other && other != own; k++)
                if (marks[k] == other) marks[k] = own;
        }
    }
    return n_sets;
}

/* If the plan is slower: splits single kernels, otherwise connected components, otherwise the whole
 * graph. */
static bool unfuse_losers(Searcher *c, const Plan *plan, const Prices *unfused, Evaluation *now) {
    uint32_t n = c->graph->nodes.n;
    if (prices_excess(&c->points, &now->prices, unfused) == 0) return false;
    uint32_t *kernels = arena_array(c->arena, uint32_t, n);
    uint32_t *components = arena_array(c->arena, uint32_t, n);
    uint32_t *whole = arena_array(c->arena, uint32_t, n);
    uint32_t n_kernels = mark_kernels(plan, kernels);
    uint32_t n_components = mark_components(c->graph, components);
    for (NodeId id = 0; id < n; id++) {
        whole[id] = kernels[id] != 0;
        components[id] = kernels[id] ? components[id] : 0;
    }
    bool any = unfuse_sets(c, kernels, n_kernels, unfused, now);
    any = unfuse_sets(c, components, n_components, unfused, now) || any;
    return unfuse_sets(c, whole, 1, unfused, now) || any;
}

Plan *search_guard_unfused(Searcher *c, Plan *plan) {
    Prices unfused;
    Evaluation now;
    bool has_cores = c->planning->target->has->cores;
    bool is_large = c->graph->nodes.n > (has_cores ? SEARCH_CPU_GUARD_NODES : SEARCH_GUARD_NODES);
    if (!plan || is_large || !search_evaluate(c, c->decisions, &now)) return plan;
    arena_rewind(c->scratch, c->clean);
    if (!prices_of_unfused(c->planning, c->arena, c->scratch, c->graph, &c->points, &unfused))
        return plan;
    if (prices_excess(&c->points, &now.prices, &unfused) > 0) {
        c->asks_all = true;
        plan = search_try_candidates(c, plan);
        if (!plan || !search_evaluate(c, c->decisions, &now)) return plan;
    } else if (take_back(c, &now, &unfused)) {
        plan = search_make_plan(c);
    }
    return plan && unfuse_losers(c, plan, &unfused, &now) ? search_make_plan(c) : plan;
}
