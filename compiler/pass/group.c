/* Grouping by greedy joining. See group.h. */
#include "pass/group.h"

#include "pass/prepare.h"

#include <string.h>

enum {
    MAX_SCALARS = 4096,    /* per kernel: compile time grows faster than its size */
    MAX_GROUP_VALUES = 24, /* reductions and stores of one kernel */
    MAX_GROUP_LOADS = 32,
    MAX_CHAIN = 256,    /* inlined ops behind one another */
    MAX_CLOSURE = 1024, /* inlined ops in all, roughly */
    MAX_ROUNDS = 8,
    FEW_ROWS = 64,
    LONG_ROW = 32768,
    COSTLY_OPS = 8,    /* in prims: what is worth storing rather than repeating */
    COSTLY_SPREAD = 32 /* the same when repetition is only along a broadcast */
};

typedef struct Grouper {
    Arena *arena;
    NodeId *loads; /* room for every node, while a composition's memory is given up */
    const Graph *graph;
    bool off;
    const bool *can_prepare; /* per node */
    Grouping *g;
    bool *wants_store; /* per node: decided so far, over all rounds */
    ReasonId *want_reason;
    uint32_t *op_cost;    /* per op */
    VecU32 *users;        /* per node */
    uint32_t *last_group; /* per node below n_last: see dependency() */
    uint32_t n_last;
    ComposeFailure failure;
} Grouper;

static bool is_reduction(const Graph *graph, NodeId id) {
    OpClass cls = op_info(graph_node(graph, id)->op)->cls;
    return cls == CLASS_REDUCE || cls == CLASS_ARGREDUCE || cls == CLASS_CONTRACT;
}

static bool is_bound(const Graph *graph, NodeId id) {
    OpId op = graph_node(graph, id)->op;
    return op == OP_INPUT || op == OP_PARAM;
}

static bool is_literal(const Graph *graph, NodeId id) {
    return graph_node(graph, id)->op == OP_CONST;
}

static uint32_t fixed_kernel(const Graph *graph, NodeId id) {
    return graph->kernel_of.n ? graph->kernel_of.data[id] : 0;
}

/* Per node: the latest group whose result is read at or below its arguments, plus 1; 0 for none. */
static uint32_t dependency(Grouper *p, NodeId id) {
    uint32_t *last = p->last_group;
    for (; p->n_last <= id; p->n_last++) {
        const Node *node = graph_node(p->graph, p->n_last);
        last[p->n_last] = 0;
        for (uint32_t i = 0; i < node->n_args; i++) {
            NodeId arg = node->args[i];
            uint32_t made_by = p->g->group_of[arg];
            uint32_t of_arg = made_by != GROUP_NONE ? made_by + 1 : last[arg];
            if (of_arg > last[p->n_last]) last[p->n_last] = of_arg;
        }
    }
    return last[id];
}

/* Trying groups. */

static void set_in_memory(const Grouper *p, bool *in_memory, uint32_t group) {
    for (NodeId n = 0; n < p->graph->nodes.n; n++) {
        uint32_t made_by = p->g->group_of[n];
        in_memory[n] = is_bound(p->graph, n) || (made_by != GROUP_NONE && made_by != group);
    }
}

static Group group_copy(Arena *arena, const Group *group) {
    Group copy = *group;
    copy.reduces.data = arena_copy(arena, group->reduces.data, group->reduces.n * sizeof(NodeId));
    copy.reduces.capacity = copy.reduces.n;
    copy.targets.data = arena_copy(arena, group->targets.data, group->targets.n * sizeof(Target));
    copy.targets.capacity = copy.targets.n;
    copy.loads.data = NULL;
    copy.loads.n = copy.loads.capacity = 0;
    return copy;
}

/* Composes for the sake of finding out, and keeps what the group reads. `makers`, if any,
 * counts for every node the groups that compute it. */
static bool attempt_group(const Grouper *p, Group *group, uint32_t index, ComposeFailure *failure,
                          uint32_t *makers) {
    ArenaMark mark = arena_mark(p->arena);
    bool *in_memory = arena_array(p->arena, bool, p->graph->nodes.n);
    set_in_memory(p, in_memory, index);
    ComposeInput input = {.graph = p->graph,
                          .in_memory = in_memory,
                          .is_costly = p->wants_store,
                          .max_scalars = MAX_SCALARS};
    Kernel kernel = {.name = NULL};
    Group attempted = group_copy(p->arena, group);
    bool ok = compose_group(p->arena, &input, &attempted, &kernel, failure);
    uint32_t n_loads = ok ? attempted.loads.n : 0;
    if (n_loads) memcpy(p->loads, attempted.loads.data, n_loads * sizeof *p->loads);
    for (uint32_t i = 0; ok && makers && i < kernel.nodes.n; i++) makers[kernel.nodes.data[i]]++;
    arena_rewind(p->arena, mark);
    if (!ok) return false;
    group->has_passes = attempted.has_passes;
    group->loads.n = group->loads.capacity = n_loads;
    group->loads.data = arena_copy(p->arena, p->loads, n_loads * sizeof *p->loads);
    return true;
}

static bool try_group(const Grouper *p, Group *group, uint32_t index, ComposeFailure *failure) {
    if (!attempt_group(p, group, index, failure, NULL)) return false;
    bool fits = group->loads.n <= MAX_GROUP_LOADS &&
                group->reduces.n + group->targets.n <= MAX_GROUP_VALUES;
    if (!fits && (group->reduces.n + group->targets.n > 1))
        *failure = (ComposeFailure){.reason = REASON_TOO_LARGE};
    return fits || group->reduces.n + group->targets.n <= 1;
}

/* An anchor on its way into a group. */
typedef struct Anchor {
    NodeId node;
    bool is_reduction; /* fold it; otherwise store it */
    uint32_t output;
} Anchor;

static bool is_contraction(const Graph *graph, NodeId id) {
    return op_info(graph_node(graph, id)->op)->cls == CLASS_CONTRACT;
}

/* A contraction's domain is its own shape and, innermost, the contracted axis. */
static Shape anchor_domain(const Grouper *p, const Anchor *anchor) {
    const Node *node = graph_node(p->graph, anchor->node);
    if (!anchor->is_reduction) return node->shape;
    Shape of_arg = graph_node(p->graph, node->args[0])->shape;
    if (!is_contraction(p->graph, anchor->node)) return of_arg;
    Shape domain = node->shape;
    if (domain.rank < MAX_RANK) domain.dims[domain.rank++] = of_arg.dims[of_arg.rank - 1];
    return domain;
}

static uint32_t anchor_axes(const Grouper *p, NodeId id) {
    const Node *node = graph_node(p->graph, id);
    return is_contraction(p->graph, id) ? 1u << node->shape.rank : node->attrs.axes;
}

static bool add_anchor(Arena *arena, const Grouper *p, Group *group, const Anchor *anchor) {
    if (!anchor->is_reduction) {
        vec_push(arena, &group->targets, (Target){anchor->node, anchor->output});
        return true;
    }
    Shape domain = anchor_domain(p, anchor);
    uint32_t axes = anchor_axes(p, anchor->node);
    bool has_contraction = group->reduces.n && is_contraction(p->graph, group->reduces.data[0]);
    bool is_shared = group->reduces.n || group->targets.n;
    if (has_contraction || (is_shared && is_contraction(p->graph, anchor->node))) return false;
    if (!shape_equal(&domain, &group->domain)) return false;
    if (group->axes && group->axes != axes) return false;
    group->axes = axes; /* a map becomes a reduction's group: its stores stay inner */
    vec_push(arena, &group->reduces, anchor->node);
    return true;
}

/* Several passes over few long rows would leave most of a GPU idle, so they stay apart and the
 * reduction is split over the machine. One kernel also sums partials of partials no deeper. */
static bool is_starved(const Grouper *p, const Group *group) {
    if (is_contraction(p->graph, group->reduces.data[0])) return false;
    DimTab *dims = p->graph->dims;
    double rows = 1, length = 1;
    for (uint32_t d = 0; d < group->domain.rank; d++) {
        double hi = (double)dim_hi(dims, group->domain.dims[d]);
        if (group->axes >> d & 1)
            length *= hi;
        else
            rows *= hi;
    }
    bool is_row = group->axes >> (group->domain.rank - 1) & 1;
    KernelForm form = is_row ? FORM_ROW : FORM_COLUMN;
    double segment = (double)reduce_order(form, DEVICE_GPU).segment_elems;
    return (rows < FEW_ROWS && length > LONG_ROW) || length > segment * segment;
}

static bool shares_load(const Group *a, const Group *b) {
    for (uint32_t i = 0; i < a->loads.n; i++)
        for (uint32_t k = 0; k < b->loads.n; k++)
            if (a->loads.data[i] == b->loads.data[k]) return true;
    return false;
}

static bool is_init_anchor(const Grouper *p, NodeId id, uint32_t output) {
    return p->can_prepare[id] && output == OUTPUT_NONE;
}

/* Whether the group's values, which are all of one kind unless the source fixed them, are
 * prepared. */
static bool is_init_group(const Grouper *p, const Group *group) {
    if (group->reduces.n) return is_init_anchor(p, group->reduces.data[0], OUTPUT_NONE);
    return is_init_anchor(p, group->targets.data[0].node, group->targets.data[0].output);
}

static bool try_join(Grouper *p, uint32_t index, const Anchor *anchor, ComposeFailure *failure) {
    Group joined = group_copy(p->arena, &p->g->groups.data[index]);
    *failure = (ComposeFailure){.reason = REASON_OTHER_DOMAIN, .node = anchor->node};
    if (!joined.fixed &&
        is_init_group(p, &joined) != is_init_anchor(p, anchor->node, anchor->output))
        return false;
    if (!add_anchor(p->arena, p, &joined, anchor)) return false;
    uint32_t made_by = p->g->group_of[anchor->node];
    if (anchor->is_reduction) p->g->group_of[anchor->node] = index;
    bool ok = try_group(p, &joined, index, failure);
    if (ok && joined.has_passes && is_starved(p, &joined)) {
        *failure = (ComposeFailure){.reason = REASON_FEW_ROWS, .node = anchor->node};
        ok = false;
    }
    p->g->group_of[anchor->node] = made_by;
    if (ok) p->g->groups.data[index] = joined;
    return ok;
}

static uint32_t open_group(Grouper *p, const Anchor *anchor) {
    Group group = {.domain = anchor_domain(p, anchor)};
    uint32_t index = p->g->groups.n;
    add_anchor(p->arena, p, &group, anchor);
    uint32_t made_by = p->g->group_of[anchor->node];
    if (anchor->is_reduction) p->g->group_of[anchor->node] = index;
    ComposeFailure failure;
    if (!try_group(p, &group, index, &failure) && !p->failure.reason) p->failure = failure;
    p->g->group_of[anchor->node] = made_by;
    vec_push(p->arena, &p->g->groups, group);
    return index;
}

/* Joins the source's own kernel, or opens it. */
static uint32_t place_fixed(Grouper *p, const Anchor *anchor, uint32_t fixed, uint32_t after) {
    ComposeFailure failure = {.reason = REASON_BETWEEN, .node = anchor->node};
    for (uint32_t i = 0; i < p->g->groups.n; i++) {
        if (p->g->groups.data[i].fixed != fixed) continue;
        bool ok = i + 1 >= after && try_join(p, i, anchor, &failure);
        if (!ok && !p->failure.reason) p->failure = failure;
        return i;
    }
    uint32_t index = open_group(p, anchor);
    p->g->groups.data[index].fixed = fixed;
    return index;
}

static bool is_related(const Grouper *p, const Group *lone, uint32_t group) {
    for (uint32_t k = 0; k < lone->loads.n; k++)
        if (p->g->group_of[lone->loads.data[k]] == group) return true;
    return shares_load(lone, &p->g->groups.data[group]);
}

/* Places an anchor and returns its group: the latest that can take it, or a new one. Groups before
 * `after` - 1 are too early: the anchor depends on that one's results. */
static uint32_t place_anchor(Grouper *p, const Anchor *anchor, uint32_t after) {
    uint32_t fixed = p->off ? 0 : fixed_kernel(p->graph, anchor->node);
    if (fixed) return place_fixed(p, anchor, fixed, after);
    uint32_t alone = open_group(p, anchor);
    if (p->off) return alone;
    Group lone = p->g->groups.data[alone];
    p->g->groups.n--;
    ComposeFailure failure, why = {.reason = REASON_BETWEEN};
    for (uint32_t i = p->g->groups.n; i-- > (after ? after - 1 : 0);) {
        if (p->g->groups.data[i].fixed || !is_related(p, &lone, i)) continue;
        if (try_join(p, i, anchor, &failure)) return i;
        if (i + 1 == after) why = failure;
    }
    for (uint32_t k = 0; k < lone.loads.n; k++)
        if (!p->g->why_stored[lone.loads.data[k]])
            p->g->why_stored[lone.loads.data[k]] = why.reason;
    vec_push(p->arena, &p->g->groups, lone);
    return alone;
}

/* Folds or stores a node. One that a group already makes is stored from there. */
static void anchor_node(Grouper *p, NodeId id, uint32_t output) {
    uint32_t made_by = p->g->group_of[id];
    Anchor anchor = {.node = id, .is_reduction = is_reduction(p->graph, id), .output = output};
    if (made_by != GROUP_NONE) {
        vec_push(p->arena, &p->g->groups.data[made_by].targets, (Target){id, output});
        return;
    }
    uint32_t index = place_anchor(p, &anchor, dependency(p, id));
    if (!is_bound(p->graph, id) && !is_literal(p->graph, id)) p->g->group_of[id] = index;
    if (anchor.is_reduction && output != OUTPUT_NONE) anchor_node(p, id, output);
}

static Grouping *grouping_new(const Grouper *p) {
    uint32_t n = p->graph->nodes.n;
    Grouping *g = arena_array(p->arena, Grouping, 1);
    g->group_of = arena_array(p->arena, uint32_t, n);
    g->is_stored = arena_array(p->arena, bool, n);
    g->why_stored = arena_array(p->arena, ReasonId, n);
    g->can_prepare = p->can_prepare;
    memset(g->group_of, 0xFF, n * sizeof *g->group_of);
    return g;
}

static bool is_own_kernel(const Grouper *p, NodeId id) {
    return p->off && !is_bound(p->graph, id) && !is_literal(p->graph, id);
}

/* Whether a value of a fixed kernel is used outside it. */
static bool leaves_fixed(const Grouper *p, NodeId id) {
    uint32_t fixed = p->off ? 0 : fixed_kernel(p->graph, id);
    for (uint32_t i = 0; fixed && i < p->users[id].n; i++)
        if (fixed_kernel(p->graph, p->users[id].data[i]) != fixed) return true;
    return false;
}

static void run_round(Grouper *p) {
    const Graph *graph = p->graph;
    p->g = grouping_new(p);
    p->n_last = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        if (is_reduction(graph, id)) anchor_node(p, id, OUTPUT_NONE);
        bool is_output = false;
        for (uint32_t o = 0; o < graph->outputs.n; o++) {
            if (graph->outputs.data[o].node != id) continue;
            is_output = true;
            anchor_node(p, id, o);
        }
        bool is_fixed = leaves_fixed(p, id);
        if (is_output) {
            p->g->is_stored[id] = !is_bound(graph, id);
            p->g->why_stored[id] = REASON_OUTPUT;
        } else if (!is_reduction(graph, id) &&
                   (p->wants_store[id] || is_own_kernel(p, id) || is_fixed)) {
            anchor_node(p, id, OUTPUT_NONE);
            p->g->is_stored[id] = true;
            p->g->why_stored[id] = p->off     ? REASON_FUSION_OFF
                                   : is_fixed ? REASON_FIXED
                                              : p->want_reason[id];
        }
    }
}

/* What grouping made us load is stored; reductions get their store here. */
static void store_loaded(Grouper *p) {
    for (uint32_t i = 0; i < p->g->groups.n; i++) {
        const Group *group = &p->g->groups.data[i];
        for (uint32_t k = 0; k < group->loads.n; k++) {
            NodeId id = group->loads.data[k];
            if (is_bound(p->graph, id) || p->g->is_stored[id]) continue;
            p->g->is_stored[id] = true;
            if (p->off) p->g->why_stored[id] = REASON_FUSION_OFF;
            Group *maker = &p->g->groups.data[p->g->group_of[id]];
            vec_push(p->arena, &maker->targets, (Target){id, OUTPUT_NONE});
        }
    }
}

/* Costs. */

/* Work to compute one element of each node from what is in memory: its own body and, once each,
 * those of its inlined arguments (an upper bound: shared parts count at every use). */
static void closure_costs(const Grouper *p, double *cost, uint32_t *depth) {
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        const Node *node = graph_node(p->graph, id);
        cost[id] = p->op_cost[node->op];
        depth[id] = 1;
        if (p->g->group_of[id] != GROUP_NONE && (p->g->is_stored[id] || is_reduction(p->graph, id)))
            cost[id] = depth[id] = 0;
        else
            for (uint32_t i = 0; i < node->n_args; i++) {
                cost[id] += cost[node->args[i]];
                if (depth[node->args[i]] + 1 > depth[id]) depth[id] = depth[node->args[i]] + 1;
            }
        if (cost[id] > 1e9) cost[id] = 1e9;
    }
}

static double elems_hi(const Graph *graph, NodeId id) {
    const Shape *shape = &graph_node(graph, id)->shape;
    double n = 1;
    for (uint32_t k = 0; k < shape->rank; k++) n *= (double)dim_hi(graph->dims, shape->dims[k]);
    return n;
}

/* How often each element of a node would be computed: views of it are separate uses, elementwise
 * users in one kernel share one. */
static double repetition(const Grouper *p, NodeId id, const VecU32 *users) {
    const Graph *graph = p->graph;
    double direct = 0, viewed = 0, own = elems_hi(graph, id);
    for (uint32_t i = 0; i < users->n; i++) {
        NodeId user = users->data[i];
        OpClass cls = op_info(graph_node(graph, user)->op)->cls;
        double n = cls == CLASS_REDUCE || cls == CLASS_ARGREDUCE || cls == CLASS_CONCAT
                       ? own
                       : elems_hi(graph, user);
        if (cls == CLASS_VIEW)
            viewed += n;
        else if (n > direct)
            direct = n;
    }
    return own > 0 ? (direct + viewed) / own : 1;
}

static bool want(Grouper *p, NodeId id, ReasonId reason) {
    if (p->wants_store[id]) return false;
    p->wants_store[id] = true;
    p->want_reason[id] = reason;
    return true;
}

/* Number of groups that compute each node in their registers. */
static uint32_t *count_makers(const Grouper *p) {
    uint32_t *makers = arena_array(p->arena, uint32_t, p->graph->nodes.n);
    ComposeFailure failure;
    for (uint32_t i = 0; i < p->g->groups.n; i++)
        attempt_group(p, &p->g->groups.data[i], i, &failure, makers);
    return makers;
}

/* Per node: whether a contraction reads it, as it is or through views: over and over, so that it is
 * worth storing whatever it costs. */
static bool *feeding_contractions(const Grouper *p) {
    uint32_t n = p->graph->nodes.n;
    bool *feeds = arena_array(p->arena, bool, n);
    for (NodeId id = n; id-- > 0;)
        for (uint32_t i = 0; i < p->users[id].n; i++) {
            NodeId user = p->users[id].data[i];
            OpClass cls = op_info(graph_node(p->graph, user)->op)->cls;
            bool is_view = cls == CLASS_VIEW || cls == CLASS_CONCAT;
            feeds[id] = feeds[id] || cls == CLASS_CONTRACT || (is_view && feeds[user]);
        }
    return feeds;
}

/* Whether several groups compute it and one of them goes on from it alone: what they should hand
 * over. What comes before it is then computed once too. */
static bool is_frontier(const Grouper *p, NodeId id, const uint32_t *makers) {
    for (uint32_t i = 0; i < p->users[id].n; i++)
        if (makers[p->users[id].data[i]] < makers[id]) return makers[id] > 1;
    return false;
}

static bool is_inline(const Grouper *p, NodeId id, const uint32_t *makers) {
    OpClass cls = op_info(graph_node(p->graph, id)->op)->cls;
    return (cls == CLASS_ELTWISE || cls == CLASS_CAST) && p->g->group_of[id] == GROUP_NONE &&
           makers[id] > 0;
}

static bool find_costly(Grouper *p, const uint32_t *makers) {
    const Graph *graph = p->graph;
    uint32_t n = graph->nodes.n;
    double *cost = arena_array(p->arena, double, n);
    uint32_t *depth = arena_array(p->arena, uint32_t, n);
    bool *below = arena_array(p->arena, bool, n);
    closure_costs(p, cost, depth);
    bool *feeds = feeding_contractions(p);
    bool changed = false;
    for (NodeId id = 0; id < n; id++) {
        const Node *node = graph_node(graph, id);
        for (uint32_t i = 0; i < node->n_args; i++)
            below[id] = below[id] || below[node->args[i]] || is_reduction(graph, node->args[i]);
        if (!is_inline(p, id, makers)) continue;
        double repeats = repetition(p, id, &p->users[id]);
        bool has_views = false;
        for (uint32_t i = 0; i < p->users[id].n; i++)
            has_views = has_views ||
                        op_info(graph_node(graph, p->users[id].data[i])->op)->cls == CLASS_VIEW;
        bool is_costly =
            cost[id] >= COSTLY_OPS && (is_frontier(p, id, makers) || (has_views && repeats > 1.0));
        bool is_spread = !below[id] && cost[id] >= COSTLY_SPREAD && repeats > 1.0;
        if (is_costly || is_spread || feeds[id]) changed = want(p, id, REASON_COSTLY) || changed;
    }
    return changed;
}

/* What it takes to compute one element of each node from memory, each node once, and the bytes of
 * memory that are read for all of it. */
typedef struct Upkeep {
    double cost, bytes;
} Upkeep;

static Upkeep upkeep_of(const Grouper *p, NodeId id, const Upkeep *upkeeps) {
    const Node *node = graph_node(p->graph, id);
    bool is_kept = is_bound(p->graph, id) || p->wants_store[id] || is_reduction(p->graph, id);
    if (is_kept) return (Upkeep){.bytes = elems_hi(p->graph, id) * dtype_bytes(node->dtype)};
    Upkeep own = {.cost = p->op_cost[node->op]};
    for (uint32_t i = 0; i < node->n_args; i++) {
        own.cost += upkeeps[node->args[i]].cost;
        own.bytes += upkeeps[node->args[i]].bytes;
    }
    return own;
}

/* Whether a user of it cannot be prepared, or is larger: then this is the value to keep. */
static bool is_last_prepared(const Grouper *p, NodeId id) {
    for (uint32_t i = 0; i < p->users[id].n; i++) {
        NodeId user = p->users[id].data[i];
        if (!p->can_prepare[user] || elems_hi(p->graph, user) > elems_hi(p->graph, id)) return true;
    }
    return false;
}

/* Values that params alone determine are worth an init step when each run would otherwise spend
 * much on them. To read a kept value must not cost what computing it would have hidden: it is read
 * again and again, or is no larger than what it is computed from; else the work must be great. */
static bool find_prepared(Grouper *p, const uint32_t *makers) {
    uint32_t n = p->graph->nodes.n;
    Upkeep *upkeeps = arena_array(p->arena, Upkeep, n);
    bool changed = false;
    for (NodeId id = 0; id < n; id++) {
        if (!p->can_prepare[id]) continue;
        upkeeps[id] = upkeep_of(p, id, upkeeps);
        if (upkeeps[id].cost < COSTLY_OPS || !is_inline(p, id, makers) || !is_last_prepared(p, id))
            continue;
        double bytes = elems_hi(p->graph, id) * dtype_bytes(graph_node(p->graph, id)->dtype);
        bool is_small = bytes <= upkeeps[id].bytes || repetition(p, id, &p->users[id]) > 1.0;
        if (!is_small && upkeeps[id].cost < COSTLY_SPREAD) continue;
        changed = want(p, id, REASON_PREPARED) || changed;
        upkeeps[id] = upkeep_of(p, id, upkeeps);
    }
    return changed;
}

/* Values to store that have been inlined so far; false when there are none. */
static bool find_inlined(Grouper *p) {
    uint32_t *makers = count_makers(p);
    bool prepares = find_prepared(p, makers);
    return find_costly(p, makers) || prepares;
}

static uint32_t *op_costs(Arena *arena) {
    uint32_t *cost = arena_array(arena, uint32_t, OP_COUNT);
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((OpId)op);
        if (!info->body) continue;
        ScalarTab *tab = scalartab_new(arena, indextab_new(arena, dimtab_new(arena)));
        Dtype dtype = dtype_in(DT_F32, info->dtypes) ? DT_F32 : DT_BOOL;
        ScalarId args[3];
        for (uint32_t i = 0; i < 3; i++)
            args[i] =
                scalar_stage(tab, i == 0 && info->result == RESULT_SELECT ? DT_BOOL : dtype, i, 0);
        bool *seen = arena_array(arena, bool, 256);
        cost[op] = scalar_cost(tab, info->body(tab, args[0], args[1], args[2]), seen);
    }
    return cost;
}

/* Sizes of what would be inlined into a node's user. */
typedef struct Closure {
    uint32_t depth, n_scalars; /* ops behind one another; scalars, roughly */
    VecU32 loads;              /* what it reads, ascending, at most MAX_GROUP_LOADS + 1 */
} Closure;

static void join_loads(Arena *arena, VecU32 *loads, const VecU32 *more) {
    for (uint32_t i = 0; i < more->n; i++) {
        bool is_known = false;
        for (uint32_t k = 0; k < loads->n; k++)
            is_known = is_known || loads->data[k] == more->data[i];
        if (!is_known && loads->n <= MAX_GROUP_LOADS) vec_push(arena, loads, more->data[i]);
    }
}

static Closure closure_of(const Grouper *p, NodeId id, const Closure *closures) {
    const Node *node = graph_node(p->graph, id);
    Closure c = {.depth = 1, .n_scalars = 1};
    uint32_t shared = 0;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const Closure *arg = &closures[node->args[i]];
        OpClass cls = op_info(graph_node(p->graph, node->args[i])->op)->cls;
        /* Views make a second computation of what is below them, other arguments share it. */
        if (cls == CLASS_VIEW || cls == CLASS_CONCAT || op_info(node->op)->cls == CLASS_CONCAT)
            c.n_scalars += arg->n_scalars;
        else if (arg->n_scalars > shared)
            shared = arg->n_scalars;
        if (arg->depth >= c.depth) c.depth = arg->depth + 1;
        join_loads(p->arena, &c.loads, &arg->loads);
    }
    c.n_scalars += shared;
    return c;
}

static Closure leaf_closure(const Grouper *p, NodeId id) {
    Closure leaf = {.n_scalars = 1};
    if (!is_literal(p->graph, id)) vec_push(p->arena, &leaf.loads, id);
    return leaf;
}

/* The argument whose storing helps most: the one that reads most. */
static NodeId largest_argument(const Grouper *p, NodeId id, const Closure *closures) {
    const Node *node = graph_node(p->graph, id);
    NodeId largest = NODE_NONE;
    for (uint32_t i = 0; i < node->n_args; i++) {
        NodeId arg = node->args[i];
        if (closures[arg].depth == 0) continue;
        if (largest == NODE_NONE || closures[arg].loads.n > closures[largest].loads.n ||
            (closures[arg].loads.n == closures[largest].loads.n &&
             closures[arg].n_scalars > closures[largest].n_scalars))
            largest = arg;
    }
    return largest;
}

/* Stores what would make any kernel too deep, too long or too wide, before anything is grouped. */
static void bound_closures(Grouper *p) {
    uint32_t n = p->graph->nodes.n;
    Closure *closures = arena_array(p->arena, Closure, n);
    for (NodeId id = 0; id < n; id++) {
        bool is_leaf = is_bound(p->graph, id) || is_literal(p->graph, id);
        closures[id] = is_leaf ? leaf_closure(p, id) : closure_of(p, id, closures);
        while (closures[id].loads.n > MAX_GROUP_LOADS || closures[id].n_scalars > MAX_CLOSURE) {
            NodeId arg = largest_argument(p, id, closures);
            if (arg == NODE_NONE) break;
            want(p, arg, REASON_TOO_LARGE);
            closures[arg] = leaf_closure(p, arg);
            closures[id] = closure_of(p, id, closures);
        }
        bool is_cut = !is_leaf && (closures[id].depth >= MAX_CHAIN || is_reduction(p->graph, id));
        if (!is_cut) continue;
        if (!is_reduction(p->graph, id)) want(p, id, REASON_TOO_LARGE);
        closures[id] = leaf_closure(p, id);
    }
}

Grouping *group_graph(Arena *arena, const Graph *graph, bool off, ComposeFailure *failure) {
    uint32_t n = graph->nodes.n;
    Grouper p = {.arena = arena, .graph = graph, .off = off};
    p.wants_store = arena_array(arena, bool, n);
    p.want_reason = arena_array(arena, ReasonId, n);
    p.op_cost = op_costs(arena);
    p.can_prepare = prepare_nodes(arena, graph);
    p.last_group = arena_array(arena, uint32_t, n);
    p.users = arena_array(arena, VecU32, n);
    for (NodeId id = 0; id < n; id++)
        for (uint32_t i = 0; i < graph_node(graph, id)->n_args; i++)
            vec_push(arena, &p.users[graph_node(graph, id)->args[i]], id);
    p.loads = arena_array(arena, NodeId, n);
    if (!off) bound_closures(&p);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        p.failure = (ComposeFailure){.reason = REASON_NONE};
        run_round(&p);
        bool grew =
            p.failure.reason == REASON_TOO_LARGE && want(&p, p.failure.node, REASON_TOO_LARGE);
        if (!grew && (off || !find_inlined(&p))) break;
    }
    *failure = p.failure;
    if (p.failure.reason) return NULL;
    store_loaded(&p);
    return p.g;
}
