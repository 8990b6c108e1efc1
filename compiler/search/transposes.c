/* Finds transposes that are better a map of their own than part of a row or column kernel: a map
 * reads them in short runs, or in tiles on a GPU. See search_state.h. */
#include "search/search_state.h"

/* Whether the elements of the last axis are not contiguous in the source. */
static bool is_transpose(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    uint32_t last = node->shape.rank - 1;
    if (node->op != OP_TRANSPOSE || node->shape.rank < 2 ||
        node->attrs.per_axis->perm[last] == last)
        return false;
    return !dim_equals_const(graph->dims, node->shape.dims[last], 1);
}

bool search_view_is_costly(const Graph *graph, NodeId id) {
    return graph_node(graph, id)->op == OP_PAD || is_transpose(graph, id);
}

bool search_find_transposes(const Searcher *c, const Kernel *kernel, NodeFlags flags) {
    bool is_map = !form_info(kernel->form)->reduces && c->target->has->blocks;
    bool may_pay = is_map || !form_info(kernel->form)->one_pass, any = false;
    for (uint32_t i = 0; i < kernel->nodes.n && may_pay; i++) {
        NodeId id = kernel->nodes.data[i];
        if (!is_transpose(c->graph, id)) continue;
        node_add(flags, id, REGION_TRANSPOSED);
        any = true;
    }
    return any;
}
