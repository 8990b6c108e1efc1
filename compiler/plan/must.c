/* See must.h. */
#include "plan/must.h"

bool must_breaks(const Plan *plan, const Edge *edge) {
    if (edge->consumer == NODE_NONE || edge->verdict == EDGE_FUSED) return false;
    if (edge->reason == REASON_PREPARED) return false;
    uint32_t block = graph_block(plan->graph, edge->producer, BLOCK_MUST);
    return block && graph_block(plan->graph, edge->consumer, BLOCK_MUST) == block;
}

uint32_t must_n_broken(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->edges.n; i++) n += must_breaks(plan, &plan->edges.data[i]);
    return n;
}
