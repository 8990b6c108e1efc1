/* What inlining knows of nodes. See inline.h. */
#include "fuse/inline/inline.h"

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

static bool is_in_memory(const InlineInput *input, NodeId id) {
    uint32_t made_by = input->group_of[id];
    if (graph_is_bound(input->graph, id)) return true;
    return made_by != GROUP_NONE && made_by != input->group &&
           (inline_is_trial(input) || node_has(input->flags, id, GROUPING_STORED));
}

uint32_t inline_facts(const InlineInput *input, NodeId id) {
    uint32_t facts = is_in_memory(input, id) ? INLINE_IN_MEMORY : 0;
    if (decisions_ask(input->decisions, id, DIRECTIVE_MUST_HOLD)) facts |= INLINE_MAY_REPEAT;
    return facts;
}

bool inline_facts_hold(const InlineInput *input, const AskedFacts *asked) {
    bool holds = true;
    for (uint32_t i = 0; i < asked->n && holds; i++)
        holds = inline_facts(input, asked->data[i].node) == asked->data[i].facts;
    return holds;
}
