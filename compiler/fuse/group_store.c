/* Which values are worth storing: costly values that would be recomputed, operands of GEMMs, and
 * common first results of several kernels. See group_state.h. */
#include "fuse/group_state.h"
#include "ir/indexmap.h"
#include "plan/must.h"
#include "machine/tuning.h"

/* The cost of computing one element of each node from memory: its own body and those of its inlined
 * arguments, once per use (an upper bound, because shared parts count at every use). */
static double *closure_costs(const Grouper *p) {
    double *cost = arena_array(p->arena, double, p->graph->nodes.n);
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        const Node *node = graph_node(p->graph, id);
        bool is_read = p->g->group_of[id] != GROUP_NONE &&
                       (node_has(p->flags, id, GROUPING_STORED) || group_folds(p, id));
        if (is_read || node_has(p->flags, id, GROUPING_NUMBER)) continue;
        cost[id] = p->op_cost[node->op];
        for (uint32_t i = 0; i < node->n_args; i++) cost[id] += cost[node->args[i]];
        if (cost[id] > 1e9) cost[id] = 1e9;
    }
    return cost;
}

double group_elems_hi(const Graph *graph, NodeId id) {
    const Shape *shape = &graph_node(graph, id)->shape;
    double n = 1;
    for (uint32_t k = 0; k < shape->rank; k++) n *= (double)dim_hi(graph->dims, shape->dims[k]);
    return n;
}

double group_repetition(const Grouper *p, NodeId id) {
    const VecU32 *users = &p->users[id];
    const Graph *graph = p->graph;
    double direct = 0, viewed = 0, own = group_elems_hi(graph, id);
    for (uint32_t i = 0; i < users->n; i++) {
        NodeId user = users->data[i];
        OpClass cls = graph_class(graph, user);
        bool reads_each_once =
            cls == CLASS_CONCAT || (cls != CLASS_MATMUL && graph_is_reduction(graph, user));
        double n = reads_each_once ? own : group_elems_hi(graph, user);
        if (cls == CLASS_VIEW)
            viewed += n;
        else if (n > direct)
            direct = n;
    }
    return own > 0 ? (direct + viewed) / own : 1;
}

bool group_has_views(const Grouper *p, NodeId id) {
    for (uint32_t i = 0; i < p->users[id].n; i++)
        if (graph_class(p->graph, p->users[id].data[i]) == CLASS_VIEW) return true;
    return false;
}

/* Whether a `fuse must` block keeps the value out of memory. */
static bool must_fuse(const Grouper *p, NodeId id) {
    return !decisions_ask(p->decisions, id, DIRECTIVE_MUST_RELEASE) &&
           must_has_readers(p->graph, p->users, id);
}

bool group_leaves_block(const Grouper *p, NodeId id) {
    uint32_t fixed = p->off ? 0 : group_fixed_block(p->graph, id);
    for (uint32_t i = 0; fixed && i < p->users[id].n; i++) {
        NodeId user = p->users[id].data[i];
        if (!node_has(p->flags, user, GROUPING_IN_PLACE) &&
            group_fixed_block(p->graph, user) != fixed)
            return true;
    }
    return false;
}

bool group_want_stored(Grouper *p, NodeId id, ReasonId reason) {
    bool is_choice = reason == REASON_COSTLY || reason == REASON_OPERAND ||
                     reason == REASON_SLOWER || reason == REASON_SPILLS;
    bool is_fixed = !p->off && graph_block(p->graph, id, BLOCK_KERNEL);
    if (node_has(p->flags, id, GROUPING_WANTED) || (is_choice && must_fuse(p, id)) ||
        (reason != REASON_TOO_LARGE && is_fixed))
        return false;
    node_add(p->flags, id, GROUPING_WANTED);
    p->want_reason[id] = reason;
    return true;
}

/* The number of groups that compute each node in registers. */
static uint32_t *count_makers(const Grouper *p) {
    uint32_t *makers = arena_array(p->arena, uint32_t, p->graph->nodes.n);
    InlineFailure failure;
    for (uint32_t i = 0; i < p->g->groups.n; i++)
        group_attempt(p, &p->g->groups.data[i], i, &failure, makers);
    return makers;
}

void group_flag_uses(const Grouper *p) {
    const Graph *graph = p->graph;
    for (NodeId id = graph->nodes.n; id-- > 0;)
        for (uint32_t i = 0; i < p->users[id].n; i++) {
            NodeId user = p->users[id].data[i];
            OpClass cls = graph_class(graph, user);
            bool is_view = cls == CLASS_VIEW || cls == CLASS_CONCAT;
            bool is_operand = cls == CLASS_MATMUL ||
                              (cls == CLASS_ONLINE && id == graph_node(graph, user)->args[1]);
            if (is_operand || (is_view && node_has(p->flags, user, GROUPING_FEEDS_GEMM)))
                node_add(p->flags, id, GROUPING_FEEDS_GEMM);
        }
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        for (uint32_t i = 0; i < node->n_args; i++)
            if (graph_is_reduction(graph, node->args[i]) ||
                node_has(p->flags, node->args[i], GROUPING_REDUCED))
                node_add(p->flags, id, GROUPING_REDUCED);
    }
}

/* Whether several groups compute the value and one of them continues from this value alone. Such a
 * value should be stored; everything before it is then computed once too. */
static bool is_frontier(const Grouper *p, NodeId id, const uint32_t *makers) {
    for (uint32_t i = 0; i < p->users[id].n; i++)
        if (makers[p->users[id].data[i]] < makers[id]) return makers[id] > 1;
    return false;
}

/* Whether some group computes the value and none stores it. */
static bool is_unstored(const Grouper *p, NodeId id, const uint32_t *makers) {
    return p->g->group_of[id] == GROUP_NONE && makers[id] > 0 &&
           !node_has(p->flags, id, GROUPING_INSIDE);
}

static bool is_inlined(const Grouper *p, NodeId id, const uint32_t *makers) {
    OpClass cls = graph_class(p->graph, id);
    return (cls == CLASS_ELTWISE || cls == CLASS_CAST) && is_unstored(p, id, makers);
}

/* Until operands are stored, each product of a layer inlines what the layers before it add up. So
 * those are stored at once that the first round would find. What params determine has a reason of
 * its own. */
void group_want_operands(Grouper *p) {
    group_find_gemm_slices(p);
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        OpClass cls = graph_class(p->graph, id);
        bool is_point = cls == CLASS_ELTWISE || cls == CLASS_CAST;
        bool has_place = node_has(p->flags, id, GROUPING_OUTPUT) ||
                         node_has(p->flags, id, GROUPING_INSIDE) || group_folds(p, id);
        if (is_point && !has_place && node_has(p->flags, id, GROUPING_FEEDS_GEMM) &&
            !node_has(p->flags, id, GROUPING_CAN_PREPARE) &&
            !decisions_ask(p->decisions, id, DIRECTIVE_RECOMPUTE))
            group_want_stored(p, id, REASON_OPERAND);
    }
}

/* A GEMM reads its operands repeatedly, so an operand is worth storing at any cost. */
static bool store_operands(Grouper *p, const uint32_t *makers) {
    bool changed = false;
    for (NodeId id = 0; id < p->graph->nodes.n; id++)
        if (node_has(p->flags, id, GROUPING_FEEDS_GEMM) && is_inlined(p, id, makers) &&
            !decisions_ask(p->decisions, id, DIRECTIVE_RECOMPUTE))
            changed = group_want_stored(p, id, REASON_OPERAND) || changed;
    return changed;
}

/* The sort of whose order a few views and elementwise ops make places; NODE_NONE: there is none. */
static NodeId find_order(const Graph *graph, NodeId id, uint32_t n_steps) {
    const Node *node = graph_node(graph, id);
    OpClass cls = graph_class(graph, id);
    bool is_point = cls == CLASS_ELTWISE || cls == CLASS_CAST || cls == CLASS_VIEW;
    NodeId order = cls == CLASS_SORT ? id : NODE_NONE;
    for (uint32_t i = 0; i < node->n_args && is_point && n_steps && order == NODE_NONE; i++)
        order = find_order(graph, node->args[i], n_steps - 1);
    return order;
}

/* The gather by the order of a sort that views of one argument move, or the outermost of the views
 * that has the shape of the sort, whose kernel can store it; NODE_NONE: it is none. A GPU's sort
 * stores many numbers of several rows in more time than few searches save. */
static NodeId find_ordered(const Grouper *p, NodeId id) {
    enum { MOST_STEPS = 4 };
    const Graph *graph = p->graph;
    NodeId gather = graph_below_views(graph, id);
    const Node *node = graph_node(graph, gather);
    bool is_gather = graph_class(graph, gather) == CLASS_VIEW && node->n_args == 2;
    NodeId order =
        is_gather ? find_order(graph, node->args[1], p->has_cores ? MOST_STEPS : 0) : NODE_NONE;
    if (order == NODE_NONE) return NODE_NONE;
    const Shape *own = &graph_node(graph, order)->shape;
    while (id != gather && !shape_equal(&graph_node(graph, id)->shape, own))
        id = graph_node(graph, id)->args[0];
    return id;
}

/* A sort reads its keys again and again, and segments search their numbers. The sort can store
 * numbers in its order, so that a step of the search reads one place. */
static bool store_keys(Grouper *p, const uint32_t *makers) {
    bool changed = false;
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        OpClass cls = graph_class(p->graph, id);
        if (cls != CLASS_SORT && cls != CLASS_SEGMENT) continue;
        NodeId keys = graph_node(p->graph, id)->args[cls == CLASS_SEGMENT];
        NodeId ordered = cls == CLASS_SEGMENT ? find_ordered(p, keys) : NODE_NONE;
        if (cls == CLASS_SORT) keys = graph_below_views(p->graph, keys);
        bool is_ordered = ordered != NODE_NONE && is_unstored(p, ordered, makers);
        if (is_ordered) keys = ordered;
        bool is_read = (is_ordered || is_inlined(p, keys, makers)) &&
                       !decisions_ask(p->decisions, keys, DIRECTIVE_RECOMPUTE);
        if (is_read) changed = group_want_stored(p, keys, REASON_COSTLY) || changed;
    }
    return changed;
}

/* Values that are computed several times, at a cost. */
static bool store_costly(Grouper *p, const uint32_t *makers) {
    double least_spread = p->has_cores ? FUSE_COSTLY_CPU_BROADCAST : FUSE_COSTLY_BROADCAST;
    const double *cost = closure_costs(p);
    bool changed = false;
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        if (cost[id] < FUSE_COSTLY_PRIMS || !is_inlined(p, id, makers) ||
            decisions_ask(p->decisions, id, DIRECTIVE_RECOMPUTE))
            continue;
        double repeats = group_repetition(p, id);
        bool has_views = group_has_views(p, id);
        bool is_costly = is_frontier(p, id, makers) || (has_views && repeats > 1.0);
        bool is_computed =
            !node_has(p->flags, id, GROUPING_REDUCED) && cost[id] >= least_spread && repeats > 1.0;
        if (is_costly || is_computed) changed = group_want_stored(p, id, REASON_COSTLY) || changed;
    }
    return changed;
}
_Static_assert((int)FUSE_COSTLY_PRIMS <= (int)FUSE_COSTLY_BROADCAST &&
                   (int)FUSE_COSTLY_PRIMS <= (int)FUSE_COSTLY_CPU_BROADCAST,
               "a value that is stored for its readers' extents is costly");

static bool find_costly(Grouper *p, const uint32_t *makers) {
    bool changed = store_operands(p, makers);
    changed = store_keys(p, makers) || changed;
    if (changed) return true; /* the others may not repeat any more */
    ArenaMark mark = arena_mark(p->arena);
    changed = store_costly(p, makers);
    arena_rewind(p->arena, mark);
    return changed;
}

/* The cost of computing one element of the node from memory, counting each node once, and the bytes
 * that are read for it. */
typedef struct Upkeep {
    double cost, bytes;
} Upkeep;

static Upkeep upkeep_of(const Grouper *p, NodeId id, const Upkeep *upkeeps) {
    const Node *node = graph_node(p->graph, id);
    if (node_has(p->flags, id, GROUPING_NUMBER)) return (Upkeep){.cost = 0};
    bool is_kept = graph_is_bound(p->graph, id) || node_has(p->flags, id, GROUPING_WANTED) ||
                   graph_is_reduction(p->graph, id);
    if (is_kept) return (Upkeep){.bytes = group_elems_hi(p->graph, id) * dtype_bytes(node->dtype)};
    Upkeep own = {.cost = p->op_cost[node->op]};
    for (uint32_t i = 0; i < node->n_args; i++) {
        own.cost += upkeeps[node->args[i]].cost;
        own.bytes += upkeeps[node->args[i]].bytes;
    }
    return own;
}

bool group_is_last_prepared(const Grouper *p, NodeId id) {
    for (uint32_t i = 0; i < p->users[id].n; i++) {
        NodeId user = p->users[id].data[i];
        if (!node_has(p->flags, user, GROUPING_CAN_PREPARE) ||
            group_elems_hi(p->graph, user) > group_elems_hi(p->graph, id))
            return true;
    }
    return false;
}

/* Sets GROUPING_LAST_COMPUTED of each value that runs read, directly or through views: no other
 * prepared value is computed from it. */
static void note_last_computed(const Grouper *p) {
    for (NodeId id = p->graph->nodes.n; id-- > 0;) {
        bool is_last = group_is_last_prepared(p, id);
        for (uint32_t i = 0; i < p->users[id].n && !is_last; i++) {
            NodeId user = p->users[id].data[i];
            is_last = graph_class(p->graph, user) == CLASS_VIEW &&
                      node_has(p->flags, user, GROUPING_LAST_COMPUTED);
        }
        node_set(p->flags, id, GROUPING_LAST_COMPUTED, is_last);
    }
}

/* A value that params determine is worth an init kernel if every run would spend much on it.
 * Loading the prepared value must not cost more than the computation it saves, which memory time
 * may hide. So the value must be read repeatedly, or be no larger than its inputs, or be very
 * costly. */
static bool find_prepared(Grouper *p, const uint32_t *makers) {
    uint32_t n = p->graph->nodes.n;
    ArenaMark mark = arena_mark(p->arena);
    Upkeep *upkeeps = arena_array(p->arena, Upkeep, n);
    bool changed = false;
    note_last_computed(p);
    for (NodeId id = 0; id < n; id++) {
        if (!node_has(p->flags, id, GROUPING_CAN_PREPARE)) continue;
        upkeeps[id] = upkeep_of(p, id, upkeeps);
        if (upkeeps[id].cost < FUSE_COSTLY_PRIMS || !is_inlined(p, id, makers) ||
            !node_has(p->flags, id, GROUPING_LAST_COMPUTED))
            continue;
        double bytes = group_elems_hi(p->graph, id) * dtype_bytes(graph_node(p->graph, id)->dtype);
        bool is_small = bytes <= upkeeps[id].bytes || group_repetition(p, id) > 1.0;
        if (!is_small && upkeeps[id].cost < FUSE_COSTLY_BROADCAST) continue;
        changed = group_want_stored(p, id, REASON_PREPARED) || changed;
        upkeeps[id] = upkeep_of(p, id, upkeeps);
    }
    arena_rewind(p->arena, mark);
    return changed;
}

/* A value whose users are visited in order. */
typedef struct Uses {
    NodeId of;
    uint32_t next; /* of its users */
} Uses;
typedef Vec(Uses) VecUses;

/* The first node after `id` that uses one of these values. Values without later users leave the
 * list. */
static NodeId next_user(const Grouper *p, VecUses *all, NodeId id) {
    NodeId first = NODE_NONE;
    for (uint32_t i = 0; i < all->n;) {
        Uses *uses = &all->data[i];
        const VecU32 *users = &p->users[uses->of];
        while (uses->next < users->n && users->data[uses->next] <= id) uses->next++;
        if (uses->next == users->n) {
            *uses = all->data[--all->n];
            continue;
        }
        if (first == NODE_NONE || users->data[uses->next] < first) first = users->data[uses->next];
        i++;
    }
    return first;
}

static void visit(const Grouper *p, NodeId id, VecU32 *visited, VecUses *uses) {
    node_add(p->flags, id, GROUPING_VISITED);
    vec_push(p->arena, visited, id);
    vec_push(p->arena, uses, ((Uses){.of = id}));
}

/* Whether each element of the node follows from one element of each visited argument, in row-major
 * order: an elementwise node in their shape, or a reshape. */
static bool is_in_step(const Grouper *p, NodeId id) {
    const Node *node = graph_node(p->graph, id);
    OpClass cls = op_info(node->op)->cls;
    if (indexmap_keeps_order(node->op)) return true;
    bool is = cls == CLASS_ELTWISE || cls == CLASS_CAST;
    for (uint32_t i = 0; i < node->n_args && is; i++)
        is = !node_has(p->flags, node->args[i], GROUPING_VISITED) ||
             shape_equal(&node->shape, &graph_node(p->graph, node->args[i])->shape);
    return is;
}

/* The last value that all uses of `source` go through, elementwise or reshaped, with no more bytes,
 * inside its `fuse must` block if it is in one; NODE_NONE if there is none. Sets `*output` to an
 * output among these values, if there is one. The function visits the users in topological order
 * and counts the uses of visited nodes that are still open. */
static NodeId last_sink(const Grouper *p, NodeId source, NodeId *output) {
    const Graph *graph = p->graph;
    const Node *from = graph_node(graph, source);
    NodeId found = NODE_NONE, id = source;
    uint32_t block = must_block(graph, source), n_open = p->users[source].n;
    ArenaMark mark = arena_mark(p->arena);
    VecU32 visited = {0};
    VecUses uses = {0};
    visit(p, source, &visited, &uses);
    while (n_open && (id = next_user(p, &uses, id)) != NODE_NONE) {
        const Node *node = graph_node(graph, id);
        if (!is_in_step(p, id)) break;
        for (uint32_t i = 0; i < node->n_args; i++)
            n_open -= node_has(p->flags, node->args[i], GROUPING_VISITED);
        visit(p, id, &visited, &uses);
        bool is_output = node_has(p->flags, id, GROUPING_OUTPUT);
        bool is_end = is_output || node_has(p->flags, id, GROUPING_WANTED);
        bool may_end = !is_end && !node_has(p->flags, id, GROUPING_NEVER_SINKS) &&
                       op_info(node->op)->cls != CLASS_VIEW;
        if (n_open == 0 && may_end && must_block(graph, id) == block &&
            dtype_bytes(node->dtype) <= dtype_bytes(from->dtype))
            found = id;
        if (is_output && n_open == 0) *output = id;
        if (is_end) break;
        n_open += p->users[id].n;
    }
    for (uint32_t i = 0; i < visited.n; i++) node_drop(p->flags, visited.data[i], GROUPING_VISITED);
    p->work->n_steps += visited.n;
    arena_rewind(p->arena, mark);
    return found;
}

/* The slice of an order through which all its readers go; NODE_NONE: there is none. A sort that
 * stores it need not find the other places. */
static NodeId only_part(const Grouper *p, NodeId id) {
    if (graph_class(p->graph, id) != CLASS_SORT || p->users[id].n != 1) return NODE_NONE;
    NodeId user = p->users[id].data[0];
    return graph_node(p->graph, user)->op == OP_SLICE ? user : NODE_NONE;
}

void group_flag_loaded(const Grouper *p) {
    node_flags_drop(p->flags, GROUPING_LOADED);
    for (uint32_t i = 0; i < p->g->groups.n; i++)
        for (uint32_t k = 0; k < p->g->groups.data[i].loads.n; k++)
            node_add(p->flags, p->g->groups.data[i].loads.data[k], GROUPING_LOADED);
    for (NodeId id = 0; id < p->graph->nodes.n; id++)
        if (node_has(p->flags, id, GROUPING_UPDATED)) node_add(p->flags, id, GROUPING_LOADED);
}

/* For reductions whose results other kernels read: the reduction's kernel computes and stores the
 * first value that all readers compute from the result. */
static bool find_sinks(Grouper *p) {
    bool changed = false;
    group_flag_loaded(p);
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        if (!group_folds(p, id) || node_has(p->flags, id, GROUPING_OUTPUT) ||
            !node_has(p->flags, id, GROUPING_LOADED))
            continue;
        NodeId output, last = only_part(p, id);
        if (last == NODE_NONE) last = last_sink(p, id, &output);
        if (last == NODE_NONE || node_has(p->flags, last, GROUPING_WANTED) ||
            !node_add(p->flags, last, GROUPING_SINKS))
            continue;
        changed = true;
    }
    return changed;
}

void group_judge_outputs(Grouper *p) {
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        NodeId output = node_has(p->flags, id, GROUPING_OUTPUT) ? id : NODE_NONE;
        if (!group_folds(p, id)) continue;
        if (output == NODE_NONE) last_sink(p, id, &output);
        if (output != NODE_NONE && p->g->why_apart[output])
            p->g->why_stored[output] = p->g->why_apart[output];
    }
}

bool group_store_more(Grouper *p) {
    uint32_t *makers = count_makers(p);
    bool prepares = find_prepared(p, makers), narrows = group_narrow(p);
    return find_costly(p, makers) || prepares || narrows || find_sinks(p) ||
           group_find_concats_in_place(p) || group_find_whole_values(p, makers);
}
