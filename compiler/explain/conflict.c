/* Finds conflicts. See conflict.h. The block is removed and the graph compiled. Each edge that is
 * stored then is tried in a block of its own, with all nodes of the old block that its two kernels
 * compute. */
#include "explain/conflict.h"

#include "explain/must_check.h"

typedef struct Finder {
    Arena *arena;
    const Plan *plan;
    AdvicePlanner *planner;
    uint32_t block;
    Advice removal; /* the step that takes all nodes out of the block */
    VecConflict found;
} Finder;

/* An edge inside the block that is stored without the block, and the nodes that its kernels
 * compute. */
typedef struct BrokenEdge {
    uint32_t edge;
    VecU32 above, all; /* nodes of the producer's kernel; nodes of both kernels */
} BrokenEdge;
typedef Vec(BrokenEdge) BrokenEdges;

static bool is_inside(const Finder *f, const Edge *edge) {
    return edge->consumer != NODE_NONE && must_block(f->plan->graph, edge->producer) == f->block &&
           must_block(f->plan->graph, edge->consumer) == f->block;
}

typedef struct StoreOf {
    NodeId node;
    bool is_found;
} StoreOf;

static void look_for(void *user, const Store *store) {
    StoreOf *of = user;
    of->is_found = of->is_found || store->node == of->node;
}

/* The kernel that stores the value, or, if the value is not stored, the kernel that computes it. */
static const Kernel *maker_of(const Plan *plan, NodeId id, bool is_stored) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        StoreOf of = {.node = id};
        kernel_each_store(kernel, look_for, &of);
        if (vec_has(&kernel->nodes, id) && (of.is_found || !is_stored)) return kernel;
    }
    return NULL;
}

static void add_nodes(const Finder *f, const Kernel *kernel, VecU32 *nodes) {
    for (uint32_t i = 0; kernel && i < kernel->nodes.n; i++)
        if (must_block(f->plan->graph, kernel->nodes.data[i]) == f->block)
            advice_add_node(f->arena, nodes, kernel->nodes.data[i]);
}

static BrokenEdges find_broken(const Finder *f, const Plan *free) {
    BrokenEdges broken = {0};
    for (uint32_t i = 0; i < free->edges.n; i++) {
        const Edge *edge = &free->edges.data[i];
        if (!is_inside(f, edge) || !must_forbids(edge)) continue;
        BrokenEdge broken_edge = {.edge = i};
        add_nodes(f, maker_of(free, edge->producer, true), &broken_edge.above);
        add_nodes(f, maker_of(free, edge->producer, true), &broken_edge.all);
        add_nodes(f, maker_of(free, edge->consumer, false), &broken_edge.all);
        advice_add_node(f->arena, &broken_edge.all, edge->producer);
        advice_add_node(f->arena, &broken_edge.all, edge->consumer);
        vec_push(f->arena, &broken, broken_edge);
    }
    return broken;
}

/* The last reduction from which the edge's value is computed, if the value would become an operand
 * of a matmul; otherwise NODE_NONE. */
static NodeId folded_operand(const Finder *f, const BrokenEdge *broken_edge) {
    const Graph *graph = f->plan->graph;
    const Edge *edge = &f->plan->edges.data[broken_edge->edge];
    NodeId folded = NODE_NONE;
    bool is_operand = false;
    for (uint32_t i = 0; i < broken_edge->all.n; i++) {
        NodeId id = broken_edge->all.data[i];
        is_operand = is_operand || (id >= edge->consumer && graph_is_matmul(graph, id));
    }
    for (uint32_t i = 0; i < broken_edge->above.n && broken_edge->above.data[i] <= edge->producer;
         i++) {
        OpClass cls = graph_class(graph, broken_edge->above.data[i]);
        if (cls == CLASS_REDUCE || cls == CLASS_ARGREDUCE) folded = broken_edge->above.data[i];
    }
    return is_operand ? folded : NODE_NONE;
}

/* Compiles a block of the edge's nodes alone, without `dropped` as outputs. Returns why the edge
 * is stored, or why the first other edge is; REASON_NONE: all are fused, or the limit of
 * compilations is reached. */
static ReasonId try_edge(const Finder *f, const BrokenEdge *broken_edge, const VecU32 *dropped) {
    Advice advice = f->removal;
    const Edge *own = &f->plan->edges.data[broken_edge->edge];
    ReasonId reason = REASON_NONE;
    advice.steps[advice.n_steps++] = (AdviceStep){.kind = ADVICE_MUST, .nodes = broken_edge->all};
    advice.steps[advice.n_steps++] = (AdviceStep){.kind = ADVICE_OUTPUT, .nodes = *dropped};
    const Plan *then = advice_try(f->planner, f->plan->graph, &advice);
    for (uint32_t i = 0; then && i < then->edges.n; i++) {
        const Edge *edge = &then->edges.data[i];
        if (!must_breaks(then, edge) || !vec_has(&broken_edge->all, edge->producer)) continue;
        bool is_own = edge->producer == own->producer && edge->consumer == own->consumer;
        if (is_own || !reason) reason = edge->reason;
    }
    return reason;
}

/* The nodes that others of `nodes` read. */
static VecU32 read_inside(const Finder *f, const VecU32 *nodes) {
    VecU32 read = {0};
    for (uint32_t i = 0; i < f->plan->edges.n; i++) {
        const Edge *edge = &f->plan->edges.data[i];
        if (edge->consumer != NODE_NONE && vec_has(nodes, edge->producer) &&
            vec_has(nodes, edge->consumer))
            advice_add_node(f->arena, &read, edge->producer);
    }
    return read;
}

/* The reason in a block of the edge's nodes alone. REASON_OUTPUT counts only if the edge's own
 * value is an output and no other reason remains without outputs. */
static ReasonId reason_alone(const Finder *f, const BrokenEdge *broken_edge) {
    VecU32 none = {0}, read = read_inside(f, &broken_edge->all);
    ReasonId reason = try_edge(f, broken_edge, &none);
    if (reason != REASON_OUTPUT) return reason;
    ReasonId other = try_edge(f, broken_edge, &read);
    const Edge *own = &f->plan->edges.data[broken_edge->edge];
    return other || !graph_is_output(f->plan->graph, own->producer) ? other : reason;
}

/* The reason of the conflict. A value that has more readers is stored for them, and their reason
 * hides the conflict. Then the reason of an edge that the plan with the whole block stores says
 * more. */
static ReasonId reason_of(const Finder *f, const BrokenEdge *broken_edge) {
    ReasonId reason = reason_alone(f, broken_edge);
    bool is_choice = reason == REASON_OPERAND || reason == REASON_COSTLY || reason == REASON_SLOWER;
    for (uint32_t i = 0; is_choice && i < f->plan->edges.n; i++) {
        const Edge *edge = &f->plan->edges.data[i];
        if (must_breaks(f->plan, edge) && vec_has(&broken_edge->all, edge->producer))
            return edge->reason;
    }
    return reason;
}

/* Whether the block can be fused without `left` and the nodes that depend on it. */
static bool holds_without(const Finder *f, NodeId left) {
    const Graph *graph = f->plan->graph;
    Advice advice = f->removal;
    VecU32 kept = {0}, gone = {0};
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        bool rests = id == left;
        for (uint32_t i = 0; i < node->n_args && !rests; i++) rests = vec_has(&gone, node->args[i]);
        if (rests)
            vec_push(f->arena, &gone, id);
        else if (must_block(graph, id) == f->block)
            advice_add_node(f->arena, &kept, id);
    }
    if (kept.n < 2) return false;
    advice.steps[advice.n_steps++] = (AdviceStep){.kind = ADVICE_MUST, .nodes = kept};
    const Plan *then = advice_try(f->planner, graph, &advice);
    return then && must_n_broken(then) == 0;
}

/* Whether both nodes belong to one expression of the source: a call of a def, or of a function of
 * the language. */
static bool is_one_call(const Graph *graph, NodeId a, NodeId b) {
    const Node *one = graph_node(graph, a), *other = graph_node(graph, b);
    if (one->call != other->call) return false;
    return one->call || (one->span.begin == other->span.begin && one->span.end == other->span.end);
}

/* Finds the node that must leave the block: the reader. If both ends belong to one call, it is the
 * reader of the call's result instead. */
static void find_left(const Finder *f, Conflict *conflict) {
    const Graph *graph = f->plan->graph;
    const Edge *own = &f->plan->edges.data[conflict->edge];
    conflict->left = NODE_NONE;
    if (!is_one_call(graph, own->producer, own->consumer)) {
        if (holds_without(f, own->consumer)) conflict->left = own->consumer;
        return;
    }
    for (uint32_t i = 0; i < f->plan->edges.n; i++) {
        const Edge *edge = &f->plan->edges.data[i];
        if (!is_inside(f, edge) || !is_one_call(graph, edge->producer, own->producer) ||
            is_one_call(graph, edge->consumer, own->producer) || !holds_without(f, edge->consumer))
            continue;
        conflict->edge = i;
        conflict->left = edge->consumer;
        return;
    }
}

static void search_block(Finder *f) {
    const Graph *graph = f->plan->graph;
    AdviceStep step = {.kind = ADVICE_FREE};
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (must_block(graph, id) == f->block) advice_add_node(f->arena, &step.nodes, id);
    f->removal = (Advice){.steps = {step}, .n_steps = 1};
    const Plan *free = advice_try(f->planner, graph, &f->removal);
    if (!free || free->edges.n != f->plan->edges.n) return;
    BrokenEdges broken = find_broken(f, free);
    for (uint32_t i = 0; i < broken.n; i++) {
        const BrokenEdge *broken_edge = &broken.data[i];
        Conflict conflict = {.edge = broken_edge->edge, .block = f->block};
        conflict.reason = reason_of(f, broken_edge);
        conflict.folded = folded_operand(f, broken_edge);
        if (!conflict.reason) continue;
        find_left(f, &conflict);
        vec_push(f->arena, &f->found, conflict);
    }
}

VecConflict conflict_find(Arena *arena, const Plan *plan, AdvicePlanner *planner) {
    Finder f = {.arena = arena, .plan = plan, .planner = planner};
    const bool *is_broken = must_broken_blocks(arena, plan);
    for (f.block = 1; f.block <= plan->graph->fixed_kernels.n; f.block++)
        if (is_broken[f.block]) search_block(&f);
    return f.found;
}
