/* Blocks of the source: what fusion by its own rules takes apart of a `fuse must` block, and other
 * rules would not. See choose_state.h. */
#include "pass/choose_state.h"

#include "pass/contract.h"

/* Per block. */
static bool *broken_blocks(const Chooser *c, const Plan *plan) {
    bool *is_broken = arena_array(c->arena, bool, c->graph->fixed_kernels.n + (size_t)1);
    for (uint32_t i = 0; i < plan->edges.n; i++)
        if (contract_breaks(plan, &plan->edges.data[i]))
            is_broken[graph_block(c->graph, plan->edges.data[i].producer, BLOCK_MUST)] = true;
    return is_broken;
}

/* Whether who is not in the value's block reads it. */
static bool ends_block(const Chooser *c, NodeId id, uint32_t block) {
    for (uint32_t i = 0; i < c->users[id].n; i++)
        if (graph_block(c->graph, c->users[id].data[i], BLOCK_MUST) != block) return true;
    return false;
}

/* What a `fuse must` block makes for others may be computed where they read it, and what it rests
 * on is stored then: where that breaks the block, its results are stored instead. */
static Plan *store_results(Chooser *c, Plan *plan) {
    uint32_t n_nodes = c->graph->nodes.n, n_broken = plan ? contract_n_broken(plan) : 0;
    if (n_broken == 0) return plan;
    const bool *is_broken = broken_blocks(c, plan);
    Wishes before = c->wishes;
    c->wishes = choose_copy_wishes(c->arena, &before, n_nodes);
    c->cut.again = c->wishes.again;
    for (NodeId id = 0; id < n_nodes; id++) {
        uint32_t block = graph_block(c->graph, id, BLOCK_MUST);
        bool is_source = graph_class(c->graph, id) == CLASS_SOURCE;
        if (is_broken[block] && !is_source && ends_block(c, id, block)) c->wishes.store[id] = true;
    }
    Plan *kept = choose_make_plan(c);
    if (kept && contract_n_broken(kept) < n_broken) return kept;
    c->wishes = before;
    c->cut.again = before.again;
    return plan;
}

/* The same when launches are linked; all of them where there is no plan. */
static bool *broken_launches(const Chooser *c, const Wishes *wishes) {
    const Plan *plan = choose_plan_trial(c, c->graph, wishes, true);
    if (plan) return broken_blocks(c, plan);
    bool *is_broken = arena_array(c->arena, bool, c->graph->fixed_kernels.n + (size_t)1);
    for (uint32_t b = 0; b <= c->graph->fixed_kernels.n; b++) is_broken[b] = true;
    return is_broken;
}

/* Of these blocks, what their matmuls have as left factors; false: there is none. */
static bool pass_left_factors(const Chooser *c, const bool *blocks, Wishes *wishes) {
    const Graph *graph = c->graph;
    bool any = false;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        uint32_t block = graph_block(graph, id, BLOCK_MUST);
        if (!block || !blocks[block] || !graph_is_contraction(graph, id)) continue;
        NodeId factor = graph_node(graph, id)->args[0];
        while (graph_class(graph, factor) == CLASS_VIEW)
            factor = graph_node(graph, factor)->args[0];
        if (graph_block(graph, factor, BLOCK_MUST) != block) continue;
        wishes->passed[factor] = true;
        any = true;
    }
    return any;
}

/* A factor within a block is computed in the matmul, which cannot be where it rests on reductions
 * over whole rows. Stored, it may pass on chip from one kernel of a launch to the next. */
static Plan *pass_factors(Chooser *c, Plan *plan) {
    uint32_t n_nodes = c->graph->nodes.n;
    if (!plan || c->target->device != DEVICE_GPU || contract_n_broken(plan) == 0) return plan;
    Wishes kept = choose_copy_wishes(c->arena, &c->wishes, n_nodes);
    Wishes tried = choose_copy_wishes(c->arena, &c->wishes, n_nodes);
    if (!pass_left_factors(c, broken_blocks(c, plan), &tried)) return plan;
    bool *is_mended = broken_launches(c, &c->wishes);
    tried = choose_copy_wishes(c->arena, &c->wishes, n_nodes);
    if (!pass_left_factors(c, is_mended, &tried)) return plan;
    const bool *still = broken_launches(c, &tried);
    for (uint32_t b = 0; b <= c->graph->fixed_kernels.n; b++)
        is_mended[b] = is_mended[b] && !still[b];
    if (!pass_left_factors(c, is_mended, &kept)) return plan;
    c->wishes = kept;
    c->cut.again = kept.again;
    return choose_make_plan(c);
}

Plan *choose_keep_blocks(Chooser *c, Plan *plan) {
    return pass_factors(c, store_results(c, plan));
}
