/* The ledger as tables: kernels with what they move and take, edges with verdict and reason. */
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

/* A number with a bar of its share of the column's largest. */
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

static const char *values_text(const Page *page, const Kernel *kernel, bool is_store) {
    Text text = {.arena = page->arena};
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Plan *plan = page->graph->after.plan;
        uint32_t arg = kernel->args.data[i];
        if (kernel_stores_to(kernel, arg) != is_store) continue;
        if (!is_store) arg = plan_read_buffer(plan, arg, page->report->dims);
        const Buffer *buffer = &plan->buffers.data[arg];
        text_printf(&text, "%s%s%s", text.n_bytes ? ", " : "", buffer->name,
                    buffer->space != BUFFER_GLOBAL ? " (on chip)" : "");
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
    const Kernel *kernel = &side->plan->kernels.data[k];
    const KernelCost *cost = &side->cost->kernels[k];
    text_puts(page->out, "<tr>");
    cell(page, "n", picture_launch_name(page->arena, page->after, launch));
    text_printf(page->out, "<td class=\"code\"><a href=\"#g%uak%u\">", page->number, k);
    markup_escape(page->out, kernel->name);
    text_puts(page->out, "</a></td>");
    cell(page, "", explain_form_name(kernel->form));
    number_cell(page, page->after->kernels.data[k].n_ops);
    cell(page, "code", values_text(page, kernel, false));
    cell(page, "code", values_text(page, kernel, true));
    double bytes = cost->read_bytes + cost->written_bytes;
    bar_cell(page, human_bytes(page->arena, bytes), bytes, most_bytes);
    cell(page, "n", human_count(page->arena, cost->n_flops + cost->n_prims));
    bar_cell(page, human_us(page->arena, cost->us), cost->us, most_us);
    double us = page_launch_us(side, page->after, launch);
    bool is_first = us > 0 && page->after->launches.data[launch].kernels[0] == k;
    if (side->measured_us) cell(page, "n", is_first ? human_us(page->arena, us) : "");
    cell(page, "", limit_name(cost));
    bool has_pressure = side->cost->card->has->blocks;
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
    const ReportSide *side = &page->graph->after;
    bool is_gpu = side->cost->card->has->blocks;
    double most_us = 0, most_bytes = 0;
    for (uint32_t k = 0; k < side->plan->kernels.n; k++) {
        const KernelCost *cost = &side->cost->kernels[k];
        double bytes = cost->read_bytes + cost->written_bytes;
        most_us = cost->us > most_us ? cost->us : most_us;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    text_printf(page->out, "<h3>Kernels</h3>\n<div class=\"wide\"><table>\n");
    if (side->measured_us)
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

static const char *value_text(const Page *page, NodeId id) {
    const Graph *graph = page->graph->after.plan->graph;
    const Node *node = graph_node(graph, id);
    const char *op = op_info(node->op)->name;
    return node->name ? str_format(page->arena, "%s = %s", node->name, op) : op;
}

static const char *consumer_text(const Page *page, const Edge *edge) {
    const Graph *graph = page->graph->after.plan->graph;
    if (edge->consumer != NODE_NONE) return value_text(page, edge->consumer);
    return str_format(page->arena, "output %s", graph->outputs.data[edge->output].name);
}

static const char *place_text(const Page *page, const Edge *edge) {
    const Graph *graph = page->graph->after.plan->graph;
    uint32_t from = node_line(graph, edge->producer);
    uint32_t to = edge->consumer == NODE_NONE ? 0 : node_line(graph, edge->consumer);
    if (!from && !to) return "";
    if (!to || from == to) return str_format(page->arena, "%u", from ? from : to);
    return from ? str_format(page->arena, "%u \xE2\x86\x92 %u", from, to)
                : str_format(page->arena, "%u", to);
}

static void edge_row(const Page *page, const EdgeCosts *costs, uint32_t i) {
    const ReportGraph *graph = page->graph;
    const Edge *edge = &graph->after.plan->edges.data[i];
    const ReasonInfo *reason = reason_info(edge->reason);
    bool is_fused = edge->verdict == EDGE_FUSED;
    EdgeCost cost = edge_cost(costs, edge);
    text_puts(page->out, "<tr>");
    cell(page, "code", value_text(page, edge->producer));
    cell(page, "code", consumer_text(page, edge));
    cell(page, "n", place_text(page, edge));
    text_printf(page->out, "<td><span class=\"verdict %s\">%s</span></td>",
                is_fused ? "fused" : "stored", is_fused ? "fused" : "stored");
    text_printf(page->out, "<td><span class=\"code\">%s</span> ", reason->id);
    markup_escape(page->out, reason->text);
    if (!is_fused && edge->consumer != NODE_NONE) {
        text_puts(page->out, "<div class=\"note\">");
        markup_escape(page->out, advice_text(page->arena, graph->after.plan->graph,
                                             &graph->ledger.advices[i]));
        const char *price =
            advice_price_text(page->arena, graph->after.plan, &graph->ledger.advices[i],
                              explain_totals(&graph->ledger));
        if (price) { /* a sentence of its own here, a line of its own in the text */
            text_printf(page->out, " %c", toupper((unsigned char)*price));
            markup_escape(page->out, price + 1);
            text_puts(page->out, ".");
        }
        text_puts(page->out, "</div>");
    }
    text_puts(page->out, "</td>");
    cell(page, "n", page_bytes(page, node_bytes(graph->after.plan->graph, edge->producer)));
    bool is_between = edge->consumer != NODE_NONE && cost.unfused_us > 0;
    cell(page, "n", is_between ? human_us(page->arena, cost.unfused_us) : "");
    cell(page, "n", is_between && is_fused ? human_us(page->arena, cost.fused_us) : "");
    text_puts(page->out, "</tr>\n");
}

static bool is_literal(const Page *page, const Edge *edge) {
    return graph_node(page->graph->after.plan->graph, edge->producer)->op == OP_CONST;
}

static void report_edges(const Page *page) {
    static const char *const titles[] = {"value",  "goes to", "line",        "verdict",
                                         "reason", "size",    "two kernels", "one kernel"};
    const Plan *plan = page->graph->after.plan;
    const EdgeCosts costs =
        edge_costs(page->arena, page->graph->after.cost, page->graph->before.cost);
    text_puts(page->out, "<h3>Edges</h3>\n<p class=\"note\">What flows from op to op, and why it "
                         "stays in registers or goes through memory. The times are predictions for "
                         "the edge's two ops by themselves. Literals are left out.</p>\n"
                         "<div class=\"wide\"><table>\n");
    head(page, titles, 8, 0xE4);
    for (int stored = 1; stored >= 0; stored--)
        for (uint32_t i = 0; i < plan->edges.n; i++) {
            const Edge *edge = &plan->edges.data[i];
            if ((edge->verdict == EDGE_STORED) != stored || is_literal(page, edge)) continue;
            edge_row(page, &costs, i);
        }
    text_puts(page->out, "</tbody></table></div>\n");
}

/* A paragraph for each of the n, as the text has them, with its lines. */
static void report_lines(const Page *page, const char *title, uint32_t n,
                         void (*put)(const ExplainInput *input, uint32_t i, Text *out)) {
    if (n) text_printf(page->out, "<h3>%s</h3>\n", title);
    for (uint32_t i = 0; i < n; i++) {
        Text lines = {.arena = page->arena}, line = {.arena = page->arena};
        put(&page->graph->ledger, i, &lines);
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
    report_lines(page, "Launches that are apart though neither waits for the other",
                 page->graph->after.plan->unjoined.n, explain_put_unjoined);
    report_lines(page, "What <code>fuse must</code> costs or gains", page->graph->ledger.blocks.n,
                 explain_put_block);
    report_edges(page);
}
