/* Decisions: the directives that fusion must follow for each node of a graph, beyond its own rules.
 * Search makes decisions, fusion follows them. */
#ifndef FUSEC_PIPELINE_DECISIONS_H
#define FUSEC_PIPELINE_DECISIONS_H

#include "ir/node_flags.h"

typedef enum Directive {
#define DIRECTIVE(sym, name, doc) DIRECTIVE_##sym,
#include "pipeline/directives.def"
    DIRECTIVE_COUNT
} Directive;
_Static_assert(DIRECTIVE_COUNT <= MAX_NODE_FLAGS, "a directive is a flag of a node");

typedef struct Decisions {
    NodeFlags directives; /* of Directive */
    uint16_t *side; /* per node: the side of spill cuts; DIRECTIVE_CUT applies between sides */
    /* Per node, for inputs and outputs of a part of a graph, which are temporaries of the whole:
     * one more than the axis that lies innermost (layout/order.h); 0: row-major. */
    uint32_t *inner;
    bool by_columns; /* values that rows or columns could compute go with columns */
} Decisions;

/* Makes decisions for `n` nodes, without any directive. */
Decisions *decisions_new(Arena *arena, uint32_t n);
Decisions *decisions_copy(Arena *arena, const Decisions *decisions);
bool decisions_equal(const Decisions *a, const Decisions *b); /* of one graph; both may be NULL */

/* Whether the node has the directive; without decisions (NULL) it has none. */
static inline bool decisions_ask(const Decisions *decisions, NodeId id, Directive directive) {
    return decisions && node_has(decisions->directives, id, directive);
}
/* Adds the directive. Returns false if the node had it already. */
static inline bool decisions_add(Decisions *decisions, NodeId id, Directive directive) {
    return node_add(decisions->directives, id, directive);
}

const char *directive_name(Directive directive);
const char *directive_doc(Directive directive);
/* Prints a line for each node with directives. */
void decisions_print(const Decisions *decisions, const Graph *graph, Text *out);

#endif
