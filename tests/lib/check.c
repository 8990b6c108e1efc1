/* Node by node comparison of a run with the interpreter. */
#include "lib/check.h"

#include "interp/interp.h"
#include "ir/loop.h"

#include <math.h>
#include <string.h>

typedef struct Check {
    const Graph *graph;
    const int64_t *symbol_values;
    CheckFetch fetch;
    void *user;
    Arena *arena;
    Text *report;
    Tensor *values;
    bool *is_present;
    uint32_t n_reports;
    CheckCounts *counts;
    GraphLoops loops;
} Check;

static void name_node(const Graph *graph, NodeId id, Text *report) {
    const Node *node = graph_node(graph, id);
    text_printf(report, "node %u `%s`", id, op_info(node->op)->name);
    if (node->name) text_printf(report, " (`%s`)", node->name);
}

static bool complain(Check *c, NodeId id, const char *message) {
    if (c->n_reports++ >= CHECK_MAX_REPORTS) return false;
    name_node(c->graph, id, c->report);
    text_printf(c->report, ": %s\n", message);
    return false;
}

/* Computes constants and iotas, which a run does not store. */
static bool compute_absent(Check *c, NodeId id) {
    const char *error = NULL;
    if (op_info(graph_node(c->graph, id)->op)->cls != CLASS_SOURCE || graph_is_bound(c->graph, id))
        return true;
    c->is_present[id] =
        interp_node(c->graph, id, c->symbol_values, NULL, &c->values[id], NULL, c->arena, &error);
    return c->is_present[id] || complain(c, id, error);
}

static bool fetch_value(Check *c, NodeId id) {
    const char *error = NULL;
    const uint8_t *bytes = NULL;
    Tensor type;
    if (!interp_shape(c->graph, id, c->symbol_values, &type, c->arena, &error))
        return complain(c, id, error);
    switch (c->fetch(c->user, id, &type, &bytes)) {
    case FETCH_OK:
        break;
    case FETCH_ABSENT:
        return compute_absent(c, id);
    case FETCH_FAILED:
        return complain(c, id, "the run gave no value");
    }
    if (!tensor_new(c->arena, type.dtype, type.rank, type.dims, &c->values[id]))
        return complain(c, id, "too large to check");
    tensor_load(&c->values[id], bytes);
    c->is_present[id] = true;
    return true;
}

static void describe_wrong(Check *c, NodeId id, const Comparison *comparison) {
    if (c->n_reports++ >= CHECK_MAX_REPORTS) return;
    name_node(c->graph, id, c->report);
    const Node *node = graph_node(c->graph, id);
    for (uint32_t k = 0; k < node->n_args; k++)
        text_printf(c->report, "%s%s", k ? ", " : " of ",
                    tensor_type_str(&c->values[node->args[k]], c->arena));
    text_printf(c->report, " giving %s: ", tensor_type_str(&c->values[id], c->arena));
    compare_print(comparison, &c->values[id], c->report);
    text_puts(c->report, "\n");
}

static bool check_node(Check *c, NodeId id) {
    const Node *node = graph_node(c->graph, id);
    if (graph_is_bound(c->graph, id)) return true;
    /* A run has no values of a loop's steps. */
    bool is_known = c->is_present[id] && !c->loops.of[id] && op_info(node->op)->cls != CLASS_LOOP;
    Tensor *args = arena_array(c->arena, Tensor, node->n_args);
    for (uint32_t k = 0; k < node->n_args; k++) {
        is_known = is_known && c->is_present[node->args[k]];
        args[k] = c->values[node->args[k]];
    }
    if (!is_known) {
        c->counts->n_skipped++;
        return true;
    }
    int64_t n = tensor_n_elems(&c->values[id]);
    double *bounds = arena_array(c->arena, double, (size_t)n);
    Tensor expected;
    const char *error = NULL;
    if (!interp_node(c->graph, id, c->symbol_values, args, &expected, bounds, c->arena, &error))
        return complain(c, id, error);
    Comparison comparison;
    bool is_right = compare_within(&expected, &c->values[id], bounds, &comparison);
    if (!is_right) describe_wrong(c, id, &comparison);
    c->counts->n_checked++;
    c->counts->n_elems += n;
    c->counts->n_finite += comparison.n_finite;
    for (int64_t i = 0; i < n; i++) c->counts->n_any += isinf(bounds[i]) != 0;
    return is_right;
}

bool check_graph(const Graph *graph, const int64_t *symbol_values, CheckFetch fetch, void *user,
                 Arena *arena, CheckCounts *counts, Text *report) {
    *counts = (CheckCounts){0};
    Check c = {.graph = graph,
               .symbol_values = symbol_values,
               .fetch = fetch,
               .user = user,
               .arena = arena,
               .report = report,
               .loops = loops_find(arena, graph),
               .values = arena_array(arena, Tensor, graph->nodes.n),
               .is_present = arena_array(arena, bool, graph->nodes.n),
               .counts = counts};
    bool is_right = true;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (!fetch_value(&c, id) || !check_node(&c, id)) is_right = false;
    if (counts->n_checked == 0 && is_right) text_puts(report, "no node was compared\n");
    return is_right && counts->n_checked > 0;
}

void check_expose_nodes(Graph *graph, StrTab *strings) {
    Arena *scratch = arena_new(NULL);
    bool *is_output = arena_array(scratch, bool, graph->nodes.n);
    const GraphLoops loops = loops_find(scratch, graph);
    for (uint32_t i = 0; i < graph->outputs.n; i++) is_output[graph->outputs.data[i].node] = true;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        if (is_output[id] || op_info(graph_node(graph, id)->op)->cls == CLASS_SOURCE) continue;
        if (loops.of[id]) continue; /* it has a value in each step */
        const char *name = str_format(scratch, "node_%u", id);
        GraphOutput output = {.name = strtab_intern_z(strings, name), .node = id};
        vec_push(graph->arena, &graph->outputs, output);
    }
    arena_free(scratch);
}

static bool check_same_output(const Graph *graph, const Tensor *type, NodeId id, CheckFetch fetch,
                              void *a, void *b, Arena *arena, Text *report) {
    const uint8_t *from_a = NULL, *from_b = NULL;
    size_t n_bytes = (size_t)tensor_n_elems(type) * dtype_bytes(type->dtype);
    if (fetch(a, id, type, &from_a) != FETCH_OK) return false;
    const uint8_t *kept = arena_copy(arena, from_a, n_bytes);
    if (fetch(b, id, type, &from_b) != FETCH_OK) return false;
    Comparison comparison;
    if (compare_bits(type, kept, from_b, &comparison)) return true;
    name_node(graph, id, report);
    text_puts(report, " differs between the runs: ");
    compare_print(&comparison, type, report);
    text_puts(report, "\n");
    return false;
}

bool check_same_outputs(const Graph *graph, const int64_t *symbol_values, CheckFetch fetch, void *a,
                        void *b, Arena *arena, Text *report) {
    bool is_same = graph->outputs.n > 0;
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        const char *error = NULL;
        NodeId id = graph->outputs.data[i].node;
        Tensor type;
        if (!interp_shape(graph, id, symbol_values, &type, arena, &error) ||
            !check_same_output(graph, &type, id, fetch, a, b, arena, report)) {
            text_printf(report, "output `%s` is not the same\n", graph->outputs.data[i].name);
            is_same = false;
        }
    }
    return is_same;
}
