/* Which values can be prepared, and the init kernels that prepare them. See hoist.h. */
#include "fuse/hoist.h"

static bool is_shape_fixed_by(const DimTab *dims, const Shape *shape, uint64_t symbols) {
    uint64_t used = 0;
    for (uint32_t k = 0; k < shape->rank; k++) used |= dim_symbols_used(dims, shape->dims[k]);
    return (used & ~symbols) == 0;
}

/* Whether the value's size is bounded. Larger values are left to the memory plan, which reports
 * them. */
static bool has_size(DimTab *dims, const Node *node) {
    DimId elems = shape_n_elems(dims, &node->shape);
    return elems && dim_mul_const(dims, elems, dtype_bytes(node->dtype)) != DIM_NONE;
}

/* Whether the node's shape and attributes contain no symbols except these. */
static bool is_fixed_by(const Graph *graph, const Node *node, uint64_t symbols) {
    uint64_t used = 0;
    for (uint32_t k = 0; k < node->shape.rank; k++) {
        OpClass cls = op_info(node->op)->cls;
        if (cls == CLASS_VIEW && node->attrs.per_axis->begin[k] != DIM_NONE)
            used |= dim_symbols_used(graph->dims, node->attrs.per_axis->begin[k]);
    }
    return (used & ~symbols) == 0 && is_shape_fixed_by(graph->dims, &node->shape, symbols);
}

static bool is_number(const Graph *graph, const NodeFlags flags, NodeId id) {
    const Node *node = graph_node(graph, id);
    const OpInfo *op = op_info(node->op);
    if (graph_is_literal(graph, id)) return true;
    if (op->cls != CLASS_ELTWISE && op->cls != CLASS_CAST) return false;
    for (uint32_t i = 0; i < node->n_args; i++)
        if (!node_has(flags, node->args[i], GROUPING_NUMBER)) return false;
    return op_ulp(op, node->dtype) == 0 && op_abs_error(op, node->dtype) == 0;
}

NodeFlags hoist_flags(Arena *arena, const Graph *graph) {
    NodeFlags flags = node_flags_new(arena, graph->nodes.n);
    uint64_t symbols = graph_param_symbols(graph);
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        node_add(flags, graph->outputs.data[i].node, GROUPING_OUTPUT);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        /* An output is stored by each run and may be read from there. */
        bool is_there = graph_is_bound(graph, id) || !node_has(flags, id, GROUPING_OUTPUT);
        bool can = node->op != OP_INPUT && !graph_is_update(graph, id) && is_there &&
                   is_fixed_by(graph, node, symbols) && has_size(graph->dims, node);
        for (uint32_t i = 0; i < node->n_args; i++)
            can = can && node_has(flags, node->args[i], GROUPING_CAN_PREPARE);
        if (can) node_add(flags, id, GROUPING_CAN_PREPARE);
        if (is_number(graph, flags, id)) node_add(flags, id, GROUPING_NUMBER);
        if (graph_is_update(graph, id)) node_add(flags, node->args[0], GROUPING_UPDATED);
    }
    return flags;
}

typedef struct TempCheck {
    const Plan *plan;
    uint64_t symbols;      /* the symbols that params fix */
    const bool *is_in_run; /* per buffer: a run stores to it */
    bool is_good;
} TempCheck;

static void check_temp(void *user, const Store *store) {
    TempCheck *check = user;
    const Buffer *buffer = &check->plan->buffers.data[store->buffer];
    const DimTab *dims = check->plan->graph->dims;
    bool is_sized = buffer_bytes(check->plan->graph->dims, buffer) != DIM_NONE &&
                    is_shape_fixed_by(dims, &buffer->shape, check->symbols);
    bool is_own = buffer->kind == BUFFER_TEMP && !check->is_in_run[store->buffer];
    if (!is_own || !is_sized) check->is_good = false;
}

/* Stores of unbounded size stay temporaries, because the memory plan reports them. So do values
 * with a shape that params leave open, even if they may have no elements. */
static bool stores_temps_only(const Plan *plan, const Kernel *kernel, uint64_t symbols,
                              const bool *is_in_run) {
    TempCheck check = {.plan = plan, .symbols = symbols, .is_in_run = is_in_run, .is_good = true};
    kernel_each_store(kernel, check_temp, &check);
    return check.is_good;
}

static bool is_init(Arena *arena, const Plan *plan, const Kernel *kernel, uint64_t symbols,
                    const bool *is_in_run) {
    const bool *live = kernel_live_scalars(arena, kernel);
    if (kernel_updates(kernel)) return false; /* the value that it updates is that of a run */
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id] || s->kind != SCALAR_LOAD) continue;
        BufferKind kind = plan->buffers.data[s->buffer].kind;
        if (kind != BUFFER_PARAM && kind != BUFFER_PREPARED) return false;
    }
    return (kernel->symbols & ~symbols) == 0 && stores_temps_only(plan, kernel, symbols, is_in_run);
}

static void make_prepared(void *user, const Store *store) {
    Plan *plan = user;
    plan->buffers.data[store->buffer].kind = BUFFER_PREPARED;
}

/* Returns whether any kernel became an init kernel. */
static bool mark_init(Arena *arena, Plan *plan, const bool *is_in_run) {
    uint64_t symbols = graph_param_symbols(plan->graph);
    bool any = false;
    for (uint32_t i = 0; i < plan->buffers.n; i++)
        if (plan->buffers.data[i].kind == BUFFER_PREPARED) plan->buffers.data[i].kind = BUFFER_TEMP;
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        Kernel *kernel = &plan->kernels.data[i];
        kernel->is_init = is_init(arena, plan, kernel, symbols, is_in_run);
        if (!kernel->is_init) continue;
        any = true;
        kernel_each_store(kernel, make_prepared, plan);
    }
    return any;
}

typedef struct SharedBuffers {
    const Plan *plan;
    bool *is_in_run; /* per buffer */
    bool changed;
} SharedBuffers;

static void note_shared(void *user, const Store *store) {
    SharedBuffers *shared = user;
    if (shared->plan->buffers.data[store->buffer].kind != BUFFER_PREPARED) return;
    shared->is_in_run[store->buffer] = shared->changed = true;
}

enum { IN_RUNS };

/* Flags the nodes that a kernel of every run computes, because it needs more than params or because
 * it is cheap. */
static NodeFlags flag_nodes_of_runs(Arena *arena, const Plan *plan, NodeFlags flags) {
    NodeFlags of_runs = node_flags_new(arena, plan->graph->nodes.n);
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        NodeId first = kernel->reduces.n ? kernel->reduces.data[0].node
                                         : kernel->stages.data[0].stores.data[0].node;
        for (uint32_t i = 0; i < kernel->nodes.n && !node_has(flags, first, GROUPING_CAN_PREPARE);
             i++)
            node_add(of_runs, kernel->nodes.data[i], IN_RUNS);
    }
    return of_runs;
}

/* Marks prepared values as stored for runs. */
static void note_prepared(Arena *arena, const Plan *plan) {
    NodeFlags flags = hoist_flags(arena, plan->graph);
    NodeFlags of_runs = flag_nodes_of_runs(arena, plan, flags);
    for (uint32_t i = plan->buffers.n; i-- > 0;) { /* a node's buffer precedes its partials' */
        const Buffer *buffer = &plan->buffers.data[i];
        node_set(flags, buffer->node, GROUPING_PREPARED, buffer->kind == BUFFER_PREPARED);
    }
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        Edge *edge = &plan->edges.data[i];
        bool is_stored = edge->verdict == EDGE_STORED || edge->reason == REASON_UNREAD;
        if (!is_stored || edge->consumer == NODE_NONE || edge->reason == REASON_NEVER ||
            edge->reason == REASON_FUSION_OFF ||
            !node_has(flags, edge->producer, GROUPING_PREPARED) ||
            !node_has(of_runs, edge->consumer, IN_RUNS))
            continue;
        edge->verdict = EDGE_STORED;
        edge->reason = REASON_PREPARED;
    }
}

/* A run computes the whole of a concat in place if it computes one of its pieces. */
void hoist_plan(Arena *arena, Plan *plan) {
    SharedBuffers shared = {.plan = plan, .is_in_run = arena_array(arena, bool, plan->buffers.n)};
    bool any;
    do {
        any = mark_init(arena, plan, shared.is_in_run);
        shared.changed = false;
        for (uint32_t i = 0; any && i < plan->kernels.n; i++)
            if (!plan->kernels.data[i].is_init)
                kernel_each_store(&plan->kernels.data[i], note_shared, &shared);
    } while (shared.changed);
    if (!any) return;
    note_prepared(arena, plan);
    plan_order_init(arena, plan);
}

bool hoist_pass(const Planning *p, PlanUnit *unit) {
    hoist_plan(p->arena, unit->plan);
    const char *fault = p->is_trial ? NULL : plan_verify(unit->plan, p->scratch);
    if (fault) ice(p->arena, "fused plan of %s: %s", unit->plan->graph->name, fault);
    return true;
}
