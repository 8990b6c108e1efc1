/* The reductions and targets of a group. See inline.h. */
#include "fuse/inline/inline.h"

#include <string.h>

Group group_copy(Arena *arena, const Group *group) {
    Group copy = *group;
    copy.reduces.data = arena_copy(arena, group->reduces.data, group->reduces.n * sizeof(NodeId));
    copy.reduces.capacity = copy.reduces.n;
    copy.targets.data =
        arena_copy(arena, group->targets.data, group->targets.n * sizeof(StoreTarget));
    copy.targets.capacity = copy.targets.n;
    copy.loads.data = NULL;
    copy.loads.n = copy.loads.capacity = 0;
    return copy;
}

static bool is_same_target(const StoreTarget *a, const StoreTarget *b) {
    return a->node == b->node && a->output == b->output && a->whole == b->whole &&
           a->piece == b->piece;
}

static bool is_same_place(const Group *a, const Group *b) {
    return a->axes == b->axes && a->gemm_slice == b->gemm_slice && a->is_whole == b->is_whole &&
           shape_equal(&a->domain, &b->domain) && memcmp(a->begin, b->begin, sizeof a->begin) == 0;
}

bool group_continues(const Group *first, const Group *group) {
    bool continues = is_same_place(first, group) && group->reduces.n >= first->reduces.n &&
                     group->targets.n >= first->targets.n;
    for (uint32_t i = 0; continues && i < first->reduces.n; i++)
        continues = group->reduces.data[i] == first->reduces.data[i];
    for (uint32_t i = 0; continues && i < first->targets.n; i++)
        continues = is_same_target(&group->targets.data[i], &first->targets.data[i]);
    return continues;
}

KernelForm group_form(const Graph *graph, const Group *group) {
    NodeId first = group->reduces.n ? group->reduces.data[0] : NODE_NONE;
    if (first != NODE_NONE && graph_is_matmul(graph, first)) return FORM_GEMM;
    if (first != NODE_NONE && graph_is_online(graph, first)) return FORM_ONLINE;
    if (first != NODE_NONE && graph_is_segments(graph, first)) return FORM_SEGMENT;
    if (group_keeps_shape(graph, group))
        return graph_class(graph, first) == CLASS_SORT ? FORM_SORT : FORM_SCAN;
    bool inner_reduced = group->domain.rank && (group->axes >> (group->domain.rank - 1) & 1);
    return !group->axes ? FORM_MAP : inner_reduced ? FORM_ROW : FORM_COLUMN;
}
