/* Loops in prints. A graph has the nodes of all steps of an unrolled loop, and a note of them
 * (ir/steps.h). Where the steps are alike but for what the loop carries, for numbers that depend on
 * its index and for keys of params, the nodes of one step stand for those of all, and the loop is
 * printed as one. Else its nodes are printed one by one.
 *
 * A statement reads refs: nodes, by their number, and texts that no node has, from the number of
 * nodes on. */
#ifndef FUSEC_IR_REROLL_H
#define FUSEC_IR_REROLL_H

#include "ir/graph.h"
#include "ir/node_flags.h"

typedef uint32_t Ref; /* NODE_NONE: of a node that was dropped */

typedef struct RolledCarry {
    uint32_t at;     /* of the loop's carried values */
    Ref ref;         /* its name in a step */
    Ref first, next; /* before the first step, and what a step returns for it */
    NodeId last;     /* after the last step, if something reads it; or NODE_NONE */
} RolledCarry;

/* A value of the steps that something else reads: in a list with an item a step. */
typedef struct RolledList {
    NodeId node; /* of the step that is printed */
    Str name;
} RolledList;

/* Values from before the loop, one for each step, in a list of their own. */
typedef struct RolledItems {
    Str text; /* the list */
    Ref ref;  /* the item of a step */
    Str name;
} RolledItems;

/* How statements behind the loop name a node of it. */
typedef struct RolledResult {
    NodeId node;
    uint32_t list,
        step; /* item `step` of a list; or, list NODE_NONE, the name of a carried value */
} RolledResult;

typedef struct Rolled {
    const LoopSteps *loop;
    Str index;
    uint32_t step; /* whose nodes are printed */
    VecU32 nodes;  /* of that step, but for those of statements before the loop */
    Ref **args;    /* per node of `nodes`: the arguments of its statement inside the loop; while the
                    * step is printed, the node's arguments outside of the loop are kept here */
    const char **texts; /* the same of texts */
    Vec(RolledCarry) carries;
    Vec(RolledList) lists;
    Vec(RolledItems) items;
    Vec(RolledResult) results;
} Rolled;

/* Names that are taken, a hash set with open addressing. */
typedef struct NameSet {
    Str *slots;
    uint32_t n_slots; /* a power of two, never half full */
} NameSet;
NameSet nameset_new(Arena *arena, uint32_t n_names);
/* False: it is taken already. */
bool nameset_add(NameSet *set, Str name);

/* The state of a print. */
typedef struct Reroll {
    Arena *arena;
    const Graph *graph;
    NameSet *taken;
    Str *names;          /* per node: its own */
    Str *shown;          /* per node: its name in the statements that are printed next; NULL: they
                          * cannot read it */
    Ref **args;          /* per node */
    const char **texts;  /* per node: what else its statement has (step_text.h) */
    Vec(Str) more;       /* the texts of refs that are no nodes */
    LoopSteps *loops;    /* of the graph; what they carry are refs */
    NodeFlags flags;     /* per loop */
    uint32_t *at;        /* per node: its place in the step in question, plus 1 */
    uint32_t *wanted;    /* per node: the last loop, plus 1, that something else reads it of */
    NodeId *last_users;  /* per node; NODE_NONE: it is an output */
    uint32_t *starts_at; /* per node: the first loop that starts with it, plus 1 */
} Reroll;

/* `names` and `texts` as in Reroll, of which names are changed. */
Reroll *reroll_new(const Graph *graph, NameSet *taken, Str *names, const char **texts,
                   Arena *arena);
const char *reroll_text(const Reroll *r, Ref ref);
/* The loop that is printed from node `id` on; NULL: none is. `around` is the loop whose step is
 * being printed, or NULL. Statements of its nodes then read refs of one step. */
const Rolled *reroll_at(Reroll *r, NodeId id, const Rolled *around);
/* The statements that follow are behind the loop: later loops may have nodes of its steps. */
void reroll_close(Reroll *r, const Rolled *rolled);
/* Gives a param of a loop's step the name that its key says. */
void reroll_name_param(Reroll *r, NodeId id);

#endif
