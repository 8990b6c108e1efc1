/* What inlining knows of nodes. See inline.h. */
#include "fuse/inline.h"

InlineMarks inline_marks_new(Arena *arena, const Graph *graph) {
    uint32_t n = graph->nodes.n;
    return (InlineMarks){.slot = arena_array(arena, uint32_t, n),
                         .flags = node_flags_new(arena, n),
                         .touched = arena_array(arena, NodeId, n)};
}

void inline_mark(InlineMarks *m, NodeId id, InlineMark mark) {
    if (!m->flags.bits[id]) m->touched[m->n_touched++] = id;
    node_add(m->flags, id, mark);
}

void inline_clear_marks(InlineMarks *m) {
    for (uint32_t i = 0; i < m->n_touched; i++) {
        NodeId id = m->touched[i];
        m->slot[id] = m->flags.bits[id] = 0;
    }
    m->n_touched = 0;
}
