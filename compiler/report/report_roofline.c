/* Draws the roofline: a point for every measured launch, with operations per byte against
 * operations per second, under the limits of the card. Points without fusion are hollow, points
 * with fusion are full.
 *
 * Launches without operations are at the left end. Each point has the number of its launch; a line
 * joins a number to a point that is too close to others. */
#include "report/parts.h"

#include "cost/kernel/gemm.h"

#include <math.h>

enum { MOST_NUMBERED = 16 }; /* the most points that have numbers; more numbers would overlap */
static const double LEFT = 70, TOP = 16, WIDTH = 860, HEIGHT = 440, BOTTOM = 44, RIGHT = 24;

typedef struct Spot {
    double x, y;
    double intensity, rate; /* operations per byte, per second */
    bool is_after;
    uint32_t launch;
    OpClass cls;
    const char *tip;
} Spot;

/* The middle of a label that is placed. */
typedef struct Taken {
    double x, y, w, h;
} Taken;

typedef struct Roofline {
    const Page *page;
    Vec(Spot) spots;
    Vec(Taken) taken;
    double x0, x1, y0, y1; /* limits of the axes, in decades */
    double memory_rate;    /* bytes per second */
    double peak, tensor_peak;
} Roofline;

static OpClass launch_class(const Plan *plan, const PictureLaunch *launch) {
    OpClass cls = CLASS_ELTWISE;
    for (uint32_t i = 0; i < launch->n; i++) {
        KernelForm form = plan->kernels.data[launch->kernels[i]].form;
        if (form_info(form)->multiplies || form_info(form)->weighs) return CLASS_MATMUL;
        if (form_info(form)->reduces) cls = CLASS_REDUCE;
    }
    return cls;
}

static void add_side(Roofline *r, const ReportSide *side, const Picture *picture, bool is_after) {
    const Page *page = r->page;
    for (uint32_t l = 0; l < picture->launches.n; l++) {
        const PictureLaunch *launch = &picture->launches.data[l];
        double bytes = 0, work = 0, us = page_launch_us(side, picture, l);
        for (uint32_t i = 0; i < launch->n; i++) {
            const KernelCost *cost = &side->cost->kernels[launch->kernels[i]];
            bytes += cost->read_bytes + cost->written_bytes;
            work += cost->n_flops + cost->n_prims;
        }
        if (!(us > 0) || !(bytes > 0)) continue;
        Spot spot = {.intensity = work / bytes,
                     .rate = work / us * 1e6,
                     .is_after = is_after,
                     .launch = l,
                     .cls = launch_class(side->plan, launch)};
        spot.tip = str_format(
            page->arena, "%s, launch %s: %s\n%s measured, %s moved, %s operations\n%s/s",
            is_after ? "fused" : "without fusion", picture_launch_name(page->arena, picture, l),
            side->plan->kernels.data[launch->kernels[0]].name, human_us(page->arena, us),
            human_bytes(page->arena, bytes), human_count(page->arena, work),
            human_bytes(page->arena, bytes / us * 1e6));
        vec_push(page->arena, &r->spots, spot);
    }
}

static double x_of(const Roofline *r, double intensity) {
    double decade = intensity > 0 ? log10(intensity) : r->x0;
    double share = (decade - r->x0) / (r->x1 - r->x0);
    return LEFT + WIDTH * (share < 0 ? 0 : share > 1 ? 1 : share);
}

static double y_of(const Roofline *r, double rate) {
    double decade = rate > 0 ? log10(rate) : r->y0;
    double share = (decade - r->y0) / (r->y1 - r->y0);
    return TOP + HEIGHT * (1 - (share < 0 ? 0 : share > 1 ? 1 : share));
}

/* Sets the axes to whole decades around all points and the corner of the roof. */
static void find_scale(Roofline *r) {
    double most = r->tensor_peak > r->peak ? r->tensor_peak : r->peak;
    double corner = log10(most / r->memory_rate);
    r->x0 = -1;
    r->x1 = ceil(corner + 0.5);
    r->y0 = log10(r->memory_rate) - 1;
    r->y1 = log10(most) + 0.2;
    for (uint32_t i = 0; i < r->spots.n; i++) {
        const Spot *spot = &r->spots.data[i];
        if (!(spot->intensity > 0)) continue;
        double x = log10(spot->intensity), y = log10(spot->rate);
        if (x - 0.2 < r->x0) r->x0 = x - 0.2;
        if (x + 0.2 > r->x1) r->x1 = x + 0.2;
        if (y - 0.2 < r->y0) r->y0 = y - 0.2;
        if (y + 0.2 > r->y1) r->y1 = y + 0.2;
    }
    r->x0 = floor(r->x0);
    r->x1 = ceil(r->x1);
    r->y0 = floor(r->y0);
    r->y1 = ceil(r->y1);
    for (uint32_t i = 0; i < r->spots.n; i++) {
        r->spots.data[i].x = x_of(r, r->spots.data[i].intensity);
        r->spots.data[i].y = y_of(r, r->spots.data[i].rate);
    }
}

static const char *power_label(Arena *arena, double decade) {
    return decade < 0 ? str_format(arena, "0.%0*d", (int)-decade, 1)
                      : human_count(arena, pow(10, decade));
}

static void draw_grid(const Roofline *r) {
    const Page *page = r->page;
    for (double d = r->x0; d <= r->x1; d++) {
        double x = LEFT + WIDTH * (d - r->x0) / (r->x1 - r->x0);
        svg_line(page->out, "grid", x, TOP, x, TOP + HEIGHT);
        svg_text(page->out, "axis", ANCHOR_MIDDLE, x, TOP + HEIGHT + 16,
                 power_label(page->arena, d));
    }
    for (double d = r->y0; d <= r->y1; d++) {
        double y = TOP + HEIGHT * (1 - (d - r->y0) / (r->y1 - r->y0));
        svg_line(page->out, "grid", LEFT, y, LEFT + WIDTH, y);
        svg_text(page->out, "axis", ANCHOR_END, LEFT - 7, y + 3.5, power_label(page->arena, d));
    }
    svg_text(page->out, "axis", ANCHOR_MIDDLE, LEFT + WIDTH / 2, TOP + HEIGHT + 36,
             "operations per byte of memory");
    svg_text(page->out, "axis", ANCHOR_START, LEFT + 8, TOP + 14, "operations per second");
}

/* Draws one ceiling, to the right of its crossing with the line of the memory rate. */
static void draw_ceiling(Roofline *r, double peak, const char *name) {
    const Page *page = r->page;
    if (!(peak > 0)) return;
    double x = x_of(r, peak / r->memory_rate), y = y_of(r, peak);
    const char *label = str_format(page->arena, "%s %s/s", name, human_count(page->arena, peak));
    double w = svg_text_width(label, 11);
    svg_line(page->out, "roof", x, y, LEFT + WIDTH, y);
    svg_text(page->out, "rooftext", ANCHOR_END, LEFT + WIDTH - 4, y - 6, label);
    Taken taken = {LEFT + WIDTH - 4 - w / 2, y - 10, w, 14};
    vec_push(page->arena, &r->taken, taken);
}

static void draw_roofs(Roofline *r) {
    const Page *page = r->page;
    double most = r->tensor_peak > r->peak ? r->tensor_peak : r->peak;
    double corner = most / r->memory_rate;
    double begin = pow(10, r->x0);
    double low = r->memory_rate * begin < pow(10, r->y0) ? pow(10, r->y0) / r->memory_rate : begin;
    svg_line(page->out, "roof", x_of(r, low), y_of(r, low * r->memory_rate), x_of(r, corner),
             y_of(r, most));
    draw_ceiling(r, r->peak, "multiply-add");
    draw_ceiling(r, r->tensor_peak, "tensor cores");
    double at = sqrt(low * corner);
    double x = x_of(r, at), y = y_of(r, at * r->memory_rate);
    const char *label =
        str_format(page->arena, "memory %s/s", human_bytes(page->arena, r->memory_rate));
    svg_text(page->out, "rooftext", ANCHOR_END, x - 10, y - 4, label);
    double w = svg_text_width(label, 11);
    Taken taken = {x - 10 - w / 2, y - 8, w, 14};
    vec_push(page->arena, &r->taken, taken);
}

static bool is_free(const Roofline *r, const Taken *wanted) {
    bool in_plot = wanted->x - wanted->w / 2 > LEFT && wanted->y - wanted->h / 2 > TOP &&
                   wanted->x + wanted->w / 2 < LEFT + WIDTH &&
                   wanted->y + wanted->h / 2 < TOP + HEIGHT;
    for (uint32_t i = 0; i < r->taken.n && in_plot; i++) {
        const Taken *other = &r->taken.data[i];
        if (fabs(other->x - wanted->x) < (other->w + wanted->w) / 2 &&
            fabs(other->y - wanted->y) < (other->h + wanted->h) / 2)
            return false;
    }
    return in_plot;
}

/* Draws the number of a point at the nearest free place on circles around the point. */
static void draw_number(Roofline *r, const Spot *spot) {
    enum { N_DIRECTIONS = 16 };
    const Page *page = r->page;
    const char *label = picture_launch_name(page->arena, page->after, spot->launch);
    Taken taken = {.w = svg_text_width(label, 10) + 3, .h = 12};
    for (double radius = 14; radius < 120; radius += 9) {
        for (int i = 0; i < N_DIRECTIONS; i++) {
            double angle = 2 * 3.14159265358979 * ((i * 5) % N_DIRECTIONS + 2) / N_DIRECTIONS;
            taken.x = spot->x + radius * cos(angle);
            taken.y = spot->y - radius * sin(angle);
            if (!is_free(r, &taken)) continue;
            vec_push(page->arena, &r->taken, taken);
            if (radius > 14) svg_line(page->out, "lead", spot->x, spot->y, taken.x, taken.y);
            svg_text(page->out, spot->is_after ? "spottext" : "spottext faint", ANCHOR_MIDDLE,
                     taken.x, taken.y + 3.5, label);
            return;
        }
    }
}

static void draw_spots(Roofline *r) {
    const Page *page = r->page;
    for (uint32_t i = 0; i < r->spots.n; i++) {
        const Spot *spot = &r->spots.data[i];
        vec_push(page->arena, &r->taken, (Taken){spot->x, spot->y, 15, 15});
    }
    bool all_have_numbers = page->before->launches.n <= MOST_NUMBERED;
    for (uint32_t i = r->spots.n; i-- > 0;)
        if (r->spots.data[i].is_after || all_have_numbers) draw_number(r, &r->spots.data[i]);
    for (uint32_t i = 0; i < r->spots.n; i++) {
        const Spot *spot = &r->spots.data[i];
        svg_circle(page->out,
                   str_format(page->arena, "spot %s %s", spot->is_after ? "after" : "before",
                              op_class_name(spot->cls)),
                   spot->x, spot->y, spot->is_after ? 6 : 4.5, spot->tip);
    }
}

static void draw_legend(const Roofline *r) {
    const Page *page = r->page;
    double x = LEFT + WIDTH - 190, y = TOP + HEIGHT - 46;
    svg_circle(page->out, "spot before eltwise", x, y, 4.5, NULL);
    svg_text(page->out, "axis", ANCHOR_START, x + 14, y + 3.5, "without fusion");
    svg_circle(page->out, "spot after eltwise", x, y + 22, 6, NULL);
    svg_text(page->out, "axis", ANCHOR_START, x + 14, y + 25.5, "fused, number of launch");
}

static bool has_f64(const Plan *plan) {
    for (uint32_t i = 0; i < plan->graph->nodes.n; i++)
        if (dtype_is_double(graph_node(plan->graph, i)->dtype)) return true;
    return false;
}

/* The highest tensor-core rate of the kernels; 0: no kernel uses tensor cores. */
static double tensor_peak(const ReportSide *side, const Card *card) {
    double best = 0;
    for (uint32_t k = 0; k < side->plan->kernels.n; k++) {
        const Kernel *kernel = &side->plan->kernels.data[k];
        const Variant *variant = &kernel->variants[side->cost->kernels[k].variant];
        GemmEngine engine = sched_engine(&variant->sched);
        bool is_tensor = engine_info(engine)->uses_tensor_cores;
        if (!form_info(kernel->form)->multiplies || !is_tensor) continue;
        double rate = cost_gemm_peak(card, kernel, engine);
        if (rate > best) best = rate;
    }
    return 1e12 * best;
}

void report_roofline(const Page *page) {
    const ReportGraph *graph = page->graph;
    const Card *card = page->report->card;
    if (!graph->before.measured_us || !graph->after.measured_us) return;
    Roofline r = {.page = page, .memory_rate = 1e9 * card->dram_gbs};
    r.peak = 2e9 * card->n_processors * card->ghz * card->lanes * /* a multiply-add is two */
             (has_f64(graph->after.plan) ? card->f64_rate : 1);
    r.tensor_peak = tensor_peak(&graph->after, card);
    add_side(&r, &graph->before, page->before, false);
    add_side(&r, &graph->after, page->after, true);
    if (r.spots.n == 0) return;
    vec_push(page->arena, &r.taken, (Taken){LEFT + WIDTH - 100, TOP + HEIGHT - 35, 200, 60});
    find_scale(&r);
    text_puts(page->out, "<h3>Roofline</h3>\n<p class=\"note\">Each point is a launch as measured: "
                         "operations per byte of memory, and operations per second. Hollow points "
                         "are kernels without fusion. Bytes and operations are the cost model's; "
                         "the lines are what the card reaches. What lies above the line of "
                         "memory was served by the cache: runs follow one another on the same "
                         "data.</p>\n<figure>\n");
    svg_begin(page->out, LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM,
              str_format(page->arena, "roofline of graph %s", graph->after.plan->graph->name));
    draw_grid(&r);
    draw_roofs(&r);
    draw_legend(&r);
    draw_spots(&r);
    svg_end(page->out);
    text_puts(page->out, "</figure>\n");
}
