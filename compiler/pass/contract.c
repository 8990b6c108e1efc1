/* See contract.h. */
#include "pass/contract.h"

static const char *value_name(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    return node->name ? node->name : op_info(node->op)->name;
}

static void report(const Plan *plan, const Edge *edge, const Advice *advice, Diags *diags) {
    const Graph *graph = plan->graph;
    const Node *consumer = graph_node(graph, edge->consumer);
    uint32_t block = graph_block(graph, edge->consumer, BLOCK_MUST);
    diag_report(diags, DIAG_FUSE_MUST, graph->source, consumer->span,
                "`%s` is stored before `%s` reads it: %s", value_name(graph, edge->producer),
                value_name(graph, edge->consumer), reason_info(edge->reason)->text);
    diag_note(diags, graph->source, graph->fixed_kernels.data[block - 1].span,
              "this block asks for one kernel");
    if (advice && advice->n_steps) diag_help(diags, "%s", advice_text(diags->arena, graph, advice));
}

bool contract_breaks(const Plan *plan, const Edge *edge) {
    if (edge->consumer == NODE_NONE || edge->verdict == EDGE_FUSED) return false;
    if (edge->reason == REASON_PREPARED) return false;
    uint32_t block = graph_block(plan->graph, edge->producer, BLOCK_MUST);
    return block && graph_block(plan->graph, edge->consumer, BLOCK_MUST) == block;
}

uint32_t contract_n_broken(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->edges.n; i++) n += contract_breaks(plan, &plan->edges.data[i]);
    return n;
}

bool contract_check(const Plan *plan, const Advice *advices, Diags *diags) {
    bool is_kept = true;
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i];
        if (!contract_breaks(plan, edge)) continue;
        report(plan, edge, advices ? &advices[i] : NULL, diags);
        is_kept = false;
    }
    return is_kept;
}
