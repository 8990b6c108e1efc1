/* What is stored when the work of grouping is spent: the graph is divided into kernels none of
 * which computes an op of another again. See group_state.h. */
#include "fuse/group_state.h"
#include "machine/tuning.h"
#include "plan/must.h"

/* A kernel, at its root. */
typedef struct Part {
    double prims;     /* of its ops, each as often as it is computed */
    uint32_t n_edges; /* to values that it loads, or that are not placed yet */
} Part;

/* A value inside a kernel. */
typedef struct Place {
    NodeId root;      /* of its kernel; it may be the root; NODE_NONE: a view in several */
    uint32_t n_times; /* how often the kernel computes it, at other positions each time */
    uint32_t n_views; /* that are applied to it in sequence */
} Place;

typedef struct Parts {
    const Grouper *p;
    Part *parts;     /* per root */
    Place *places;   /* per node */
    uint32_t *n_ops; /* per node that is computed from no memory: with those below it; else 0 */
} Parts;

static bool moves(const Graph *graph, NodeId id) {
    OpClass cls = graph_class(graph, id);
    return cls == CLASS_VIEW || cls == CLASS_CONCAT;
}

static bool is_point(const Graph *graph, NodeId id) {
    OpClass cls = graph_class(graph, id);
    return cls == CLASS_ELTWISE || cls == CLASS_CAST;
}

/* Counts the ops of values that are computed from no memory. */
static void count_ops(const Grouper *p, uint32_t *n_ops) {
    const Graph *graph = p->graph;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        bool is_source = graph_class(graph, id) == CLASS_SOURCE && !graph_is_bound(graph, id);
        if (is_source || node_has(p->flags, id, GROUPING_NUMBER)) n_ops[id] = 1;
        uint32_t n = is_point(graph, id) ? 1 : 0;
        for (uint32_t i = 0; i < node->n_args && n; i++)
            n = n_ops[node->args[i]] ? n + n_ops[node->args[i]] : 0;
        if (!n_ops[id]) n_ops[id] = n > FUSE_CHEAP_OPS ? 0 : n;
    }
}

/* Whether each kernel that reads the value computes it. */
static bool is_cheap(const Parts *all, NodeId id) {
    return all->n_ops[id] && !node_has(all->p->flags, id, GROUPING_WANTED) &&
           !node_has(all->p->flags, id, GROUPING_OUTPUT);
}

/* Whether a kernel may compute the value for its reader alone. */
static bool may_inline(const Grouper *p, NodeId id) {
    const Graph *graph = p->graph;
    bool is_operand = is_point(graph, id) && node_has(p->flags, id, GROUPING_FEEDS_GEMM);
    return (is_point(graph, id) || moves(graph, id)) && !is_operand &&
           !node_has(p->flags, id, GROUPING_WANTED) && !node_has(p->flags, id, GROUPING_OUTPUT) &&
           !graph_is_bound(graph, id) && !group_folds(p, id) && !group_is_single(p, id);
}

static uint32_t count_uses(const Node *node, NodeId id) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < node->n_args; i++) n += node->args[i] == id;
    return n;
}

static uint32_t count_edges(const Parts *all, NodeId id) {
    const Node *node = graph_node(all->p->graph, id);
    uint32_t n = 0;
    for (uint32_t i = 0; i < node->n_args; i++) n += !is_cheap(all, node->args[i]);
    return n;
}

/* A view of one argument may be in several kernels: what it reads is stored. The place of another
 * value is inside the kernel of all its readers; that of the value by itself if there is none, or
 * if the kernel would be too large. */
static Place place_of(const Parts *all, NodeId id) {
    const Grouper *p = all->p;
    const VecU32 *users = &p->users[id];
    const Place own = {.root = id, .n_times = 1};
    Place place = own;
    uint32_t n_moved = 0, n_uses = 0;
    bool is_shared = false;
    for (uint32_t i = 0; i < users->n; i++) {
        NodeId user = users->data[i];
        const Place *of = &all->places[user];
        bool is_moved = moves(p->graph, user);
        is_shared = is_shared || of->root == NODE_NONE || (i && of->root != place.root);
        if (is_shared && !graph_is_moved(p->graph, id)) return own;
        place.root = of->root;
        if (of->n_views + is_moved > place.n_views) place.n_views = of->n_views + is_moved;
        if (is_moved) n_moved += of->n_times;
        if (!is_moved && of->n_times > place.n_times) place.n_times = of->n_times;
        n_uses += count_uses(graph_node(p->graph, user), id);
    }
    if (!users->n) return own;
    if (is_shared) place.root = NODE_NONE;
    if (is_shared) return place.n_views < FUSE_APART_VIEWS ? place : own;
    place.n_times += n_moved;
    const Part *part = &all->parts[place.root];
    const Node *node = graph_node(p->graph, id);
    bool fits = part->prims + place.n_times * p->op_cost[node->op] <= FUSE_APART_PRIMS &&
                part->n_edges + count_edges(all, id) <= FUSE_APART_LOADS + n_uses &&
                place.n_views <= FUSE_APART_VIEWS && place.n_times <= FUSE_APART_TIMES;
    return fits || must_shares(p->graph, id, users->data[0]) ? place : own;
}

/* Puts the value into the kernel of its readers, or makes it the root of another. */
static void place_value(Grouper *p, Parts *all, NodeId id) {
    const Node *node = graph_node(p->graph, id);
    bool may = may_inline(p, id);
    Place place = may ? place_of(all, id) : (Place){.root = id, .n_times = 1};
    all->places[id] = place;
    if (place.root == NODE_NONE) return;
    Part *part = &all->parts[place.root];
    part->prims += place.n_times * (double)p->op_cost[node->op];
    part->n_edges += count_edges(all, id);
    for (uint32_t i = 0; i < p->users[id].n && place.root != id; i++)
        part->n_edges -= count_uses(graph_node(p->graph, p->users[id].data[i]), id);
    if (may && place.root == id) group_want_stored(p, id, REASON_SPENT);
}

void group_store_apart(Grouper *p) {
    uint32_t n = p->graph->nodes.n;
    ArenaMark mark = arena_mark(p->arena);
    Parts all = {.p = p,
                 .parts = arena_array(p->arena, Part, n),
                 .places = arena_array(p->arena, Place, n),
                 .n_ops = arena_array(p->arena, uint32_t, n)};
    count_ops(p, all.n_ops);
    for (NodeId id = n; id-- > 0;)
        if (!is_cheap(&all, id)) place_value(p, &all, id);
    arena_rewind(p->arena, mark);
}
