/* Reports stored edges inside `fuse must` blocks. See must_check.h. */
#include "explain/must_check.h"

#include <string.h>

enum { MAX_SHOWN_BYTES = 60 }; /* the longest expression of the source that a message prints */

/* "`h`", or "`max` of `softmax(h)`": the op and its expression in the source, which may be the call
 * of a def. */
static const char *value_text(Arena *arena, const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    if (node->name) return str_format(arena, "`%s`", node->name);
    const char *op = op_info(node->op)->name;
    uint32_t n_bytes = node->span.end - node->span.begin;
    const char *text = graph->source && n_bytes ? graph->source->text + node->span.begin : NULL;
    if (!text || n_bytes > MAX_SHOWN_BYTES || memchr(text, '\n', n_bytes))
        return str_format(arena, "`%s`", op);
    return str_format(arena, "`%s` of `%.*s`", op, (int)n_bytes, text);
}

/* Whether an earlier edge gives the same message: several ops of one call read the value. */
static bool says_no_more(const Plan *plan, const Edge *edge) {
    const Node *consumer = graph_node(plan->graph, edge->consumer);
    for (const Edge *other = plan->edges.data; other < edge && consumer->span.end; other++) {
        if (other->producer != edge->producer || other->reason != edge->reason ||
            !must_breaks(plan, other))
            continue;
        const Node *reader = graph_node(plan->graph, other->consumer);
        if (reader->span.begin == consumer->span.begin && reader->span.end == consumer->span.end)
            return true;
    }
    return false;
}

/* Adds the advice to take a node out of the block, if the conflict found one. */
static void help_leave(const Graph *graph, const Conflict *conflict, Diags *diags) {
    if (conflict && conflict->left != NODE_NONE)
        diag_help(diags, "Or leave %s and the values computed from it out of the block.",
                  value_text(diags->arena, graph, conflict->left));
}

static void report(const Plan *plan, const Edge *edge, const Advice *advice,
                   const Conflict *conflict, Diags *diags) {
    const Graph *graph = plan->graph;
    const Node *consumer = graph_node(graph, edge->consumer);
    uint32_t block = must_block(graph, edge->consumer);
    const char *producer_text = value_text(diags->arena, graph, edge->producer);
    const char *consumer_text = value_text(diags->arena, graph, edge->consumer);
    diag_report(diags, DIAG_FUSE_MUST, graph->source, consumer->span,
                "%s is stored before %s reads it: %s", producer_text, consumer_text,
                reason_info(edge->reason)->text);
    diag_note(diags, graph->source, graph_node(graph, edge->producer)->span, "%s is made here",
              producer_text);
    diag_note(diags, graph->source, graph->fixed_kernels.data[block - 1].span,
              "every edge from one op of this block to another must be fused");
    if (advice && advice->n_steps) diag_help(diags, "%s", advice_text(diags->arena, graph, advice));
    help_leave(graph, conflict, diags);
}

/* Reports that the edge cannot be fused together with the rest of the block. */
static void report_conflict(const Plan *plan, const Conflict *conflict, Diags *diags) {
    const Graph *graph = plan->graph;
    const Edge *edge = &plan->edges.data[conflict->edge];
    const char *producer_text = value_text(diags->arena, graph, edge->producer);
    const char *consumer_text = value_text(diags->arena, graph, edge->consumer);
    bool is_operand = conflict->folded != NODE_NONE;
    diag_report(diags, DIAG_FUSE_MUST, graph->source, graph_node(graph, edge->consumer)->span,
                "%s has to be stored before %s reads it: %s", producer_text, consumer_text,
                is_operand ? "a matmul's kernel computes its operands tile by tile, and this one "
                             "depends on a reduction over whole rows or columns"
                           : reason_info(conflict->reason)->text);
    diag_note(diags, graph->source, graph_node(graph, edge->producer)->span, "%s is made here",
              producer_text);
    diag_note(diags, graph->source, graph->fixed_kernels.data[conflict->block - 1].span,
              "every edge from one op of this block to another must be fused");
    if (is_operand)
        diag_help(
            diags,
            "Leave the matmul out of the block, or %s and the values that it is computed from.",
            value_text(diags->arena, graph, conflict->folded));
    else if (reason_info(conflict->reason)->advice[0])
        diag_help(diags, "%s", reason_info(conflict->reason)->advice);
    if (!is_operand) help_leave(graph, conflict, diags);
}

/* Whether an earlier conflict gives the same message: several ops of one call read the value. */
static bool is_repeated(const Plan *plan, const VecConflict *conflicts, uint32_t of) {
    const Conflict *own = &conflicts->data[of];
    const Edge *edge = &plan->edges.data[own->edge];
    Span span = graph_node(plan->graph, edge->consumer)->span;
    for (uint32_t i = 0; i < of; i++) {
        const Conflict *other = &conflicts->data[i];
        const Edge *said = &plan->edges.data[other->edge];
        Span other_span = graph_node(plan->graph, said->consumer)->span;
        if (said->producer == edge->producer && other->reason == own->reason &&
            other_span.begin == span.begin && other_span.end == span.end)
            return true;
    }
    return false;
}

static bool has_conflict(const VecConflict *conflicts, uint32_t block) {
    for (uint32_t i = 0; conflicts && i < conflicts->n; i++)
        if (conflicts->data[i].block == block) return true;
    return false;
}

static const Conflict *find_conflict(const VecConflict *conflicts, uint32_t edge) {
    for (uint32_t i = 0; conflicts && i < conflicts->n; i++)
        if (conflicts->data[i].edge == edge) return &conflicts->data[i];
    return NULL;
}

/* Whether the conflict explains more than the edge's reason, which may only be that the plan with
 * the block stores an output. */
static bool tells_more(const Conflict *conflict, const Edge *edge, bool breaks) {
    return conflict->folded != NODE_NONE || !breaks ||
           (edge->reason == REASON_OUTPUT && conflict->reason != REASON_OUTPUT);
}

bool must_check(const Plan *plan, const Advice *advices, const VecConflict *conflicts,
                Diags *diags) {
    bool is_kept = true;
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i];
        const Conflict *conflict = find_conflict(conflicts, i);
        bool breaks = must_breaks(plan, edge);
        if (breaks) is_kept = false;
        bool is_said = breaks && says_no_more(plan, edge);
        if (conflict && tells_more(conflict, edge, breaks)) {
            if (!is_repeated(plan, conflicts, (uint32_t)(conflict - conflicts->data)))
                report_conflict(plan, conflict, diags);
        } else if (breaks && !is_said &&
                   (conflict ||
                    !has_conflict(conflicts, must_block(plan->graph, edge->consumer)))) {
            report(plan, edge, advices ? &advices[i] : NULL, conflict, diags);
        }
    }
    return is_kept;
}
