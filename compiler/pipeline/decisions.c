/* Bit sets of directives. See decisions.h. */
#include "pipeline/decisions.h"

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

void decisions_print(const Decisions *decisions, const Graph *graph, Text *out) {
    for (NodeId id = 0; id < decisions->n; id++) {
        const Node *node = graph_node(graph, id);
        const Decision *of = &decisions->of[id];
        if (!of->directives && !of->side) continue;
        text_printf(out, "  %u %s:", id, node->name ? node->name : op_info(node->op)->name);
        for (int directive = 0; directive < DIRECTIVE_COUNT; directive++)
            if (of->directives >> directive & 1) text_printf(out, " %s", infos[directive].name);
        if (of->side) text_printf(out, " part %u", of->side);
        text_puts(out, "\n");
    }
    if (decisions->by_columns) text_puts(out, "  ties go with columns\n");
}
