/* The cost of single edges. See edge.h. */
#include "cost/edge.h"

#include "plan/launch.h"

#include <math.h>

typedef struct MakerList {
    Arena *arena;
    VecU32 *makers;
    uint32_t kernel;
} MakerList;

static void note_maker(void *user, const Store *store) {
    MakerList *list = user;
    VecU32 *of = &list->makers[store->node];
    if (of->n && of->data[of->n - 1] == list->kernel) return;
    vec_push(list->arena, of, list->kernel);
}

EdgeCosts edge_costs(Arena *arena, const PlanCost *fused, const PlanCost *unfused) {
    const Plan *plan = unfused->plan;
    MakerList list = {.arena = arena, .makers = arena_array(arena, VecU32, plan->graph->nodes.n)};
    for (; list.kernel < plan->kernels.n; list.kernel++)
        kernel_each_store(&plan->kernels.data[list.kernel], note_maker, &list);
    return (EdgeCosts){.fused = fused, .unfused = unfused, .makers = list.makers};
}

/* Adds up the kernels that make the node, and returns their number. */
static uint32_t add_makers(const EdgeCosts *costs, NodeId node, KernelCost *sum) {
    const VecU32 *makers = &costs->makers[node];
    for (uint32_t i = 0; i < makers->n; i++) {
        const KernelCost *own = &costs->unfused->kernels[makers->data[i]];
        sum->read_bytes += own->read_bytes;
        sum->written_bytes += own->written_bytes;
        sum->memory_us += own->memory_us;
        sum->arithmetic_us += own->arithmetic_us;
        sum->tensor_us += own->tensor_us;
        sum->launch_us += own->launch_us;
        sum->us += own->us;
    }
    return makers->n;
}

/* The cost of the plan's kernel that computes exactly the two ops; NULL: there is none. */
static const KernelCost *find_pair(const EdgeCosts *costs, const Edge *edge) {
    const Plan *plan = costs->fused->plan;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        bool is_joined = plan_launch_of(plan, k)->n > 1;
        uint32_t n = 0, n_own = 0;
        for (uint32_t i = 0; i < kernel->nodes.n; i++) {
            NodeId id = kernel->nodes.data[i];
            if (graph_class(plan->graph, id) == CLASS_SOURCE) continue;
            n++;
            n_own += id == edge->producer || id == edge->consumer;
        }
        if (n == 2 && n_own == 2 && !is_joined && kernel->segment_axis == NO_AXIS &&
            costs->fused->kernels[k].starts)
            return &costs->fused->kernels[k];
    }
    return NULL;
}

EdgeCost edge_cost(const EdgeCosts *costs, const Edge *edge) {
    const Graph *graph = costs->unfused->plan->graph;
    const Node *node = graph_node(graph, edge->producer);
    double bytes =
        dim_number(graph->dims, shape_n_elems(graph->dims, &node->shape), costs->unfused->dims) *
        dtype_bytes(node->dtype);
    KernelCost both = {0}, consumer = {0};
    uint32_t n = add_makers(costs, edge->producer, &both);
    if (n == 0 || edge->consumer == NODE_NONE) return (EdgeCost){0};
    if (add_makers(costs, edge->consumer, &consumer) == 0) return (EdgeCost){0};
    add_makers(costs, edge->consumer, &both);
    double all = both.read_bytes + both.written_bytes;
    double saved = fmin(2 * bytes, all), left = all > 0 ? 1 - saved / all : 1;
    double us = fmax(both.memory_us * left, fmax(both.arithmetic_us, both.tensor_us));
    const KernelCost *pair = find_pair(costs, edge);
    double together = pair ? pair->us : consumer.launch_us + us;
    return (EdgeCost){.saved_bytes = saved,
                      .fused_us = edge->verdict == EDGE_FUSED ? together : 0,
                      .unfused_us = both.us};
}
