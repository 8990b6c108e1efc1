/* Prints DOT. See dot.h. The id g0k1i2 is graph 0, kernel 1, item 2. A buffer between kernels is a
 * node, g0b1, because Graphviz keeps nodes apart from boxes and from each other, but not the labels
 * of edges. */
#include "report/dot.h"

#include "report/picture.h"

#include <string.h>

typedef struct Dot {
    Arena *arena;
    Text *out;
    const Picture *picture;
    const Plan *plan;
    uint32_t graph;
} Dot;

/* Escapes text of users. `end` replaces a line break. */
static void put_escaped(Text *out, const char *text, const char *end) {
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') text_puts(out, "\\");
        if (*text == '\n')
            text_puts(out, end);
        else
            text_add(out, text, 1);
    }
}

static void put_quoted(Text *out, const char *text) {
    text_puts(out, "\"");
    put_escaped(out, text, "\\n");
    text_puts(out, "\"");
}

/* Prints left-aligned lines. */
static void put_left(Text *out, const char *text) {
    text_puts(out, "\"");
    put_escaped(out, text, "\\l");
    text_puts(out, "\\l\"");
}

/* The colours of op classes; one list serves the legend of the other pictures too. */
static const char *fill_of(OpClass cls) {
    switch (cls) {
    case CLASS_SOURCE:
        return "#eceff1";
    case CLASS_ELTWISE:
    case CLASS_CAST:
        return "#d9f2e6";
    case CLASS_REDUCE:
    case CLASS_ARGREDUCE:
    case CLASS_SCAN:
    case CLASS_SCAN_BY:
    case CLASS_SORT:
    case CLASS_SEGMENT:
        return "#ffe4b8";
    case CLASS_VIEW:
    case CLASS_CONCAT:
    case CLASS_UPDATE:
    case CLASS_LOOP:
        return "#eceff1";
    case CLASS_ONLINE:
    case CLASS_MATMUL:
        return "#d6e0ff";
    }
    return "";
}

static const char *bytes_text(const Dot *d, DimId bytes) {
    if (bytes == DIM_NONE) return "more than 2^62 bytes";
    return str_format(d->arena, "%s bytes", dim_str(d->plan->graph->dims, d->arena, bytes));
}

/* The text of a buffer: its name, its kind for the caller, and its bytes. */
static const char *buffer_text(const Dot *d, uint32_t buffer) {
    const Buffer *given = &d->plan->buffers.data[buffer];
    DimTab *dims = d->plan->graph->dims;
    Text text = {.arena = d->arena};
    text_printf(&text, "%s\n", given->name);
    if (picture_is_bound(d->picture, buffer)) {
        text_puts(&text, dtype_name(given->dtype));
        shape_print(dims, &given->shape, &text);
        text_puts(&text, "\n");
    }
    text_puts(&text, bytes_text(d, buffer_bytes(dims, given)));
    return text_str(&text);
}

static const char *buffer_node(const Dot *d, uint32_t buffer) {
    return str_format(d->arena, "g%ub%u", d->graph, buffer);
}

/* Whether a kernel of the launch reads or stores the buffer. */
static bool is_used(const Dot *d, const PictureLaunch *launch, uint32_t buffer) {
    for (uint32_t k = 0; k < launch->n; k++) {
        const PictureKernel *kernel = &d->picture->kernels.data[launch->kernels[k]];
        for (uint32_t i = 0; i < kernel->items.n; i++)
            if (kernel->items.data[i].kind != ITEM_OP && kernel->items.data[i].buffer == buffer)
                return true;
    }
    return false;
}

static bool has_node(const Dot *d, uint32_t buffer) {
    for (uint32_t l = 0; l < d->picture->launches.n; l++)
        if (is_used(d, &d->picture->launches.data[l], buffer)) return true;
    return picture_is_bound(d->picture, buffer);
}

static void put_buffer(const Dot *d, uint32_t buffer, const char *indent) {
    static const char *const looks[] = {
        [BUFFER_INPUT] = "style=filled, fillcolor=\"#fff7ed\"",
        [BUFFER_PARAM] = "style=filled, fillcolor=\"#f5f0ff\"",
        [BUFFER_OUTPUT] = "style=filled, fillcolor=\"#fff7ed\"",
        [BUFFER_TEMP] = "fontsize=9, fillcolor=\"#ffffff\", color=\"#c2410c\"",
        [BUFFER_PREPARED] = "fontsize=9, fillcolor=\"#ffffff\", color=\"#c2410c\""};
    const Buffer *given = &d->plan->buffers.data[buffer];
    const char *look = given->space != BUFFER_GLOBAL
                           ? "fontsize=9, style=\"rounded,filled,dashed\", fillcolor=\"#ffffff\", "
                             "color=\"#7c3aed\""
                           : looks[given->kind];
    text_printf(d->out, "%s%s [%s, label=", indent, buffer_node(d, buffer), look);
    put_quoted(d->out, given->space != BUFFER_GLOBAL
                           ? str_format(d->arena, "%s within the launch", given->name)
                           : buffer_text(d, buffer));
    text_puts(d->out, "];\n");
}

static void put_op(const Dot *d, uint32_t k, uint32_t i, const char *indent) {
    const Item *item = &d->picture->kernels.data[k].items.data[i];
    OpClass cls = graph_class(d->plan->graph, item->node);
    text_printf(d->out, "%sg%uk%ui%u [label=", indent, d->graph, k, i);
    put_quoted(d->out, item->label);
    text_printf(d->out, ", fillcolor=\"%s\"];\n", fill_of(cls));
}

/* The op with the longest path of ops after it, which Graphviz puts first. */
static uint32_t first_op(const Dot *d, const PictureKernel *kernel) {
    uint32_t *below = arena_array(d->arena, uint32_t, kernel->items.n), first = UINT32_MAX;
    for (uint32_t i = kernel->items.n; i-- > 0;) {
        for (uint32_t f = 0; f < kernel->flows.n; f++) {
            Flow flow = kernel->flows.data[f];
            if (flow.from == i && below[flow.to] + 1 > below[i]) below[i] = below[flow.to] + 1;
        }
        bool is_op = kernel->items.data[i].kind == ITEM_OP;
        if (is_op && (first == UINT32_MAX || below[i] >= below[first])) first = i;
    }
    return first;
}

/* Graphviz draws edges over the titles of clusters, but not over nodes. So the title of a kernel is
 * a node to the left of the first op. */
static void put_title(const Dot *d, uint32_t k, const char *indent) {
    const PictureKernel *kernel = &d->picture->kernels.data[k];
    uint32_t first = first_op(d, kernel);
    text_printf(d->out, "%sg%uk%ut [shape=plain, style=\"\", label=", indent, d->graph, k);
    put_left(d->out, str_format(d->arena, "%s\n%s%s", kernel->kernel->name,
                                form_info(kernel->kernel->form)->title,
                                kernel->kernel->is_init ? ", once" : ""));
    text_printf(d->out, "];\n%s{ rank=same; g%uk%ut -> g%uk%ui%u [style=invis]; }\n", indent,
                d->graph, k, d->graph, k, first);
}

static void put_kernel(const Dot *d, uint32_t k, const char *indent) {
    const PictureKernel *kernel = &d->picture->kernels.data[k];
    const char *inner = str_format(d->arena, "%s  ", indent);
    text_printf(d->out, "%ssubgraph cluster_g%uk%u {\n%slabel=\"\"; ", indent, d->graph, k, inner);
    text_printf(d->out, "style=\"rounded,filled%s\"; fillcolor=\"#f7f9fc\"; color=\"#7a8699\";\n",
                kernel->kernel->is_init ? ",dotted" : "");
    for (uint32_t i = 0; i < kernel->items.n; i++)
        if (kernel->items.data[i].kind == ITEM_OP) put_op(d, k, i, inner);
    put_title(d, k, inner);
    text_printf(d->out, "%s}\n", indent);
}

static void put_launch(const Dot *d, uint32_t l) {
    const PictureLaunch *launch = &d->picture->launches.data[l];
    if (launch->n == 1) {
        put_kernel(d, launch->kernels[0], "    ");
        return;
    }
    text_printf(d->out, "    subgraph cluster_g%ul%u {\n      fontsize=11; labelloc=b; ", d->graph,
                l);
    text_printf(d->out, "label=\"one launch, %u kernels\"; style=\"rounded,dashed\"; ", launch->n);
    text_puts(d->out, "color=\"#4a5568\";\n");
    for (uint32_t i = 0; i < launch->n; i++) put_kernel(d, launch->kernels[i], "      ");
    for (uint32_t i = 0; i < d->plan->buffers.n; i++)
        if (d->plan->buffers.data[i].space != BUFFER_GLOBAL && is_used(d, launch, i))
            put_buffer(d, i, "      ");
    text_puts(d->out, "    }\n");
}

/* The item of the kernel whose value the kernel stores to `buffer`, or UINT32_MAX. */
static uint32_t making_item(const PictureKernel *kernel, uint32_t buffer) {
    for (uint32_t f = 0; f < kernel->flows.n; f++) {
        const Item *to = &kernel->items.data[kernel->flows.data[f].to];
        if (to->kind == ITEM_STORE && to->buffer == buffer) return kernel->flows.data[f].from;
    }
    return UINT32_MAX;
}

/* A node that computes a value or a slice of it. */
typedef struct Origin {
    const char *name;
    DimId bytes;
} Origin;

/* Visits the nodes that compute a buffer's value: one node, or several that each compute a
 * slice. */
static void each_origin(const Dot *d, uint32_t buffer, void (*visit)(void *user, Origin origin),
                        void *user) {
    DimTab *dims = d->plan->graph->dims;
    uint32_t original = picture_original(d->picture, buffer), n = 0;
    if (original != UINT32_MAX) {
        each_origin(d, original, visit, user);
        return;
    }
    for (uint32_t k = 0; k < d->picture->kernels.n; k++) {
        const PictureKernel *kernel = &d->picture->kernels.data[k];
        uint32_t item = making_item(kernel, buffer);
        if (item == UINT32_MAX) continue;
        const Item *from = &kernel->items.data[item];
        n++;
        PictureLaunch alone = {.kernels = &k, .n = 1};
        if (from->kind == ITEM_READ)
            each_origin(d, from->buffer, visit, user);
        else
            visit(user, (Origin){str_format(d->arena, "g%uk%ui%u", d->graph, k, item),
                                 picture_stored_bytes(d->picture, &alone, buffer)});
    }
    if (n == 0)
        visit(user,
              (Origin){buffer_node(d, buffer), buffer_bytes(dims, &d->plan->buffers.data[buffer])});
}

typedef struct MemoryEdge {
    const Dot *dot;
    uint32_t buffer;
    const char *to;
} MemoryEdge;

static const char *line_of(const Buffer *buffer) {
    return buffer->space != BUFFER_GLOBAL ? "style=dashed" : "color=\"#c2410c\", penwidth=2";
}

/* Prints an edge to a buffer. Only an edge of a slice has a label, its bytes, because labels of
 * edges can overlap boxes. */
static void put_store_edge(void *user, Origin origin) {
    const MemoryEdge *edge = user;
    const Dot *d = edge->dot;
    const Buffer *given = &d->plan->buffers.data[edge->buffer];
    if (strcmp(origin.name, edge->to) == 0) return;
    text_printf(d->out, "    %s -> %s [", origin.name, edge->to);
    if (origin.bytes != buffer_bytes(d->plan->graph->dims, given)) {
        text_puts(d->out, "label=");
        put_left(d->out, str_format(d->arena, "  %s", bytes_text(d, origin.bytes)));
        text_puts(d->out, ", ");
    }
    text_printf(d->out, "%s];\n", line_of(given));
}

static void put_edges(const Dot *d, uint32_t k) {
    const PictureKernel *kernel = &d->picture->kernels.data[k];
    for (uint32_t f = 0; f < kernel->flows.n; f++) {
        Flow flow = kernel->flows.data[f];
        const Item *from = &kernel->items.data[flow.from], *to = &kernel->items.data[flow.to];
        if (to->kind != ITEM_OP) continue;
        const char *name = str_format(d->arena, "g%uk%ui%u", d->graph, k, flow.to);
        if (from->kind == ITEM_READ)
            text_printf(d->out, "    %s -> %s [%s];\n", buffer_node(d, from->buffer), name,
                        line_of(&d->plan->buffers.data[from->buffer]));
        else
            text_printf(d->out, "    g%uk%ui%u -> %s;\n", d->graph, k, flow.from, name);
    }
}

static void put_graph(const Dot *d) {
    text_printf(d->out, "  subgraph cluster_g%u {\n    label=", d->graph);
    put_quoted(d->out, str_format(d->arena, "graph %s", d->plan->graph->name));
    text_puts(d->out, "; color=\"#ffffff00\"; fontsize=16;\n");
    for (uint32_t i = 0; i < d->plan->buffers.n; i++)
        if (has_node(d, i) && d->plan->buffers.data[i].space == BUFFER_GLOBAL)
            put_buffer(d, i, "    ");
    for (uint32_t i = 0; i < d->picture->launches.n; i++) put_launch(d, i);
    for (uint32_t k = 0; k < d->picture->kernels.n; k++) put_edges(d, k);
    for (uint32_t i = 0; i < d->plan->buffers.n; i++) {
        MemoryEdge edge = {d, i, buffer_node(d, i)};
        if (has_node(d, i)) each_origin(d, i, put_store_edge, &edge);
    }
    text_puts(d->out, "  }\n");
}

void dot_print(Arena *arena, const Plan *const *plans, uint32_t n_plans, Text *out) {
    text_puts(out,
              "digraph plan {\n"
              "  fontname=\"Helvetica\"; fontsize=11; labeljust=l; nodesep=0.3; ranksep=0.35;\n"
              "  node [fontname=\"Helvetica\", fontsize=11, shape=box, height=0.3, "
              "style=\"rounded,filled\", color=\"#9aa5b1\"];\n"
              "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#52606d\", "
              "arrowsize=0.6];\n");
    for (uint32_t i = 0; i < n_plans; i++) {
        Dot d = {.arena = arena, .out = out, .plan = plans[i], .graph = i};
        d.picture = picture_new(arena, plans[i], NULL);
        put_graph(&d);
    }
    text_puts(out, "}\n");
}
