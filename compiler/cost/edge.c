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

/* A kernel of the fused plan that computes two ops alone. */
struct Pair {
    NodeId producer;
    uint32_t kernel;
    const Pair *next; /* with the same consumer */
};

/* Adds the kernel if it computes just two ops and is a launch of its own. */
static void note_pair(Arena *arena, const PlanCost *cost, uint32_t k, const Pair **pairs) {
    const Plan *plan = cost->plan;
    const Kernel *kernel = &plan->kernels.data[k];
    NodeId ops[2] = {NODE_NONE, NODE_NONE};
    uint32_t n = 0;
    for (uint32_t i = 0; i < kernel->nodes.n && n <= 2; i++) {
        NodeId id = kernel->nodes.data[i];
        if (graph_class(plan->graph, id) == CLASS_SOURCE) continue;
        if (n < 2) ops[n] = id;
        n++;
    }
    if (n != 2 || plan_launch_of(plan, k)->n > 1 || kernel->segment_axis != NO_AXIS ||
        !cost->kernels[k].starts)
        return;
    Pair *pair = arena_array(arena, Pair, 1);
    *pair = (Pair){.producer = ops[0], .kernel = k, .next = pairs[ops[1]]};
    pairs[ops[1]] = pair;
}

EdgeCosts edge_costs(Arena *arena, const PlanCost *fused, const PlanCost *unfused) {
    const Plan *plan = unfused->plan;
    uint32_t n = plan->graph->nodes.n;
    MakerList list = {.arena = arena, .makers = arena_array(arena, VecU32, n)};
    for (; list.kernel < plan->kernels.n; list.kernel++)
        kernel_each_store(&plan->kernels.data[list.kernel], note_maker, &list);
    const Pair **pairs = arena_array(arena, const Pair *, n);
    for (uint32_t k = fused->plan->kernels.n; k-- > 0;) note_pair(arena, fused, k, pairs);
    return (EdgeCosts){.fused = fused, .unfused = unfused, .makers = list.makers, .pairs = pairs};
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
    const Pair *pair = costs->pairs[edge->consumer];
    while (pair && pair->producer != edge->producer) pair = pair->next;
    return pair ? &costs->fused->kernels[pair->kernel] : NULL;
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
