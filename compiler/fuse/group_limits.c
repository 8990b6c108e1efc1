/* Stores values in advance that would make every kernel too deep, too long or too wide. A kernel
 * that can take the stored value still does. See group_state.h. */
#include "fuse/group_state.h"
#include "machine/tuning.h"
#include "plan/must.h"
#include "plan/variant.h"

#include <math.h>

/* Whether inlining stops at the node in any case. */
static bool is_leaf(const Grouper *p, NodeId id) {
    return graph_is_bound(p->graph, id) || graph_is_literal(p->graph, id) ||
           node_has(p->flags, id, GROUPING_WANTED) || graph_is_reduction(p->graph, id) ||
           group_leaves_block(p, id);
}

/* Sequences of dependent ops. */

/* Connected nodes with depths from FUSE_LEAST_CHAIN to FUSE_MOST_CHAIN. */
typedef struct Deep {
    const uint32_t *depth; /* per node: see depth_of */
    VecU32 nodes;
} Deep;

/* The longest inlined sequence that ends at the node, at most FUSE_MOST_CHAIN + 1; 0 for a leaf. */
static uint32_t depth_of(const Grouper *p, const uint32_t *depth, NodeId id) {
    const Node *node = graph_node(p->graph, id);
    uint32_t own = is_leaf(p, id) ? 0 : 1;
    for (uint32_t i = 0; i < node->n_args && own; i++)
        if (depth[node->args[i]] >= own) own = depth[node->args[i]] + 1;
    return own > FUSE_MOST_CHAIN ? FUSE_MOST_CHAIN + 1 : own;
}

/* Finds the depths again of these nodes, and of the nodes above them that these change. Depths only
 * fall when nodes become leaves, so each changes a few times at most. */
static void lower_depths(const Grouper *p, uint32_t *depth, VecU32 *nodes) {
    for (uint32_t k = 0; k < nodes->n; k++) {
        NodeId id = nodes->data[k];
        uint32_t before = depth[id];
        depth[id] = depth_of(p, depth, id);
        for (uint32_t i = 0; i < p->users[id].n && depth[id] != before; i++)
            vec_push(p->arena, nodes, p->users[id].data[i]);
    }
}

static void add_deep(const Grouper *p, Deep *deep, NodeId id) {
    bool is_deep = deep->depth[id] >= FUSE_LEAST_CHAIN && deep->depth[id] <= FUSE_MOST_CHAIN;
    if (is_deep && node_add(p->flags, id, GROUPING_VISITED)) vec_push(p->arena, &deep->nodes, id);
}

static Deep deep_around(const Grouper *p, const uint32_t *depth, NodeId id) {
    Deep deep = {.depth = depth};
    add_deep(p, &deep, id);
    for (uint32_t k = 0; k < deep.nodes.n; k++) {
        NodeId at = deep.nodes.data[k];
        const Node *node = graph_node(p->graph, at);
        for (uint32_t i = 0; i < node->n_args; i++) add_deep(p, &deep, node->args[i]);
        for (uint32_t i = 0; i < p->users[at].n; i++) add_deep(p, &deep, p->users[at].data[i]);
    }
    for (uint32_t k = 0; k < deep.nodes.n; k++)
        node_drop(p->flags, deep.nodes.data[k], GROUPING_VISITED);
    return deep;
}

/* The greatest depth of the node's inlined users, or of those in its `fuse must` block; 0 if none
 * is inlined. */
static uint32_t depth_above(const Grouper *p, const uint32_t *depth, NodeId id, bool in_block) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->users[id].n; i++) {
        NodeId user = p->users[id].data[i];
        if (depth[user] > most && (!in_block || must_shares(p->graph, id, user)))
            most = depth[user];
    }
    return most;
}

/* Bytes that storing the node writes; a view counts twice, because storing it is a copy. */
static double weight(const Grouper *p, NodeId id) {
    double bytes = group_elems_hi(p->graph, id) * dtype_bytes(graph_node(p->graph, id)->dtype);
    return graph_class(p->graph, id) == CLASS_VIEW ? 2 * bytes : bytes;
}

/* What crosses a place where values are stored: edges inside `fuse must` blocks count before
 * bytes. */
typedef struct Crossing {
    double inside, bytes;
} Crossing;

/* Adds what begins and ends at this place. */
static void cross(Crossing *at, Crossing change) {
    at->inside += change.inside;
    at->bytes += change.bytes;
}

static bool is_narrower(Crossing a, Crossing b) {
    return a.inside < b.inside || (a.inside == b.inside && a.bytes < b.bytes);
}

/* The crossings of each depth of the chains, relative to the depth before. */
static void find_reach(const Grouper *p, const Deep *deep, Crossing *reach) {
    for (uint32_t k = 0; k < deep->nodes.n; k++) {
        NodeId id = deep->nodes.data[k];
        uint32_t begin = deep->depth[id], end = depth_above(p, deep->depth, id, false),
                 inner = depth_above(p, deep->depth, id, true);
        double bytes = weight(p, id);
        if (end > begin) cross(&reach[begin], (Crossing){.bytes = bytes});
        if (end > begin && end <= FUSE_MOST_CHAIN) cross(&reach[end], (Crossing){.bytes = -bytes});
        if (inner > begin) cross(&reach[begin], (Crossing){.inside = 1});
        if (inner > begin && inner <= FUSE_MOST_CHAIN)
            cross(&reach[inner], (Crossing){.inside = -1});
    }
}

/* Stores all values that are computed up to some depth and used beyond it. Takes the narrowest
 * depth: hundreds of values computed from one may have equal depth. Adds the stored nodes to `cut`,
 * and returns the first of them. */
static NodeId cut_chains(Grouper *p, const Deep *deep, VecU32 *cut) {
    Crossing reach[FUSE_MOST_CHAIN + 1] = {{0}};
    Crossing here = {0}, least = {INFINITY, INFINITY};
    uint32_t best = 0;
    NodeId first = NODE_NONE;
    find_reach(p, deep, reach);
    for (uint32_t at = FUSE_LEAST_CHAIN; at < FUSE_MOST_CHAIN; at++) {
        cross(&here, reach[at]);
        if (is_narrower(least, here)) continue;
        least = here;
        best = at;
    }
    for (uint32_t k = 0; k < deep->nodes.n; k++) {
        NodeId id = deep->nodes.data[k];
        if (deep->depth[id] > best || depth_above(p, deep->depth, id, false) <= best) continue;
        group_want_stored(p, id, REASON_TOO_LARGE);
        vec_push(p->arena, cut, id);
        if (id < first) first = id;
    }
    return first;
}

static void bound_chains(Grouper *p) {
    uint32_t *depth = arena_array(p->arena, uint32_t, p->graph->nodes.n);
    for (NodeId id = 0; id < p->graph->nodes.n; id++) depth[id] = depth_of(p, depth, id);
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        if (depth[id] < FUSE_MOST_CHAIN) continue;
        ArenaMark mark = arena_mark(p->arena);
        Deep deep = deep_around(p, depth, id);
        VecU32 cut = {0};
        id = cut_chains(p, &deep, &cut);
        lower_depths(p, depth, &cut);
        arena_rewind(p->arena, mark);
    }
}

/* Sizes. */

/* The size of the code that would be inlined into a node's user. */
typedef struct Closure {
    uint32_t n_scalars; /* an estimate */
    uint32_t n_views;   /* longest sequence of views */
    bool is_leaf;       /* it is not inlined */
    VecU32 loads;       /* its loads, ascending, at most FUSE_MOST_LOADS + 1 */
} Closure;

static void join_loads(Arena *arena, VecU32 *loads, const VecU32 *more) {
    for (uint32_t i = 0; i < more->n; i++) {
        bool is_known = false;
        for (uint32_t k = 0; k < loads->n; k++)
            is_known = is_known || loads->data[k] == more->data[i];
        if (!is_known && loads->n <= FUSE_MOST_LOADS) vec_push(arena, loads, more->data[i]);
    }
}

static Closure closure_of(const Grouper *p, NodeId id, const Closure *closures) {
    const Node *node = graph_node(p->graph, id);
    Closure c = {.n_scalars = 1};
    uint32_t shared = 0;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const Closure *arg = &closures[node->args[i]];
        OpClass cls = graph_class(p->graph, node->args[i]);
        /* A view needs a second computation of everything below it; other arguments share
         * theirs. */
        if (cls == CLASS_VIEW || cls == CLASS_CONCAT || op_info(node->op)->cls == CLASS_CONCAT)
            c.n_scalars += arg->n_scalars;
        else if (arg->n_scalars > shared)
            shared = arg->n_scalars;
        if (arg->n_views > c.n_views) c.n_views = arg->n_views;
        join_loads(p->arena, &c.loads, &arg->loads);
    }
    c.n_scalars += shared;
    c.n_views += op_info(node->op)->cls == CLASS_VIEW;
    return c;
}

static Closure leaf_closure(const Grouper *p, NodeId id) {
    Closure leaf = {.n_scalars = 1, .is_leaf = true};
    if (!graph_is_literal(p->graph, id)) vec_push(p->arena, &leaf.loads, id);
    return leaf;
}

/* The argument with the most loads, whose storing helps most. */
static NodeId largest_argument(const Grouper *p, NodeId id, const Closure *closures) {
    const Node *node = graph_node(p->graph, id);
    NodeId largest = NODE_NONE;
    for (uint32_t i = 0; i < node->n_args; i++) {
        NodeId arg = node->args[i];
        if (closures[arg].is_leaf) continue;
        if (largest == NODE_NONE || closures[arg].loads.n > closures[largest].loads.n ||
            (closures[arg].loads.n == closures[largest].loads.n &&
             closures[arg].n_scalars > closures[largest].n_scalars))
            largest = arg;
    }
    return largest;
}

/* Whether the value's `fuse must` block reads it, so that to store it breaks the block. */
static bool is_inside(const Grouper *p, NodeId id) {
    for (uint32_t i = 0; i < p->users[id].n; i++)
        if (must_shares(p->graph, id, p->users[id].data[i])) return true;
    return false;
}

/* Stores the largest argument of the node, or, if that is inside a `fuse must` block, the largest
 * value on the way down from it that is not. If all are inside, it stores the argument only if it
 * `must`. Returns false if it stores none. */
static bool store_largest(Grouper *p, NodeId id, Closure *closures, bool must) {
    VecU32 path = {0};
    NodeId largest = largest_argument(p, id, closures), stored = must ? largest : NODE_NONE;
    for (NodeId at = largest; at != NODE_NONE; at = largest_argument(p, at, closures)) {
        vec_push(p->arena, &path, at);
        if (is_inside(p, at) || (!must && graph_block(p->graph, at, BLOCK_KERNEL))) continue;
        stored = at;
        break;
    }
    if (stored == NODE_NONE) return false;
    group_want_stored(p, stored, REASON_TOO_LARGE);
    closures[stored] = leaf_closure(p, stored);
    for (uint32_t k = path.n; k-- > 0;) {
        NodeId at = path.data[k];
        if (at != stored) closures[at] = closure_of(p, at, closures);
    }
    closures[id] = closure_of(p, id, closures);
    return true;
}

/* Whether views read so large a value so often that a user of them all would be too large. It is
 * better stored than the user's parts. */
static bool is_repeated(const Grouper *p, NodeId id, const Closure *closure) {
    OpClass cls = graph_class(p->graph, id);
    return (cls == CLASS_ELTWISE || cls == CLASS_CAST) && group_has_views(p, id) &&
           !decisions_ask(p->decisions, id, DIRECTIVE_RECOMPUTE) &&
           closure->n_scalars >= FUSE_COSTLY_PRIMS &&
           closure->n_scalars * group_repetition(p, id) > FUSE_MOST_INLINED;
}

/* Bounds the ops that each node inlines to `most`. Returns those of all kernels, if each has one
 * value. */
static double bound_sizes(Grouper *p, uint32_t most) {
    uint32_t n = p->graph->nodes.n;
    double total = 0;
    ArenaMark mark = arena_mark(p->arena);
    Closure *closures = arena_array(p->arena, Closure, n);
    for (NodeId id = 0; id < n; id++) {
        bool is_given = graph_is_bound(p->graph, id) || graph_is_literal(p->graph, id);
        closures[id] = is_given ? leaf_closure(p, id) : closure_of(p, id, closures);
        while ((closures[id].loads.n > FUSE_MOST_LOADS || closures[id].n_scalars > most) &&
               store_largest(p, id, closures, most == FUSE_MOST_INLINED)) {
        }
        uint32_t most_views = is_inside(p, id) ? 2 * FUSE_MOST_VIEWS : FUSE_MOST_VIEWS;
        if (closures[id].n_views >= most_views && !is_leaf(p, id))
            group_want_stored(p, id, REASON_TOO_LARGE);
        if (!is_leaf(p, id) && is_repeated(p, id, &closures[id]))
            group_want_stored(p, id, REASON_COSTLY);
        if (is_given) continue;
        if (is_leaf(p, id) || !p->users[id].n) total += closures[id].n_scalars;
        if (is_leaf(p, id)) closures[id] = leaf_closure(p, id);
    }
    arena_rewind(p->arena, mark);
    return total;
}

/* Bounds the loads of each node, but for values inside `fuse must` blocks. Returns whether it
 * stores any value. A stored value may be one load more of nodes before it, so the caller repeats
 * it. */
static bool bound_loads(Grouper *p) {
    bool any = false;
    ArenaMark mark = arena_mark(p->arena);
    Closure *closures = arena_array(p->arena, Closure, p->graph->nodes.n);
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        bool is_given = graph_is_bound(p->graph, id) || graph_is_literal(p->graph, id);
        closures[id] = is_given ? leaf_closure(p, id) : closure_of(p, id, closures);
        while (closures[id].loads.n > FUSE_MOST_LOADS && store_largest(p, id, closures, false))
            any = true;
        if (is_leaf(p, id)) closures[id] = leaf_closure(p, id);
    }
    arena_rewind(p->arena, mark);
    return any;
}

bool group_narrow(Grouper *p) {
    bool is_wide = false, any = false;
    for (uint32_t i = 0; i < p->g->groups.n; i++)
        is_wide = is_wide || p->g->groups.data[i].loads.n >= MAX_KERNEL_ARGS;
    while (is_wide && bound_loads(p)) any = true;
    return any;
}

/* Where kernels inline the same ops again and again, each may be small enough and all together not.
 * Then each may be half as large, and so on. */
void group_bound_closures(Grouper *p) {
    double most_total = FUSE_LEAST_TOTAL + FUSE_TOTAL_OF_NODE * (double)p->graph->nodes.n;
    uint32_t most = FUSE_MOST_INLINED;
    bound_chains(p);
    while (bound_sizes(p, most) > most_total && most > FUSE_LEAST_INLINED) most /= 2;
}

/* `fuse must` blocks. */

void group_count_blocks(Grouper *p) {
    p->block_values = arena_array(p->arena, uint32_t, p->graph->fixed_kernels.n + (size_t)1);
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        bool is_result =
            decisions_ask(p->decisions, id, DIRECTIVE_STORE) && must_leaves(p->graph, p->users, id);
        bool is_wanted = node_has(p->flags, id, GROUPING_WANTED) && !is_result;
        if (graph_is_reduction(p->graph, id) || is_wanted)
            p->block_values[must_block(p->graph, id)]++;
    }
}

/* The value that was added last: nodes are placed in ascending order. */
static NodeId last_value(const Group *group) {
    uint32_t n = group->reduces.n, n_targets = group->targets.n;
    NodeId reduction = n ? group->reduces.data[n - 1] : 0;
    NodeId target = n_targets ? group->targets.data[n_targets - 1].node : 0;
    return reduction > target ? reduction : target;
}

static uint32_t count_inside(const Grouper *p, const Group *group, uint32_t block) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < group->reduces.n; i++)
        n += must_block(p->graph, group->reduces.data[i]) == block;
    for (uint32_t i = 0; i < group->targets.n; i++)
        n += must_block(p->graph, group->targets.data[i].node) == block;
    return n;
}

bool group_is_full(const Grouper *p, const Group *group) {
    uint32_t n_values = group->reduces.n + group->targets.n;
    uint32_t block = must_block(p->graph, last_value(group));
    uint32_t n_block = block && p->block_values ? p->block_values[block] : 0;
    if (n_values == 1) return false;
    if (!n_block || n_block > FUSE_MOST_VALUES) return n_values > FUSE_MOST_VALUES;
    uint32_t n_inside = count_inside(p, group, block), n_others = n_values - n_inside;
    return (n_inside > 1 ? n_others : n_others + n_block) > FUSE_MOST_VALUES;
}

/* Groups that turned out too large. */

/* The nodes that a root inlines, in the order in which inlining asks for them. Zeros between
 * roots. */
struct Inlined {
    NodeId *nodes;
    uint32_t *place; /* per node: index in `nodes`, plus 1; 0: not inlined */
    uint32_t *n_ops; /* per node: ops inlined in it, each use counted, up to FUSE_CHEAP_OPS + 1 */
    uint32_t *last;  /* per index: the index of the last use */
    uint32_t *inner; /* per index: the index of the last use in the value's `fuse must` block */
    uint32_t n, n_fit;
    NodeId failing;
};

static void visit(const Grouper *p, Inlined *in, NodeId id, bool is_root) {
    const Node *node = graph_node(p->graph, id);
    if (in->place[id] || (is_leaf(p, id) && !is_root)) return;
    if (id == in->failing) in->n_fit = in->n;
    uint32_t n_ops = 1;
    for (uint32_t i = 0; i < node->n_args; i++) {
        visit(p, in, node->args[i], false);
        n_ops += in->n_ops[node->args[i]];
    }
    in->n_ops[id] = n_ops > FUSE_CHEAP_OPS ? FUSE_CHEAP_OPS + 1 : n_ops;
    in->nodes[in->n++] = id;
    in->place[id] = in->n;
    for (uint32_t i = 0; i < node->n_args; i++) {
        uint32_t at = in->place[node->args[i]];
        if (at) in->last[at - 1] = in->n - 1;
        if (at && must_shares(p->graph, node->args[i], id)) in->inner[at - 1] = in->n - 1;
    }
}

static bool crosses(const Grouper *p, const Inlined *in, uint32_t k, uint32_t place) {
    NodeId id = in->nodes[k];
    return k < place && in->last[k] >= place && in->n_ops[id] > FUSE_CHEAP_OPS &&
           !node_has(p->flags, id, GROUPING_WANTED);
}

/* The narrowest index in [begin, end); the last of several. */
static uint32_t narrowest(const Grouper *p, const Inlined *in, uint32_t begin, uint32_t end) {
    Crossing *change = arena_array(p->arena, Crossing, in->n + 2), here = {0};
    Crossing least = {INFINITY, INFINITY};
    uint32_t best = begin;
    for (uint32_t k = 0; k < in->n; k++) {
        if (!crosses(p, in, k, k + 1)) continue;
        double bytes = weight(p, in->nodes[k]);
        cross(&change[k + 1], (Crossing){.inside = in->inner[k] > k, .bytes = bytes});
        cross(&change[in->last[k] + 1], (Crossing){.bytes = -bytes});
        if (in->inner[k] > k) cross(&change[in->inner[k] + 1], (Crossing){.inside = -1});
    }
    for (uint32_t k = 0; k < end; k++) {
        cross(&here, change[k]);
        if (k < begin || is_narrower(least, here)) continue;
        least = here;
        best = k;
    }
    return best;
}

static Inlined *inlined_new(Arena *arena, uint32_t n) {
    Inlined *in = arena_array(arena, Inlined, 1);
    *in = (Inlined){.nodes = arena_array(arena, NodeId, n),
                    .place = arena_array(arena, uint32_t, n),
                    .n_ops = arena_array(arena, uint32_t, n),
                    .last = arena_array(arena, uint32_t, n),
                    .inner = arena_array(arena, uint32_t, n)};
    return in;
}

static void clear(Inlined *in) {
    for (uint32_t k = 0; k < in->n; k++) {
        in->place[in->nodes[k]] = in->n_ops[in->nodes[k]] = 0;
        in->last[k] = in->inner[k] = 0;
    }
    in->n = in->n_fit = 0;
}

bool group_split_closure(Grouper *p, NodeId root, NodeId failing) {
    uint32_t begin = 0;
    if (!p->inlined) p->inlined = inlined_new(p->arena, p->graph->nodes.n);
    ArenaMark mark = arena_mark(p->arena);
    Inlined *in = p->inlined;
    bool any = false;
    in->failing = failing;
    visit(p, in, root, true);
    p->work->n_steps += in->n + p->graph->nodes.n / 8;
    while (in->n_fit >= FUSE_CHEAP_OPS && in->n - begin > in->n_fit) {
        uint32_t fit = in->n_fit, place = narrowest(p, in, begin + fit / 4, begin + fit - fit / 4);
        for (uint32_t k = 0; k < place; k++)
            if (crosses(p, in, k, place))
                any = group_want_stored(p, in->nodes[k], REASON_TOO_LARGE) || any;
        begin = place;
    }
    bool is_inlined = in->place[failing] != 0;
    clear(in);
    arena_rewind(p->arena, mark);
    return any || (is_inlined && group_want_stored(p, failing, REASON_TOO_LARGE));
}
