/* Decisions: the directives that fusion must follow for each node of a graph, beyond its own rules.
 * Search makes decisions, fusion follows them. */
#ifndef FUSEC_PIPELINE_DECISIONS_H
#define FUSEC_PIPELINE_DECISIONS_H

#include "ir/graph.h"

typedef enum Directive {
#define DIRECTIVE(sym, name, doc) DIRECTIVE_##sym,
#include "pipeline/directives.def"
    DIRECTIVE_COUNT
} Directive;
_Static_assert(DIRECTIVE_COUNT <= 16, "the directives of a node are 16 bits");

typedef struct Decision {
    uint16_t directives; /* bit set */
    uint16_t side;       /* the side of spill cuts; DIRECTIVE_CUT applies between sides */
} Decision;

typedef struct Decisions {
    uint32_t n;      /* nodes */
    Decision *of;    /* per node */
    bool by_columns; /* values that rows or columns could compute go with columns */
} Decisions;

/* Makes decisions for `n` nodes, without any directive. */
Decisions *decisions_new(Arena *arena, uint32_t n);
Decisions *decisions_copy(Arena *arena, const Decisions *decisions);

/* Whether the node has the directive; without decisions (NULL) it has none. */
static inline bool decisions_ask(const Decisions *decisions, NodeId id, Directive directive) {
    return decisions && (decisions->of[id].directives >> directive & 1);
}
/* Adds the directive. Returns false if the node had it already. */
static inline bool decisions_add(Decisions *decisions, NodeId id, Directive directive) {
    bool changes = !decisions_ask(decisions, id, directive);
    decisions->of[id].directives |= (uint16_t)(1u << directive);
    return changes;
}
/* Whether any node has the directive. */
bool decisions_ask_any(const Decisions *decisions, Directive directive);

const char *directive_name(Directive directive);
const char *directive_doc(Directive directive);
/* Prints a line for each node with directives. */
void decisions_print(const Decisions *decisions, const Graph *graph, Text *out);

#endif
