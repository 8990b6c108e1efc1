/* Directives of nodes. See decisions.h. */
#include "pipeline/decisions.h"

#include <string.h>

static const struct {
    const char *name, *doc;
} infos[DIRECTIVE_COUNT] = {
#define DIRECTIVE(sym, name, doc) [DIRECTIVE_##sym] = {name, doc},
#include "pipeline/directives.def"
};

const char *directive_name(Directive directive) {
    return infos[directive].name;
}

const char *directive_doc(Directive directive) {
    return infos[directive].doc;
}

Decisions *decisions_new(Arena *arena, uint32_t n) {
    Decisions *decisions = arena_array(arena, Decisions, 1);
    decisions->directives = node_flags_new(arena, n);
    decisions->side = arena_array(arena, uint16_t, n);
    decisions->inner = arena_array(arena, uint32_t, n);
    return decisions;
}

Decisions *decisions_copy(Arena *arena, const Decisions *decisions) {
    Decisions *copy = arena_copy(arena, decisions, sizeof *decisions);
    copy->directives = node_flags_copy(arena, decisions->directives);
    copy->side = arena_copy(arena, decisions->side, copy->directives.n * sizeof *copy->side);
    copy->inner = arena_copy(arena, decisions->inner, copy->directives.n * sizeof *copy->inner);
    return copy;
}

bool decisions_equal(const Decisions *a, const Decisions *b) {
    if (!a || !b) return a == b;
    uint32_t n = a->directives.n;
    return a->by_columns == b->by_columns &&
           memcmp(a->directives.bits, b->directives.bits, n * sizeof *a->directives.bits) == 0 &&
           memcmp(a->side, b->side, n * sizeof *a->side) == 0 &&
           memcmp(a->inner, b->inner, n * sizeof *a->inner) == 0;
}

void decisions_print(const Decisions *decisions, const Graph *graph, Text *out) {
    for (NodeId id = 0; id < decisions->directives.n; id++) {
        const Node *node = graph_node(graph, id);
        if (!decisions->directives.bits[id] && !decisions->side[id]) continue;
        text_printf(out, "  %u %s:", id, node->name ? node->name : op_info(node->op)->name);
        for (unsigned directive = 0; directive < DIRECTIVE_COUNT; directive++)
            if (node_has(decisions->directives, id, directive))
                text_printf(out, " %s", infos[directive].name);
        if (decisions->side[id]) text_printf(out, " side %u", decisions->side[id]);
        text_puts(out, "\n");
    }
    if (decisions->by_columns) text_puts(out, "  ties go with columns\n");
}
