/* What inlining knows of nodes. See inline.h. */
#include "fuse/inline/inline.h"

#include <string.h>

InlineMarks inline_marks_new(Arena *arena, const Graph *graph) {
    uint32_t n = graph->nodes.n;
    return (InlineMarks){.slot = arena_array(arena, uint32_t, n),
                         .flags = node_flags_new(arena, n),
                         .touched = arena_array(arena, NodeId, 2 * (size_t)n),
                         .visited = arena_array(arena, NodeId, n)};
}

void inline_mark(InlineMarks *m, NodeId id, InlineMark mark) {
    if (!m->flags.bits[id]) m->touched[m->n_touched++] = id;
    if (node_add(m->flags, id, mark) && mark == INLINE_VISITED) m->visited[m->n_visited++] = id;
}

/* A trial that continues touches few more nodes: only these are sorted. The nodes after the touched
 * ones hold them during the merge, so there is room for all twice. */
void inline_sort_marks(InlineMarks *m) {
    NodeId *nodes = m->touched, *more = nodes + m->n_touched;
    uint32_t n_more = m->n_touched - m->n_sorted, n = m->n_sorted, at = m->n_touched;
    memcpy(more, nodes + n, n_more * sizeof *more);
    graph_sort_nodes(more, n_more);
    while (n_more) nodes[--at] = n && nodes[n - 1] > more[n_more - 1] ? nodes[--n] : more[--n_more];
    m->n_sorted = m->n_touched;
}

void inline_clear_marks(InlineMarks *m) {
    for (uint32_t i = 0; i < m->n_touched; i++) {
        NodeId id = m->touched[i];
        m->slot[id] = m->flags.bits[id] = 0;
    }
    m->n_touched = m->n_sorted = m->n_visited = 0;
}

bool inline_facts_hold(const InlineInput *input, const AskedFacts *asked) {
    bool holds = true;
    for (uint32_t i = 0; i < asked->n && holds; i++)
        holds = inline_facts(input, asked->data[i].node) == asked->data[i].facts;
    return holds;
}
