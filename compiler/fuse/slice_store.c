/* Slices of a value, each stored by the kernel that computes the whole value. Slices of a kernel
 * with reductions join it like other roots (see store_map.h). For maps, one map must first run over
 * the whole value. See group_state.h. */
#include "fuse/group_state.h"

#include "ir/indexmap.h"

enum { MAX_WHOLES = 64 };

/* Shapes that a map for the root could have: the root's, and those of the values it is a slice
 * of. */
typedef struct Wholes {
    Shape shapes[MAX_WHOLES];
    uint32_t n;
} Wholes;

static void add_wholes(const Grouper *p, NodeId id, Wholes *wholes) {
    const Node *node = graph_node(p->graph, id);
    OpClass cls = op_info(node->op)->cls;
    bool is_plain = cls == CLASS_ELTWISE || cls == CLASS_CAST || indexmap_can_push(node->op);
    if (wholes->n == MAX_WHOLES || graph_is_bound(p->graph, id) || graph_is_literal(p->graph, id))
        return;
    wholes->shapes[wholes->n++] = node->shape;
    for (uint32_t i = 0; i < node->n_args && is_plain && p->g->group_of[id] == GROUP_NONE; i++)
        add_wholes(p, node->args[i], wholes);
}

bool group_widen(Grouper *p, uint32_t index, const Root *root) {
    const Group before = p->g->groups.data[index];
    InlineFailure failure;
    if (before.reduces.n) return false;
    Wholes wholes = {.n = 0};
    NodeId from = root->node;
    if (root->is_reduction && !graph_is_matmul(p->graph, from))
        from = graph_node(p->graph, from)->args[0];
    add_wholes(p, from, &wholes);
    for (uint32_t i = 0; i < wholes.n; i++) {
        Group *group = &p->g->groups.data[index];
        group->domain = wholes.shapes[i];
        group->is_whole = true;
        if (group_try_join(p, index, root, &failure)) return true;
        *group = before;
    }
    return false;
}

/* Whether all users of the value are slices that together have at least as many elements as the
 * value. */
static bool is_sliced_whole(const Grouper *p, NodeId id) {
    DimTab *dims = p->graph->dims;
    const Node *node = graph_node(p->graph, id);
    DimId sum = dim_const(dims, 0), elems = shape_n_elems(dims, &node->shape);
    for (uint32_t i = 0; i < p->users[id].n && sum; i++) {
        const Node *part = graph_node(p->graph, p->users[id].data[i]);
        if (part->op != OP_SLICE) return false;
        DimId own = shape_n_elems(dims, &part->shape);
        sum = own ? dim_add(dims, sum, own) : DIM_NONE;
    }
    return sum && elems && p->users[id].n > 1 && dim_always_le(dims, elems, sum);
}

/* Counts for each node the maps that compute it. */
static uint32_t *count_maps(const Grouper *p) {
    uint32_t *maps = arena_array(p->arena, uint32_t, p->graph->nodes.n);
    InlineFailure failure;
    for (uint32_t i = 0; i < p->g->groups.n; i++)
        if (!p->g->groups.data[i].reduces.n && !p->g->groups.data[i].is_closed)
            group_attempt(p, &p->g->groups.data[i], i, &failure, maps);
    return maps;
}

bool group_find_whole_values(Grouper *p, const uint32_t *makers) {
    group_flag_loaded(p);
    bool changed = false;
    const uint32_t *maps = NULL; /* few graphs have slices of a whole value */
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        OpClass cls = graph_class(p->graph, id);
        bool is_whole = node_has(p->flags, id, GROUPING_WHOLE);
        if (is_whole && node_has(p->flags, id, GROUPING_LOADED)) {
            node_drop(p->flags, id, GROUPING_WHOLE);
            node_add(p->flags, id, GROUPING_NEVER_WHOLE);
            node_drop(p->flags, id, GROUPING_WANTED);
            changed = true;
        }
        if (is_whole || node_has(p->flags, id, GROUPING_NEVER_WHOLE) ||
            (cls != CLASS_ELTWISE && cls != CLASS_CAST) || makers[id] < 2 ||
            p->g->group_of[id] != GROUP_NONE || node_has(p->flags, id, GROUPING_CAN_PREPARE) ||
            !is_sliced_whole(p, id))
            continue;
        if (!maps) maps = count_maps(p);
        if (maps[id] != makers[id] || !group_want_stored(p, id, REASON_COSTLY)) continue;
        node_add(p->flags, id, GROUPING_WHOLE);
        changed = true;
    }
    return changed;
}
