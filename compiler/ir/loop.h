/* Loops whose number of steps is a dim. In a graph a loop has no region of its own:
 *
 *   c = loop_carry(x)                    the carried value, x in the first step
 *   d = ..                               made from c: a value of the loop
 *   y = loop_result([c], [d], n, 0)      c after n steps, each of which puts d in its place
 *
 * What depends on a carry is computed in every step, and everything else once: where an op stands
 * says nothing. Results of one loop have the same arguments, but for which carried value they are.
 * A value of a loop is read by its loop alone. A loop that depends on a carry of another one is
 * inside it, and runs in every step of it; its result is a value of the outer loop. Planning cuts a
 * graph with loops into graphs without (ir/sequence.h). */
#ifndef FUSEC_IR_LOOP_H
#define FUSEC_IR_LOOP_H

#include "ir/graph.h"

enum { MAX_LOOPS_DEEP = 4 }; /* inside each other */

/* Of a loop_result: which carried value it is, and the number of steps. */
static inline uint32_t loop_at(const Node *result) {
    return (uint32_t)result->attrs.axis;
}
static inline DimId loop_count(const Node *result) {
    return result->attrs.per_axis->begin[0];
}

typedef struct GraphLoop {
    NodeId result; /* the first */
    uint32_t n_carried;
    const NodeId *carries, *next; /* n_carried each */
    DimId count;                  /* steps */
    uint32_t parent;              /* the loop that it is inside of, plus 1, a later one; 0: none */
} GraphLoop;

typedef struct GraphLoops {
    Vec(GraphLoop) loops; /* by their first results, so that a loop comes after those it reads */
    uint32_t *of;         /* per node: the innermost loop whose value it is, plus 1; 0: of none.
                           * Carries are values of their loop, results are not */
} GraphLoops;

/* The loops of a graph that has passed loops_problem. */
GraphLoops loops_find(Arena *arena, const Graph *graph);
/* Why the loop ops of the graph are no loops; NULL: they are, or there are none. */
const char *loops_problem(Arena *arena, const Graph *graph);
bool graph_has_loops(const Graph *graph);
/* Whether `loop` - 1 is loop `outer` - 1, or inside it. */
bool loops_are_inside(const GraphLoops *loops, uint32_t loop, uint32_t outer);

#endif
