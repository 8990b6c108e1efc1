/* Prints the ledger as tables: kernels with their traffic and times, edges with verdict and
 * reason. */
#include "report/parts.h"

#include <ctype.h>

static void cell(const Page *page, const char *class_name, const char *text) {
    text_printf(page->out, "<td class=\"%s\">", class_name);
    markup_escape(page->out, text);
    text_puts(page->out, "</td>");
}

static void number_cell(const Page *page, uint32_t number) {
    text_printf(page->out, "<td class=\"n\">%u</td>", number);
}

/* A cell with a number and a bar, whose length is the number's share of the column's largest. */
static void bar_cell(const Page *page, const char *text, double value, double most) {
    double share = most > 0 ? 100 * value / most : 0;
    text_puts(page->out, "<td class=\"n bar\"><i style=\"width:");
    markup_number(page->out, share < 1 && value > 0 ? 1 : share, 1);
    text_puts(page->out, "%\"></i><b>");
    markup_escape(page->out, text);
    text_puts(page->out, "</b></td>");
}

static void head(const Page *page, const char *const *titles, uint32_t n, uint32_t numbers) {
    text_puts(page->out, "<thead><tr>");
    for (uint32_t i = 0; i < n; i++)
        text_printf(page->out, "<th%s>%s</th>", numbers >> i & 1 ? " class=\"n\"" : "", titles[i]);
    text_puts(page->out, "</tr></thead>\n<tbody>\n");
}

/* Kernels. */

static const char *limit_name(const KernelCost *cost) {
    if (cost->memory_us >= cost->arithmetic_us && cost->memory_us >= cost->tensor_us)
        return cost->memory_us < cost->launch_us ? "launch" : "memory";
    double longest = cost->tensor_us >= cost->arithmetic_us ? cost->tensor_us : cost->arithmetic_us;
    if (longest < cost->launch_us) return "launch";
    return cost->tensor_us >= cost->arithmetic_us ? "tensor cores" : "arithmetic";
}

static const char *buffers_text(const Page *page, const LedgerBuffers *buffers) {
    Text text = {.arena = page->arena};
    for (uint32_t i = 0; i < buffers->list.n; i++) {
        const LedgerBuffer *buffer = &buffers->list.data[i];
        text_printf(&text, "%s%s%s", i ? ", " : "", buffer->name,
                    explain_space_text(page->ledger, buffer->space));
    }
    return text_str(&text);
}

static const char *pressure_text(const Page *page, const Pressure *pressure) {
    return str_format(page->arena, "%u%s", pressure->registers,
                      pressure->spills ? " (spills)" : "");
}

static void kernel_row(const Page *page, uint32_t k, uint32_t launch, double most_us,
                       double most_bytes) {
    const ReportSide *side = &page->graph->after;
    const LedgerKernel *kernel = &page->ledger->kernels.data[k];
    const KernelCost *cost = &kernel->cost;
    text_puts(page->out, "<tr>");
    cell(page, "n", picture_launch_name(page->arena, page->after, launch));
    text_printf(page->out, "<td class=\"code\"><a href=\"#g%uak%u\">", page->number, k);
    markup_escape(page->out, kernel->name);
    text_puts(page->out, "</a></td>");
    cell(page, "", kernel->form->title);
    number_cell(page, page->after->kernels.data[k].n_ops);
    cell(page, "code", buffers_text(page, &kernel->reads));
    cell(page, "code", buffers_text(page, &kernel->writes));
    double bytes = cost->read_bytes + cost->written_bytes;
    bar_cell(page, human_bytes(page->arena, bytes), bytes, most_bytes);
    cell(page, "n", human_count(page->arena, cost->n_flops + cost->n_prims));
    bar_cell(page, human_us(page->arena, cost->us), cost->us, most_us);
    double us = page_launch_us(side, page->after, launch);
    bool is_first = us > 0 && page->after->launches.data[launch].kernels[0] == k;
    if (side->measured_us) cell(page, "n", is_first ? human_us(page->arena, us) : "");
    cell(page, "", limit_name(cost));
    bool has_pressure = page->ledger->card->has->blocks;
    if (has_pressure) cell(page, "n", pressure_text(page, &cost->pressure));
    text_puts(page->out, "</tr>\n");
}

static void report_kernels(const Page *page) {
    static const char *const titles[] = {"launch",    "kernel", "form",     "ops",
                                         "reads",     "writes", "moves",    "operations",
                                         "predicted", "limit",  "registers"};
    static const char *const measured[] = {"launch",    "kernel",   "form",  "ops",
                                           "reads",     "writes",   "moves", "operations",
                                           "predicted", "measured", "limit", "registers"};
    bool is_gpu = page->ledger->card->has->blocks;
    double most_us = 0, most_bytes = 0;
    for (uint32_t k = 0; k < page->ledger->kernels.n; k++) {
        const KernelCost *cost = &page->ledger->kernels.data[k].cost;
        double bytes = cost->read_bytes + cost->written_bytes;
        most_us = cost->us > most_us ? cost->us : most_us;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    text_printf(page->out, "<h3>Kernels</h3>\n<div class=\"wide\"><table>\n");
    if (page->graph->after.measured_us)
        head(page, measured, is_gpu ? 12 : 11, 0xBC9);
    else
        head(page, titles, is_gpu ? 11 : 10, 0x5C9);
    for (uint32_t l = 0; l < page->after->launches.n; l++) {
        const PictureLaunch *launch = &page->after->launches.data[l];
        for (uint32_t i = 0; i < launch->n; i++)
            kernel_row(page, launch->kernels[i], l, most_us, most_bytes);
    }
    text_puts(page->out, "</tbody></table></div>\n");
}

/* Edges. */

static const char *value_text(const Page *page, const LedgerValue *value) {
    return value->name ? str_format(page->arena, "%s = %s", value->name, value->op) : value->op;
}

static const char *consumer_text(const Page *page, const LedgerEdge *edge) {
    return edge->output ? str_format(page->arena, "output %s", edge->output)
                        : value_text(page, &edge->to);
}

static const char *place_text(const Page *page, const LedgerEdge *edge) {
    uint32_t from = edge->from.at.line, to = edge->to.at.line;
    if (!from && !to) return "";
    if (!to || from == to) return str_format(page->arena, "%u", from ? from : to);
    return from ? str_format(page->arena, "%u \xE2\x86\x92 %u", from, to)
                : str_format(page->arena, "%u", to);
}

/* Prints advice. The price is a sentence here; in the text it is a line. */
static void put_advice(const Page *page, const LedgerAdvice *advice) {
    text_puts(page->out, "<div class=\"note\">");
    if (advice->text) markup_escape(page->out, advice->text);
    if (advice->price) {
        text_printf(page->out, " %c", toupper((unsigned char)*advice->price));
        markup_escape(page->out, advice->price + 1);
        text_puts(page->out, ".");
    }
    text_puts(page->out, "</div>");
}

static void edge_row(const Page *page, const LedgerEdge *edge) {
    const EdgeCost *cost = &edge->cost;
    const char *verdict = edge->is_fused ? "fused" : "stored";
    text_puts(page->out, "<tr>");
    cell(page, "code", value_text(page, &edge->from));
    cell(page, "code", consumer_text(page, edge));
    cell(page, "n", place_text(page, edge));
    text_printf(page->out, "<td><span class=\"verdict %s\">%s</span></td>", verdict, verdict);
    text_printf(page->out, "<td><span class=\"code\">%s</span> ", edge->reason->id);
    markup_escape(page->out, edge->reason->text);
    if (!edge->is_fused && !edge->output) put_advice(page, &edge->advice);
    text_puts(page->out, "</td>");
    cell(page, "n", human_bytes(page->arena, edge->size.n));
    bool is_between = !edge->output && cost->unfused_us > 0;
    cell(page, "n", is_between ? human_us(page->arena, cost->unfused_us) : "");
    cell(page, "n", is_between && edge->is_fused ? human_us(page->arena, cost->fused_us) : "");
    text_puts(page->out, "</tr>\n");
}

static void report_edges(const Page *page) {
    static const char *const titles[] = {"value",  "goes to", "line",        "verdict",
                                         "reason", "size",    "two kernels", "one kernel"};
    text_puts(page->out, "<h3>Edges</h3>\n<p class=\"note\">What flows from op to op, and why it "
                         "stays in registers or goes through memory. The times are predictions for "
                         "the edge's two ops by themselves. Literals are left out.</p>\n"
                         "<div class=\"wide\"><table>\n");
    head(page, titles, 8, 0xE4);
    for (int fused = 0; fused <= 1; fused++)
        for (uint32_t i = 0; i < page->ledger->edges.n; i++) {
            const LedgerEdge *edge = &page->ledger->edges.data[i];
            if (edge->is_fused == fused && !edge->is_literal) edge_row(page, edge);
        }
    text_puts(page->out, "</tbody></table></div>\n");
}

/* Prints n paragraphs, each with the lines that the text report has. */
static void report_lines(const Page *page, const char *title, uint32_t n,
                         void (*put)(const Ledger *ledger, uint32_t i, Text *out)) {
    if (n) text_printf(page->out, "<h3>%s</h3>\n", title);
    for (uint32_t i = 0; i < n; i++) {
        Text lines = {.arena = page->arena}, line = {.arena = page->arena};
        put(page->ledger, i, &lines);
        text_puts(page->out, "<p class=\"note\">");
        for (const char *at = text_str(&lines); *at; at++) {
            if (*at != '\n') {
                text_add(&line, at, 1);
                continue;
            }
            markup_escape(page->out, text_str(&line));
            if (at[1]) text_puts(page->out, "<br/>");
            line = (Text){.arena = page->arena};
        }
        text_puts(page->out, "</p>\n");
    }
}

void report_ledger(const Page *page) {
    report_kernels(page);
    report_lines(page, "Separate launches though neither waits for the other",
                 page->ledger->unjoined.n, explain_put_unjoined);
    report_lines(page, "What <code>fuse must</code> costs or gains", page->ledger->blocks.n,
                 explain_put_block);
    report_edges(page);
}
