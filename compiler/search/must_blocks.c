/* Keeps `fuse must` blocks by directives. Prices do not matter here. See search_state.h. */
#include "search/search_state.h"
#include "machine/tuning.h"

#include "plan/must.h"

#include <string.h>

/* Decides that the results of these blocks are stored. */
static void store_results_of(Searcher *c, const bool *is_broken) {
    c->decisions = decisions_copy(c->arena, c->decisions);
    for (NodeId id = 0; id < c->graph->nodes.n; id++) {
        bool is_source = graph_class(c->graph, id) == CLASS_SOURCE;
        if (is_broken[must_block(c->graph, id)] && !is_source &&
            must_leaves(c->graph, c->users, id))
            decisions_add(c->decisions, id, DIRECTIVE_STORE);
    }
}

/* The plan that stores the results of all blocks, if it keeps all blocks: then every kernel ends
 * between two of them. Otherwise the plan. This is tried even if the work for trials is spent. */
static Plan *store_all(Searcher *c, Plan *plan) {
    Decisions *before = c->decisions;
    size_t n_blocks = c->graph->fixed_kernels.n + (size_t)1;
    bool *is_any = arena_array(c->arena, bool, n_blocks);
    memset(is_any + 1, true, n_blocks - 1);
    store_results_of(c, is_any);
    Plan *kept = search_make_plan(c);
    if (kept && must_n_broken(kept) == 0) return kept;
    c->decisions = before;
    return plan;
}

/* The results of a `fuse must` block may be recomputed by their readers; then the values that this
 * needs are stored. If that breaks the block, the block's results are stored instead. In a large
 * graph, where the work for other ways is short, those of all blocks are. */
static Plan *store_results(Searcher *c, Plan *plan) {
    uint32_t n_broken = plan ? must_n_broken(plan) : 0;
    bool is_large = c->graph->nodes.n > SEARCH_LINKED_NODES / 4;
    Plan *whole = n_broken && is_large ? store_all(c, plan) : plan;
    if (n_broken == 0 || whole != plan) return whole;
    Decisions *before = c->decisions;
    store_results_of(c, must_broken_blocks(c->arena, plan));
    Plan *kept = search_make_plan(c);
    if (kept && must_n_broken(kept) < n_broken) return kept;
    c->decisions = before;
    return plan;
}

/* Whether the work for one more plan with launches is left. The first is always made. */
static bool may_link(const Searcher *c) {
    const Planning *p = c->planning;
    uint64_t n_nodes = (uint64_t)(c->linked.n + 1) * c->graph->nodes.n;
    if (p->most_work && *p->work > p->most_work) return false;
    return c->linked.n == 0 || (n_nodes <= SEARCH_LINKED_NODES && !search_is_spent(c));
}

/* The plan of a copy of the graph, with its final launches: a value that stays in shared memory or
 * registers counts as fused. The ways come back to the same decisions. NULL: there is none, or the
 * work for it is spent. */
static Plan *linked_plan(Searcher *c) {
    for (uint32_t i = 0; i < c->linked.n; i++)
        if (decisions_equal(c->linked.data[i].decisions, c->decisions))
            return c->linked.data[i].plan;
    if (!may_link(c)) return NULL;
    arena_rewind(c->scratch, c->clean);
    Linked linked = {.decisions = decisions_copy(c->arena, c->decisions)};
    linked.plan = pipeline_try(c->planning, c->arena, c->scratch, MODE_MUST,
                               graph_for_trial(c->arena, c->graph), c->decisions, PASS_LAUNCH);
    vec_push(c->arena, &c->linked, linked);
    return linked.plan;
}

/* The length of the longest chain of recomputed values that would end in this node if it were
 * recomputed too. */
static uint32_t held_depth(const Graph *graph, const Decisions *decisions, const uint32_t *depth,
                           NodeId id) {
    const Node *node = graph_node(graph, id);
    uint32_t most = 0;
    for (uint32_t i = 0; i < node->n_args; i++) {
        NodeId arg = node->args[i];
        bool is_held = decisions_ask(decisions, arg, DIRECTIVE_MUST_HOLD);
        if (is_held && must_shares(graph, arg, id) && depth[arg] > most) most = depth[arg];
    }
    return most + 1;
}

enum {
    MUST_LEAVES, /* a node outside the block reads the value, so the block may store it */
    MUST_RESTS,  /* recomputing the value needs a reduction's result that would be stored for that
                  * reason alone, although all readers of the result are in its block */
    MUST_BROKEN, /* the plan stores the value for a reader in its block */
};

static void flag_leaving(const Searcher *c, NodeFlags flags) {
    const Graph *graph = c->graph;
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        node_add(flags, graph->outputs.data[i].node, MUST_LEAVES);
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (must_leaves(graph, c->users, id)) node_add(flags, id, MUST_LEAVES);
}

/* Requires flag_leaving. */
static void flag_resting(const Graph *graph, NodeFlags flags) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        bool rests = graph_is_reduction(graph, id);
        for (uint32_t i = 0; i < node->n_args; i++) {
            NodeId arg = node->args[i];
            rests = rests || (must_shares(graph, arg, id) && !node_has(flags, arg, MUST_LEAVES) &&
                              node_has(flags, arg, MUST_RESTS));
        }
        if (rests) node_add(flags, id, MUST_RESTS);
    }
}

static void flag_broken(const Plan *plan, NodeFlags flags) {
    for (uint32_t i = 0; i < plan->edges.n; i++)
        if (must_breaks(plan, &plan->edges.data[i]))
            node_add(flags, plan->edges.data[i].producer, MUST_BROKEN);
}

/* Marks values for recomputation whose edges break a block. Returns false if there are no more. */
static bool hold_more(const Searcher *c, const Plan *plan) {
    uint32_t n = c->graph->nodes.n;
    NodeFlags flags = node_flags_new(c->arena, n);
    uint32_t *depth = arena_array(c->arena, uint32_t, n);
    bool changes = false;
    flag_leaving(c, flags);
    flag_resting(c->graph, flags);
    flag_broken(plan, flags);
    for (NodeId id = 0; id < n; id++) {
        bool is_held = decisions_ask(c->decisions, id, DIRECTIVE_MUST_HOLD);
        bool may_hold = node_has(flags, id, MUST_BROKEN) && node_has(flags, id, MUST_LEAVES) &&
                        !node_has(flags, id, MUST_RESTS);
        if (!is_held && !may_hold) continue;
        depth[id] = held_depth(c->graph, c->decisions, depth, id);
        if (is_held || depth[id] > SEARCH_HELD_DEPTH) continue;
        changes = decisions_add(c->decisions, id, DIRECTIVE_MUST_HOLD);
    }
    return changes;
}

/* Prices then decide which values of the blocks are stored, because launches may pass the stored
 * values. */
static void loosen(const Searcher *c, const bool *is_broken) {
    for (NodeId id = 0; id < c->graph->nodes.n; id++)
        if (is_broken[must_block(c->graph, id)])
            decisions_add(c->decisions, id, DIRECTIVE_MUST_RELEASE);
}

/* Tries one or both ways for the blocks that `plan` does not keep. Blocks that the new plan does
 * not keep either get their previous directives back, so that their diagnostics stay valid. Returns
 * the resulting plan. */
static Plan *try_way(Searcher *c, Plan *plan, bool loosens, bool holds) {
    uint32_t n = c->graph->nodes.n;
    Decisions *before = c->decisions;
    c->decisions = decisions_copy(c->arena, before);
    if (loosens) loosen(c, must_broken_blocks(c->arena, plan));
    Plan *other = loosens ? linked_plan(c) : plan;
    for (int round = 0; holds && other && must_n_broken(other) && round < SEARCH_MUST_ROUNDS;
         round++)
        other = hold_more(c, other) ? linked_plan(c) : NULL;
    bool any = false;
    const bool *is_broken = other ? must_broken_blocks(c->arena, other) : NULL;
    for (NodeId id = 0; other && id < n; id++) {
        NodeBits *now = &c->decisions->directives.bits[id], old = before->directives.bits[id];
        if (is_broken[must_block(c->graph, id)]) *now = old;
        any = any || *now != old;
    }
    if (any) other = linked_plan(c);
    if (any && other && must_n_broken(other) < must_n_broken(plan)) return other;
    c->decisions = before;
    return plan;
}

Plan *search_launch_must_blocks(Searcher *c, Plan *plan) {
    Decisions *before = c->decisions;
    Plan *first = plan && must_n_broken(plan) ? linked_plan(c) : NULL, *linked = first;
    for (int way = 1; linked && must_n_broken(linked) && way < 4; way++)
        linked = try_way(c, linked, way & 1, way & 2);
    if (linked == first) return plan;
    Plan *kept = search_make_plan(c);
    if (kept) return kept;
    c->decisions = before;
    return plan;
}

Plan *search_keep_must_blocks(Searcher *c, Plan *plan) {
    return search_launch_must_blocks(c, store_results(c, plan));
}

/* Storing the results of one block moves the ends of the kernels behind it, into other blocks. */
Plan *search_store_broken_blocks(Searcher *c, Plan *plan) {
    if (!plan || must_n_broken(plan) == 0) return plan;
    Plan *linked = linked_plan(c);
    uint32_t n_broken = must_n_broken(linked ? linked : plan);
    for (int round = 0; linked && n_broken && may_link(c) && round < SEARCH_MUST_ROUNDS; round++) {
        Decisions *before = c->decisions;
        store_results_of(c, must_broken_blocks(c->arena, linked));
        Plan *kept = search_make_plan(c), *next = kept ? linked_plan(c) : NULL;
        if (!next || must_n_broken(next) >= n_broken) {
            c->decisions = before;
            break;
        }
        plan = kept;
        linked = next;
        n_broken = must_n_broken(linked);
    }
    return n_broken ? store_all(c, plan) : plan;
}
