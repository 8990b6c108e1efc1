/* The fusion ledger as text: every edge with verdict and reason, then kernels and totals in bytes.
 * Every number is computed from the plan that the artifact holds. */
#ifndef FUSEC_EXPLAIN_H
#define FUSEC_EXPLAIN_H

#include "ir/kernel.h"

/* `unfused` is the plan of the same graph with fusion off, for comparison, or NULL. Sizes that
 * depend on dims are printed as expressions. */
void explain_print(const Plan *plan, const Plan *unfused, Arena *arena, Text *out);

/* The graph with its kernels as `kernel name { ... }` blocks: source that parses back to the same
 * plan. Values computed in several kernels are written once in each. */
Graph *explain_fused_graph(Arena *arena, StrTab *strings, const Plan *plan);

#endif
