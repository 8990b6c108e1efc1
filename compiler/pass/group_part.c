/* Parts of a value, each stored by the kernel that computes the whole. Where that is a kernel of
 * reductions they join it as anything else does (see place.h); a map has to run over the whole
 * first. See group_state.h. */
#include "pass/group_state.h"

#include "pass/indexmap.h"

enum { MAX_WHOLES = 64 };

/* Shapes that a map of the anchor could have: its own, and those that it is cut from. */
typedef struct Wholes {
    Shape shapes[MAX_WHOLES];
    uint32_t n;
} Wholes;

static void add_wholes(const Grouper *p, NodeId id, Wholes *wholes) {
    const Node *node = graph_node(p->graph, id);
    OpClass cls = op_info(node->op)->cls;
    bool is_plain = cls == CLASS_ELTWISE || cls == CLASS_CAST || indexmap_can_push(node->op);
    if (wholes->n == MAX_WHOLES || is_bound(p->graph, id) || is_literal(p->graph, id)) return;
    wholes->shapes[wholes->n++] = node->shape;
    for (uint32_t i = 0; i < node->n_args && is_plain && p->g->group_of[id] == GROUP_NONE; i++)
        add_wholes(p, node->args[i], wholes);
}

bool group_widen(Grouper *p, uint32_t index, const Anchor *anchor) {
    const Group before = p->g->groups.data[index];
    ComposeFailure failure;
    if (before.reduces.n) return false;
    Wholes wholes = {.n = 0};
    NodeId from = anchor->node;
    if (anchor->is_reduction && !is_contraction(p->graph, from))
        from = graph_node(p->graph, from)->args[0];
    add_wholes(p, from, &wholes);
    for (uint32_t i = 0; i < wholes.n; i++) {
        Group *group = &p->g->groups.data[index];
        group->domain = wholes.shapes[i];
        group->is_whole = true;
        if (group_try_join(p, index, anchor, &failure)) return true;
        *group = before;
    }
    return false;
}
