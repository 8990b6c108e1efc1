/* Draws the workspace over time. Each temporary is a bar from the launch that stores it to the last
 * launch that reads it; its height is its bytes, and its lower end is its address. The charts
 * without and with fusion are side by side, on one scale. */
#include "report/parts.h"

static const double LEFT = 62, TOP = 30, BOTTOM = 34, WIDTH = 552, HEIGHT = 300;

typedef struct Chart {
    const Page *page;
    const ReportSide *side;
    const Picture *picture;
    double top_bytes; /* the upper end of the scale */
    double step;      /* width of a launch */
} Chart;

static double y_of(const Chart *c, double bytes) {
    return TOP + HEIGHT * (c->top_bytes > 0 ? 1 - bytes / c->top_bytes : 1);
}

/* The bar of one temporary. */
typedef struct Bar {
    bool is_used;
    uint32_t first, last; /* launches that access it, from 0 */
    double from, to;      /* addresses in the workspace */
    double begin, end;    /* in launches; the middle of a launch in which another temporary takes
                           * over the memory */
} Bar;

static void note_launch(const Chart *c, Bar *bars, uint32_t l) {
    PictureLaunch launch = c->picture->launches.data[l];
    for (uint32_t k = 0; k < launch.n; k++) {
        const Kernel *kernel = &c->side->plan->kernels.data[launch.kernels[k]];
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            const Buffer *buffer = &c->side->plan->buffers.data[kernel->args.data[i]];
            Bar *bar = &bars[kernel->args.data[i]];
            bool has_bytes =
                page_number(c->page, buffer_bytes(c->side->plan->graph->dims, buffer)) > 0;
            if (buffer->kind != BUFFER_TEMP || buffer->space != BUFFER_GLOBAL || !has_bytes)
                continue;
            if (!bar->is_used) bar->first = l - c->picture->n_init;
            bar->last = l - c->picture->n_init;
            bar->is_used = true;
        }
    }
}

/* Splits a launch between two bars: a temporary takes the memory of another in the last launch that
 * reads the other. */
static void share_launches(Bar *bars, uint32_t n) {
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n && bars[a].is_used; b++) {
            bool meets = a != b && bars[b].is_used && bars[b].first == bars[a].last &&
                         bars[b].from < bars[a].to && bars[a].from < bars[b].to;
            if (!meets) continue;
            bars[a].end = bars[a].last + 0.5;
            bars[b].begin = bars[b].first + 0.5;
        }
}

/* The bar of each buffer. */
static const Bar *bars_of(const Chart *c) {
    const Plan *plan = c->side->plan;
    Bar *bars = arena_array(c->page->arena, Bar, plan->buffers.n);
    for (uint32_t l = c->picture->n_init; l < c->picture->launches.n; l++) note_launch(c, bars, l);
    for (uint32_t b = 0; b < plan->buffers.n; b++) {
        const Buffer *temp = &plan->buffers.data[b];
        if (!bars[b].is_used) continue;
        bars[b].from = page_number(c->page, temp->offset_bytes);
        bars[b].to = bars[b].from + page_number(c->page, buffer_bytes(plan->graph->dims, temp));
        bars[b].begin = bars[b].first;
        bars[b].end = bars[b].last + 1.0;
    }
    share_launches(bars, plan->buffers.n);
    return bars;
}

static void draw_temp(const Chart *c, uint32_t buffer, const Bar *bar) {
    const Page *page = c->page;
    const Buffer *temp = &c->side->plan->buffers.data[buffer];
    if (!bar->is_used) return;
    double x = LEFT + bar->begin * c->step, w = (bar->end - bar->begin) * c->step;
    double y = y_of(c, bar->to), h = y_of(c, bar->from) - y;
    const Node *node = graph_node(c->side->plan->graph, temp->node);
    const char *tip = str_format(
        page->arena, "%s = %s: %s\n%s at %s\nlaunches %u to %u", temp->name,
        node->name ? node->name : op_info(node->op)->name,
        page_shape(page, temp->dtype, &temp->shape), human_bytes(page->arena, bar->to - bar->from),
        human_bytes(page->arena, bar->from), bar->first + 1, bar->last + 1);
    const char *class_name =
        str_format(page->arena, "temp %s", op_class_name(op_info(node->op)->cls));
    svg_rect(page->out, class_name, x + 0.75, y + (h > 3 ? 0.5 : 0), w > 3 ? w - 1.5 : w,
             h > 3   ? h - 1
             : h < 1 ? 1
                     : h,
             2, tip);
    if (h >= 11 && w >= svg_text_width(temp->name, 10) + 4)
        svg_text(page->out, "t", ANCHOR_MIDDLE, x + w / 2, y + h / 2 + 3.4, temp->name);
}

/* The distance of grid lines: 1, 2 or 5 times a power of ten, about a fifth of the scale. */
static double grid_step(double top) {
    double step = 1;
    while (step * 10 <= top / 2) step *= 10;
    if (top / step > 10) return step * 5;
    return top / step > 5 ? step * 2 : step;
}

static void draw_axes(const Chart *c) {
    const Page *page = c->page;
    uint32_t n = c->side->cost->n_launches;
    double step = grid_step(c->top_bytes);
    for (double bytes = 0; bytes <= c->top_bytes; bytes += step) {
        svg_line(page->out, "grid", LEFT, y_of(c, bytes), LEFT + WIDTH, y_of(c, bytes));
        svg_text(page->out, "axis", ANCHOR_END, LEFT - 6, y_of(c, bytes) + 3.5,
                 human_bytes(page->arena, bytes));
        if (c->top_bytes <= 0) break;
    }
    uint32_t every = 1;
    while (c->step * every < 26) every *= every == 2 ? 5 : 2;
    for (uint32_t l = 0; l < n; l++) {
        if (l && (l + 1) % every) continue;
        svg_text(page->out, "axis", ANCHOR_MIDDLE, LEFT + (l + 0.5) * c->step, TOP + HEIGHT + 15,
                 str_format(page->arena, "%u", l + 1));
    }
    svg_text(page->out, "axis", ANCHOR_MIDDLE, LEFT + WIDTH / 2, TOP + HEIGHT + 30, "launch");
}

static void draw_peak(const Chart *c) {
    const Page *page = c->page;
    double bytes = c->side->cost->workspace_bytes;
    svg_line(page->out, "peak", LEFT, y_of(c, bytes), LEFT + WIDTH, y_of(c, bytes));
    svg_text(page->out, "peaktext", ANCHOR_END, LEFT + WIDTH, y_of(c, bytes) - 6,
             str_format(page->arena, "workspace %s", human_bytes(page->arena, bytes)));
}

static void report_side(const Page *page, const ReportSide *side, const Picture *picture,
                        double top_bytes, const char *title) {
    Chart c = {.page = page, .side = side, .picture = picture, .top_bytes = top_bytes};
    c.step = WIDTH / (side->cost->n_launches ? side->cost->n_launches : 1);
    const Bar *bars = bars_of(&c);
    page_begin_figure(page, LEFT + WIDTH + 8);
    text_printf(page->out, "<figcaption>%s <span>%s, %s without reuse</span></figcaption>\n", title,
                human_bytes(page->arena, side->cost->workspace_bytes),
                human_bytes(page->arena, side->cost->unshared_bytes));
    svg_begin(page->out, LEFT + WIDTH + 8, TOP + HEIGHT + BOTTOM,
              str_format(page->arena, "workspace of graph %s %s", side->plan->graph->name, title));
    draw_axes(&c);
    for (uint32_t i = 0; i < side->plan->buffers.n; i++) draw_temp(&c, i, &bars[i]);
    if (side->cost->workspace_bytes > 0)
        draw_peak(&c);
    else
        svg_text(page->out, "axis", ANCHOR_MIDDLE, LEFT + WIDTH / 2, TOP + HEIGHT / 2,
                 "nothing is kept in memory between launches");
    svg_end(page->out);
    text_puts(page->out, "</figure>\n");
}

void report_memory(const Page *page) {
    const ReportGraph *graph = page->graph;
    double before = graph->before.cost->workspace_bytes, after = graph->after.cost->workspace_bytes;
    double top = before > after ? before : after;
    text_puts(page->out, "<h3>Workspace over time</h3>\n");
    if (!(top > 0)) {
        text_puts(page->out, "<p class=\"note\">Nothing is kept in memory between launches, with "
                             "fusion or without.</p>\n");
        return;
    }
    text_puts(page->out, "<p class=\"note\">Each bar is a temporary: wide as the launches that it "
                         "lives through, high as its bytes, at its address.</p>\n"
                         "<div class=\"pictures\">\n");
    report_side(page, &graph->before, page->before, top, "without fusion");
    report_side(page, &graph->after, page->after, top, "fused");
    text_puts(page->out, "</div>\n");
}
