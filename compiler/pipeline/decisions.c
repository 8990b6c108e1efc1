/* Bit sets of directives. See decisions.h. */
#include "pipeline/decisions.h"

Decisions *decisions_new(Arena *arena, uint32_t n) {
    Decisions *decisions = arena_array(arena, Decisions, 1);
    *decisions = (Decisions){.n = n, .of = arena_array(arena, Decision, n)};
    return decisions;
}

Decisions *decisions_copy(Arena *arena, const Decisions *decisions) {
    Decisions *copy = arena_copy(arena, decisions, sizeof *decisions);
    copy->of = arena_copy(arena, decisions->of, decisions->n * sizeof *decisions->of);
    return copy;
}

bool decisions_ask_any(const Decisions *decisions, Directive directive) {
    for (NodeId id = 0; id < decisions->n; id++)
        if (decisions_ask(decisions, id, directive)) return true;
    return false;
}
