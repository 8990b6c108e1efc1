/* Decisions: what is asked of fusion beyond its own rules, for every node of a graph. Search makes
 * them, fusion follows them. */
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
    uint16_t side; /* on which side of cuts the node lies: DIRECTIVE_CUT counts between parts */
} Decision;

typedef struct Decisions {
    uint32_t n;      /* nodes */
    Decision *of;    /* per node */
    bool by_columns; /* what rows and columns make something for goes with columns, not with rows */
} Decisions;

/* Of `n` nodes, for which nothing is asked. */
Decisions *decisions_new(Arena *arena, uint32_t n);
Decisions *decisions_copy(Arena *arena, const Decisions *decisions);

/* Whether that is asked of the node; of no decisions (NULL) nothing is. */
static inline bool decisions_ask(const Decisions *decisions, NodeId id, Directive directive) {
    return decisions && (decisions->of[id].directives >> directive & 1);
}
/* Asks it. False: it was asked already. */
static inline bool decisions_add(Decisions *decisions, NodeId id, Directive directive) {
    bool changes = !decisions_ask(decisions, id, directive);
    decisions->of[id].directives |= (uint16_t)(1u << directive);
    return changes;
}
/* Whether it is asked of any node. */
bool decisions_ask_any(const Decisions *decisions, Directive directive);

const char *directive_name(Directive directive);
const char *directive_doc(Directive directive);
/* A line for each node that something is asked of. */
void decisions_print(const Decisions *decisions, const Graph *graph, Text *out);

#endif
