/* Finds the steps of every edge. See advice.h. Grouping as a whole decides whether a value that is
 * no output, or is in a block, is still stored. So the compiler does not predict the result of a
 * step: it compiles the changed graph. */
#include "explain/advice.h"
#include "machine/tuning.h"

#include "explain/must_check.h"
#include "ir/node_flags.h"

/* By reason: the kind of change that changes the verdict. */
static const AdviceKind kinds[REASON_COUNT] = {
    [REASON_INLINED] = ADVICE_NEVER,     [REASON_SAME_PASS] = ADVICE_NEVER,
    [REASON_VIEW] = ADVICE_NEVER,        [REASON_CONCAT_IN_PLACE] = ADVICE_NEVER,
    [REASON_SLICE_STORE] = ADVICE_NEVER, [REASON_MATMUL_SLICE] = ADVICE_NEVER,
    [REASON_SAME_BLOCK] = ADVICE_NEVER,  [REASON_UNREAD] = ADVICE_NONE,
    [REASON_SAME_LAUNCH] = ADVICE_NEVER, [REASON_CHEAP] = ADVICE_NEVER,
    [REASON_OUTPUT] = ADVICE_OUTPUT,     [REASON_SOURCE] = ADVICE_NONE,
    [REASON_FUSION_OFF] = ADVICE_OPTION, [REASON_OTHER_DOMAIN] = ADVICE_OPS,
    [REASON_MISALIGNED] = ADVICE_OPS,    [REASON_BETWEEN] = ADVICE_OPS,
    [REASON_FEW_ROWS] = ADVICE_OPS,      [REASON_SEGMENTS] = ADVICE_OPS,
    [REASON_TILES] = ADVICE_OPS,         [REASON_TOO_LARGE] = ADVICE_OPS,
    [REASON_COSTLY] = ADVICE_MUST,       [REASON_OPERAND] = ADVICE_MUST,
    [REASON_SLOWER] = ADVICE_MUST,       [REASON_SPILLS] = ADVICE_MUST,
    [REASON_PREPARED] = ADVICE_INPUT,    [REASON_FIXED] = ADVICE_FREE,
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

void advice_add_node(Arena *arena, VecU32 *nodes, NodeId id) {
    uint32_t at = nodes->n;
    while (at > 0 && nodes->data[at - 1] > id) at--;
    if (at > 0 && nodes->data[at - 1] == id) return;
    vec_push(arena, nodes, id);
    for (uint32_t k = nodes->n - 1; k > at; k--) nodes->data[k] = nodes->data[k - 1];
    nodes->data[at] = id;
}

/* Adds all readers of `of`. The value is stored for each of them, so the block needs them all. */
static void add_users(Arena *arena, const Graph *graph, NodeId of, VecU32 *nodes) {
    for (NodeId id = of + 1; id < graph->nodes.n; id++)
        for (uint32_t i = 0; i < graph_node(graph, id)->n_args; i++)
            if (graph_node(graph, id)->args[i] == of) advice_add_node(arena, nodes, id);
}

/* A node from which a value is computed, or the value itself. */
enum { NODE_BELOW, NODE_ABOVE_INPUT };

/* Flags the arguments of a flagged node. Returns whether the node is flagged. */
static bool flag_args(const Graph *graph, NodeFlags flags, NodeId id) {
    const Node *node = graph_node(graph, id);
    if (!node_has(flags, id, NODE_BELOW)) return false;
    for (uint32_t i = 0; i < node->n_args; i++) node_add(flags, node->args[i], NODE_BELOW);
    return true;
}

/* Adds the params from which `below` is computed, or the literals if it depends on no param. */
static void add_sources(Arena *arena, const Graph *graph, NodeId below, VecU32 *nodes) {
    NodeFlags flags = node_flags_new(arena, below + 1);
    VecU32 literals = {0};
    node_add(flags, below, NODE_BELOW);
    for (NodeId id = below + 1; id-- > 0;) {
        const Node *node = graph_node(graph, id);
        bool is_source = flag_args(graph, flags, id) && op_info(node->op)->cls == CLASS_SOURCE;
        if (is_source) advice_add_node(arena, node->op == OP_PARAM ? nodes : &literals, id);
    }
    if (nodes->n == 0) *nodes = literals;
}

/* Adds a node that is in a block, with all ops of its call of a def. */
static void add_blocked(Arena *arena, const Graph *graph, NodeId id, BlockKind kind,
                        VecU32 *nodes) {
    uint32_t block = graph_block(graph, id, kind);
    for (NodeId of = 0; of < graph->nodes.n && block; of++)
        if (graph_block(graph, of, kind) == block && advice_is_same_unit(graph, id, of))
            advice_add_node(arena, nodes, of);
}

/* Adds the nodes that must leave their block: the ends of the edge, or, if neither is in a block,
 * the other readers of the value. */
static void add_freed(Arena *arena, const Graph *graph, const Edge *edge, BlockKind kind,
                      VecU32 *nodes) {
    VecU32 users = {0};
    add_blocked(arena, graph, edge->producer, kind, nodes);
    add_blocked(arena, graph, edge->consumer, kind, nodes);
    if (nodes->n) return;
    add_users(arena, graph, edge->producer, &users);
    for (uint32_t i = 0; i < users.n; i++) add_blocked(arena, graph, users.data[i], kind, nodes);
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
        advice_add_node(arena, &step.nodes, edge->producer);
        advice_add_node(arena, &step.nodes, edge->consumer);
        break;
    case ADVICE_NEVER:
        advice_add_node(arena, &step.nodes, edge->consumer);
        break;
    case ADVICE_FREE:
        add_freed(arena, graph, edge, reason == REASON_NEVER ? BLOCK_NEVER : BLOCK_KERNEL,
                  &step.nodes);
        break;
    case ADVICE_OUTPUT:
        advice_add_node(arena, &step.nodes, edge->producer);
        break;
    case ADVICE_INPUT:
        add_sources(arena, graph, edge->producer, &step.nodes);
        break;
    }
    return step;
}

/* Taking steps. */

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

/* Puts the nodes into a new block. A block that contains one of them becomes part of the new block,
 * so `fuse must` blocks grow. */
static void put_in_block(Graph *graph, BlockKind kind, const VecU32 *nodes) {
    FixedKernel block = {.kind = kind, .name = block_word(kind), .span = graph->span};
    vec_push(graph->arena, &graph->fixed_kernels, block);
    for (uint32_t i = 0; i < nodes->n; i++) {
        uint32_t before = graph_block(graph, nodes->data[i], kind);
        graph->kernel_of.data[nodes->data[i]] = graph->fixed_kernels.n;
        for (NodeId id = 0; before && id < graph->nodes.n; id++)
            if (graph->kernel_of.data[id] == before)
                graph->kernel_of.data[id] = graph->fixed_kernels.n;
    }
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

/* Finding steps. */

/* The forms (bit set) of the kernels that compute the node. */
static uint32_t forms_of(const Plan *plan, NodeId id) {
    uint32_t forms = 0;
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        for (uint32_t k = 0; k < kernel->nodes.n; k++)
            if (kernel->nodes.data[k] == id) forms |= 1u << kernel->form;
    }
    return forms;
}

typedef struct Settler {
    Arena *arena;
    const Plan *plan;
    AdvicePlanner *planner;
    AdviceUnits *units;
    uint32_t n_broken; /* edges that break `fuse must` blocks of the source */
    double current_us[COST_MAX_POINTS];
} Settler;

/* The verdict of an edge after steps are taken. */
typedef struct Tried {
    bool flips;      /* the edge has the other verdict, and no more edges break `fuse must`
                      * blocks */
    ReasonId reason; /* otherwise: why the edge keeps its verdict; REASON_NONE: unknown */
    bool is_other;   /* the reason belongs to another edge of the same block */
    bool is_refused; /* nothing was tried, because the work is spent */
    bool is_alike; /* kernels of the same forms compute both ends as before, so the reason holds for
                    * the original plan too */
} Tried;

/* The reason of the first stored edge inside a `fuse must` block. */
static ReasonId broken_reason(const Plan *plan) {
    for (uint32_t i = 0; i < plan->edges.n; i++)
        if (must_breaks(plan, &plan->edges.data[i])) return plan->edges.data[i].reason;
    return REASON_NONE;
}

/* The same edge in another plan of the graph, or NULL. Both plans list edges in about the same
 * order, so the search begins at `from`. */
static const Edge *find_edge(const Plan *plan, const Edge *like, uint32_t from) {
    for (uint32_t i = 0, n = plan->edges.n; i < n; i++) {
        const Edge *edge = &plan->edges.data[(from + i) % n];
        if (edge->producer == like->producer && edge->consumer == like->consumer) return edge;
    }
    return NULL;
}

void advice_limit(AdvicePlanner *planner, const uint64_t *work) {
    planner->work = work;
    planner->last_work = *work;
    planner->most_work = *work + EXPLAIN_TRIED_WORK;
}

/* Whether the work is spent. Notes that a trial is left out. */
static bool advice_refuses(AdvicePlanner *planner) {
    bool refuses = planner->work && *planner->work + planner->last_work > planner->most_work;
    planner->n_refused += refuses;
    return refuses;
}

Plan *advice_try(AdvicePlanner *planner, const Graph *graph, const Advice *advice) {
    uint64_t before = planner->work ? *planner->work : 0;
    if (advice_refuses(planner)) return NULL;
    arena_reset(planner->trial);
    Graph *changed = advice_follow(planner->trial, graph, advice);
    Plan *plan = planner->plan(planner->user, planner->trial, changed);
    if (!planner->work) return plan;
    planner->last_work = *planner->work - before;
    if (*planner->work <= planner->most_work) return plan;
    planner->n_refused++; /* its search may have ended early */
    return NULL;
}

/* Prices the changed plan and lists the fused edges that it stores. */
static void price_steps(Settler *s, Plan *then, Advice *advice) {
    AdvicePlanner *planner = s->planner;
    if (!planner->price) return;
    advice->is_priced = true;
    advice->lost.n = 0;
    for (uint32_t i = 0, at = 0; i < s->plan->edges.n; i++) {
        const Edge *edge = &s->plan->edges.data[i];
        const Edge *other = edge->verdict == EDGE_FUSED ? find_edge(then, edge, at) : NULL;
        if (other) at = (uint32_t)(other - then->edges.data);
        bool is_lost = other && other->verdict == EDGE_STORED;
        if (is_lost) vec_push(s->arena, &advice->lost, i);
    }
    advice->then = planner->price(planner->user, planner->trial, then);
    advice->prices.n = 0;
    for (uint32_t i = 0; i < planner->points.n; i++) {
        ChangePrice price = {.dims = planner->points.dims[i], .current_us = s->current_us[i]};
        price.changed_us = planner->price_at(planner->user, planner->trial, then, price.dims);
        vec_push(s->arena, &advice->prices, price);
    }
}

static Tried try_steps(Settler *s, Advice *advice, const Edge *edge) {
    Tried tried = {.flips = false};
    Plan *plan = advice_try(s->planner, s->plan->graph, advice);
    const Edge *then = plan ? find_edge(plan, edge, 0) : NULL;
    if (!then) return tried;
    if (then->verdict == EDGE_STORED) {
        tried.reason = then->reason;
        tried.is_alike = forms_of(plan, edge->producer) == forms_of(s->plan, edge->producer) &&
                         forms_of(plan, edge->consumer) == forms_of(s->plan, edge->consumer);
        return tried;
    }
    /* The steps do not count if another edge breaks a block instead of this one. */
    tried.flips = must_n_broken(plan) + must_breaks(s->plan, edge) <= s->n_broken;
    if (tried.flips)
        price_steps(s, plan, advice);
    else
        tried = (Tried){.reason = broken_reason(plan), .is_other = true};
    return tried;
}

/* Tries the last step with the smallest block around `ends`. A block takes time in the nodes
 * between its ends, so a step that is not tried names the ends alone. */
static Tried try_nodes(Settler *s, Advice *advice, const VecU32 *ends, const Edge *edge) {
    AdviceStep *last = &advice->steps[advice->n_steps - 1];
    last->nodes = *ends;
    if (advice_refuses(s->planner)) return (Tried){.is_refused = true};
    last->nodes = (VecU32){0};
    if (!advice_block(s->arena, s->units, ends, &last->nodes))
        return (Tried){.reason = last->reason, .is_other = true};
    return try_steps(s, advice, edge);
}

/* Tries the last step as a `fuse must` block around the edge's ends. If that fails and a choice of
 * the compiler stores the value, it tries a block around all readers, since the value is stored for
 * each of them. */
static Tried try_must(Settler *s, Advice *advice, const Edge *edge) {
    VecU32 ends = {0}, all = {0};
    advice_add_node(s->arena, &ends, edge->producer);
    advice_add_node(s->arena, &ends, edge->consumer);
    AdviceStep step = advice->steps[advice->n_steps - 1];
    advice->steps[advice->n_steps - 1].kind = ADVICE_MUST;
    Tried tried = try_nodes(s, advice, &ends, edge);
    if (tried.flips || tried.is_refused || step.kind != ADVICE_MUST) return tried;
    advice_add_node(s->arena, &all, edge->producer);
    add_users(s->arena, s->plan->graph, edge->producer, &all);
    if (all.n <= ends.n) return tried;
    Tried wide = try_nodes(s, advice, &all, edge);
    return wide.flips || (tried.reason == step.reason && !tried.is_other) ? wide : tried;
}

/* Whether the advice has a step for this reason. */
static bool has_reason(const Advice *advice, ReasonId reason) {
    for (uint32_t i = 0; i < advice->n_steps; i++)
        if (advice->steps[i].reason == reason) return true;
    return false;
}

/* Makes the last step ADVICE_OPS: no step for its reason changes the verdict. */
static void leave_to_ops(Advice *advice) {
    AdviceStep *last = &advice->steps[advice->n_steps - 1];
    *last = (AdviceStep){.kind = ADVICE_OPS, .reason = last->reason};
}

/* Gives the edge the reason that remains after its first step, if that step is `fuse must` or
 * removes an output. A value that an init step prepares, or that blocks of the source keep apart,
 * keeps its reason. */
static void settle_on_ops(Edge *edge, Advice *advice) {
    AdviceKind first = advice->steps[0].kind;
    if (advice->n_steps < 2 || (first != ADVICE_MUST && first != ADVICE_OUTPUT)) return;
    advice->steps[0] = advice->steps[advice->n_steps - 1];
    advice->n_steps = 1;
    edge->reason = advice->steps[0].reason;
}

static void settle_edge(Settler *s, Edge *edge, Advice *advice) {
    bool is_alike = true, breaks = must_breaks(s->plan, edge);
    while (true) {
        AdviceStep *last = &advice->steps[advice->n_steps - 1];
        AdviceKind kind = last->kind;
        bool may_insist = kind == ADVICE_MUST || kind == ADVICE_OPS;
        Tried tried = may_insist ? try_must(s, advice, edge) : try_steps(s, advice, edge);
        advice->is_tried = tried.flips || tried.reason;
        if (tried.flips) return;
        if (tried.is_other && may_insist) { /* the edge's own reason remains: no block fuses both
                                             * edges */
            leave_to_ops(advice);
            break;
        }
        bool is_stuck = has_reason(advice, tried.reason) || advice->n_steps == ADVICE_MAX_STEPS;
        if (kind == ADVICE_OPS || (tried.reason && is_stuck)) leave_to_ops(advice);
        if (!tried.reason || is_stuck) break;
        advice->steps[advice->n_steps++] = step_of(s->arena, s->plan->graph, edge, tried.reason);
        is_alike = tried.is_alike;
        if (kind == ADVICE_OPS) leave_to_ops(advice); /* since `fuse must` fails */
        if (may_insist && advice->steps[advice->n_steps - 1].kind == ADVICE_OPS) break;
    }
    bool is_left = advice->steps[advice->n_steps - 1].kind == ADVICE_OPS;
    if (is_left && (is_alike || breaks)) settle_on_ops(edge, advice);
}

/* Flags the nodes that depend on an input. */
static NodeFlags find_above_inputs(Arena *arena, const Graph *graph) {
    NodeFlags flags = node_flags_new(arena, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        bool is_above = node->op == OP_INPUT;
        for (uint32_t i = 0; i < node->n_args; i++)
            is_above = is_above || node_has(flags, node->args[i], NODE_ABOVE_INPUT);
        node_set(flags, id, NODE_ABOVE_INPUT, is_above);
    }
    return flags;
}

Advice *advice_settle(Arena *arena, Plan *plan, AdvicePlanner *planner) {
    const Graph *graph = plan->graph;
    Advice *advices = arena_array(arena, Advice, plan->edges.n);
    Settler s = {.arena = arena,
                 .plan = plan,
                 .planner = planner,
                 .units = advice_units(arena, graph),
                 .n_broken = must_n_broken(plan)};
    NodeFlags above = find_above_inputs(arena, graph);
    for (uint32_t i = 0; planner && i < planner->points.n; i++)
        s.current_us[i] = planner->price_at(planner->user, arena, plan, planner->points.dims[i]);
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        Edge *edge = &plan->edges.data[i];
        AdviceStep step = step_of(arena, graph, edge, edge->reason);
        if (step.kind == ADVICE_NONE) continue;
        advices[i] = (Advice){.steps = {step}, .n_steps = 1};
        advices[i].has_input = node_has(above, edge->producer, NODE_ABOVE_INPUT);
        bool is_choice = edge->verdict == EDGE_STORED && edge->consumer != NODE_NONE &&
                         step.kind != ADVICE_OPTION;
        if (planner && is_choice) settle_edge(&s, edge, &advices[i]);
    }
    return advices;
}
