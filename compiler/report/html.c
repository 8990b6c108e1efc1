/* Prints the page around the sections. See report.h. */
#include "report/parts.h"

#include <math.h>

static const double LEAST_SCALE = 0.7; /* least scale of pictures side by side */

/* The text of style.css; the build embeds it. */
extern const char report_style_text[];
extern const size_t report_style_n_bytes;

double page_number(const Page *page, DimId dim) {
    int64_t value = 0;
    const DimTab *dims = page->graph->after.plan->graph->dims;
    bool is_known = dim != DIM_NONE && dim_eval(dims, dim, page->report->dims, &value);
    return is_known ? (double)value : 0;
}

double page_launch_us(const ReportSide *side, const Picture *picture, uint32_t launch) {
    uint32_t n_before = picture->n_launches - side->n_measured;
    uint32_t number = picture->launches.data[launch].number;
    return side->measured_us && number >= n_before ? side->measured_us[number - n_before] : 0;
}

const char *page_bytes(const Page *page, DimId dim) {
    return human_bytes(page->arena, page_number(page, dim));
}

const char *page_shape(const Page *page, Dtype dtype, const Shape *shape) {
    Text text = {.arena = page->arena};
    text_puts(&text, dtype_name(dtype));
    shape_print(page->graph->after.plan->graph->dims, shape, &text);
    return text_str(&text);
}

const char *op_class_name(OpClass cls) {
    switch (cls) {
    case CLASS_ELTWISE:
    case CLASS_CAST:
        return "eltwise";
    case CLASS_REDUCE:
    case CLASS_ARGREDUCE:
    case CLASS_SCAN:
    case CLASS_SCAN_BY:
    case CLASS_SORT:
    case CLASS_SEGMENT:
        return "reduce";
    case CLASS_SOURCE:
    case CLASS_VIEW:
    case CLASS_CONCAT:
    case CLASS_UPDATE:
    case CLASS_LOOP:
        return "view";
    case CLASS_ONLINE:
    case CLASS_MATMUL:
        return "contract";
    }
    return "";
}

void page_begin_figure(const Page *page, double w) {
    text_puts(page->out, "<figure style=\"flex:");
    markup_number(page->out, fmax(ceil(w), 1), 0);
    text_puts(page->out, " 1 0;min-width:min(100%,");
    markup_number(page->out, ceil(LEAST_SCALE * w) + 30, 0);
    text_puts(page->out, "px)\">");
}

/* Totals. */

typedef struct Tile {
    const char *title, *before, *after, *note;
} Tile;

static void put_tile(const Page *page, Tile tile) {
    Text *out = page->out;
    text_printf(out, "<div class=\"tile\"><h4>%s</h4><p>", tile.title);
    if (tile.before) text_printf(out, "<s>%s \xE2\x86\x92 </s>", tile.before);
    text_printf(out, "%s</p><small>%s</small></div>\n", tile.after, tile.note);
}

static double sum_us(const ReportSide *side, const Picture *picture) {
    double sum = 0;
    for (uint32_t i = 0; i < picture->launches.n; i++) sum += page_launch_us(side, picture, i);
    return sum;
}

static const char *fewer(const Page *page, double before, double after, const char *what) {
    const char *ratio = human_ratio(page->arena, before, after);
    return after > 0 && before > 1.005 * after ? str_format(page->arena, "%s %s", ratio, what) : "";
}

static const char *count_text(Arena *arena, uint32_t n, const char *what) {
    return str_format(arena, "%u %s%s", n, what, n == 1 ? "" : "s");
}

static void put_tiles(const Page *page) {
    Arena *arena = page->arena;
    const Ledger *ledger = page->ledger;
    const LedgerTotals *b = &ledger->unfused, *a = &ledger->fused;
    const char *reuse = "";
    if (a->unshared_bytes > a->workspace_bytes)
        reuse = str_format(arena, "%s without reuse", human_bytes(arena, a->unshared_bytes));
    text_puts(page->out, "<div class=\"tiles\">\n");
    uint32_t n_kernels = 0;
    for (uint32_t k = ledger->n_init; k < ledger->kernels.n; k++)
        n_kernels += ledger->kernels.data[k].cost.starts;
    const char *kernels = count_text(arena, n_kernels, "kernel");
    if (ledger->n_init)
        kernels = str_format(arena, "%s, %s once", kernels,
                             count_text(arena, ledger->n_init_steps, "init step"));
    put_tile(page, (Tile){"launches of a run", str_format(arena, "%u", b->n_launches),
                          str_format(arena, "%u", a->n_launches), kernels});
    put_tile(page, (Tile){"moved through memory", human_bytes(arena, b->dram_bytes),
                          human_bytes(arena, a->dram_bytes),
                          fewer(page, b->dram_bytes, a->dram_bytes, "less")});
    put_tile(page, (Tile){"least possible", NULL, human_bytes(arena, ledger->least_bytes),
                          "inputs and outputs once"});
    put_tile(page, (Tile){"predicted time", human_us(arena, b->us), human_us(arena, a->us),
                          fewer(page, b->us, a->us, "faster")});
    double was = sum_us(&page->graph->before, page->before);
    double is = sum_us(&page->graph->after, page->after);
    if (is > 0)
        put_tile(page, (Tile){"measured, sum of launches", human_us(arena, was),
                              human_us(arena, is), fewer(page, was, is, "faster")});
    put_tile(page, (Tile){"workspace", human_bytes(arena, b->workspace_bytes),
                          human_bytes(arena, a->workspace_bytes), reuse});
    text_puts(page->out, "</div>\n");
}

/* The legend of colours and lines. */

static void put_swatch(const Page *page, const char *element, const char *meaning) {
    text_printf(page->out,
                "<span><svg width=\"26\" height=\"14\" aria-hidden=\"true\">%s</svg>%s</span>\n",
                element, meaning);
}

static void put_legend(const Page *page) {
    static const struct {
        const char *class_name, *meaning;
        int radius;
    } boxes[] = {
        {"swatch contract", "matmul", 4},        {"swatch reduce", "reduction", 4},
        {"swatch eltwise", "elementwise", 4},    {"swatch view", "view, index", 4},
        {"pill in", "input, output", 6},         {"pill param", "param", 6},
        {"pill temp", "temporary in memory", 6}, {"launch", "several kernels, one launch", 4}};
    text_puts(page->out, "<div class=\"legend\">\n");
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++)
        put_swatch(
            page,
            str_format(page->arena,
                       "<rect class=\"%s\" x=\"1\" y=\"1\" width=\"24\" height=\"12\" rx=\"%d\"/>",
                       boxes[i].class_name, boxes[i].radius),
            boxes[i].meaning);
    put_swatch(page, "<g class=\"edge mem\"><path stroke-width=\"4\" d=\"M0 7H26\"/></g>",
               "through memory, wide as its bytes");
    put_swatch(page, "<g class=\"edge reg\"><path stroke-width=\"1\" d=\"M0 7H26\"/></g>",
               "in registers");
    put_swatch(page, "<g class=\"edge local\"><path stroke-width=\"1.6\" d=\"M0 7H26\"/></g>",
               "within a launch");
    text_puts(page->out, "</div>\n");
}

/* The page. */

static void put_head(const Report *report, Text *out) {
    text_puts(out,
              "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
              "<meta charset=\"utf-8\"/>\n"
              "<meta http-equiv=\"Content-Security-Policy\" "
              "content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
              "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>");
    markup_escape(out, report->source);
    text_puts(out, " - fusec</title>\n<style>\n");
    text_add(out, report_style_text, report_style_n_bytes);
    text_puts(out, "</style>\n</head>\n<body>\n<h1>");
    markup_escape(out, report->source);
    text_puts(out, "</h1>\n<p class=\"sub\">fused by fusec ");
    markup_escape(out, report->compiler);
    text_puts(out, " for ");
    markup_escape(out, report->target);
    text_puts(out, ", priced for ");
    markup_escape(out, report->card->doc);
    if (report->device) {
        text_puts(out, ", measured on ");
        markup_escape(out, report->device);
    }
    text_puts(out, "</p>\n");
}

static void put_dims(const Page *page) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < page->ledger->dims.n; i++) {
        const LedgerDim *dim = &page->ledger->dims.data[i];
        if (!dim->is_used) continue;
        text_puts(page->out, n++ ? "," : "<p class=\"sub\">All numbers hold for");
        text_printf(page->out, " <span class=\"code\">%s = %lld</span>", dim->name,
                    (long long)dim->value);
    }
    if (n) text_puts(page->out, ".</p>\n");
}

static void put_graph(Arena *arena, const Report *report, uint32_t number, Text *out) {
    Page page = {.arena = arena,
                 .out = out,
                 .report = report,
                 .graph = &report->graphs[number],
                 .ledger = report->graphs[number].ledger,
                 .number = number,
                 .before = picture_new(arena, report->graphs[number].before.plan, report->dims),
                 .after = picture_new(arena, report->graphs[number].after.plan, report->dims)};
    text_puts(out, "<h2>graph <span class=\"code\">");
    markup_escape(out, page.ledger->graph);
    text_puts(out, "</span></h2>\n");
    put_dims(&page);
    put_tiles(&page);
    put_legend(&page);
    report_graphs(&page);
    report_roofline(&page);
    report_memory(&page);
    report_ledger(&page);
}

void report_print(Arena *arena, const Report *report, Text *out) {
    put_head(report, out);
    for (uint32_t i = 0; i < report->n_graphs; i++) put_graph(arena, report, i, out);
    text_puts(out, "</body>\n</html>\n");
}
