/* A part of a graph as a graph of its own, so that search can price other plans for the part
 * without planning the whole graph again. */
#ifndef FUSEC_IR_SUBGRAPH_H
#define FUSEC_IR_SUBGRAPH_H

#include "ir/node_flags.h"

typedef struct Subgraph {
    Graph *graph; /* has the same blocks; some of their nodes may be missing */
    NodeId *of;   /* per node of the subgraph: the node of the whole graph */
} Subgraph;

/* Flags of the whole graph's nodes. Further flags of the caller begin at SUBGRAPH_FLAG_COUNT. */
enum {
    SUBGRAPH_IN,  /* the subgraph has the node */
    SUBGRAPH_OUT, /* the node is an output, if the subgraph has it */
    SUBGRAPH_FLAG_COUNT
};

/* Makes the subgraph. Values that it reads and does not have become inputs, unless they are params,
 * literals or iotas. */
Subgraph subgraph_of(Arena *arena, const Graph *graph, NodeFlags flags);

#endif
