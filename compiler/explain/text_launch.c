/* The ledger's lines about launches that are apart and about contracts. See explain.h. */
#include "explain/explain.h"

AdviceTotals explain_totals(const ExplainInput *input) {
    return (AdviceTotals){.us = input->cost->us, .n_launches = input->cost->n_launches};
}

void explain_put_point(const ExplainInput *input, const int64_t *values, bool says_chosen,
                       Text *out) {
    uint64_t chosen = says_chosen ? ~input->given_dims : 0;
    advice_put_point(out, input->cost->plan, values, chosen);
}

/* Where one launch is predicted to be slower, by the worst. */
static void put_slower(const ExplainInput *input, const Unjoined *apart, Text *out) {
    const ChangePrice *worst;
    uint32_t n_slower = advice_count_slower(&apart->prices, &worst);
    if (n_slower == 0) return;
    text_puts(out, "    one launch takes ");
    advice_put_us(out, worst->then_us);
    text_puts(out, ", two take ");
    advice_put_us(out, worst->now_us);
    explain_put_point(input, worst->dims, false, out);
    if (apart->prices.n > 1)
        text_printf(out, "; slower at %u of %u sizes priced", n_slower, apart->prices.n);
    text_puts(out, "\n");
}

void explain_put_unjoined(const ExplainInput *input, uint32_t pair, Text *out) {
    const Plan *plan = input->cost->plan;
    const Unjoined *apart = &plan->unjoined.data[pair];
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
                advice_is_slower(now.us, without.us) ? ": it makes the graph slower here" : "");
}
