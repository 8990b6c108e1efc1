/* A part of a graph as a graph of its own, so that search can price other plans for the part
 * without planning the whole graph again. */
#ifndef FUSEC_IR_SUBGRAPH_H
#define FUSEC_IR_SUBGRAPH_H

#include "ir/graph.h"

typedef struct Subgraph {
    Graph *graph; /* has the same blocks; some of their nodes may be missing */
    NodeId *of;   /* per node of the subgraph: the node of the whole graph */
} Subgraph;

/* Makes a subgraph of the nodes marked in `in` (per node); those marked in `out` are its outputs.
 * Other values that they read become inputs, unless they are params, literals or iotas. */
Subgraph subgraph_of(Arena *arena, const Graph *graph, const bool *in, const bool *out);

#endif
