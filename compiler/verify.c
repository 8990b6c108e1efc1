/* Comparisons. See verify.h. */
#include "verify.h"

#include <string.h>

enum { MAX_NODE_ELEMS = 1 << 24 };

typedef struct Verifier {
    const Graph *graph;
    const int64_t *symbol_values;
    const uint8_t *const *bytes;
    Arena *scratch;
    VerifyCounts *counts;
    Text *report;
} Verifier;

static bool complain(const Verifier *v, NodeId id, const char *what) {
    const Node *node = graph_node(v->graph, id);
    text_printf(v->report, "`%s`", op_info(node->op)->name);
    if (node->name) text_printf(v->report, " that makes `%s`", node->name);
    if (v->graph->source && node->span.end)
        text_printf(v->report, ", line %u",
                    source_position(v->graph->source, node->span.begin).line);
    text_printf(v->report, ": %s\n", what);
    return false;
}

/* The program's value of a node as numbers; false when it is absent or too large. */
static bool load_value(const Verifier *v, NodeId id, Tensor *value) {
    const char *error = NULL;
    Tensor type;
    if (!v->bytes[id] || !interp_shape(v->graph, id, v->symbol_values, &type, v->scratch, &error))
        return false;
    int64_t n = tensor_n_elems(&type);
    if (n < 0 || n > MAX_NODE_ELEMS ||
        !tensor_new(v->scratch, type.dtype, type.rank, type.dims, value))
        return false;
    tensor_load(value, v->bytes[id]);
    return true;
}

static bool is_within(Dtype dtype, double expected, double actual, double bound) {
    if (isinf(bound)) return true;
    if (isnan(expected) || isnan(actual)) return isnan(expected) && isnan(actual);
    if (bound == 0) return expected == actual && signbit(expected) == signbit(actual);
    return dtype_distance(dtype, expected, actual) <= bound;
}

static bool compare(const Verifier *v, NodeId id, const Tensor *expected, const Tensor *actual,
                    const double *bounds) {
    int64_t n = tensor_n_elems(expected), n_wrong = 0, first = 0;
    for (int64_t i = 0; i < n; i++) {
        if (is_within(expected->dtype, expected->data[i], actual->data[i], bounds[i])) continue;
        if (n_wrong++ == 0) first = i;
    }
    v->counts->n_elems += n;
    if (n_wrong == 0) return true;
    return complain(v, id,
                    str_format(v->scratch,
                               "%lld of %lld elements are wrong; element %lld of %s is %.17g, the "
                               "reference %.17g, the bound %.3g",
                               (long long)n_wrong, (long long)n, (long long)first,
                               tensor_type_str(expected, v->scratch), actual->data[first],
                               expected->data[first], bounds[first]));
}

static bool verify_node(const Verifier *v, NodeId id) {
    const Node *node = graph_node(v->graph, id);
    Tensor actual, expected;
    const char *error = NULL;
    if (node->op == OP_INPUT || node->op == OP_PARAM || !v->bytes[id]) return true;
    Tensor *args = arena_array(v->scratch, Tensor, node->n_args);
    bool is_known = load_value(v, id, &actual);
    for (uint32_t i = 0; i < node->n_args; i++)
        is_known = is_known && load_value(v, node->args[i], &args[i]);
    if (!is_known) {
        v->counts->n_skipped++;
        return true;
    }
    double *bounds = arena_array(v->scratch, double, (size_t)tensor_n_elems(&actual));
    if (!interp_node(v->graph, id, v->symbol_values, args, &expected, bounds, v->scratch, &error))
        return complain(v, id, error);
    v->counts->n_nodes++;
    return compare(v, id, &expected, &actual, bounds);
}

bool verify_nodes(const Graph *graph, const int64_t *symbol_values, const uint8_t *const *bytes,
                  Arena *scratch, VerifyCounts *counts, Text *report) {
    Verifier v = {.graph = graph,
                  .symbol_values = symbol_values,
                  .bytes = bytes,
                  .scratch = scratch,
                  .counts = counts,
                  .report = report};
    bool ok = true;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        ok = verify_node(&v, id) && ok;
        arena_reset(scratch);
    }
    return ok;
}

int64_t verify_bits(Dtype dtype, const uint8_t *a, const uint8_t *b, size_t n_bytes) {
    size_t elem_bytes = dtype_bytes(dtype);
    if (n_bytes == 0 || memcmp(a, b, n_bytes) == 0) return -1;
    for (size_t i = 0; i < n_bytes; i += elem_bytes) {
        if (memcmp(a + i, b + i, elem_bytes) == 0) continue;
        if (isnan(dtype_load(dtype, a + i)) && isnan(dtype_load(dtype, b + i))) continue;
        return (int64_t)(i / elem_bytes);
    }
    return -1;
}
