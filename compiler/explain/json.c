/* The ledger as JSON. See explain.h; docs/EXPLAIN.md is the schema. */
#include "explain/explain.h"

#include "plan/launch.h"
#include "plan/rewrite.h"

#include <math.h>

typedef struct Writer {
    JsonText *json;
    const ExplainInput *input;
    const Plan *plan;
    const Graph *graph;
    const DimTab *dims;
    EdgeCosts edges;
} Writer;

static void put_place(const Writer *w, Span span) {
    if (!w->graph->source || !span.end) return;
    Position at = source_position(w->graph->source, span.begin);
    jsontext_number(w->json, "line", at.line);
    jsontext_number(w->json, "column", at.column);
}

static void put_node(const Writer *w, const char *name, NodeId id) {
    const Node *node = graph_node(w->graph, id);
    jsontext_begin(w->json, name, '{');
    jsontext_number(w->json, "node", id);
    jsontext_string(w->json, "name", node->name);
    jsontext_string(w->json, "op", op_info(node->op)->name);
    put_place(w, node->span);
    jsontext_end(w->json, '}');
}

static void put_output(const Writer *w, uint32_t output) {
    jsontext_begin(w->json, "to", '{');
    jsontext_string(w->json, "output", w->graph->outputs.data[output].name);
    jsontext_end(w->json, '}');
}

/* Expected bytes of what is gathered are no whole numbers; shown they are, as in the text. */
static void put_bytes(const Writer *w, const char *name, double bytes) {
    jsontext_number(w->json, name, nearbyint(bytes));
}

static double value_bytes(const Writer *w, NodeId id) {
    const Node *node = graph_node(w->graph, id);
    DimId elems = shape_n_elems(w->graph->dims, &node->shape);
    return dim_number(w->dims, elems, w->input->cost->dims) * dtype_bytes(node->dtype);
}

static void put_change(const Writer *w, const Advice *advice) {
    jsontext_begin(w->json, "change", '[');
    for (uint32_t i = 0; i < advice->n_steps; i++) {
        const AdviceStep *step = &advice->steps[i];
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "do", advice_kind_name(step->kind));
        jsontext_string(w->json, "rule", reason_info(step->reason)->id);
        jsontext_begin(w->json, "nodes", '[');
        for (uint32_t k = 0; k < step->nodes.n; k++)
            jsontext_number(w->json, NULL, step->nodes.data[k]);
        jsontext_end(w->json, ']');
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_ends(const Writer *w, const Edge *edge) {
    put_node(w, "from", edge->producer);
    if (edge->consumer == NODE_NONE)
        put_output(w, edge->output);
    else
        put_node(w, "to", edge->consumer);
}

static void put_point(const Writer *w, const int64_t *dims) {
    jsontext_begin(w->json, "dims", '[');
    for (uint32_t i = 0; i < dim_n_symbols(w->dims); i++) {
        if (dim_symbol_info(w->dims, i)->rule) continue;
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "name", dim_symbol_info(w->dims, i)->name);
        jsontext_number(w->json, "value", (double)dims[i]);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_prices(const Writer *w, const VecChangePrice *prices, const char *then,
                       const char *now) {
    jsontext_begin(w->json, "prices", '[');
    for (uint32_t i = 0; i < prices->n; i++) {
        const ChangePrice *price = &prices->data[i];
        jsontext_begin(w->json, NULL, '{');
        put_point(w, price->dims);
        jsontext_number(w->json, then, price->then_us);
        jsontext_number(w->json, now, price->now_us);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

/* What the graph comes to with the change; null where that is not known. */
static void put_then(const Writer *w, const Advice *advice) {
    if (!advice->is_priced) {
        jsontext_string(w->json, "then", NULL);
        return;
    }
    jsontext_begin(w->json, "then", '{');
    jsontext_number(w->json, "us", advice->then.us);
    jsontext_number(w->json, "launches", advice->then.n_launches);
    jsontext_begin(w->json, "stored", '[');
    for (uint32_t i = 0; i < advice->lost.n; i++) {
        jsontext_begin(w->json, NULL, '{');
        put_ends(w, &w->plan->edges.data[advice->lost.data[i]]);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
    put_prices(w, &advice->prices, "us", "us_now");
    jsontext_end(w->json, '}');
}

static void put_edge(const Writer *w, uint32_t i) {
    const Edge *edge = &w->plan->edges.data[i];
    const ReasonInfo *reason = reason_info(edge->reason);
    EdgeCost cost = edge_cost(&w->edges, edge);
    jsontext_begin(w->json, NULL, '{');
    put_ends(w, edge);
    jsontext_string(w->json, "verdict", edge->verdict == EDGE_FUSED ? "fused" : "stored");
    jsontext_string(w->json, "rule", reason->id);
    jsontext_string(w->json, "reason", reason->text);
    const Advice *advice = &w->input->advices[i];
    jsontext_string(w->json, "advice",
                    advice->n_steps ? advice_text(w->json->out->arena, w->graph, advice) : NULL);
    jsontext_bool(w->json, "tried", advice->is_tried);
    put_change(w, advice);
    put_then(w, advice);
    put_bytes(w, "bytes", value_bytes(w, edge->producer));
    put_bytes(w, "saved_bytes", cost.saved_bytes);
    bool is_priced = edge->verdict == EDGE_FUSED || cost.unfused_us == 0;
    jsontext_number(w->json, "fused_us", is_priced ? cost.fused_us : (double)NAN);
    jsontext_number(w->json, "unfused_us", cost.unfused_us);
    jsontext_end(w->json, '}');
}

static void put_buffers(const Writer *w, const Kernel *kernel, bool written) {
    jsontext_begin(w->json, written ? "writes" : "reads", '[');
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t id = kernel->args.data[i];
        if (kernel_stores_to(kernel, id) != written) continue;
        if (!written) id = plan_read_buffer(w->plan, id, w->input->cost->dims);
        const Buffer *buffer = &w->plan->buffers.data[id];
        DimId bytes = buffer_bytes(w->graph->dims, buffer);
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "buffer", buffer->name);
        put_bytes(w, "bytes", dim_number(w->dims, bytes, w->input->cost->dims));
        jsontext_bool(w->json, "on_chip", buffer->space != BUFFER_GLOBAL);
        if (written && buffer->takes_over)
            jsontext_string(w->json, "in_place_of",
                            w->plan->buffers.data[buffer->takes_over - 1].name);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_nodes(const Writer *w, const Kernel *kernel) {
    jsontext_begin(w->json, "nodes", '[');
    if (kernel_lays_out(w->plan, kernel))
        jsontext_number(w->json, NULL, plan_laid_out(w->plan, kernel));
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        jsontext_number(w->json, NULL, kernel->nodes.data[i]);
    jsontext_end(w->json, ']');
}

static void put_cost(const Writer *w, const KernelCost *cost) {
    const struct {
        const char *name;
        double value;
    } rows[] = {{"prims", cost->n_prims},
                {"flops", cost->n_flops},
                {"blocks", cost->n_blocks},
                {"launch_us", cost->launch_us},
                {"memory_us", cost->memory_us},
                {"arithmetic_us", cost->arithmetic_us},
                {"tensor_us", cost->tensor_us},
                {"spill_us", cost->spill_us},
                {"us", cost->us},
                {"registers", cost->pressure.registers},
                {"shared_bytes", cost->pressure.shared_bytes},
                {"occupancy", cost->pressure.occupancy}};
    put_bytes(w, "read_bytes", cost->read_bytes);
    put_bytes(w, "written_bytes", cost->written_bytes);
    put_bytes(w, "cache_bytes", cost->cache_bytes);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        jsontext_number(w->json, rows[i].name, rows[i].value);
    jsontext_bool(w->json, "spills", cost->pressure.spills);
}

static void put_rewrite(const Writer *w, uint32_t k) {
    Rewrite rewrite;
    const Kernel *kernel = &w->plan->kernels.data[k];
    if (!rewrite_of(w->plan, k, &rewrite)) {
        jsontext_string(w->json, "rewrite", NULL);
        return;
    }
    double n = dim_number(w->dims, kernel_n_reduced(kernel), w->input->cost->dims);
    RewriteBound bound = rewrite_bound(&rewrite, n);
    jsontext_begin(w->json, "rewrite", '{');
    jsontext_string(w->json, "name", ONLINE_NAME);
    put_node(w, "result", rewrite.gemm);
    jsontext_number(w->json, "relative", bound.relative);
    jsontext_number(w->json, "absolute", bound.absolute);
    jsontext_end(w->json, '}');
}

/* Kernels [first, end) of the plan, as a list. */
static void put_kernels(const Writer *w, const char *list, uint32_t first, uint32_t end) {
    uint32_t launch = 0;
    jsontext_begin(w->json, list, '[');
    for (uint32_t i = first; i < end; i++) {
        const Kernel *kernel = &w->plan->kernels.data[i];
        const KernelCost *cost = &w->input->cost->kernels[i];
        bool is_online = kernel_is_rewritten(w->plan, i);
        launch += i > first && plan_launch_of(w->plan, i)->first == i;
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "name", kernel->name);
        put_place(w, kernel->span);
        jsontext_string(w->json, "form", explain_form_name(kernel->form));
        jsontext_number(w->json, "launch", launch);
        jsontext_string(w->json, "link", kernel_launch_info(w->plan, i)->word);
        jsontext_string(w->json, "variant", kernel->variants[cost->variant].symbol);
        jsontext_number(w->json, "passes", is_online ? 1 : kernel->stages.n);
        put_rewrite(w, i);
        jsontext_bool(w->json, "partial", kernel->segment_axis != NO_AXIS);
        jsontext_bool(w->json, "starts", cost->starts);
        uint32_t n_alternatives =
            kernel_has_alternative(kernel) ? plan_n_alternatives(w->plan, kernel->choice) : 0;
        jsontext_number(w->json, "spread", n_alternatives);
        put_nodes(w, kernel);
        put_buffers(w, kernel, false);
        put_buffers(w, kernel, true);
        put_cost(w, cost);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_aparts(const Writer *w) {
    jsontext_begin(w->json, "apart", '[');
    for (uint32_t i = 0; i < w->plan->unjoined.n; i++) {
        const Unjoined *apart = &w->plan->unjoined.data[i];
        const ReasonInfo *reason = reason_info(apart->reason);
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "kernel", apart->kernel);
        jsontext_string(w->json, "other", apart->other);
        jsontext_string(w->json, "rule", reason->id);
        jsontext_string(w->json, "reason", reason->text);
        const Advice none = {.n_steps = 0};
        const Advice *given = w->input->launch_advices;
        const Advice *advice = given ? &given[i] : &none;
        const char *text =
            advice->n_steps ? advice_text(w->json->out->arena, w->graph, advice) : reason->advice;
        jsontext_string(w->json, "advice", text);
        jsontext_bool(w->json, "tried", advice->is_tried);
        put_change(w, advice);
        put_then(w, advice);
        put_prices(w, &apart->prices, "together_us", "apart_us");
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_blocks(const Writer *w) {
    const VecBlockPrice *blocks = &w->input->blocks;
    jsontext_begin(w->json, "contracts", '[');
    for (uint32_t i = 0; i < blocks->n; i++) {
        const BlockPrice *price = &blocks->data[i];
        jsontext_begin(w->json, NULL, '{');
        put_place(w, w->graph->fixed_kernels.data[price->block].span);
        jsontext_number(w->json, "us_without", price->without.us);
        jsontext_number(w->json, "launches_without", price->without.n_launches);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_dims(const Writer *w) {
    jsontext_begin(w->json, "dims", '[');
    for (uint32_t i = 0; i < dim_n_symbols(w->dims); i++) {
        if (dim_symbol_info(w->dims, i)->rule) continue;
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "name", dim_symbol_info(w->dims, i)->name);
        jsontext_number(w->json, "value", (double)w->input->cost->dims[i]);
        jsontext_bool(w->json, "given", w->input->given_dims >> i & 1);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_totals(const Writer *w) {
    const PlanCost *cost = w->input->cost, *before = w->input->unfused_cost;
    jsontext_begin(w->json, "totals", '{');
    jsontext_number(w->json, "launches", cost->n_launches);
    jsontext_number(w->json, "unfused_launches", before->n_launches);
    put_bytes(w, "least_bytes", cost->least_bytes);
    put_bytes(w, "bytes", cost->read_bytes + cost->written_bytes);
    put_bytes(w, "unfused_bytes", before->read_bytes + before->written_bytes);
    jsontext_number(w->json, "us", cost->us);
    jsontext_number(w->json, "unfused_us", before->us);
    put_bytes(w, "workspace_bytes", cost->workspace_bytes);
    put_bytes(w, "unfused_workspace_bytes", before->workspace_bytes);
    put_bytes(w, "peak_bytes", cost->bound_bytes + cost->workspace_bytes);
    put_bytes(w, "unfused_peak_bytes", before->bound_bytes + before->workspace_bytes);
    jsontext_number(w->json, "init_us", cost->init_us);
    put_bytes(w, "init_bytes", cost->init_bytes);
    put_bytes(w, "prepared_bytes", dim_number(w->dims, plan_prepared_bytes(w->plan), cost->dims));
    jsontext_end(w->json, '}');
}

void explain_json(const ExplainInput *input, JsonText *json) {
    const Plan *plan = input->cost->plan;
    Writer w = {.json = json,
                .input = input,
                .plan = plan,
                .graph = plan->graph,
                .dims = plan->graph->dims,
                .edges = edge_costs(json->out->arena, input->cost, input->unfused_cost)};
    jsontext_begin(json, NULL, '{');
    jsontext_string(json, "name", plan->graph->name);
    put_dims(&w);
    jsontext_begin(json, "edges", '[');
    for (uint32_t i = 0; i < plan->edges.n; i++) put_edge(&w, i);
    jsontext_end(json, ']');
    put_kernels(&w, "init_kernels", 0, input->cost->n_init);
    put_kernels(&w, "kernels", input->cost->n_init, plan->kernels.n);
    put_aparts(&w);
    put_blocks(&w);
    put_totals(&w);
    jsontext_end(json, '}');
}
