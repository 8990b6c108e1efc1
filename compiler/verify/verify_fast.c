/* See verify_fast.h. */
#include "verify/verify_fast.h"

#include "plan/rewrite.h"

/* Limit of the elements of all values together; each takes 16 bytes, and more during evaluation. */
enum { MAX_ELEMS = 1 << 22 };

static bool is_small(const Graph *graph, const int64_t *symbol_values, Arena *arena,
                     const char **error) {
    int64_t total = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        Tensor type;
        if (!interp_shape(graph, id, symbol_values, &type, arena, error)) return false;
        total += tensor_n_elems(&type);
    }
    if (total > MAX_ELEMS) *error = "it is too large for the reference";
    return total <= MAX_ELEMS;
}

static bool load_bound(const Graph *graph, NodeId id, const int64_t *symbol_values,
                       const uint8_t *bytes, Arena *arena, Tensor *value, const char **error) {
    Tensor type;
    if (!interp_shape(graph, id, symbol_values, &type, arena, error)) return false;
    if (!bytes || !tensor_new(arena, type.dtype, type.rank, type.dims, value)) {
        *error = "an input is not known";
        return false;
    }
    tensor_load(value, bytes);
    return true;
}

static bool load_list(const Graph *graph, const GraphInput *list, uint32_t n,
                      const int64_t *symbol_values, const uint8_t *const *bytes, Arena *arena,
                      Tensor *values, const char **error) {
    for (uint32_t i = 0; i < n; i++)
        if (!load_bound(graph, list[i].node, symbol_values, bytes[list[i].node], arena, &values[i],
                        error))
            return false;
    return true;
}

/* The error that each rewrite of the plan adds at this size. */
static bool list_slack(const Plan *plan, const int64_t *symbol_values, Arena *arena,
                       InterpReach *reach, const char **error) {
    InterpSlack *slack = arena_array(arena, InterpSlack, plan->kernels.n);
    reach->slack = slack;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        Rewrite rewrite;
        Tensor weights;
        if (!rewrite_of(plan, k, &rewrite)) continue;
        NodeId operand = graph_node(plan->graph, rewrite.gemm)->args[0];
        if (!interp_shape(plan->graph, operand, symbol_values, &weights, arena, error))
            return false;
        double n = (double)weights.dims[weights.rank - 1];
        RewriteBound bound = rewrite_bound(&rewrite, n, REWRITE_ALLOWED_SIZE);
        slack[reach->n_slack++] = (InterpSlack){rewrite.gemm, bound.relative, bound.absolute};
    }
    return true;
}

bool verify_fast_reference(const Plan *plan, const int64_t *symbol_values,
                           const uint8_t *const *bytes, Arena *arena, FastReference *reference,
                           const char **error) {
    const Graph *graph = plan->graph;
    Tensor *inputs = arena_array(arena, Tensor, graph->inputs.n);
    Tensor *params = arena_array(arena, Tensor, graph->params.n);
    *reference = (FastReference){.plan = plan,
                                 .values = arena_array(arena, Tensor, graph->nodes.n),
                                 .bounds = arena_array(arena, double *, graph->nodes.n)};
    InterpReach reach = {.bounds = reference->bounds};
    return is_small(graph, symbol_values, arena, error) &&
           list_slack(plan, symbol_values, arena, &reach, error) &&
           load_list(graph, graph->inputs.data, graph->inputs.n, symbol_values, bytes, arena,
                     inputs, error) &&
           load_list(graph, graph->params.data, graph->params.n, symbol_values, bytes, arena,
                     params, error) &&
           interp_graph_within(graph, symbol_values, inputs, params, reference->values, &reach,
                               arena, error);
}

bool verify_fast_value(const FastReference *reference, NodeId id, const uint8_t *bytes,
                       Arena *arena, VerifyCounts *counts, Text *report) {
    const Tensor *expected = &reference->values[id];
    const double *bounds = reference->bounds[id];
    int64_t n = tensor_n_elems(expected), n_wrong = 0, first = 0;
    Tensor actual;
    if (!tensor_new(arena, expected->dtype, expected->rank, expected->dims, &actual)) return false;
    tensor_load(&actual, bytes);
    for (int64_t i = 0; i < n; i++) {
        double bound = bounds ? bounds[i] : 0;
        if (verify_element(expected, &actual, i, bound)) continue;
        if (n_wrong++ == 0) first = i;
    }
    counts->n_nodes++;
    counts->n_elems += n;
    for (int64_t i = 0; bounds && i < n; i++) counts->n_any += isinf(bounds[i]) != 0;
    if (n_wrong == 0) return true;
    verify_name_node(reference->plan->graph, id, report);
    const Kernel *kernel = verify_kernel_of(reference->plan, id);
    if (kernel) text_printf(report, ", kernel %s", kernel->name);
    text_printf(report, ": %lld of %lld elements are out of the bound; ", (long long)n_wrong,
                (long long)n);
    verify_describe(expected, first, tensor_number(&actual, first), tensor_number(expected, first),
                    report);
    text_printf(report, ", the bound %.3g\n", bounds ? bounds[first] : 0);
    return false;
}
