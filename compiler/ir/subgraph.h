/* A part of a graph as a graph of its own, for pricing other plans for that part without planning
 * the whole graph again. */
#ifndef FUSEC_IR_SUBGRAPH_H
#define FUSEC_IR_SUBGRAPH_H

#include "ir/graph.h"

typedef struct Subgraph {
    Graph *graph; /* in the same blocks, of which some nodes may be missing */
    NodeId *of;   /* per node of it: the node of the whole graph */
} Subgraph;

/* The nodes marked in `in` (per node), of which those marked in `out` are outputs. What they read
 * of others is an input, unless it is a param, a literal or an iota. */
Subgraph subgraph_of(Arena *arena, const Graph *graph, const bool *in, const bool *out);

#endif
