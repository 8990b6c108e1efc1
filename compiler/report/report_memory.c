/* The workspace over time: a bar for every temporary, from the launch that makes it to the last
 * that reads it, as high as it has bytes, at its address. Without fusion beside with it, on one
 * scale. */
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

/* The launches of a run that touch a buffer, from 0. */
typedef struct Lifetime {
    bool is_used;
    uint32_t first, last;
} Lifetime;

/* Per buffer. */
static Lifetime *lifetimes(const Chart *c) {
    Lifetime *lives = arena_array(c->page->arena, Lifetime, c->side->plan->buffers.n);
    for (uint32_t l = c->picture->n_init; l < c->picture->launches.n; l++) {
        PictureLaunch launch = c->picture->launches.data[l];
        for (uint32_t k = launch.first; k < launch.first + launch.n; k++) {
            const Kernel *kernel = &c->side->plan->kernels.data[k];
            for (uint32_t i = 0; i < kernel->args.n; i++) {
                Lifetime *life = &lives[kernel->args.data[i]];
                if (!life->is_used) life->first = l - c->picture->n_init;
                life->last = l - c->picture->n_init;
                life->is_used = true;
            }
        }
    }
    return lives;
}

static void draw_temp(const Chart *c, uint32_t buffer, Lifetime life) {
    const Page *page = c->page;
    const Buffer *temp = &c->side->plan->buffers.data[buffer];
    if (temp->kind != BUFFER_TEMP || temp->is_on_chip || !life.is_used) return;
    DimTab *dims = c->side->plan->graph->dims;
    double begin = page_number(page, temp->offset_bytes);
    double bytes = page_number(page, buffer_bytes(dims, temp));
    double x = LEFT + life.first * c->step, w = (life.last - life.first + 1) * c->step;
    double y = y_of(c, begin + bytes), h = y_of(c, begin) - y;
    const Node *node = graph_node(c->side->plan->graph, temp->node);
    const char *tip =
        str_format(page->arena, "%s = %s: %s\n%s at %s\nlaunches %u to %u", temp->name,
                   node->name ? node->name : op_info(node->op)->name,
                   page_shape(page, temp->dtype, &temp->shape), human_bytes(page->arena, bytes),
                   human_bytes(page->arena, begin), life.first + 1, life.last + 1);
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

/* 1, 2 or 5 times a power of ten: about a fifth of the scale. */
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
    const Lifetime *lives = lifetimes(&c);
    page_begin_figure(page, LEFT + WIDTH + 8);
    text_printf(page->out, "<figcaption>%s <span>%s, %s without reuse</span></figcaption>\n", title,
                human_bytes(page->arena, side->cost->workspace_bytes),
                human_bytes(page->arena, side->cost->unshared_bytes));
    svg_begin(page->out, LEFT + WIDTH + 8, TOP + HEIGHT + BOTTOM,
              str_format(page->arena, "workspace of graph %s %s", side->plan->graph->name, title));
    draw_axes(&c);
    for (uint32_t i = 0; i < side->plan->buffers.n; i++) draw_temp(&c, i, lives[i]);
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
