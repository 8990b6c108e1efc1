/* Advice for launches that could start together, and the price of `fuse must` blocks, by compiling
 * the changed graph. See advice.h. */
#include "explain/advice.h"
#include "plan/launch.h"

#include "explain/must_check.h"

/* Whether one launch of the plan computes both nodes. */
static bool start_together(const Plan *plan, NodeId one, NodeId other) {
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        const Launch *launch = &plan->launches.data[i];
        if (launch_computes(plan, launch, one) && launch_computes(plan, launch, other)) return true;
    }
    return false;
}

/* Whether a new `fuse must` block may contain the node without taking it out of a block of another
 * kind. */
static bool may_insist(const Graph *graph, NodeId id) {
    return id != NODE_NONE && !graph_block(graph, id, BLOCK_KERNEL) &&
           !graph_block(graph, id, BLOCK_NEVER);
}

static void settle_pair(Arena *arena, const Plan *plan, AdviceUnits *units, AdviceTotals now,
                        AdvicePlanner *planner, const Unjoined *apart, Advice *advice) {
    const Graph *graph = plan->graph;
    Advice tried = {.steps = {{.kind = ADVICE_MUST, .reason = apart->reason}}, .n_steps = 1};
    if (apart->reason != REASON_SLOWER_LAUNCH || !may_insist(graph, apart->kernel_node) ||
        !may_insist(graph, apart->other_node))
        return;
    VecU32 ends = {0};
    advice_add_node(arena, &ends, apart->other_node);
    advice_add_node(arena, &ends, apart->kernel_node);
    if (!advice_block(arena, units, &ends, &tried.steps[0].nodes)) return;
    Plan *then = advice_try(planner, graph, &tried);
    if (!then) return;
    tried.then = planner->price(planner->user, planner->trial, then);
    if (must_n_broken(then) > must_n_broken(plan) || tried.then.n_launches >= now.n_launches ||
        !start_together(then, apart->kernel_node, apart->other_node))
        return;
    tried.is_tried = tried.is_priced = true;
    *advice = tried;
}

Advice *advice_settle_launches(Arena *arena, const Plan *plan, AdviceTotals now,
                               AdvicePlanner *planner) {
    Advice *advices = arena_array(arena, Advice, plan->unjoined.n);
    AdviceUnits *units = advice_units(arena, plan->graph);
    for (uint32_t i = 0; i < plan->unjoined.n && planner && planner->price; i++)
        settle_pair(arena, plan, units, now, planner, &plan->unjoined.data[i], &advices[i]);
    return advices;
}

VecBlockPrice advice_price_blocks(Arena *arena, const Plan *plan, AdvicePlanner *planner) {
    const Graph *graph = plan->graph;
    VecBlockPrice prices = {0};
    for (uint32_t b = 0; b < graph->fixed_kernels.n && planner->price; b++) {
        Advice free = {.steps = {{.kind = ADVICE_FREE, .reason = REASON_FIXED}}, .n_steps = 1};
        for (NodeId id = 0; id < graph->nodes.n; id++)
            if (must_block(graph, id) == b + 1) vec_push(arena, &free.steps[0].nodes, id);
        Plan *without = free.steps[0].nodes.n ? advice_try(planner, graph, &free) : NULL;
        if (!without) continue;
        AdviceTotals totals = planner->price(planner->user, planner->trial, without);
        vec_push(arena, &prices, (BlockPrice){.block = b, .without = totals});
    }
    return prices;
}
