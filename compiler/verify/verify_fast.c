/* See verify_fast.h. */
#include "verify/verify_fast.h"

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

bool verify_fast_reference(const Graph *given, const int64_t *symbol_values,
                           const uint8_t *const *bytes, Arena *arena, FastReference *reference,
                           const char **error) {
    Graph *graph = arena_copy(arena, given, sizeof *given);
    graph->is_fast = true;
    Tensor *inputs = arena_array(arena, Tensor, graph->inputs.n);
    Tensor *params = arena_array(arena, Tensor, graph->params.n);
    *reference = (FastReference){.graph = given,
                                 .values = arena_array(arena, Tensor, graph->nodes.n),
                                 .bounds = arena_array(arena, double *, graph->nodes.n)};
    return is_small(graph, symbol_values, arena, error) &&
           load_list(graph, graph->inputs.data, graph->inputs.n, symbol_values, bytes, arena,
                     inputs, error) &&
           load_list(graph, graph->params.data, graph->params.n, symbol_values, bytes, arena,
                     params, error) &&
           interp_graph_within(graph, symbol_values, inputs, params, reference->values,
                               reference->bounds, arena, error);
}

typedef struct Comparison {
    const Tensor *expected, *actual;
    const double *bounds, *more; /* which add up; NULL: 0 */
    int64_t n_wrong, first;
} Comparison;

static double bound_at(const Comparison *c, int64_t i) {
    return (c->bounds ? c->bounds[i] : 0) + (c->more ? c->more[i] : 0);
}

static void compare(Comparison *c, VerifyCounts *counts) {
    int64_t n = tensor_n_elems(c->expected);
    counts->n_nodes++;
    counts->n_elems += n;
    for (int64_t i = 0; i < n; i++) {
        double bound = bound_at(c, i);
        counts->n_any += isinf(bound) != 0;
        if (verify_element(c->expected, c->actual, i, bound)) continue;
        if (c->n_wrong++ == 0) c->first = i;
    }
}

/* Adds the first wrong element, behind what names the node. */
static void describe(const Comparison *c, Text *report) {
    text_printf(report, ": %lld of %lld elements are out of the bound; ", (long long)c->n_wrong,
                (long long)tensor_n_elems(c->expected));
    verify_describe(c->expected, c->first, tensor_number(c->actual, c->first),
                    tensor_number(c->expected, c->first), report);
    text_printf(report, ", the bound %.3g", bound_at(c, c->first));
}

bool verify_fast_value(const FastReference *reference, const Plan *plan, NodeId id,
                       const uint8_t *bytes, Arena *arena, VerifyCounts *counts, Text *report) {
    const Tensor *expected = &reference->values[id];
    Tensor actual;
    if (!tensor_new(arena, expected->dtype, expected->rank, expected->dims, &actual)) return false;
    tensor_load(&actual, bytes);
    Comparison c = {.expected = expected, .actual = &actual, .bounds = reference->bounds[id]};
    compare(&c, counts);
    if (c.n_wrong == 0) return true;
    verify_name_node(reference->graph, id, report);
    const Kernel *kernel = verify_kernel_of(plan, id);
    if (kernel) text_printf(report, ", kernel %s", kernel->name);
    describe(&c, report);
    text_puts(report, "\n");
    return false;
}

bool verify_rewritten(const FastReference *rewritten, const FastReference *written,
                      VerifyCounts *counts, Text *report) {
    for (uint32_t i = 0; i < rewritten->graph->outputs.n; i++) {
        NodeId id = rewritten->graph->outputs.data[i].node;
        NodeId other = written->graph->outputs.data[i].node;
        Comparison c = {.expected = &written->values[other],
                        .actual = &rewritten->values[id],
                        .bounds = rewritten->bounds[id],
                        .more = written->bounds[other]};
        compare(&c, counts);
        if (c.n_wrong == 0) continue;
        verify_name_node(rewritten->graph, id, report);
        text_puts(report, ", rewritten");
        describe(&c, report);
        text_puts(report, " of both forms\n");
        return false;
    }
    return true;
}
