/* Graphs drawn: each kernel laid out by itself, kernels of one launch inside its box, launches and
 * what comes in and goes out around them. A launch of one kernel of one op is a small box. */
#include "report/parts.h"

#include <math.h>

#define NONE UINT32_MAX

enum {
    FONT = 11,
    OP_H = 22,
    PILL_H = 17,
    TITLE_H = 18,
    LABEL_H = 13,
    PAD = 14, /* of boxes around what they hold */
    MAX_LABEL = 34,
    MAX_DRAWN = 1200 /* items; more are no picture any more */
};
static const double MARGIN = 6, MAX_STROKE = 6;

/* Where an edge meets a box: a buffer's place on its upper or lower side, from the left. */
typedef struct Port {
    uint32_t buffer;
    bool is_store;
    double x;
} Port;

/* A laid out kernel, or a launch of several. */
typedef struct Box {
    Layout layout;
    double left; /* of the layout in the box */
    double w, h;
    Vec(Port) ports;
} Box;

typedef struct Drawing {
    const Page *page;
    const ReportSide *side;
    const Picture *picture;
    Arena *arena;
    Text *out;
    double most_bytes; /* of any value, in both pictures: the widest edge */
    const char *prefix;
    Box *kernels;  /* per kernel */
    Box *launches; /* per launch: of several kernels */
    Layout top;
    uint32_t *node_of_buffer; /* per buffer: its node at the top, or NONE */
    uint32_t first_launch;    /* the node of launch 0 */
} Drawing;

static const Graph *graph_of(const Drawing *d) {
    return d->side->plan->graph;
}

static const Buffer *buffer_at(const Drawing *d, uint32_t buffer) {
    return &d->side->plan->buffers.data[buffer];
}

static double bytes_of(const Drawing *d, uint32_t buffer) {
    return page_number(d->page, buffer_bytes(graph_of(d)->dims, buffer_at(d, buffer)));
}

static double stroke_of(const Drawing *d, uint32_t buffer) {
    double share = d->most_bytes > 0 ? bytes_of(d, buffer) / d->most_bytes : 0;
    return 1.2 + (MAX_STROKE - 1.2) * sqrt(share);
}

static const char *shown(const Drawing *d, const char *label) {
    return svg_shorten(d->arena, label, MAX_LABEL);
}

static double label_width(const Drawing *d, const char *label) {
    return svg_text_width(shown(d, label), FONT);
}

static const char *buffer_tip(const Drawing *d, uint32_t buffer) {
    static const char *const kinds[] = {[BUFFER_INPUT] = "input",
                                        [BUFFER_PARAM] = "param",
                                        [BUFFER_OUTPUT] = "output",
                                        [BUFFER_TEMP] = "temporary"};
    const Buffer *given = buffer_at(d, buffer);
    const Graph *graph = graph_of(d);
    const char *key = "";
    if (given->kind == BUFFER_PARAM) key = graph->params.data[given->ordinal].key;
    Text text = {.arena = d->arena};
    text_printf(&text, "%s %s: %s\n%s", kinds[given->kind], given->name,
                page_shape(d->page, given->dtype, &given->shape),
                given->is_on_chip
                    ? "on chip, in no memory"
                    : page_bytes(d->page, buffer_bytes(graph->dims, given)));
    if (key && *key) text_printf(&text, "\n\"%s\"", key);
    return text_str(&text);
}

static const char *op_tip(const Drawing *d, NodeId id) {
    const Node *node = graph_node(graph_of(d), id);
    uint32_t line = node_line(graph_of(d), id);
    Text text = {.arena = d->arena};
    text_printf(&text, "%s = %s: %s", node_title(d->arena, graph_of(d), id),
                op_info(node->op)->name, page_shape(d->page, node->dtype, &node->shape));
    if (line) text_printf(&text, "\nline %u", line);
    return text_str(&text);
}

/* Layout. */

static bool is_small(const Drawing *d, uint32_t launch) {
    const PictureLaunch *l = &d->picture->launches.data[launch];
    return l->n == 1 && d->picture->kernels.data[l->first].n_ops == 1;
}

static const char *small_label(const Drawing *d, uint32_t launch) {
    const PictureKernel *kernel =
        &d->picture->kernels.data[d->picture->launches.data[launch].first];
    for (uint32_t i = 0; i < kernel->items.n; i++)
        if (kernel->items.data[i].kind == ITEM_OP) return kernel->items.data[i].label;
    return "";
}

static void add_port(const Drawing *d, Box *box, uint32_t node, uint32_t buffer, bool is_store) {
    const LayoutNode *placed = &box->layout.nodes.data[node];
    Port port = {buffer, is_store, box->left + placed->x + placed->w / 2};
    vec_push(d->arena, &box->ports, port);
}

static double port_at(const Box *box, uint32_t buffer, bool is_store) {
    for (uint32_t i = 0; i < box->ports.n; i++)
        if (box->ports.data[i].buffer == buffer && box->ports.data[i].is_store == is_store)
            return box->ports.data[i].x - box->w / 2;
    return 0;
}

/* The box around a layout whose pills lie on its edges. */
static void close_box(Box *box, double least_w) {
    double w = box->layout.w + 2 * PAD;
    box->w = w < least_w ? least_w : w;
    box->left = (box->w - box->layout.w) / 2;
    box->h = box->layout.h;
}

static const char *kernel_title(const Drawing *d, uint32_t k) {
    return d->side->plan->kernels.data[k].name;
}

/* A pill of a value that comes from another kernel is on the upper side, with the title's room
 * below; one of a param may stand anywhere. */
static uint32_t add_pill(const Drawing *d, Layout *layout, const Item *item) {
    double w = label_width(d, item->label) + 14;
    if (item->kind == ITEM_STORE) return layout_add_node(layout, w, PILL_H, LAYOUT_BOTTOM);
    if (buffer_at(d, item->buffer)->kind == BUFFER_PARAM)
        return layout_add_node(layout, w, PILL_H, LAYOUT_FREE);
    return layout_add_node(layout, w, PILL_H + TITLE_H, LAYOUT_TOP);
}

static void lay_out_kernel(const Drawing *d, uint32_t k) {
    const PictureKernel *kernel = &d->picture->kernels.data[k];
    Box *box = &d->kernels[k];
    Layout *layout = &box->layout;
    *layout = (Layout){.arena = d->arena, .node_gap = 14, .rank_gap = 13};
    for (uint32_t i = 0; i < kernel->items.n; i++) {
        const Item *item = &kernel->items.data[i];
        if (item->kind == ITEM_OP)
            layout_add_node(layout, label_width(d, item->label) + 18, OP_H, LAYOUT_FREE);
        else
            add_pill(d, layout, item);
    }
    for (uint32_t i = 0; i < kernel->flows.n; i++) {
        Flow flow = kernel->flows.data[i];
        layout_add_edge(layout, (LayoutEdge){.from = flow.from, .to = flow.to});
    }
    layout_run(layout);
    close_box(box, svg_text_width(kernel_title(d, k), FONT - 1) + 2 * PAD);
    for (uint32_t i = 0; i < kernel->items.n; i++) {
        const Item *item = &kernel->items.data[i];
        if (item->kind != ITEM_OP)
            add_port(d, box, i, item->buffer, item->kind == ITEM_STORE);
    }
}

/* Launches of several kernels: pills of what comes from outside, kernels, pills of what goes out. */

static bool takes(const Drawing *d, uint32_t k, uint32_t buffer) {
    const Kernel *kernel = d->picture->kernels.data[k].kernel;
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (kernel->args.data[i] == buffer) return !explain_stores_to(kernel, buffer);
    return false;
}

static void add_launch_edges(const Drawing *d, Layout *layout, const PictureLaunch *launch,
                             uint32_t buffer, uint32_t in, uint32_t out, uint32_t first) {
    for (uint32_t i = 0; i < launch->n; i++) {
        const Box *box = &d->kernels[launch->first + i];
        if (in != NONE && takes(d, launch->first + i, buffer))
            layout_add_edge(layout, (LayoutEdge){.from = in,
                                                 .to = first + i,
                                                 .has_to_port = true,
                                                 .to_port = port_at(box, buffer, false)});
        if (!explain_stores_to(d->picture->kernels.data[launch->first + i].kernel, buffer)) continue;
        LayoutEdge edge = {.from = first + i,
                           .has_from_port = true,
                           .from_port = port_at(box, buffer, true)};
        for (uint32_t k = i + 1; k < launch->n; k++) {
            if (!takes(d, launch->first + k, buffer)) continue;
            edge.to = first + k;
            edge.has_to_port = true;
            edge.to_port = port_at(&d->kernels[launch->first + k], buffer, false);
            layout_add_edge(layout, edge);
        }
        edge.to = out;
        edge.has_to_port = false;
        edge.to_port = 0;
        if (out != NONE) layout_add_edge(layout, edge);
    }
}

static uint32_t *add_launch_pills(const Drawing *d, Layout *layout, const PictureLaunch *launch,
                                  bool is_store) {
    uint32_t *pills = arena_array(d->arena, uint32_t, d->side->plan->buffers.n);
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
        const Buffer *buffer = buffer_at(d, b);
        pills[b] = NONE;
        bool has = is_store ? launch_stores(d->picture, launch, b)
                            : buffer->kind != BUFFER_PARAM && launch_reads(d->picture, launch, b);
        if (!has) continue;
        double w = label_width(d, buffer->name) + 14;
        pills[b] = is_store ? layout_add_node(layout, w, PILL_H, LAYOUT_BOTTOM)
                            : layout_add_node(layout, w, PILL_H + TITLE_H, LAYOUT_TOP);
    }
    return pills;
}

static void lay_out_launch(const Drawing *d, uint32_t l) {
    const PictureLaunch *launch = &d->picture->launches.data[l];
    Box *box = &d->launches[l];
    Layout *layout = &box->layout;
    *layout = (Layout){.arena = d->arena, .node_gap = 18, .rank_gap = 20};
    uint32_t *in = add_launch_pills(d, layout, launch, false);
    uint32_t first = layout->nodes.n;
    for (uint32_t i = 0; i < launch->n; i++) {
        const Box *kernel = &d->kernels[launch->first + i];
        layout_add_node(layout, kernel->w, kernel->h, LAYOUT_FREE);
    }
    uint32_t *out = add_launch_pills(d, layout, launch, true);
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++)
        add_launch_edges(d, layout, launch, b, in[b], out[b], first);
    layout_run(layout);
    close_box(box, 0);
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
        if (in[b] != NONE) add_port(d, box, in[b], b, false);
        if (out[b] != NONE) add_port(d, box, out[b], b, true);
    }
}

/* The whole. */

static const Box *box_of(const Drawing *d, uint32_t l) {
    const PictureLaunch *launch = &d->picture->launches.data[l];
    return launch->n == 1 ? &d->kernels[launch->first] : &d->launches[l];
}

static bool is_read_at_top(const Drawing *d, uint32_t l, uint32_t buffer) {
    bool is_inside = !is_small(d, l) && buffer_at(d, buffer)->kind == BUFFER_PARAM;
    return !is_inside && launch_reads(d->picture, &d->picture->launches.data[l], buffer);
}

static void add_ends(Drawing *d, bool is_output) {
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
        const Buffer *buffer = buffer_at(d, b);
        if (buffer->kind == BUFFER_TEMP || (buffer->kind == BUFFER_OUTPUT) != is_output) continue;
        bool is_used = is_output;
        for (uint32_t l = 0; l < d->picture->launches.n && !is_used; l++)
            is_used = is_read_at_top(d, l, b);
        if (is_used)
            d->node_of_buffer[b] = layout_add_node(
                &d->top, label_width(d, buffer->name) + 22, PILL_H + 3, LAYOUT_FREE);
    }
}

static void add_top_edge(Drawing *d, uint32_t buffer, uint32_t from, uint32_t to) {
    uint32_t n = d->picture->launches.n;
    const char *label = human_bytes(d->arena, bytes_of(d, buffer));
    LayoutEdge edge = {.from = from,
                       .to = to,
                       .label_w = svg_text_width(label, FONT - 1.5) + MAX_STROKE + 3,
                       .label_h = LABEL_H};
    uint32_t maker = from - d->first_launch, reader = to - d->first_launch;
    if (from >= d->first_launch && maker < n && !is_small(d, maker)) {
        edge.has_from_port = true;
        edge.from_port = port_at(box_of(d, maker), buffer, true);
    }
    if (to >= d->first_launch && reader < n && !is_small(d, reader)) {
        edge.has_to_port = true;
        edge.to_port = port_at(box_of(d, reader), buffer, false);
    }
    layout_add_edge(&d->top, edge);
}

/* In the order in which draw_edges goes through them. */
static void add_edges(Drawing *d) {
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
        uint32_t maker = picture_maker(d->picture, b);
        uint32_t from = maker == NONE ? d->node_of_buffer[b] : d->first_launch + maker;
        for (uint32_t l = 0; l < d->picture->launches.n; l++)
            if (is_read_at_top(d, l, b)) add_top_edge(d, b, from, d->first_launch + l);
        if (buffer_at(d, b)->kind == BUFFER_OUTPUT && from != d->node_of_buffer[b])
            add_top_edge(d, b, from, d->node_of_buffer[b]);
    }
}

static void lay_out(Drawing *d) {
    const Plan *plan = d->side->plan;
    d->kernels = arena_array(d->arena, Box, plan->kernels.n);
    d->launches = arena_array(d->arena, Box, d->picture->launches.n);
    d->node_of_buffer = arena_array(d->arena, uint32_t, plan->buffers.n);
    memset(d->node_of_buffer, 0xFF, plan->buffers.n * sizeof *d->node_of_buffer);
    d->top = (Layout){.arena = d->arena, .node_gap = 16, .rank_gap = 26};
    for (uint32_t k = 0; k < plan->kernels.n; k++) lay_out_kernel(d, k);
    for (uint32_t l = 0; l < d->picture->launches.n; l++)
        if (d->picture->launches.data[l].n > 1) lay_out_launch(d, l);
    add_ends(d, false);
    d->first_launch = d->top.nodes.n;
    for (uint32_t l = 0; l < d->picture->launches.n; l++) {
        if (is_small(d, l))
            layout_add_node(&d->top, label_width(d, small_label(d, l)) + 20, OP_H, LAYOUT_FREE);
        else
            layout_add_node(&d->top, box_of(d, l)->w, box_of(d, l)->h, LAYOUT_FREE);
    }
    add_ends(d, true);
    add_edges(d);
    layout_run(&d->top);
}

/* Drawing. */

static void draw_pill(const Drawing *d, uint32_t buffer, const LayoutNode *at) {
    static const char *const classes[] = {[BUFFER_INPUT] = "pill in",
                                          [BUFFER_PARAM] = "pill param",
                                          [BUFFER_OUTPUT] = "pill out",
                                          [BUFFER_TEMP] = "pill temp"};
    const Buffer *given = buffer_at(d, buffer);
    svg_rect(d->out, given->is_on_chip ? "pill chip" : classes[given->kind], at->x, at->y, at->w,
             PILL_H, PILL_H / 2.0, buffer_tip(d, buffer));
    svg_text(d->out, "t", ANCHOR_MIDDLE, at->x + at->w / 2, at->y + PILL_H / 2.0 + 3.6,
             shown(d, given->name));
}

static void draw_op(const Drawing *d, NodeId node, const char *label, const LayoutNode *at) {
    OpClass cls = op_info(graph_node(graph_of(d), node)->op)->cls;
    const char *class_name = str_format(d->arena, "op %s", op_class_name(cls));
    svg_rect(d->out, class_name, at->x, at->y, at->w, at->h, 5, op_tip(d, node));
    svg_text(d->out, "t", ANCHOR_MIDDLE, at->x + at->w / 2, at->y + at->h / 2 + 3.8,
             shown(d, label));
}

static const char *kernel_tip(const Drawing *d, uint32_t k) {
    const Kernel *kernel = &d->side->plan->kernels.data[k];
    const KernelCost *cost = &d->side->cost->kernels[k];
    return str_format(d->arena, "%s: %s\n%s predicted, %s read, %s written", kernel->name,
                      explain_form_name(kernel->form), human_us(d->arena, cost->us),
                      human_bytes(d->arena, cost->read_bytes),
                      human_bytes(d->arena, cost->written_bytes));
}

static const char *form_class(const Kernel *kernel) {
    switch (kernel->form) {
    case FORM_MAP:
        return "kernel map";
    case FORM_ROW:
    case FORM_COLUMN:
        return "kernel reduction";
    case FORM_CONTRACT:
        return "kernel contraction";
    }
    return "";
}

/* Edges leave pills of the upper side where those end, not where their room does. */
static void draw_flow(const Drawing *d, const LayoutEdge *edge, const LayoutNode *from,
                      const char *class_name, double width, const char *tip) {
    if (edge->n_points && from->pin == LAYOUT_TOP) edge->points[0].y = from->y + PILL_H;
    svg_edge(d->out, class_name, width, edge->points, edge->n_points, tip);
}

/* To the left below the upper side, or to the right if an edge comes down there. */
static void draw_title(const Drawing *d, const Box *box, const char *title) {
    enum { INSET = 9 };
    double w = svg_text_width(title, FONT - 1);
    bool left_is_free = true, right_is_free = true;
    for (uint32_t i = 0; i < box->ports.n; i++) {
        const Port *port = &box->ports.data[i];
        if (port->is_store || buffer_at(d, port->buffer)->kind == BUFFER_PARAM) continue;
        if (port->x < INSET + w + 3) left_is_free = false;
        if (port->x > box->w - INSET - w - 3) right_is_free = false;
    }
    bool goes_right = !left_is_free && right_is_free;
    svg_text(d->out, "title", goes_right ? ANCHOR_END : ANCHOR_START,
             goes_right ? box->w - INSET : INSET, PILL_H + 11.0, title);
}

static void draw_kernel(const Drawing *d, uint32_t k, double x, double y, const char *id) {
    const PictureKernel *kernel = &d->picture->kernels.data[k];
    const Box *box = &d->kernels[k];
    svg_group_begin(d->out, x, y, "k", id);
    svg_rect(d->out, form_class(kernel->kernel), 0, PILL_H / 2.0, box->w, box->h - PILL_H, 9,
             kernel_tip(d, k));
    svg_group_begin(d->out, box->left, 0, "c", NULL);
    for (uint32_t i = 0; i < kernel->flows.n; i++) {
        const LayoutEdge *edge = &box->layout.edges.data[i];
        draw_flow(d, edge, &box->layout.nodes.data[edge->from], "reg", 1, NULL);
    }
    for (uint32_t i = 0; i < kernel->items.n; i++) {
        const Item *item = &kernel->items.data[i];
        if (item->kind == ITEM_OP)
            draw_op(d, item->node, item->label, &box->layout.nodes.data[i]);
        else
            draw_pill(d, item->buffer, &box->layout.nodes.data[i]);
    }
    svg_group_end(d->out);
    draw_title(d, box, kernel_title(d, k));
    svg_group_end(d->out);
}

/* Pills of a launch: nodes before the kernels and after them, in the order of the buffers. */
static void draw_launch_pills(const Drawing *d, const PictureLaunch *launch, const Box *box) {
    uint32_t node = 0;
    for (int is_store = 0; is_store < 2; is_store++) {
        for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
            bool has = is_store ? launch_stores(d->picture, launch, b)
                                : buffer_at(d, b)->kind != BUFFER_PARAM &&
                                      launch_reads(d->picture, launch, b);
            if (has) draw_pill(d, b, &box->layout.nodes.data[node++]);
        }
        node += is_store ? 0 : launch->n;
    }
}

static const char *kernel_id(const Drawing *d, uint32_t k) {
    return str_format(d->arena, "%sk%u", d->prefix, k);
}

static void draw_launch(const Drawing *d, uint32_t l, double x, double y) {
    const PictureLaunch *launch = &d->picture->launches.data[l];
    const Box *box = &d->launches[l];
    uint32_t first = 0;
    while (box->layout.nodes.data[first].pin == LAYOUT_TOP) first++;
    bool is_chain = launch->n > 1 && d->side->plan->kernels.data[launch->first + 1].link == LINK_PHASE;
    svg_group_begin(d->out, x, y, "l", NULL);
    svg_rect(d->out, "launch", 0, PILL_H / 2.0, box->w, box->h - PILL_H, 12,
             is_chain ? "one launch: its blocks run these kernels one after the other, what passes "
                        "between them stays on chip"
                      : "one launch: its blocks are shared out among these kernels");
    svg_group_begin(d->out, box->left, 0, "c", NULL);
    for (uint32_t i = 0; i < box->layout.edges.n; i++) {
        const LayoutEdge *edge = &box->layout.edges.data[i];
        bool is_chip = edge->from >= first && edge->to < first + launch->n;
        draw_flow(d, edge, &box->layout.nodes.data[edge->from], is_chip ? "chip" : "mem", 1.6,
                  is_chip ? "on chip" : NULL);
    }
    for (uint32_t i = 0; i < launch->n; i++) {
        const LayoutNode *at = &box->layout.nodes.data[first + i];
        draw_kernel(d, launch->first + i, at->x, at->y, kernel_id(d, launch->first + i));
    }
    draw_launch_pills(d, launch, box);
    svg_group_end(d->out);
    draw_title(d, box, str_format(d->arena, "one launch, %u kernels", launch->n));
    svg_group_end(d->out);
}

static void draw_small(const Drawing *d, uint32_t l, const LayoutNode *at) {
    uint32_t k = d->picture->launches.data[l].first;
    const PictureKernel *kernel = &d->picture->kernels.data[k];
    svg_group_begin(d->out, 0, 0, "k", kernel_id(d, k));
    svg_rect(d->out, "small", at->x - 3, at->y - 3, at->w + 6, at->h + 6, 7, kernel_tip(d, k));
    for (uint32_t i = 0; i < kernel->items.n; i++)
        if (kernel->items.data[i].kind == ITEM_OP)
            draw_op(d, kernel->items.data[i].node, kernel->items.data[i].label, at);
    svg_group_end(d->out);
}

static void draw_top_edge(const Drawing *d, uint32_t buffer, const LayoutEdge *edge) {
    svg_edge(d->out, "mem", stroke_of(d, buffer), edge->points, edge->n_points,
             buffer_tip(d, buffer));
    svg_text(d->out, "bytes", ANCHOR_END, edge->label_x + edge->label_w / 2, edge->label_y + 3.2,
             human_bytes(d->arena, bytes_of(d, buffer)));
}

static void draw_edges(const Drawing *d) {
    uint32_t edge = 0;
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
        for (uint32_t l = 0; l < d->picture->launches.n; l++)
            if (is_read_at_top(d, l, b)) draw_top_edge(d, b, &d->top.edges.data[edge++]);
        if (buffer_at(d, b)->kind == BUFFER_OUTPUT && picture_maker(d->picture, b) != NONE)
            draw_top_edge(d, b, &d->top.edges.data[edge++]);
    }
}

static void draw(const Drawing *d, const char *label) {
    svg_begin(d->out, d->top.w + 2 * MARGIN, d->top.h + 2 * MARGIN, label);
    svg_group_begin(d->out, MARGIN, MARGIN, "graph", NULL);
    draw_edges(d);
    for (uint32_t l = 0; l < d->picture->launches.n; l++) {
        const LayoutNode *at = &d->top.nodes.data[d->first_launch + l];
        uint32_t first = d->picture->launches.data[l].first;
        if (is_small(d, l))
            draw_small(d, l, at);
        else if (d->picture->launches.data[l].n == 1)
            draw_kernel(d, first, at->x, at->y, kernel_id(d, first));
        else
            draw_launch(d, l, at->x, at->y);
    }
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++)
        if (d->node_of_buffer[b] != NONE)
            draw_pill(d, b, &d->top.nodes.data[d->node_of_buffer[b]]);
    svg_group_end(d->out);
    svg_end(d->out);
}

static double most_bytes(const Page *page, const Plan *plan) {
    double most = 0;
    for (uint32_t b = 0; b < plan->buffers.n; b++) {
        double bytes = page_number(page, buffer_bytes(plan->graph->dims, &plan->buffers.data[b]));
        if (!plan->buffers.data[b].is_on_chip && bytes > most) most = bytes;
    }
    return most;
}

static void report_side(const Page *page, const ReportSide *side, const Picture *picture,
                        const char *title, const char *prefix) {
    uint32_t n = picture->launches.n;
    Drawing d = {.page = page,
                 .side = side,
                 .picture = picture,
                 .arena = page->arena,
                 .out = page->out,
                 .prefix = str_format(page->arena, "g%u%s", page->number, prefix)};
    double before = most_bytes(page, page->graph->before.plan);
    double after = most_bytes(page, page->graph->after.plan);
    d.most_bytes = before > after ? before : after;
    text_printf(page->out, "<figure><figcaption>%s <span>%u launch%s</span></figcaption>\n", title,
                n, n == 1 ? "" : "es");
    if (picture->n_items > MAX_DRAWN) {
        text_printf(page->out,
                    "<p class=\"note\">%u ops and values are more than a picture can show; the "
                    "tables below have them all.</p></figure>\n",
                    picture->n_items);
        return;
    }
    lay_out(&d);
    draw(&d, str_format(page->arena, "graph %s %s", side->plan->graph->name, title));
    text_puts(page->out, "</figure>\n");
}

void report_graphs(const Page *page) {
    text_puts(page->out, "<div class=\"pictures\">\n");
    report_side(page, &page->graph->before, page->before, "without fusion", "b");
    report_side(page, &page->graph->after, page->after, "fused", "a");
    text_puts(page->out, "</div>\n");
}
