/* A graph with loops as graphs without, which are planned one by one:
 *
 *   subgraph 0    what is computed before loop 0, with the first values that it carries
 *   subgraph 1    a step of loop 0: from carried values to the next ones
 *   subgraph 2    what is computed between loop 0 and loop 1
 *   ...
 *
 * A step of a loop that has loops inside is several subgraphs in its turn. They stand in the order
 * in which they run. They pass values to each other in memory. A carried value has two places, and
 * steps go to and fro between them. Sources, what follows from params alone, and views of values in
 * memory are computed again in each subgraph that reads them. */
#ifndef FUSEC_IR_SEQUENCE_H
#define FUSEC_IR_SEQUENCE_H

#include "ir/loop.h"

typedef enum {
    KEPT_INPUT,  /* an input of the whole graph */
    KEPT_OUTPUT, /* an output of the whole graph */
    KEPT_TEMP,   /* memory of its own */
    KEPT_RESULT  /* what a loop carries at last: the one or the other of the two places */
} KeptKind;

/* A value that subgraphs pass to each other, or take from or give to the caller. */
typedef struct Kept {
    KeptKind kind;
    NodeId node;        /* of the whole graph, whose type it has */
    Str name;           /* of temps and results: of no other value of the graph */
    uint32_t even, odd; /* of a result: the places after an even and an odd number of steps */
    DimId count;        /* of a result: the number of steps */
    DimId offset_bytes; /* of temps and results, by sequence_place */
} Kept;

/* The value that an input or output of a subgraph is. What a loop carries is in the one place or
 * the other. */
typedef struct KeptUse {
    uint32_t value; /* the place in even steps, before them */
    uint32_t loop;  /* whose steps go to and fro, plus 1; 0: the place is always the same */
    bool is_next;   /* it is what the step stores */
} KeptUse;

typedef struct SequenceGraph {
    Graph *graph;                 /* without loops */
    uint32_t loop;                /* it is of a step of this loop, plus 1; 0: it runs once */
    Vec(KeptUse) inputs, outputs; /* of the graph */
} SequenceGraph;

typedef struct SequenceLoop {
    DimId count;     /* of steps */
    uint32_t parent; /* the loop that it is inside of, plus 1; 0: none */
    uint32_t depth;  /* the number of loops around it */
} SequenceLoop;

typedef struct Sequence {
    const Graph *whole;
    Vec(SequenceLoop) loops;
    Vec(SequenceGraph) graphs;
    Vec(Kept) values;
    DimId n_bytes; /* of all temps, by sequence_place */
} Sequence;

/* The value in a step of the loops around it: bit d of `odd` is set where the step of the loop of
 * depth d is odd. */
uint32_t sequence_value(const Sequence *sequence, const KeptUse *use, uint32_t odd);
/* The number of loops around the subgraph. */
uint32_t sequence_depth(const Sequence *sequence, uint32_t graph);
/* Cuts a graph that has loops. Names of subgraphs begin with that of the graph and are none of the
 * `n_taken` names. */
Sequence *sequence_cut(Arena *arena, const Graph *whole, const Str *taken, uint32_t n_taken);
/* Gives temps and results their places. `in_place`, per value: the value at whose place it lies,
 * plus 1; 0: it has its own. False: they could pass 2^62 bytes. */
bool sequence_place(Sequence *sequence, const uint32_t *in_place);

#endif
