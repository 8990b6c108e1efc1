/* See advice.h. Whether a value would be stored all the same if it was no output, or if a block
 * held it, hangs on everything else that grouping then does; so it is not predicted but tried. */
#include "pass/advice.h"

enum { MAX_TRIED_NODES = 1 << 14 }; /* of all graphs compiled for one ledger */

/* By reason: what flips it. */
static const AdviceKind kinds[REASON_COUNT] = {
    [REASON_INLINED] = ADVICE_NEVER,    [REASON_SAME_PASS] = ADVICE_NEVER,
    [REASON_VIEW] = ADVICE_NEVER,       [REASON_PLACED] = ADVICE_NEVER,
    [REASON_PART] = ADVICE_NEVER,       [REASON_SAME_BLOCK] = ADVICE_NEVER,
    [REASON_UNREAD] = ADVICE_NONE,      [REASON_ON_CHIP] = ADVICE_NEVER,
    [REASON_CHEAP] = ADVICE_NEVER,      [REASON_OUTPUT] = ADVICE_OUTPUT,
    [REASON_SOURCE] = ADVICE_NONE,      [REASON_FUSION_OFF] = ADVICE_OPTION,
    [REASON_OTHER_DOMAIN] = ADVICE_OPS, [REASON_MISALIGNED] = ADVICE_OPS,
    [REASON_BETWEEN] = ADVICE_OPS,      [REASON_FEW_ROWS] = ADVICE_OPS,
    [REASON_TILES] = ADVICE_OPS,        [REASON_TOO_LARGE] = ADVICE_OPS,
    [REASON_COSTLY] = ADVICE_MUST,      [REASON_FACTOR] = ADVICE_MUST,
    [REASON_SLOWER] = ADVICE_MUST,      [REASON_SPILLS] = ADVICE_MUST,
    [REASON_PREPARED] = ADVICE_INPUT,   [REASON_FIXED] = ADVICE_FREE,
    [REASON_NEVER] = ADVICE_FREE,
};

const char *advice_kind_name(AdviceKind kind) {
    static const char *const names[ADVICE_KIND_COUNT] = {
        [ADVICE_OPS] = "ops",       [ADVICE_MUST] = "must",   [ADVICE_NEVER] = "never",
        [ADVICE_FREE] = "free",     [ADVICE_OUTPUT] = "drop", [ADVICE_INPUT] = "input",
        [ADVICE_OPTION] = "fusion",
    };
    return names[kind];
}

/* Steps. */

/* Keeps the list ascending. */
static void add_node(Arena *arena, VecU32 *nodes, NodeId id) {
    uint32_t at = nodes->n;
    while (at > 0 && nodes->data[at - 1] > id) at--;
    if (at > 0 && nodes->data[at - 1] == id) return;
    vec_push(arena, nodes, id);
    for (uint32_t k = nodes->n - 1; k > at; k--) nodes->data[k] = nodes->data[k - 1];
    nodes->data[at] = id;
}

/* A value that another op reads too is stored for that one: all of them belong in the block. */
static void add_users(Arena *arena, const Graph *graph, NodeId of, VecU32 *nodes) {
    for (NodeId id = of + 1; id < graph->nodes.n; id++)
        for (uint32_t i = 0; i < graph_node(graph, id)->n_args; i++)
            if (graph_node(graph, id)->args[i] == of) add_node(arena, nodes, id);
}

/* The params that it comes from, or the literals where there are none. */
static void add_sources(Arena *arena, const Graph *graph, NodeId below, VecU32 *nodes) {
    bool *is_below = arena_array(arena, bool, below + 1);
    VecU32 literals = {0};
    is_below[below] = true;
    for (NodeId id = below + 1; id-- > 0;) {
        const Node *node = graph_node(graph, id);
        for (uint32_t i = 0; is_below[id] && i < node->n_args; i++) is_below[node->args[i]] = true;
        bool is_source = is_below[id] && op_info(node->op)->cls == CLASS_SOURCE;
        if (is_source) add_node(arena, node->op == OP_PARAM ? nodes : &literals, id);
    }
    if (nodes->n == 0) *nodes = literals;
}

static void add_blocked(Arena *arena, const Graph *graph, NodeId id, VecU32 *nodes) {
    if (graph->kernel_of.n && graph->kernel_of.data[id]) add_node(arena, nodes, id);
}

static AdviceStep step_of(Arena *arena, const Graph *graph, const Edge *edge, ReasonId reason) {
    AdviceStep step = {.kind = kinds[reason], .reason = reason};
    switch (step.kind) {
    case ADVICE_NONE:
    case ADVICE_OPTION:
    case ADVICE_OPS:
    case ADVICE_KIND_COUNT:
        break;
    case ADVICE_MUST:
        add_node(arena, &step.nodes, edge->producer);
        add_users(arena, graph, edge->producer, &step.nodes);
        break;
    case ADVICE_NEVER:
        add_node(arena, &step.nodes, edge->consumer);
        break;
    case ADVICE_FREE:
        add_blocked(arena, graph, edge->producer, &step.nodes);
        add_blocked(arena, graph, edge->consumer, &step.nodes);
        break;
    case ADVICE_OUTPUT:
        add_node(arena, &step.nodes, edge->producer);
        break;
    case ADVICE_INPUT:
        add_sources(arena, graph, edge->producer, &step.nodes);
        break;
    }
    return step;
}

/* Following. */

static Graph *graph_copy(Arena *arena, const Graph *graph) {
    Graph *copy = arena_copy(arena, graph, sizeof *graph);
    uint32_t n = graph->nodes.n;
    copy->arena = arena;
    copy->nodes.data = arena_copy(arena, graph->nodes.data, n * sizeof *copy->nodes.data);
    copy->nodes.capacity = n;
    copy->inputs.data =
        arena_copy(arena, graph->inputs.data, graph->inputs.n * sizeof *copy->inputs.data);
    copy->inputs.capacity = graph->inputs.n;
    copy->params.data =
        arena_copy(arena, graph->params.data, graph->params.n * sizeof *copy->params.data);
    copy->outputs.data =
        arena_copy(arena, graph->outputs.data, graph->outputs.n * sizeof *copy->outputs.data);
    uint32_t n_blocks = graph->fixed_kernels.n;
    copy->fixed_kernels.data =
        arena_copy(arena, graph->fixed_kernels.data, n_blocks * sizeof *copy->fixed_kernels.data);
    copy->fixed_kernels.capacity = n_blocks;
    copy->kernel_of.data = arena_array(arena, uint32_t, n);
    copy->kernel_of.n = copy->kernel_of.capacity = n;
    for (NodeId id = 0; graph->kernel_of.n && id < n; id++)
        copy->kernel_of.data[id] = graph->kernel_of.data[id];
    return copy;
}

static void put_in_block(Graph *graph, BlockKind kind, const VecU32 *nodes) {
    FixedKernel block = {.kind = kind, .name = block_word(kind), .span = graph->span};
    vec_push(graph->arena, &graph->fixed_kernels, block);
    for (uint32_t i = 0; i < nodes->n; i++)
        graph->kernel_of.data[nodes->data[i]] = graph->fixed_kernels.n;
}

static void drop_output(Graph *graph, NodeId id) {
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (graph->outputs.data[i].node != id)
            graph->outputs.data[n_kept++] = graph->outputs.data[i];
    graph->outputs.n = n_kept;
}

static void make_input(Graph *graph, NodeId id) {
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < graph->params.n; i++) {
        GraphInput param = graph->params.data[i];
        if (param.node == id)
            vec_push(graph->arena, &graph->inputs, param);
        else
            graph->params.data[n_kept++] = param;
    }
    graph->params.n = n_kept;
    Node *node = graph_node(graph, id);
    bool is_literal = node->op != OP_PARAM;
    GraphInput input = {.name = str_format(graph->arena, "v%u", id), .node = id};
    if (is_literal) vec_push(graph->arena, &graph->inputs, input);
    node->op = OP_INPUT;
}

static void take_step(Graph *graph, const AdviceStep *step) {
    if (step->kind == ADVICE_MUST) put_in_block(graph, BLOCK_MUST, &step->nodes);
    if (step->kind == ADVICE_NEVER) put_in_block(graph, BLOCK_NEVER, &step->nodes);
    for (uint32_t i = 0; i < step->nodes.n; i++) {
        NodeId id = step->nodes.data[i];
        if (step->kind == ADVICE_FREE) graph->kernel_of.data[id] = 0;
        if (step->kind == ADVICE_OUTPUT) drop_output(graph, id);
        if (step->kind == ADVICE_INPUT) make_input(graph, id);
    }
}

Graph *advice_follow(Arena *arena, const Graph *graph, const Advice *advice) {
    Graph *copy = graph_copy(arena, graph);
    for (uint32_t i = 0; i < advice->n_steps; i++) take_step(copy, &advice->steps[i]);
    return copy;
}

/* Settling. */

/* Forms (bit set) of the kernels that compute the node. */
static uint32_t forms_of(const Plan *plan, NodeId id) {
    uint32_t forms = 0;
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        for (uint32_t k = 0; k < kernel->nodes.n; k++)
            if (kernel->nodes.data[k] == id) forms |= 1u << kernel->form;
    }
    return forms;
}

/* What became of an edge when steps were taken. */
typedef struct Tried {
    ReasonId reason; /* for which it is stored; REASON_NONE: it is not, or it cannot be said */
    bool is_alike; /* kernels of the same forms stand at both ends: what is said holds of either */
} Tried;

static Tried try_steps(const AdvicePlanner *planner, const Plan *before, const Advice *advice,
                       const Edge *edge) {
    arena_reset(planner->trial);
    Graph *changed = advice_follow(planner->trial, before->graph, advice);
    const Plan *plan = planner->plan(planner->user, planner->trial, changed);
    for (uint32_t i = 0; plan && i < plan->edges.n; i++) {
        const Edge *then = &plan->edges.data[i];
        if (then->producer != edge->producer || then->consumer != edge->consumer) continue;
        if (then->verdict != EDGE_STORED) break;
        bool is_alike = forms_of(plan, edge->producer) == forms_of(before, edge->producer) &&
                        forms_of(plan, edge->consumer) == forms_of(before, edge->consumer);
        return (Tried){then->reason, is_alike};
    }
    return (Tried){.reason = REASON_NONE};
}

/* Whether a step of this reason was taken already. */
static bool has_reason(const Advice *advice, ReasonId reason) {
    for (uint32_t i = 0; i < advice->n_steps; i++)
        if (advice->steps[i].reason == reason) return true;
    return false;
}

/* No block and no output stands in the way then, but what remains. What an init step prepares, and
 * what the source's blocks keep apart, is stored for that reason all the same. */
static void settle_on_ops(Edge *edge, Advice *advice) {
    AdviceKind first = advice->steps[0].kind;
    if (first != ADVICE_MUST && first != ADVICE_OUTPUT) return;
    advice->steps[0] = advice->steps[advice->n_steps - 1];
    advice->n_steps = 1;
    edge->reason = advice->steps[0].reason;
}

static void settle_edge(Arena *arena, const Plan *plan, const AdvicePlanner *planner, Edge *edge,
                        Advice *advice) {
    uint32_t last = 0;
    bool is_alike = true;
    while (advice->steps[last].kind != ADVICE_OPS && advice->n_steps < ADVICE_MAX_STEPS) {
        Tried tried = try_steps(planner, plan, advice, edge);
        if (tried.reason == REASON_NONE || has_reason(advice, tried.reason)) return;
        last = advice->n_steps++;
        advice->steps[last] = step_of(arena, plan->graph, edge, tried.reason);
        is_alike = tried.is_alike;
    }
    if (advice->steps[last].kind == ADVICE_OPS && is_alike) settle_on_ops(edge, advice);
}

Advice *advice_settle(Arena *arena, Plan *plan, const AdvicePlanner *planner) {
    const Graph *graph = plan->graph;
    Advice *advices = arena_array(arena, Advice, plan->edges.n);
    uint32_t n_tried = 0;
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        Edge *edge = &plan->edges.data[i];
        AdviceStep step = step_of(arena, graph, edge, edge->reason);
        if (step.kind == ADVICE_NONE) continue;
        advices[i] = (Advice){.steps = {step}, .n_steps = 1};
        bool is_choice = edge->verdict == EDGE_STORED && edge->consumer != NODE_NONE &&
                         step.kind != ADVICE_OPTION && step.kind != ADVICE_OPS;
        if (!planner || !is_choice || n_tried + graph->nodes.n > MAX_TRIED_NODES) continue;
        n_tried += graph->nodes.n;
        settle_edge(arena, plan, planner, edge, &advices[i]);
    }
    return advices;
}
