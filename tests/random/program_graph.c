/* A graph as a program: a statement for every op. */
#include "random/program.h"

#include <stdlib.h>
#include <string.h>

static const char *type_of(Arena *arena, const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    Text text = {.arena = arena};
    text_puts(&text, dtype_name(node->dtype));
    shape_print(graph->dims, &node->shape, &text);
    return text_str(&text);
}

static void add_dims(Program *p, const DimTab *dims) {
    for (uint32_t i = 0; i < dim_n_symbols(dims); i++) {
        const DimSymbol *symbol = dim_symbol_info(dims, i);
        Text range = {.arena = p->arena};
        if (symbol->rule) continue;
        text_printf(&range, "%lld..%lld", (long long)symbol->lo, (long long)symbol->hi);
        if (symbol->multiple > 1) text_printf(&range, " mult %lld", (long long)symbol->multiple);
        vec_push(p->arena, &p->dims, (ProgramItem){.name = symbol->name, .type = text_str(&range)});
    }
}

/* The text between two others, or NULL; `*at` moves after it. */
static const char *cut(Arena *arena, const char **at, const char *before, const char *behind) {
    const char *begin = strstr(*at, before);
    const char *end = begin ? strstr(begin + strlen(before), behind) : NULL;
    if (!end) return NULL;
    begin += strlen(before);
    *at = end;
    return str_format(arena, "%.*s", (int)(end - begin), begin);
}

/* Without blocks and loops, statements have the order of the nodes. */
static void add_statements(Program *p, const Graph *graph, const char **names, const char *text) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        if (graph_node(graph, id)->op == OP_PARAM) cut(p->arena, &text, "\n  param ", "\n");
        if (graph_is_bound(graph, id)) continue;
        ProgramItem item = {.type = type_of(p->arena, graph, id)};
        item.name = cut(p->arena, &text, "\n  ", " = ");
        item.expr = item.name ? cut(p->arena, &text, " = ", "\n") : NULL;
        if (!item.expr) return;
        names[id] = item.name;
        vec_push(p->arena, &p->statements, item);
    }
}

Program program_of_graph(Arena *arena, const Graph *graph) {
    Program p = {.arena = arena};
    Graph loose = *graph;
    Text text = {.arena = arena};
    const char **names = arena_array(arena, const char *, graph->nodes.n);
    loose.fixed_kernels.n = loose.kernel_of.n = loose.loops.n = 0;
    graph_print(&loose, &text);
    add_dims(&p, graph->dims);
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        GraphInput input = graph->inputs.data[i];
        names[input.node] = input.name;
        vec_push(arena, &p.inputs,
                 (ProgramItem){.name = input.name, .type = type_of(arena, graph, input.node)});
    }
    for (uint32_t i = 0; i < graph->params.n; i++) {
        GraphInput param = graph->params.data[i];
        names[param.node] = param.name;
        vec_push(arena, &p.params,
                 (ProgramItem){.name = param.name,
                               .type = type_of(arena, graph, param.node),
                               .expr = param.key});
    }
    add_statements(&p, graph, names, text_str(&text));
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        NodeId of = graph->outputs.data[i].node;
        ProgramItem item = {.name = str_format(arena, "result%u", i),
                            .type = type_of(arena, graph, of),
                            .expr = names[of]};
        vec_push(arena, &p.outputs, item);
    }
    return p;
}
