/* Printers of the fusion ledger (explain/ledger.h), as text and as JSON (docs/EXPLAIN.md), and the
 * fused graph as source. */
#ifndef FUSEC_EXPLAIN_EXPLAIN_H
#define FUSEC_EXPLAIN_EXPLAIN_H

#include "base/jsontext.h"
#include "explain/ledger.h"

/* Prints the ledger as text. Sizes are expressions of the dims; prices hold at the dims' values. */
void explain_print(const Ledger *ledger, Text *out);
/* Appends the ledger as one JSON object, an entry of the list of graphs. */
void explain_json(const Ledger *ledger, JsonText *json);

/* Print indented lines about one pair of `unjoined`, and about one of `blocks`. */
void explain_put_unjoined(const Ledger *ledger, uint32_t pair, Text *out);
void explain_put_block(const Ledger *ledger, uint32_t block, Text *out);
/* ` (in shared memory)`, ` (in registers)`, on a CPU ` (on the stack)`; "" of global memory. */
const char *explain_space_text(const Ledger *ledger, BufferSpace space);

/* Returns the graph with its kernels as `kernel name { ... }` blocks. Printed, it is source that
 * compiles to the same plan. A value that several kernels compute is written once in each. */
Graph *explain_fused_graph(Arena *arena, StrTab *strings, const Plan *plan);

#endif
