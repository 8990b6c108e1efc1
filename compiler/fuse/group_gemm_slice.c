/* GEMM slices: which matmuls a round computes slice by slice. If only one slice is read, only that
 * slice is computed. If several slices are read, they need several kernels, and the price decides.
 * See group_state.h. */
#include "fuse/group_state.h"

#include "fuse/gemm_slice.h"

#include <string.h>

/* Whether the node would be stored, or belongs to a slice already. */
static bool is_taken(const Grouper *p, NodeId id) {
    return node_has(p->flags, id, GROUPING_WANTED) || group_is_single(p, id) ||
           node_has(p->flags, id, GROUPING_INSIDE) || p->gemm_slice_of[id] != NODE_NONE;
}

static bool are_free(const Grouper *p, const GemmSlices *found) {
    NodeId gemm = found->inside.data[0];
    for (uint32_t i = 0; i < found->inside.n; i++)
        if (is_taken(p, found->inside.data[i])) return false;
    for (uint32_t i = 0; i < found->slices.n; i++) {
        NodeId slice = found->slices.data[i];
        if (is_taken(p, slice) || node_has(p->flags, slice, GROUPING_CAN_PREPARE) !=
                                      node_has(p->flags, gemm, GROUPING_CAN_PREPARE))
            return false;
    }
    return true;
}

/* Marks what a kernel computes of the matmul, if it computes slices of it. */
static void take_slices(Grouper *p, NodeId gemm) {
    GemmSlices found;
    if (!gemm_slice_find(p->arena, p->graph, p->users, p->leads, gemm, &found)) return;
    bool is_wanted = found.slices.n == 1 || decisions_ask(p->decisions, gemm, DIRECTIVE_GEMM_SLICE);
    if (!is_wanted || !are_free(p, &found)) return;
    for (uint32_t i = 0; i < found.inside.n; i++)
        node_add(p->flags, found.inside.data[i], GROUPING_INSIDE);
    for (uint32_t i = 0; i < found.slices.n; i++) p->gemm_slice_of[found.slices.data[i]] = gemm;
}

void group_find_gemm_slices(Grouper *p) {
    uint32_t n = p->graph->nodes.n;
    memset(p->gemm_slice_of, 0xFF, n * sizeof *p->gemm_slice_of);
    node_flags_drop(p->flags, GROUPING_INSIDE);
    for (NodeId id = 0; id < n && !p->off; id++) {
        ArenaMark mark = arena_mark(p->arena);
        take_slices(p, id);
        arena_rewind(p->arena, mark);
    }
}

bool group_folds(const Grouper *p, NodeId id) {
    if (p->gemm_slice_of[id] != NODE_NONE) return true;
    return graph_is_reduction(p->graph, id) && !node_has(p->flags, id, GROUPING_INSIDE);
}
