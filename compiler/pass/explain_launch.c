/* The ledger's lines about launches that are apart and about contracts. See explain.h. */
#include "pass/explain.h"

/* Of the price: less is no difference to tell of. */
static const double SLOWER = 1.001;

AdviceTotals explain_totals(const ExplainInput *input) {
    return (AdviceTotals){.us = input->cost->us, .n_launches = input->cost->n_launches};
}

void explain_put_point(const ExplainInput *input, const int64_t *values, bool says_chosen,
                       Text *out) {
    uint64_t chosen = says_chosen ? ~input->given_dims : 0;
    advice_put_point(out, input->cost->plan, values, chosen);
}

/* Where one launch is predicted to be slower, by the worst. */
static void put_slower(const ExplainInput *input, const Apart *apart, Text *out) {
    uint32_t n_slower = 0, worst = 0;
    for (uint32_t i = 0; i < apart->prices.n; i++) {
        const ApartPrice *price = &apart->prices.data[i], *most = &apart->prices.data[worst];
        n_slower += price->together_us > price->apart_us * SLOWER;
        if (price->together_us * most->apart_us > most->together_us * price->apart_us) worst = i;
    }
    if (n_slower == 0) return;
    text_puts(out, "    one launch takes ");
    advice_put_us(out, apart->prices.data[worst].together_us);
    text_puts(out, ", two take ");
    advice_put_us(out, apart->prices.data[worst].apart_us);
    explain_put_point(input, apart->prices.data[worst].dims, false, out);
    if (apart->prices.n > 1)
        text_printf(out, "; slower at %u of %u sizes priced", n_slower, apart->prices.n);
    text_puts(out, "\n");
}

void explain_put_apart(const ExplainInput *input, uint32_t pair, Text *out) {
    const Plan *plan = input->cost->plan;
    const Apart *apart = &plan->aparts.data[pair];
    const ReasonInfo *reason = reason_info(apart->reason);
    const Advice *advice = input->launch_advices ? &input->launch_advices[pair] : NULL;
    text_printf(out, "  %s and %s: [%s]  %s\n", apart->other, apart->kernel, reason->id,
                reason->text);
    put_slower(input, apart, out);
    if (advice && advice->n_steps)
        advice_put(out, plan, "start them together", advice, explain_totals(input));
    else
        text_printf(out, "    what would have to be different: %s\n", reason->advice);
}

void explain_put_block(const ExplainInput *input, uint32_t block, Text *out) {
    const Graph *graph = input->cost->plan->graph;
    const BlockPrice *price = &input->blocks.data[block];
    AdviceTotals now = explain_totals(input), without = price->without;
    Position at =
        source_position(graph->source, graph->fixed_kernels.data[price->block].span.begin);
    text_printf(out, "  `fuse must` (line %u:%u): ", at.line, at.column);
    advice_put_us(out, now.us);
    text_printf(out, " in %u launch%s with it, ", now.n_launches, now.n_launches == 1 ? "" : "es");
    advice_put_us(out, without.us);
    text_printf(out, " in %u without%s\n", without.n_launches,
                now.us > without.us * SLOWER ? ": it makes the graph slower here" : "");
}
