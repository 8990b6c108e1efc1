/* The ledger as JSON. See explain.h; docs/EXPLAIN.md is the schema. */
#include "explain/explain.h"

#include <math.h>

typedef struct Writer {
    JsonText *json;
    const Ledger *ledger;
} Writer;

static void put_place(const Writer *w, Position at) {
    if (!at.line) return;
    jsontext_number(w->json, "line", at.line);
    jsontext_number(w->json, "column", at.column);
}

static void put_value(const Writer *w, const char *name, const LedgerValue *value) {
    jsontext_begin(w->json, name, '{');
    jsontext_number(w->json, "node", value->node);
    jsontext_string(w->json, "name", value->name);
    jsontext_string(w->json, "op", value->op);
    put_place(w, value->at);
    jsontext_end(w->json, '}');
}

/* The expected bytes of a gather may be a fraction; JSON shows a whole number, as the text does. */
static void put_bytes(const Writer *w, const char *name, double bytes) {
    jsontext_number(w->json, name, nearbyint(bytes));
}

static void put_nodes(const Writer *w, const VecU32 *nodes) {
    jsontext_begin(w->json, "nodes", '[');
    for (uint32_t i = 0; i < nodes->n; i++) jsontext_number(w->json, NULL, nodes->data[i]);
    jsontext_end(w->json, ']');
}

static void put_change(const Writer *w, const Advice *advice) {
    jsontext_begin(w->json, "change", '[');
    for (uint32_t i = 0; i < advice->n_steps; i++) {
        const AdviceStep *step = &advice->steps[i];
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "do", advice_kind_name(step->kind));
        jsontext_string(w->json, "rule", reason_info(step->reason)->id);
        put_nodes(w, &step->nodes);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_ends(const Writer *w, const LedgerEdge *edge) {
    put_value(w, "from", &edge->from);
    if (!edge->output) {
        put_value(w, "to", &edge->to);
        return;
    }
    jsontext_begin(w->json, "to", '{');
    jsontext_string(w->json, "output", edge->output);
    jsontext_end(w->json, '}');
}

/* Prints dims with their values. NULL: the priced dims, with whether the user gave them. */
static void put_dims(const Writer *w, const int64_t *values) {
    jsontext_begin(w->json, "dims", '[');
    for (uint32_t i = 0; i < w->ledger->dims.n; i++) {
        const LedgerDim *dim = &w->ledger->dims.data[i];
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "name", dim->name);
        jsontext_number(w->json, "value", (double)(values ? values[dim->symbol] : dim->value));
        if (!values) jsontext_bool(w->json, "given", dim->is_given);
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
        put_dims(w, price->dims);
        jsontext_number(w->json, then, price->changed_us);
        jsontext_number(w->json, now, price->current_us);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

/* Prints the totals of the changed graph; null if they are not known. */
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
        put_ends(w, &w->ledger->edges.data[advice->lost.data[i]]);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
    put_prices(w, &advice->prices, "us", "us_now");
    jsontext_end(w->json, '}');
}

/* Prints the advice. `fallback`: the text if the advice has no step, or NULL. */
static void put_advice(const Writer *w, const LedgerAdvice *given, const char *fallback) {
    jsontext_string(w->json, "advice", given->text ? given->text : fallback);
    jsontext_bool(w->json, "tried", given->advice->is_tried);
    put_change(w, given->advice);
    put_then(w, given->advice);
}

static void put_reason(const Writer *w, const ReasonInfo *reason) {
    jsontext_string(w->json, "rule", reason->id);
    jsontext_string(w->json, "reason", reason->text);
}

static void put_edge(const Writer *w, const LedgerEdge *edge) {
    const EdgeCost *cost = &edge->cost;
    bool is_priced = edge->is_fused || cost->unfused_us == 0;
    jsontext_begin(w->json, NULL, '{');
    put_ends(w, edge);
    jsontext_string(w->json, "verdict", edge->is_fused ? "fused" : "stored");
    put_reason(w, edge->reason);
    put_advice(w, &edge->advice, NULL);
    put_bytes(w, "bytes", edge->size.n);
    put_bytes(w, "saved_bytes", cost->saved_bytes);
    jsontext_number(w->json, "fused_us", is_priced ? cost->fused_us : (double)NAN);
    jsontext_number(w->json, "unfused_us", cost->unfused_us);
    jsontext_end(w->json, '}');
}

static const char *const spaces[] = {
    [BUFFER_GLOBAL] = "global", [BUFFER_SHARED] = "shared", [BUFFER_REGISTER] = "register"};

static void put_buffers(const Writer *w, const char *list, const LedgerBuffers *buffers) {
    jsontext_begin(w->json, list, '[');
    for (uint32_t i = 0; i < buffers->list.n; i++) {
        const LedgerBuffer *buffer = &buffers->list.data[i];
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "buffer", buffer->name);
        put_bytes(w, "bytes", buffer->n_bytes);
        jsontext_string(w->json, "space", spaces[buffer->space]);
        if (buffer->replaces) jsontext_string(w->json, "in_place_of", buffer->replaces);
        jsontext_end(w->json, '}');
    }
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

static void put_kernel(const Writer *w, const LedgerKernel *kernel) {
    jsontext_begin(w->json, NULL, '{');
    jsontext_string(w->json, "name", kernel->name);
    put_place(w, kernel->at);
    jsontext_string(w->json, "form", kernel->form->title);
    jsontext_number(w->json, "launch", kernel->launch);
    jsontext_string(w->json, "mode", kernel->mode->word);
    jsontext_string(w->json, "variant", kernel->variant);
    jsontext_number(w->json, "passes", kernel->n_passes);
    jsontext_bool(w->json, "partial", kernel->is_partial);
    jsontext_bool(w->json, "starts", kernel->cost.starts);
    jsontext_number(w->json, "alternatives", kernel->n_alternatives);
    put_nodes(w, &kernel->nodes);
    put_buffers(w, "reads", &kernel->reads);
    put_buffers(w, "writes", &kernel->writes);
    put_cost(w, &kernel->cost);
    jsontext_end(w->json, '}');
}

static void put_kernels(const Writer *w, const char *list, uint32_t first, uint32_t end) {
    jsontext_begin(w->json, list, '[');
    for (uint32_t i = first; i < end; i++) put_kernel(w, &w->ledger->kernels.data[i]);
    jsontext_end(w->json, ']');
}

static void put_unjoined(const Writer *w) {
    jsontext_begin(w->json, "apart", '[');
    for (uint32_t i = 0; i < w->ledger->unjoined.n; i++) {
        const LedgerUnjoined *apart = &w->ledger->unjoined.data[i];
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "kernel", apart->kernel);
        jsontext_string(w->json, "other", apart->other);
        put_reason(w, apart->reason);
        put_advice(w, &apart->advice, apart->reason->advice);
        put_prices(w, &apart->prices, "together_us", "apart_us");
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_blocks(const Writer *w) {
    jsontext_begin(w->json, "contracts", '[');
    for (uint32_t i = 0; i < w->ledger->blocks.n; i++) {
        const LedgerBlock *block = &w->ledger->blocks.data[i];
        jsontext_begin(w->json, NULL, '{');
        put_place(w, block->at);
        jsontext_number(w->json, "us_without", block->without.us);
        jsontext_number(w->json, "launches_without", block->without.n_launches);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

/* Of a graph that was rewritten. */
static void put_softmaxes(const Writer *w) {
    jsontext_begin(w->json, "softmaxes", '[');
    for (uint32_t i = 0; i < w->ledger->softmaxes.n; i++) {
        const LedgerSoftmax *softmax = &w->ledger->softmaxes.data[i];
        jsontext_begin(w->json, NULL, '{');
        jsontext_string(w->json, "op", softmax->value.op);
        jsontext_string(w->json, "name", softmax->value.name);
        put_place(w, softmax->value.at);
        jsontext_string(w->json, "left", softmax->why_left);
        if (!softmax->why_left) jsontext_number(w->json, "bound", softmax->bound);
        jsontext_end(w->json, '}');
    }
    jsontext_end(w->json, ']');
}

static void put_totals(const Writer *w) {
    const Ledger *l = w->ledger;
    jsontext_begin(w->json, "totals", '{');
    if (l->n_refused) jsontext_number(w->json, "advice_not_tried", l->n_refused);
    jsontext_number(w->json, "launches", l->fused.n_launches);
    jsontext_number(w->json, "unfused_launches", l->unfused.n_launches);
    put_bytes(w, "least_bytes", l->least_bytes);
    put_bytes(w, "bytes", l->fused.dram_bytes);
    put_bytes(w, "unfused_bytes", l->unfused.dram_bytes);
    jsontext_number(w->json, "us", l->fused.us);
    jsontext_number(w->json, "unfused_us", l->unfused.us);
    put_bytes(w, "workspace_bytes", l->fused.workspace_bytes);
    put_bytes(w, "unfused_workspace_bytes", l->unfused.workspace_bytes);
    put_bytes(w, "peak_bytes", l->fused.peak_bytes);
    put_bytes(w, "unfused_peak_bytes", l->unfused.peak_bytes);
    jsontext_number(w->json, "init_us", l->init_us);
    put_bytes(w, "init_bytes", l->init_bytes);
    put_bytes(w, "prepared_bytes", l->prepared.n);
    jsontext_end(w->json, '}');
}

void explain_json(const Ledger *ledger, JsonText *json) {
    const Writer w = {.json = json, .ledger = ledger};
    jsontext_begin(json, NULL, '{');
    jsontext_string(json, "name", ledger->graph);
    put_dims(&w, NULL);
    jsontext_begin(json, "edges", '[');
    for (uint32_t i = 0; i < ledger->edges.n; i++) put_edge(&w, &ledger->edges.data[i]);
    jsontext_end(json, ']');
    put_kernels(&w, "init_kernels", 0, ledger->n_init);
    put_kernels(&w, "kernels", ledger->n_init, ledger->kernels.n);
    put_unjoined(&w);
    put_blocks(&w);
    put_softmaxes(&w);
    put_totals(&w);
    jsontext_end(json, '}');
}
