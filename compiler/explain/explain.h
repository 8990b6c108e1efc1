/* The fusion ledger: every edge with verdict, reason and price, then kernels and totals, as text
 * and as JSON (docs/EXPLAIN.md). Every number is computed from the plan that the artifact holds. */
#ifndef FUSEC_EXPLAIN_EXPLAIN_H
#define FUSEC_EXPLAIN_EXPLAIN_H

#include "base/jsontext.h"
#include "cost/edge.h"
#include "explain/advice.h"

/* Both plans of one graph are scheduled, placed and priced for the same card and dims; the second
 * was made with fusion off. */
typedef struct ExplainInput {
    const PlanCost *cost, *unfused_cost;
    const Advice *advices;        /* per edge of the plan */
    const Advice *launch_advices; /* per pair of launches that are apart */
    VecBlockPrice blocks;         /* of the source, `fuse must` */
    uint64_t given_dims;          /* bit set of the dims whose values the user gave */
} ExplainInput;

/* Sizes that depend on dims are printed as expressions, prices at the dims' values. */
void explain_print(const ExplainInput *input, Arena *arena, Text *out);
/* The graph's entry in the list of graphs. */
void explain_json(const ExplainInput *input, JsonText *json);

AdviceTotals explain_totals(const ExplainInput *input);
/* ` at B = 64, T = 8`: the dims' values that kernels take. */
void explain_put_point(const ExplainInput *input, const int64_t *values, bool says_chosen,
                       Text *out);
/* Lines, indented, about a pair of plan->aparts; about one of `blocks`. */
void explain_put_unjoined(const ExplainInput *input, uint32_t pair, Text *out);
void explain_put_block(const ExplainInput *input, uint32_t block, Text *out);
/* "map", "matmul", ... */
const char *explain_form_name(KernelForm form);

/* The graph with its kernels as `kernel name { ... }` blocks: source that parses back to the same
 * plan. Values computed in several kernels are written once in each. */
Graph *explain_fused_graph(Arena *arena, StrTab *strings, const Plan *plan);

#endif
