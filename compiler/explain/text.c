/* The ledger as text. See explain.h. */
#include "explain/explain.h"

#include <string.h>

/* A time as it was printed before. */
typedef struct PrintedTime {
    double us;
    char text[32];
} PrintedTime;

enum { N_PRINTED = 64 };

typedef struct Printer {
    const Ledger *ledger;
    Text *out;
    PrintedTime *printed; /* N_PRINTED, by the time's bits; NULL: none are kept */
} Printer;

static void print_us(const Printer *p, const char *before, double us) {
    text_puts(p->out, before);
    uint64_t bits;
    memcpy(&bits, &us, sizeof bits);
    PrintedTime *known =
        p->printed ? &p->printed[(bits ^ bits >> 23 ^ bits >> 46) % N_PRINTED] : NULL;
    size_t from = p->out->n_bytes;
    if (known && known->us == us && *known->text) {
        text_puts(p->out, known->text);
        return;
    }
    advice_put_us(p->out, us);
    size_t n = p->out->n_bytes - from;
    if (!known || n >= sizeof known->text) return;
    known->us = us;
    memcpy(known->text, p->out->data + from, n + 1);
}

/* Prints `h (line 7:3)`, or the op if the value has no name. */
static void print_value(const Printer *p, const LedgerValue *value) {
    text_puts(p->out, value->name ? value->name : value->op);
    if (!value->at.line) return;
    text_puts(p->out, " (line ");
    text_put_count(p->out, value->at.line);
    text_puts(p->out, ":");
    text_put_count(p->out, value->at.column);
    text_puts(p->out, ")");
}

/* Prints how to do `what`, such as "fuse them": a line for each step, then the price. */
static void print_advice(const Printer *p, const char *what, const LedgerAdvice *given) {
    const Advice *advice = given->advice;
    bool is_left = advice->steps[advice->n_steps - 1].kind == ADVICE_OPS;
    text_printf(p->out, "    to %s%s", what,
                !advice->is_tried ? ": "
                : is_left         ? ", which no `fuse must` block does: "
                                  : ", as tried: ");
    for (const char *at = given->text; *at; at++) {
        text_add(p->out, at, 1);
        if (*at == '\n') text_puts(p->out, "      ");
    }
    if (given->price) text_printf(p->out, "\n      %s", given->price);
    text_puts(p->out, "\n");
}

static void print_edge(const Printer *p, const LedgerEdge *edge) {
    const EdgeCost *cost = &edge->cost;
    text_puts(p->out, "  ");
    print_value(p, &edge->from);
    text_puts(p->out, edge->output ? " -> output " : " -> ");
    if (edge->output)
        text_puts(p->out, edge->output);
    else
        print_value(p, &edge->to);
    text_puts(p->out, edge->is_fused ? ": fused  [" : ": stored  [");
    text_puts(p->out, edge->reason->id);
    text_puts(p->out, "]  ");
    text_puts(p->out, edge->reason->text);
    text_puts(p->out, ", ");
    text_puts(p->out, edge->size.text);
    text_puts(p->out, " bytes");
    if (cost->unfused_us > 0) {
        print_us(p, "; apart ", cost->unfused_us);
        if (cost->fused_us > 0) print_us(p, ", together ", cost->fused_us);
    }
    text_puts(p->out, "\n");
    if (!edge->is_fused && !edge->output) print_advice(p, "fuse them", &edge->advice);
}

const char *explain_space_text(const Ledger *ledger, BufferSpace space) {
    switch (space) {
    case BUFFER_GLOBAL:
        return "";
    case BUFFER_SHARED:
        return ledger->card->has->blocks ? " (in shared memory)" : " (on the stack)";
    case BUFFER_REGISTER:
        return " (in registers)";
    }
    return "";
}

static void print_buffer(const Printer *p, const LedgerBuffer *buffer) {
    text_printf(p->out, " %s", buffer->name);
    text_puts(p->out, explain_space_text(p->ledger, buffer->space));
    if (buffer->replaces) text_printf(p->out, " (in place of %s)", buffer->replaces);
    if (buffer->copy_of) text_printf(p->out, " (a copy of %s)", buffer->copy_of);
    if (buffer->copy) text_printf(p->out, " (its copy %s where there is one)", buffer->copy);
}

static void print_buffers(const Printer *p, const char *verb, const LedgerBuffers *buffers) {
    text_printf(p->out, "    %s", verb);
    for (uint32_t i = 0; i < buffers->list.n; i++) print_buffer(p, &buffers->list.data[i]);
    text_printf(p->out, ": %s bytes\n", buffers->moved.text);
}

static void print_price(const Printer *p, const KernelCost *cost) {
    print_us(p, "    takes ", cost->us);
    print_us(p, ": launch ", cost->launch_us);
    print_us(p, ", memory ", cost->memory_us);
    print_us(p, ", arithmetic ", cost->arithmetic_us);
    if (cost->tensor_us > 0) print_us(p, ", tensor cores ", cost->tensor_us);
    if (cost->spill_us > 0) print_us(p, ", register spills ", cost->spill_us);
    text_printf(p->out, "; %.0f bytes from and to memory\n",
                cost->read_bytes + cost->written_bytes);
    const Pressure *pressure = &cost->pressure;
    if (!p->ledger->card->has->blocks) return;
    text_printf(p->out, "    about %u registers a thread%s, %u bytes shared, occupancy %.0f %%\n",
                pressure->registers, pressure->spills ? ", more than there are" : "",
                pressure->shared_bytes, 100 * pressure->occupancy);
}

static void print_kernel(const Printer *p, const LedgerKernel *kernel) {
    text_printf(p->out, "  %s: %s%s", kernel->name, kernel->form->title,
                kernel->is_tiled ? " in tiles" : "");
    if (kernel->form->reduces)
        text_printf(p->out, ", %u %s%s", kernel->n_passes,
                    kernel->n_passes == 1 ? "pass" : "passes",
                    kernel->is_partial ? ", partial results of segments" : "");
    if (kernel->is_joined) text_puts(p->out, kernel->mode->text);
    text_puts(p->out, "\n");
    print_buffers(p, "reads", &kernel->reads);
    print_buffers(p, "writes", &kernel->writes);
    if (kernel->cost.starts)
        print_price(p, &kernel->cost);
    else
        text_puts(p->out, "    does not start at these extents\n");
    if (kernel->condition)
        text_printf(p->out, "    where %s, %s: the next %u start in its place\n", kernel->condition,
                    kernel->form->multiplies ? "copies of operands pay" : "rows are few and long",
                    kernel->n_alternatives);
}

static void print_kernels(const Printer *p, const char *title, uint32_t first, uint32_t end) {
    text_printf(p->out, "%s:\n", title);
    for (uint32_t i = first; i < end; i++) print_kernel(p, &p->ledger->kernels.data[i]);
}

void explain_put_unjoined(const Ledger *ledger, uint32_t pair, Text *out) {
    const Printer p = {.ledger = ledger, .out = out};
    const LedgerUnjoined *apart = &ledger->unjoined.data[pair];
    text_printf(out, "  %s and %s: [%s]  %s\n", apart->other, apart->kernel, apart->reason->id,
                apart->reason->text);
    if (apart->n_slower) {
        print_us(&p, "    one launch takes ", apart->slower->changed_us);
        print_us(&p, ", two take ", apart->slower->current_us);
        text_puts(out, apart->slower_at);
        if (apart->prices.n > 1)
            text_printf(out, "; slower at %u of %u sizes priced", apart->n_slower, apart->prices.n);
        text_puts(out, "\n");
    }
    if (apart->advice.text)
        print_advice(&p, "start them together", &apart->advice);
    else
        text_printf(out, "    to be one launch: %s\n", apart->reason->advice);
}

void explain_put_block(const Ledger *ledger, uint32_t block, Text *out) {
    const Printer p = {.ledger = ledger, .out = out};
    const LedgerBlock *given = &ledger->blocks.data[block];
    const LedgerTotals *now = &ledger->fused;
    text_printf(out, "  `fuse must` (line %u:%u)", given->at.line, given->at.column);
    print_us(&p, ": ", now->us);
    text_printf(out, " in %u launch%s with it", now->n_launches, now->n_launches == 1 ? "" : "es");
    print_us(&p, ", ", given->without.us);
    text_printf(out, " in %u without%s\n", given->without.n_launches,
                advice_is_slower(now->us, given->without.us) ? ": it makes the graph slower here"
                                                             : "");
}

static void print_softmax(const Printer *p, const LedgerSoftmax *softmax) {
    text_printf(p->out, "  `%s`", softmax->value.op);
    if (softmax->value.name) text_printf(p->out, " that makes `%s`", softmax->value.name);
    if (softmax->value.at.line)
        text_printf(p->out, " (line %u:%u)", softmax->value.at.line, softmax->value.at.column);
    if (softmax->why_left)
        text_printf(p->out, ": left, %s\n", softmax->why_left);
    else
        text_printf(p->out,
                    ": rewritten, within %.3g of the sum of weight times |value|, before it is "
                    "rounded\n",
                    softmax->bound);
}

static void print_total(const Printer *p, const char *what, const char *bytes) {
    text_printf(p->out, "  %-34s %s bytes\n", what, bytes);
}

static void print_pair(const Printer *p, const char *what, double fused, double unfused) {
    text_printf(p->out, "  %-34s %.0f bytes (%.0f without fusion)\n", what, fused, unfused);
}

static void print_totals(const Printer *p) {
    const Ledger *l = p->ledger;
    const LedgerTotals *fused = &l->fused, *unfused = &l->unfused;
    text_puts(p->out, "totals:\n");
    text_printf(p->out, "  %-34s %u (%u without fusion)\n", "launches", fused->n_launches,
                unfused->n_launches);
    text_printf(p->out, "  %-34s %u fused, %u stored\n", "edges between ops", l->n_fused,
                l->n_stored);
    print_total(p, "in and out of kernels", fused->moved.text);
    print_total(p, "the same without fusion", unfused->moved.text);
    print_total(p, "least: inputs and outputs once", l->least_text);
    print_total(p, "workspace", l->workspace_text);
    print_total(p, "workspace without reuse", l->unshared_text);
    text_printf(p->out, "priced for %s%s\n", l->card->name, l->priced_at);
    text_printf(p->out, "  %-34s", "time");
    print_us(p, " ", fused->us);
    print_us(p, " (", unfused->us);
    text_puts(p->out, " without fusion)\n");
    print_pair(p, "of that past the cache, in DRAM", fused->dram_bytes, unfused->dram_bytes);
    text_printf(p->out, "  %-34s %.0f bytes\n", "least, in DRAM", l->least_bytes);
    print_pair(p, "peak of all tensors", fused->peak_bytes, unfused->peak_bytes);
    if (l->n_refused)
        text_printf(p->out, "  %-34s %u plans left out: the graph is large\n", "advice not tried",
                    l->n_refused);
    if (!l->n_init) return;
    text_printf(p->out, "  %-34s %u", "init steps, not in a run", l->n_init_steps);
    print_us(p, ", ", l->init_us);
    text_printf(p->out, ", %.0f bytes\n", l->init_bytes);
    print_total(p, "prepared by them", l->prepared.text);
}

void explain_print(const Ledger *ledger, Text *out) {
    PrintedTime printed[N_PRINTED] = {{0}};
    const Printer p = {.ledger = ledger, .out = out, .printed = printed};
    text_printf(out, "graph %s\nedges:\n", ledger->graph);
    for (uint32_t i = 0; i < ledger->edges.n; i++) print_edge(&p, &ledger->edges.data[i]);
    if (ledger->n_init) print_kernels(&p, "init steps", 0, ledger->n_init);
    print_kernels(&p, "kernels", ledger->n_init, ledger->kernels.n);
    if (ledger->unjoined.n)
        text_puts(out, "separate launches though neither waits for the other:\n");
    for (uint32_t i = 0; i < ledger->unjoined.n; i++) explain_put_unjoined(ledger, i, out);
    if (ledger->blocks.n) text_puts(out, "contracts:\n");
    for (uint32_t i = 0; i < ledger->blocks.n; i++) explain_put_block(ledger, i, out);
    if (ledger->softmaxes.n) text_puts(out, "softmaxes:\n");
    for (uint32_t i = 0; i < ledger->softmaxes.n; i++)
        print_softmax(&p, &ledger->softmaxes.data[i]);
    print_totals(&p);
}
