/* Draws a graph without and with fusion, side by side. drawing.c computes the coordinates. */
#include "report/drawing.h"

#include "plan/launch.h"

#include <math.h>
#include <string.h>

enum { MAX_DRAWN = 1200 }; /* the largest picture that is drawn, in items */
static const double MARGIN = 6;

static const Graph *graph_of(const Drawing *d) {
    return d->side->plan->graph;
}

static double stroke_of(const Drawing *d, double bytes) {
    double share = d->most_bytes > 0 ? bytes / d->most_bytes : 0;
    return 1.2 + (MAX_STROKE - 1.2) * sqrt(share);
}

static const char *buffer_word(const Buffer *buffer) {
    static const char *const words[] = {[BUFFER_INPUT] = "input",
                                        [BUFFER_PARAM] = "param",
                                        [BUFFER_OUTPUT] = "output",
                                        [BUFFER_TEMP] = "temporary",
                                        [BUFFER_PREPARED] = "made once from params"};
    return words[buffer->kind];
}

static const char *buffer_class(const Buffer *buffer) {
    static const char *const classes[] = {[BUFFER_INPUT] = "pill in",
                                          [BUFFER_PARAM] = "pill param",
                                          [BUFFER_OUTPUT] = "pill out",
                                          [BUFFER_TEMP] = "pill temp",
                                          [BUFFER_PREPARED] = "pill param"};
    return buffer->space != BUFFER_GLOBAL ? "pill local" : classes[buffer->kind];
}

static const char *buffer_tip(const Drawing *d, uint32_t buffer) {
    const Buffer *given = drawing_buffer(d, buffer);
    const Graph *graph = graph_of(d);
    const char *key = "";
    if (given->kind == BUFFER_PARAM) key = graph->params.data[given->ordinal].key;
    Text text = {.arena = d->arena};
    text_printf(&text, "%s %s: %s\n%s", buffer_word(given), given->name,
                page_shape(d->page, given->dtype, &given->shape),
                given->space != BUFFER_GLOBAL
                    ? "within its launch, not in global memory"
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

/* Drawing. */

static void draw_pill(const Drawing *d, uint32_t buffer, const LayeredNode *at) {
    const Buffer *given = drawing_buffer(d, buffer);
    svg_rect(d->out, buffer_class(given), at->x, at->y, at->w, PILL_H, PILL_H / 2.0,
             buffer_tip(d, buffer));
    svg_text(d->out, "t", ANCHOR_MIDDLE, at->x + at->w / 2, at->y + PILL_H / 2.0 + 3.6,
             drawing_label(d, given->name));
}

static void draw_op(const Drawing *d, NodeId node, const char *label, const LayeredNode *at) {
    OpClass cls = graph_class(graph_of(d), node);
    const char *class_name = str_format(d->arena, "op %s", op_class_name(cls));
    svg_rect(d->out, class_name, at->x, at->y, at->w, at->h, 5, op_tip(d, node));
    svg_text(d->out, "t", ANCHOR_MIDDLE, at->x + at->w / 2, at->y + at->h / 2 + 3.8,
             drawing_label(d, label));
}

static const char *kernel_tip(const Drawing *d, uint32_t k) {
    const Kernel *kernel = &d->side->plan->kernels.data[k];
    const KernelCost *cost = &d->side->cost->kernels[k];
    return str_format(d->arena, "%s: %s\n%s predicted, %s read, %s written", kernel->name,
                      form_info(kernel->form)->title, human_us(d->arena, cost->us),
                      human_bytes(d->arena, cost->read_bytes),
                      human_bytes(d->arena, cost->written_bytes));
}

static const char *form_class(const Kernel *kernel) {
    switch (kernel->form) {
    case FORM_MAP:
        return "kernel map";
    case FORM_ROW:
    case FORM_COLUMN:
    case FORM_SCAN:
    case FORM_SORT:
    case FORM_SEGMENT:
        return "kernel reduction";
    case FORM_ONLINE:
    case FORM_GEMM:
        return "kernel gemm";
    }
    return "";
}

/* Draws an edge. An edge from a pill of the upper side begins at the pill's lower end and goes
 * straight down past the title. */
static void draw_flow(const Drawing *d, const LayeredEdge *edge, const LayeredNode *from,
                      const char *class_name, double width, const char *tip) {
    LayeredPoint *points = edge->points;
    uint32_t n = edge->n_points;
    if (n && from->pin == LAYERED_TOP) {
        points = arena_array(d->arena, LayeredPoint, n + 1);
        points[0] = (LayeredPoint){edge->points[0].x, from->y + PILL_H};
        memcpy(&points[1], edge->points, n * sizeof *points);
        n++;
    }
    svg_edge(d->out, class_name, width, points, n, tip);
}

static void draw_title(const Drawing *d, const Box *box, const char *title) {
    svg_text(d->out, "title", ANCHOR_START, box->title_x, PILL_H + 11.0, title);
}

static void draw_kernel(const Drawing *d, uint32_t k, double x, double y, const char *id) {
    const PictureKernel *kernel = &d->picture->kernels.data[k];
    const Box *box = &d->kernels[k];
    svg_group_begin(d->out, x, y, "k", id);
    svg_rect(d->out, form_class(kernel->kernel), 0, PILL_H / 2.0, box->w, box->h - PILL_H, 9,
             kernel_tip(d, k));
    svg_group_begin(d->out, box->left, box->top, "c", NULL);
    for (uint32_t i = 0; i < kernel->flows.n; i++) {
        const LayeredEdge *edge = &box->layout.edges.data[i];
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
    draw_title(d, box, drawing_kernel_title(d, k));
    svg_group_end(d->out);
}

/* Draws the pills of a launch, which are the nodes before the kernels and after them, in the order
 * of the buffers. */
static void draw_launch_pills(const Drawing *d, const PictureLaunch *launch, const Box *box) {
    uint32_t node = 0;
    for (int is_store = 0; is_store < 2; is_store++) {
        for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
            bool has = is_store ? launch_stores(d->picture, launch, b)
                                : drawing_buffer(d, b)->kind != BUFFER_PARAM &&
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
    while (box->layout.nodes.data[first].pin == LAYERED_TOP) first++;
    bool is_chain =
        launch->n > 1 && launch_shares_blocks(plan_launch_of(d->side->plan, launch->kernels[0]));
    svg_group_begin(d->out, x, y, "l", NULL);
    svg_rect(d->out, "launch", 0, PILL_H / 2.0, box->w, box->h - PILL_H, 12,
             is_chain ? "one launch: its blocks run these kernels one after the other, and values "
                        "between them stay within the launch"
                      : "one launch: its blocks are shared out among these kernels");
    svg_group_begin(d->out, box->left, box->top, "c", NULL);
    for (uint32_t i = 0; i < box->layout.edges.n; i++) {
        const LayeredEdge *edge = &box->layout.edges.data[i];
        bool is_local = edge->from >= first && edge->to < first + launch->n;
        draw_flow(d, edge, &box->layout.nodes.data[edge->from], is_local ? "local" : "mem", 1.6,
                  is_local ? "within the launch" : NULL);
    }
    for (uint32_t i = 0; i < launch->n; i++) {
        const LayeredNode *at = &box->layout.nodes.data[first + i];
        uint32_t k = launch->kernels[i];
        draw_kernel(d, k, at->x, at->y, kernel_id(d, k));
    }
    draw_launch_pills(d, launch, box);
    svg_group_end(d->out);
    draw_title(d, box, drawing_launch_title(d, l));
    svg_group_end(d->out);
}

static void draw_small(const Drawing *d, uint32_t l, const LayeredNode *at) {
    uint32_t k = d->picture->launches.data[l].kernels[0];
    const PictureKernel *kernel = &d->picture->kernels.data[k];
    svg_group_begin(d->out, 0, 0, "k", kernel_id(d, k));
    svg_rect(d->out, "small", at->x - 3, at->y - 3, at->w + 6, at->h + 6, 7, kernel_tip(d, k));
    for (uint32_t i = 0; i < kernel->items.n; i++)
        if (kernel->items.data[i].kind == ITEM_OP)
            draw_op(d, kernel->items.data[i].node, kernel->items.data[i].label, at);
    svg_group_end(d->out);
}

static void draw_top_edge(const Drawing *d, uint32_t i) {
    const LayeredEdge *edge = &d->top.edges.data[i];
    double bytes = d->bytes_of_edge.data[i];
    svg_edge(d->out, "mem", stroke_of(d, bytes), edge->points, edge->n_points,
             buffer_tip(d, d->buffer_of_edge.data[i]));
    svg_text(d->out, "bytes", ANCHOR_END, edge->label_x + edge->label_w / 2, edge->label_y + 3.2,
             human_bytes(d->arena, bytes));
}

static void draw(const Drawing *d, const char *label) {
    svg_begin(d->out, d->top.w + 2 * MARGIN, d->top.h + 2 * MARGIN, label);
    svg_group_begin(d->out, MARGIN, MARGIN, "graph", NULL);
    for (uint32_t i = 0; i < d->top.edges.n; i++) draw_top_edge(d, i);
    for (uint32_t l = 0; l < d->picture->launches.n; l++) {
        const LayeredNode *at = &d->top.nodes.data[d->first_launch + l];
        uint32_t first = d->picture->launches.data[l].kernels[0];
        if (drawing_is_small(d, l))
            draw_small(d, l, at);
        else if (d->picture->launches.data[l].n == 1)
            draw_kernel(d, first, at->x, at->y, kernel_id(d, first));
        else
            draw_launch(d, l, at->x, at->y);
    }
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++)
        if (d->node_of_buffer[b] != NONE) draw_pill(d, b, &d->top.nodes.data[d->node_of_buffer[b]]);
    svg_group_end(d->out);
    svg_end(d->out);
}

static double most_bytes(const Page *page, const Plan *plan) {
    double most = 0;
    for (uint32_t b = 0; b < plan->buffers.n; b++) {
        double bytes = page_number(page, buffer_bytes(plan->graph->dims, &plan->buffers.data[b]));
        if (plan->buffers.data[b].space == BUFFER_GLOBAL && bytes > most) most = bytes;
    }
    return most;
}

static void report_side(const Page *page, const ReportSide *side, const Picture *picture,
                        const char *title, const char *prefix) {
    uint32_t n = side->cost->n_launches, n_init = side->cost->n_init_steps;
    Drawing d = {.page = page,
                 .side = side,
                 .picture = picture,
                 .arena = page->arena,
                 .out = page->out,
                 .prefix = str_format(page->arena, "g%u%s", page->number, prefix)};
    double before = most_bytes(page, page->graph->before.plan);
    double after = most_bytes(page, page->graph->after.plan);
    d.most_bytes = before > after ? before : after;
    bool is_drawn = picture->n_items <= MAX_DRAWN;
    if (is_drawn) drawing_place(&d);
    page_begin_figure(page, is_drawn ? d.top.w + 2 * MARGIN : 0);
    text_printf(
        page->out, "<figcaption>%s <span>%u launch%s%s</span></figcaption>\n", title, n,
        n == 1 ? "" : "es",
        n_init ? str_format(page->arena, ", after %u init step%s", n_init, n_init == 1 ? "" : "s")
               : "");
    if (is_drawn)
        draw(&d, str_format(page->arena, "graph %s %s", side->plan->graph->name, title));
    else
        text_printf(page->out,
                    "<p class=\"note\">%u ops and values are more than a picture can show; the "
                    "tables below have them all.</p>",
                    picture->n_items);
    text_puts(page->out, "</figure>\n");
}

void report_graphs(const Page *page) {
    text_puts(page->out, "<div class=\"pictures\">\n");
    report_side(page, &page->graph->before, page->before, "without fusion", "b");
    report_side(page, &page->graph->after, page->after, "fused", "a");
    text_puts(page->out, "</div>\n");
}
