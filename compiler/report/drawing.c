/* Computes the coordinates of a picture. See drawing.h. */
#include "report/drawing.h"

enum { MAX_LABEL = 34, MAX_TITLE = 48 };

static const Graph *graph_of(const Drawing *d) {
    return d->side->plan->graph;
}

const Buffer *drawing_buffer(const Drawing *d, uint32_t buffer) {
    return &d->side->plan->buffers.data[buffer];
}

static double drawing_bytes(const Drawing *d, uint32_t buffer) {
    return page_number(d->page, buffer_bytes(graph_of(d)->dims, drawing_buffer(d, buffer)));
}

const char *drawing_label(const Drawing *d, const char *label) {
    return svg_shorten(d->arena, label, MAX_LABEL);
}

static double label_width(const Drawing *d, const char *label) {
    return svg_text_width(drawing_label(d, label), FONT);
}

/* Kernels. */

/* Whether a launch is a small box: one kernel of one op that copies no value from memory to memory,
 * since only a large box shows a copy. */
bool drawing_is_small(const Drawing *d, uint32_t launch) {
    const PictureLaunch *l = &d->picture->launches.data[launch];
    const PictureKernel *kernel = &d->picture->kernels.data[l->kernels[0]];
    bool is_small = l->n == 1 && kernel->n_ops == 1;
    for (uint32_t i = 0; i < kernel->flows.n; i++) {
        Flow flow = kernel->flows.data[i];
        is_small = is_small && (kernel->items.data[flow.from].kind == ITEM_OP ||
                                kernel->items.data[flow.to].kind == ITEM_OP);
    }
    return is_small;
}

static const char *small_label(const Drawing *d, uint32_t launch) {
    const PictureKernel *kernel =
        &d->picture->kernels.data[d->picture->launches.data[launch].kernels[0]];
    for (uint32_t i = 0; i < kernel->items.n; i++)
        if (kernel->items.data[i].kind == ITEM_OP) return kernel->items.data[i].label;
    return "";
}

static void add_port(const Drawing *d, Box *box, uint32_t node, uint32_t buffer, bool is_store) {
    const LayeredNode *placed = &box->layout.nodes.data[node];
    Port port = {buffer, is_store, box->left + placed->x + placed->w / 2};
    vec_push(d->arena, &box->ports, port);
}

static double port_at(const Box *box, uint32_t buffer, bool is_store) {
    for (uint32_t i = 0; i < box->ports.n; i++)
        if (box->ports.data[i].buffer == buffer && box->ports.data[i].is_store == is_store)
            return box->ports.data[i].x - box->w / 2;
    return 0;
}

/* Sizes the box around a layout whose pills are on the box's edges. If no pill is on the upper
 * side, the title is above the layout. */
static void close_box(Box *box, double least_w) {
    bool has_upper = false;
    for (uint32_t i = 0; i < box->layout.nodes.n; i++)
        has_upper = has_upper || box->layout.nodes.data[i].pin == LAYERED_TOP;
    double w = box->layout.w + 2 * PAD;
    box->w = w < least_w ? least_w : w;
    box->left = (box->w - box->layout.w) / 2;
    box->top = has_upper ? 0 : PILL_H + TITLE_H;
    box->h = box->layout.h + box->top;
}

/* Places the title beside the edges that come from the upper side, and widens the box if
 * necessary. */
static void fit_title(const Drawing *d, Box *box, const char *title) {
    enum { INSET = 9, GAP = 11 };
    double w = svg_text_width(title, FONT - 1), first = box->w, last = 0;
    for (uint32_t i = 0; i < box->ports.n; i++) {
        const Port *port = &box->ports.data[i];
        if (port->is_store || drawing_buffer(d, port->buffer)->kind == BUFFER_PARAM) continue;
        if (port->x < first) first = port->x;
        if (port->x > last) last = port->x;
    }
    double lacks_left = last > 0 ? INSET + w + GAP - first : 0;
    double lacks_right = last + GAP + w + INSET - box->w;
    box->title_x = INSET;
    if (lacks_left <= 0) return;
    if (lacks_right < lacks_left) {
        box->title_x = lacks_right > 0 ? last + GAP : box->w - INSET - w;
        if (lacks_right > 0) box->w += lacks_right;
        return;
    }
    box->w += lacks_left;
    box->left += lacks_left;
    for (uint32_t i = 0; i < box->ports.n; i++) box->ports.data[i].x += lacks_left;
}

/* A long title keeps its end, because the names of a graph's kernels differ there. */
const char *drawing_kernel_title(const Drawing *d, uint32_t k) {
    const char *name = d->side->plan->kernels.data[k].name;
    size_t n = strlen(name);
    return n <= MAX_TITLE ? name
                          : str_format(d->arena, "\xE2\x80\xA6%s", name + n - (MAX_TITLE - 1));
}

/* Adds a pill. A value of another kernel has its pill on the upper side, with room for the title
 * below. The pill of a param may be anywhere. */
static uint32_t add_pill(const Drawing *d, Layered *layout, const Item *item) {
    double w = label_width(d, item->label) + 14;
    if (item->kind == ITEM_STORE) return layered_add_node(layout, w, PILL_H, LAYERED_BOTTOM);
    if (drawing_buffer(d, item->buffer)->kind == BUFFER_PARAM)
        return layered_add_node(layout, w, PILL_H, LAYERED_FREE);
    return layered_add_node(layout, w, PILL_H + TITLE_H, LAYERED_TOP);
}

static void lay_out_kernel(const Drawing *d, uint32_t k) {
    const PictureKernel *kernel = &d->picture->kernels.data[k];
    Box *box = &d->kernels[k];
    Layered *layout = &box->layout;
    *layout = (Layered){.arena = d->arena, .node_gap = 14, .rank_gap = 13};
    for (uint32_t i = 0; i < kernel->items.n; i++) {
        const Item *item = &kernel->items.data[i];
        if (item->kind == ITEM_OP)
            layered_add_node(layout, label_width(d, item->label) + 18, OP_H, LAYERED_FREE);
        else
            add_pill(d, layout, item);
    }
    for (uint32_t i = 0; i < kernel->flows.n; i++) {
        Flow flow = kernel->flows.data[i];
        layered_add_edge(layout, (LayeredEdge){.from = flow.from, .to = flow.to});
    }
    layered_run(layout);
    close_box(box, svg_text_width(drawing_kernel_title(d, k), FONT - 1) + 2 * PAD);
    for (uint32_t i = 0; i < kernel->items.n; i++) {
        const Item *item = &kernel->items.data[i];
        if (item->kind != ITEM_OP) add_port(d, box, i, item->buffer, item->kind == ITEM_STORE);
    }
    fit_title(d, box, drawing_kernel_title(d, k));
}

/* Launches of several kernels: pills of loaded values, kernels, pills of stored values. */

static void add_launch_edges(const Drawing *d, Layered *layout, const PictureLaunch *launch,
                             uint32_t buffer, uint32_t in, uint32_t out, uint32_t first) {
    for (uint32_t i = 0; i < launch->n; i++) {
        const Box *box = &d->kernels[launch->kernels[i]];
        if (in != NONE && picture_takes(d->picture, launch->kernels[i], buffer))
            layered_add_edge(layout, (LayeredEdge){.from = in,
                                                   .to = first + i,
                                                   .has_to_port = true,
                                                   .to_port = port_at(box, buffer, false)});
        if (!kernel_stores_to(d->picture->kernels.data[launch->kernels[i]].kernel, buffer))
            continue;
        LayeredEdge edge = {
            .from = first + i, .has_from_port = true, .from_port = port_at(box, buffer, true)};
        for (uint32_t k = i + 1; k < launch->n; k++) {
            if (!picture_takes(d->picture, launch->kernels[k], buffer)) continue;
            edge.to = first + k;
            edge.has_to_port = true;
            edge.to_port = port_at(&d->kernels[launch->kernels[k]], buffer, false);
            layered_add_edge(layout, edge);
        }
        edge.to = out;
        edge.has_to_port = false;
        edge.to_port = 0;
        if (out != NONE) layered_add_edge(layout, edge);
    }
}

static uint32_t *add_launch_pills(const Drawing *d, Layered *layout, const PictureLaunch *launch,
                                  bool is_store) {
    uint32_t *pills = arena_array(d->arena, uint32_t, d->side->plan->buffers.n);
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
        const Buffer *buffer = drawing_buffer(d, b);
        pills[b] = NONE;
        bool has = is_store ? launch_stores(d->picture, launch, b)
                            : buffer->kind != BUFFER_PARAM && launch_reads(d->picture, launch, b);
        if (!has) continue;
        double w = label_width(d, buffer->name) + 14;
        pills[b] = is_store ? layered_add_node(layout, w, PILL_H, LAYERED_BOTTOM)
                            : layered_add_node(layout, w, PILL_H + TITLE_H, LAYERED_TOP);
    }
    return pills;
}

const char *drawing_launch_title(const Drawing *d, uint32_t l) {
    return str_format(d->arena, "one launch, %u kernels", d->picture->launches.data[l].n);
}

static void lay_out_launch(const Drawing *d, uint32_t l) {
    const PictureLaunch *launch = &d->picture->launches.data[l];
    Box *box = &d->launches[l];
    Layered *layout = &box->layout;
    *layout = (Layered){.arena = d->arena, .node_gap = 18, .rank_gap = 20};
    uint32_t *in = add_launch_pills(d, layout, launch, false);
    uint32_t first = layout->nodes.n;
    for (uint32_t i = 0; i < launch->n; i++) {
        const Box *kernel = &d->kernels[launch->kernels[i]];
        layered_add_node(layout, kernel->w, kernel->h, LAYERED_FREE);
    }
    uint32_t *out = add_launch_pills(d, layout, launch, true);
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++)
        add_launch_edges(d, layout, launch, b, in[b], out[b], first);
    layered_run(layout);
    close_box(box, 0);
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
        if (in[b] != NONE) add_port(d, box, in[b], b, false);
        if (out[b] != NONE) add_port(d, box, out[b], b, true);
    }
    fit_title(d, box, drawing_launch_title(d, l));
}

/* The whole picture. */

static const Box *box_of(const Drawing *d, uint32_t l) {
    const PictureLaunch *launch = &d->picture->launches.data[l];
    return launch->n == 1 ? &d->kernels[launch->kernels[0]] : &d->launches[l];
}

/* Whether an edge between boxes leads from `buffer` to the launch. Params of large boxes are inside
 * the box. */
static bool drawing_is_read(const Drawing *d, uint32_t l, uint32_t buffer) {
    bool is_inside = !drawing_is_small(d, l) && drawing_buffer(d, buffer)->kind == BUFFER_PARAM;
    return !is_inside && launch_reads(d->picture, &d->picture->launches.data[l], buffer);
}

static void add_ends(Drawing *d, bool is_output) {
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
        const Buffer *buffer = drawing_buffer(d, b);
        if (!picture_is_bound(d->picture, b) || (buffer->kind == BUFFER_OUTPUT) != is_output)
            continue;
        bool is_used = is_output;
        for (uint32_t l = 0; l < d->picture->launches.n && !is_used; l++)
            is_used = drawing_is_read(d, l, b);
        for (uint32_t copy = 0; copy < d->side->plan->buffers.n && !is_used; copy++)
            is_used = picture_original(d->picture, copy) == b;
        if (is_used)
            d->node_of_buffer[b] =
                layered_add_node(&d->top, label_width(d, buffer->name) + 22, PILL_H, LAYERED_FREE);
    }
}

static void add_top_edge(Drawing *d, uint32_t buffer, uint32_t from, uint32_t to) {
    uint32_t n = d->picture->launches.n;
    bool is_made = from >= d->first_launch && from - d->first_launch < n;
    double bytes =
        is_made
            ? page_number(d->page, picture_stored_bytes(
                                       d->picture,
                                       &d->picture->launches.data[from - d->first_launch], buffer))
            : drawing_bytes(d, buffer);
    vec_push(d->arena, &d->buffer_of_edge, buffer);
    vec_push(d->arena, &d->bytes_of_edge, bytes);
    const char *label = human_bytes(d->arena, bytes);
    LayeredEdge edge = {.from = from,
                        .to = to,
                        .label_w = svg_text_width(label, FONT - 1.5) + MAX_STROKE + 3,
                        .label_h = LABEL_H};
    uint32_t maker = from - d->first_launch, reader = to - d->first_launch;
    if (from >= d->first_launch && maker < n && !drawing_is_small(d, maker)) {
        edge.has_from_port = true;
        uint32_t original = picture_original(d->picture, buffer);
        edge.from_port = port_at(box_of(d, maker), original == NONE ? buffer : original, true);
    }
    if (to >= d->first_launch && reader < n && !drawing_is_small(d, reader)) {
        edge.has_to_port = true;
        edge.to_port = port_at(box_of(d, reader), buffer, false);
    }
    layered_add_edge(&d->top, edge);
}

/* Adds edges from node `from`, which has the buffer's value or a slice of it, to its readers: of an
 * update those after it. */
static void add_edges_from(Drawing *d, uint32_t b, uint32_t from) {
    uint32_t first = from < d->first_launch ? 0 : from - d->first_launch + 1;
    for (uint32_t l = first; l < d->picture->launches.n; l++)
        if (drawing_is_read(d, l, b)) add_top_edge(d, b, from, d->first_launch + l);
    if (drawing_buffer(d, b)->kind == BUFFER_OUTPUT && from != d->node_of_buffer[b])
        add_top_edge(d, b, from, d->node_of_buffer[b]);
}

static void add_edges(Drawing *d) {
    for (uint32_t b = 0; b < d->side->plan->buffers.n; b++) {
        uint32_t original = picture_original(d->picture, b), of = original == NONE ? b : original;
        uint32_t maker = picture_maker(d->picture, of, 0);
        if (maker == NONE) add_edges_from(d, b, d->node_of_buffer[of]);
        for (; maker != NONE; maker = picture_maker(d->picture, of, maker + 1))
            add_edges_from(d, b, d->first_launch + maker);
    }
}

void drawing_place(Drawing *d) {
    const Plan *plan = d->side->plan;
    d->kernels = arena_array(d->arena, Box, plan->kernels.n);
    d->launches = arena_array(d->arena, Box, d->picture->launches.n);
    d->node_of_buffer = arena_array(d->arena, uint32_t, plan->buffers.n);
    memset(d->node_of_buffer, 0xFF, plan->buffers.n * sizeof *d->node_of_buffer);
    d->top = (Layered){.arena = d->arena, .node_gap = 16, .rank_gap = 26};
    for (uint32_t k = 0; k < plan->kernels.n; k++) lay_out_kernel(d, k);
    for (uint32_t l = 0; l < d->picture->launches.n; l++)
        if (d->picture->launches.data[l].n > 1) lay_out_launch(d, l);
    add_ends(d, false);
    d->first_launch = d->top.nodes.n;
    for (uint32_t l = 0; l < d->picture->launches.n; l++) {
        if (drawing_is_small(d, l))
            layered_add_node(&d->top, label_width(d, small_label(d, l)) + 20, OP_H, LAYERED_FREE);
        else
            layered_add_node(&d->top, box_of(d, l)->w, box_of(d, l)->h, LAYERED_FREE);
    }
    add_ends(d, true);
    add_edges(d);
    layered_run(&d->top);
}
