/* Concats in place: the kernel that computes an operand of a stored concat stores the operand at
 * its place in the concat, so that no kernel reads all operands and joins them. See
 * group_state.h. */
#include "fuse/group_state.h"
#include "machine/tuning.h"

/* Whether the round has a kernel that only stores this concat, in every run. */
static bool has_joiner(const Grouper *p, NodeId id) {
    const Graph *graph = p->graph;
    if (graph_class(graph, id) != CLASS_CONCAT || !node_has(p->flags, id, GROUPING_STORED) ||
        p->g->group_of[id] == GROUP_NONE || node_has(p->flags, id, GROUPING_CAN_PREPARE))
        return false;
    const Group *group = &p->g->groups.data[p->g->group_of[id]];
    return !group->reduces.n && group->targets.n == 1 && !group->fixed && !group->is_closed;
}

/* Whether a kernel of the round can store the piece: it computes the piece, or values from which
 * the piece follows. */
static bool is_taken(Grouper *p, const Root *piece) {
    uint32_t made_by = p->g->group_of[piece->node];
    if (made_by != GROUP_NONE) return true;
    uint32_t after = group_dependency(p, piece->node);
    if (after == 0 || after > p->g->groups.n) return false;
    Group *group = &p->g->groups.data[after - 1], before = *group;
    if (group->fixed || group->is_closed) return false;
    InlineFailure failure;
    bool can_join = group_try_join(p, after - 1, piece, &failure);
    p->g->groups.data[after - 1] = before;
    return can_join;
}

/* A piece that params determine, or that must have its own kernel, is computed as if there were no
 * concat. No single kernel computes a piece that is itself a concat in place, or that is updated in
 * memory. */
static bool has_own_kernel(const Grouper *p, NodeId piece) {
    uint32_t made_by = p->g->group_of[piece];
    return node_has(p->flags, piece, GROUPING_IN_PLACE) || graph_is_update(p->graph, piece) ||
           graph_block(p->graph, piece, BLOCK_NEVER) ||
           (made_by != GROUP_NONE && group_is_init(p, &p->g->groups.data[made_by]));
}

/* Each piece that is not read and written again saves its bytes. So the number of launches decides,
 * unless search has priced the concat. */
static bool gains(Grouper *p, NodeId whole) {
    const Node *node = graph_node(p->graph, whole);
    bool is_priced = decisions_ask(p->decisions, whole, DIRECTIVE_CONCAT_IN_PLACE);
    uint32_t n_taken = 0, n_new = 0;
    for (uint32_t i = 0; i < node->n_args; i++) {
        Root piece = {.node = node->args[i], .output = OUTPUT_NONE, .whole = whole, .piece = i + 1};
        if (has_own_kernel(p, piece.node)) return false;
        bool taken = is_taken(p, &piece);
        n_taken += taken;
        n_new += !taken;
    }
    return is_priced || (n_taken > 0 && n_new <= FUSE_CONCAT_KERNELS);
}

bool group_find_concats_in_place(Grouper *p) {
    bool changed = false;
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        if (node_has(p->flags, id, GROUPING_IN_PLACE) || !has_joiner(p, id) || !gains(p, id))
            continue;
        node_add(p->flags, id, GROUPING_IN_PLACE);
        changed = true;
    }
    return changed;
}
