/* See contract.h. */
#include "pass/contract.h"

static const char *value_name(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    return node->name ? node->name : op_info(node->op)->name;
}

static void report(const Plan *plan, const Edge *edge, uint32_t block, Diags *diags) {
    const Graph *graph = plan->graph;
    const Node *consumer = graph_node(graph, edge->consumer);
    const ReasonInfo *reason = reason_info(edge->reason);
    diag_report(diags, DIAG_FUSE_MUST, graph->source, consumer->span,
                "`%s` is stored before `%s` reads it: %s", value_name(graph, edge->producer),
                value_name(graph, edge->consumer), reason->text);
    diag_note(diags, graph->source, graph->fixed_kernels.data[block - 1].span,
              "this block asks for one kernel");
    if (reason->advice[0]) diag_help(diags, "%s", reason->advice);
}

bool contract_check(const Plan *plan, Diags *diags) {
    bool is_kept = true;
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i];
        if (edge->consumer == NODE_NONE || edge->verdict == EDGE_FUSED) continue;
        uint32_t block = graph_block(plan->graph, edge->producer, BLOCK_MUST);
        if (!block || graph_block(plan->graph, edge->consumer, BLOCK_MUST) != block) continue;
        report(plan, edge, block, diags);
        is_kept = false;
    }
    return is_kept;
}
