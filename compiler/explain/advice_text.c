/* Advice as English text, with the names and lines of blocks and values. See advice.h. */
#include "explain/advice.h"
#include "machine/tuning.h"

#include <ctype.h>
#include <string.h>

/* The name of the def that the source calls at the node, or NULL. */
static const char *called(const Graph *graph, const Node *node, uint32_t *n) {
    if (!node->call || node->name || !graph->source || !node->span.end) return NULL;
    const char *text = graph->source->text + node->span.begin;
    *n = 0;
    while (node->span.begin + *n < node->span.end &&
           (isalnum((unsigned char)text[*n]) || text[*n] == '_'))
        ++*n;
    return *n && text[*n] == '(' ? text : NULL;
}

static void put_value(const Graph *graph, NodeId id, Text *text) {
    uint32_t n_bytes;
    const Node *node = graph_node(graph, id);
    const char *call = called(graph, node, &n_bytes);
    if (call)
        text_printf(text, "`%.*s`", (int)n_bytes, call);
    else
        text_printf(text, "`%s`", node->name ? node->name : op_info(node->op)->name);
    if (!graph->source || !node->span.end) return;
    Position at = source_position(graph->source, node->span.begin);
    text_printf(text, " (line %u:%u)", at.line, at.column);
}

enum { MAX_NAMED = 32 }; /* the values that advice names; it counts those between */

/* Prints the nodes: `a` (line 2:3), `b` (line 4:7) and `c` (line 5:7). Of many, the first and the
 * last: `a` (line 2:3), .., 100 more and `z` (line 140:3). */
static void put_values(const Graph *graph, const NodeId *nodes, uint32_t n, Text *text) {
    uint32_t n_left_out = n > MAX_NAMED ? n - MAX_NAMED : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (n_left_out && i + 1 + n_left_out == n) {
            text_printf(text, ", %u more", n_left_out);
            i += n_left_out;
        }
        if (i) text_puts(text, i + 1 == n ? " and " : ", ");
        put_value(graph, nodes[i], text);
    }
}

/* Prints the nodes that must leave a block in the same way, one value for each call. */
static void put_freed(const Graph *graph, const VecU32 *nodes, Text *text) {
    VecU32 ends = {0};
    for (uint32_t i = 0; i < nodes->n; i++) {
        bool goes_on =
            i + 1 < nodes->n && advice_is_same_unit(graph, nodes->data[i], nodes->data[i + 1]);
        if (!goes_on) vec_push(text->arena, &ends, nodes->data[i]);
    }
    put_values(graph, ends.data, ends.n, text);
}

/* Prints the contents of a new block, one value for each call. Ops that are parts of longer
 * statements, or that are far apart, must first become statements of their own, side by side. */
static void put_block(const Graph *graph, const VecU32 *nodes, Text *text) {
    VecU32 ends = {0};
    bool is_ready = true;
    for (uint32_t i = 0; i < nodes->n; i++) {
        NodeId id = nodes->data[i];
        bool is_apart = i && id != nodes->data[i - 1] + 1;
        bool is_literal = graph_class(graph, id) == CLASS_SOURCE;
        if (is_apart) is_ready = false;
        bool is_last = i + 1 == nodes->n || nodes->data[i + 1] != id + 1;
        if (is_literal || !(is_last || advice_is_unit_end(graph, id))) continue;
        is_ready = is_ready && graph_node(graph, id)->name;
        vec_push(text->arena, &ends, id);
    }
    put_values(graph, ends.data, ends.n, text);
    if (!is_ready && ends.n > 1) text_puts(text, ", as statements side by side,");
}

void advice_put_us(Text *text, double us) {
    int digits = us >= 1000 ? 0 : us >= 100 ? 1 : us >= 10 ? 2 : 3;
    text_printf(text, "%.*f us", digits, us);
}

enum { MAX_SHOWN = 4 }; /* the edges that a message names; it counts the others */

static void put_lost(const Plan *plan, const VecU32 *lost, Text *text) {
    uint32_t n_shown = lost->n > MAX_SHOWN ? MAX_SHOWN : lost->n;
    for (uint32_t i = 0; i < n_shown; i++) {
        const Edge *edge = &plan->edges.data[lost->data[i]];
        text_puts(text, i ? ", " : "; ");
        put_value(plan->graph, edge->producer, text);
        text_puts(text, " -> ");
        if (edge->consumer == NODE_NONE)
            text_puts(text, "an output");
        else
            put_value(plan->graph, edge->consumer, text);
    }
    if (lost->n > n_shown) text_printf(text, " and %u more", lost->n - n_shown);
    if (lost->n) text_printf(text, " %s stored instead", lost->n > 1 ? "are" : "is");
}

void advice_put_point(Text *text, const Plan *plan, const int64_t *values, uint64_t chosen) {
    const DimTab *dims = plan->graph->dims;
    uint64_t used = 0;
    for (uint32_t i = 0; i < plan->kernels.n; i++) used |= plan->kernels.data[i].symbols;
    const char *before = " at ";
    for (uint32_t i = 0; i < dim_n_symbols(dims); i++) {
        if (!(used >> i & 1) || dim_symbol_info(dims, i)->rule) continue;
        text_printf(text, "%s%s = %lld%s", before, dim_symbol_info(dims, i)->name,
                    (long long)values[i], chosen >> i & 1 ? " (chosen)" : "");
        before = ", ";
    }
}

bool advice_is_slower(double changed_us, double current_us) {
    return changed_us > current_us * EXPLAIN_SLOWER;
}

uint32_t advice_count_slower(const VecChangePrice *prices, const ChangePrice **worst) {
    uint32_t n_slower = 0;
    *worst = prices->data;
    for (uint32_t i = 0; i < prices->n; i++) {
        const ChangePrice *price = &prices->data[i];
        n_slower += advice_is_slower(price->changed_us, price->current_us);
        if (price->changed_us * (*worst)->current_us > (*worst)->changed_us * price->current_us)
            *worst = price;
    }
    return n_slower;
}

/* Prints the point with the largest predicted loss, if the steps win at another point. The compiler
 * takes no plan for some sizes that is slower at others. */
static void put_losses(const Plan *plan, const Advice *advice, AdviceTotals now, Text *text) {
    const ChangePrice *worst;
    uint32_t n_slower = advice_count_slower(&advice->prices, &worst);
    if (n_slower == 0 || advice->then.us >= now.us) return;
    text_puts(text, ", but ");
    advice_put_us(text, worst->changed_us);
    text_puts(text, ", not ");
    advice_put_us(text, worst->current_us);
    text_puts(text, ",");
    advice_put_point(text, plan, worst->dims, 0);
    text_printf(text, ": slower at %u of %u sizes priced", n_slower, advice->prices.n);
}

const char *advice_price_text(Arena *arena, const Plan *plan, const Advice *advice,
                              AdviceTotals now) {
    Text text = {.arena = arena};
    if (!advice->is_priced) return NULL;
    text_puts(&text, "all then takes ");
    advice_put_us(&text, advice->then.us);
    text_printf(&text, " in %u launch%s, not ", advice->then.n_launches,
                advice->then.n_launches == 1 ? "" : "es");
    advice_put_us(&text, now.us);
    text_printf(&text, " in %u", now.n_launches);
    put_losses(plan, advice, now, &text);
    put_lost(plan, &advice->lost, &text);
    return text_str(&text);
}

static void put_step(const Graph *graph, const Advice *advice, uint32_t i, Text *text) {
    const AdviceStep *step = &advice->steps[i];
    const ReasonInfo *reason = reason_info(step->reason);
    const char *names = strstr(reason->step, "{}");
    /* The advice about params does not apply to a value that depends on an input. */
    bool has_more = reason->advice[0] && !(step->reason == REASON_OPERAND && advice->has_input);
    if (step->kind == ADVICE_OPS) {
        text_puts(text, has_more ? reason->advice : "No block of the source will do.");
        return;
    }
    if (names) {
        text_add(text, reason->step, (size_t)(names - reason->step));
        if (step->kind == ADVICE_MUST)
            put_block(graph, &step->nodes, text);
        else if (step->kind == ADVICE_FREE)
            put_freed(graph, &step->nodes, text);
        else
            put_values(graph, step->nodes.data, step->nodes.n, text);
        text_puts(text, names + 2);
    } else {
        text_puts(text, reason->step);
    }
    if (has_more) text_printf(text, " Or: %s", reason->advice);
}

const char *advice_text(Arena *arena, const Graph *graph, const Advice *advice) {
    Text text = {.arena = arena};
    for (uint32_t i = 0; i < advice->n_steps; i++) {
        if (i) text_printf(&text, "\nthen it is %s: ", reason_info(advice->steps[i].reason)->id);
        put_step(graph, advice, i, &text);
    }
    return text_str(&text);
}
