/* Comparisons. See verify.h. */
#include "verify/verify.h"

#include <string.h>

enum { MAX_NODE_ELEMS = 1 << 24 };

typedef struct Verifier {
    const Plan *plan;
    const Graph *graph;
    const int64_t *symbol_values;
    const uint8_t *const *bytes;
    Arena *scratch;
    VerifyCounts *counts;
    Text *report;
} Verifier;

void verify_name_node(const Graph *graph, NodeId id, Text *out) {
    const Node *node = graph_node(graph, id);
    text_printf(out, "`%s`", op_info(node->op)->name);
    if (node->name)
        text_printf(out, graph_is_bound(graph, id) ? " `%s`" : " that makes `%s`", node->name);
    if (graph->source && node->span.end)
        text_printf(out, ", line %u", source_position(graph->source, node->span.begin).line);
}

void verify_describe(const Tensor *type, int64_t element, double actual, double expected,
                     Text *out) {
    int64_t strides[TENSOR_MAX_RANK];
    tensor_strides(type, strides);
    text_printf(out, "element %lld of %s", (long long)element, tensor_type_str(type, out->arena));
    for (uint32_t k = 0; k < type->rank; k++)
        text_printf(out, "%s%lld", k ? ", " : " at [",
                    (long long)(element / strides[k] % type->dims[k]));
    text_printf(out, "%s is %.17g, not %.17g", type->rank ? "]" : "", actual, expected);
    if (!dtype_is_float(type->dtype) || isnan(actual) || isnan(expected)) return;
    double ulps = dtype_ulps(type->dtype, actual, expected);
    text_printf(out, ulps == 0 ? " (the sign of zero)" : " (%.0f ULP)", ulps);
}

static bool stores_node(const Plan *plan, const Store *store, NodeId node) {
    return store->node == node || store_holds(plan, store) == node;
}

const Kernel *verify_kernel_of(const Plan *plan, NodeId node) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        if (kernel->nodes.n == 0) continue; /* kernels of the layout pass hold no node */
        for (uint32_t i = 0; i < kernel->row_stores.n; i++)
            if (stores_node(plan, &kernel->row_stores.data[i], node)) return kernel;
        for (uint32_t s = 0; s < kernel->stages.n; s++)
            for (uint32_t i = 0; i < kernel->stages.data[s].stores.n; i++)
                if (stores_node(plan, &kernel->stages.data[s].stores.data[i], node)) return kernel;
    }
    return NULL;
}

static bool complain(const Verifier *v, NodeId id, const char *what) {
    const Kernel *kernel = verify_kernel_of(v->plan, id);
    verify_name_node(v->graph, id, v->report);
    if (kernel) text_printf(v->report, ", kernel %s", kernel->name);
    text_printf(v->report, ": %s\n", what);
    return false;
}

/* Loads the program's value of a node as numbers; false when it is absent or too large. */
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

bool verify_within(Dtype dtype, double expected, double actual, double bound) {
    if (isinf(bound)) return true;
    if (isnan(expected) || isnan(actual)) return isnan(expected) && isnan(actual);
    if (bound == 0) return expected == actual && signbit(expected) == signbit(actual);
    return dtype_distance(dtype, expected, actual) <= bound;
}

bool verify_element(const Tensor *expected, const Tensor *actual, int64_t i, double bound) {
    if (dtype_is_int(expected->dtype) && bound == 0)
        return tensor_int(expected, i) == tensor_int(actual, i);
    return verify_within(expected->dtype, tensor_number(expected, i), tensor_number(actual, i),
                         bound);
}

static bool compare(const Verifier *v, NodeId id, const Tensor *expected, const Tensor *actual,
                    const double *bounds) {
    int64_t n = tensor_n_elems(expected), n_wrong = 0, first = 0;
    for (int64_t i = 0; i < n; i++) {
        if (verify_element(expected, actual, i, bounds[i])) continue;
        if (n_wrong++ == 0) first = i;
    }
    v->counts->n_elems += n;
    if (n_wrong == 0) return true;
    Text what = {.arena = v->scratch};
    text_printf(&what, "%lld of %lld elements are out of the bound; ", (long long)n_wrong,
                (long long)n);
    verify_describe(expected, first, tensor_number(actual, first), tensor_number(expected, first),
                    &what);
    text_printf(&what, ", the bound %.3g", bounds[first]);
    return complain(v, id, text_str(&what));
}

static bool verify_node(const Verifier *v, NodeId id) {
    const Node *node = graph_node(v->graph, id);
    Tensor actual, expected;
    const char *error = NULL;
    if (graph_is_bound(v->graph, id) || !v->bytes[id]) return true;
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

bool verify_nodes(const Plan *plan, const int64_t *symbol_values, const uint8_t *const *bytes,
                  Arena *scratch, VerifyCounts *counts, Text *report) {
    const Graph *graph = plan->graph;
    Verifier v = {.plan = plan,
                  .graph = graph,
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
