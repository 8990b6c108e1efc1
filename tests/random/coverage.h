/* What a set of graphs exercised, counted in tables that a person can read: op x dtype, view x
 * consumer, cast from x to, reduction x position of its axes, where symbolic dims stand, kinds of
 * broadcast, what parts are taken of, ranks and extents, how many reductions follow one another,
 * and what several ops are together. A cell of zero is a gap, unless the op table makes it
 * impossible. Matmuls are counted by precision too. */
#ifndef FUSEC_TESTS_COVERAGE_H
#define FUSEC_TESTS_COVERAGE_H

#include "ir/graph.h"

/* Where a reduction's axes are in its argument's shape. */
typedef enum {
    POSITION_FIRST,
    POSITION_INNER,
    POSITION_LAST,
    POSITION_SEVERAL,
    POSITION_ALL,
    POSITION_COUNT
} AxisPosition;

/* Where a symbolic extent stands. */
typedef enum {
    SYMBOL_LEADING,
    SYMBOL_INNER,
    SYMBOL_LAST,
    SYMBOL_REDUCED,
    SYMBOL_CONCAT,
    SYMBOL_SLICE,
    SYMBOL_CONTRACTED,
    SYMBOL_COUNT
} SymbolPosition;

/* What several ops are together. */
typedef enum {
    PATTERN_PAIR,   /* an elementwise value of two products of one lhs */
    PATTERN_ROWS,   /* of two reductions of the same axes over tensors with nothing in common */
    PATTERN_FACTOR, /* a product's operand that is computed */
    PATTERN_COUNT
} Pattern;

/* What several slices are taken of. */
typedef enum {
    PARTS_OF_PRODUCT,
    PARTS_OF_REDUCTION,
    PARTS_OF_ROWS, /* what rests on a reduction */
    PARTS_OF_MAP,
    PARTS_COUNT
} PartsKind;

typedef enum {
    BROADCAST_NONE,
    BROADCAST_SCALAR,
    BROADCAST_RANK,
    BROADCAST_ONE,
    BROADCAST_COUNT
} BroadcastKind;

/* Consumers by class, views by op; OP_COUNT stands for being an output. */
enum {
    COVERAGE_MAX_RANK = 4,
    COVERAGE_MAX_STAGES = 3,
    EXTENT_ZERO = 0,
    EXTENT_ONE,
    EXTENT_OTHER,
    EXTENT_COUNT
};

typedef struct Coverage {
    bool without_matmul; /* its cells do not count as gaps */
    uint64_t n_graphs, n_nodes;
    uint64_t ops[OP_COUNT][DT_COUNT];
    uint64_t casts[DT_COUNT][DT_COUNT];
    uint64_t views[OP_COUNT][OP_COUNT + 1]; /* consumer: a view's op, else its class's first op */
    uint64_t reductions[OP_COUNT][POSITION_COUNT][DT_COUNT];
    uint64_t precisions[PRECISION_COUNT];
    uint64_t symbols[SYMBOL_COUNT];
    uint64_t parts[PARTS_COUNT];
    uint64_t broadcasts[BROADCAST_COUNT];
    uint64_t ranks[COVERAGE_MAX_RANK + 1];
    uint64_t extents[EXTENT_COUNT];
    uint64_t
        stages[COVERAGE_MAX_STAGES + 1]; /* reductions on the longest path; the last: or more */
    uint64_t shared;                     /* values used more than once */
    uint64_t patterns[PATTERN_COUNT];
} Coverage;

void coverage_add(Coverage *coverage, const Graph *graph);
/* Cells that could be and are not; `out` (or NULL) gets a line for each. */
uint32_t coverage_n_zero_cells(const Coverage *coverage, Text *out);
void coverage_print(const Coverage *coverage, Text *out);

/* The counts as one line of numbers, and the sum with what such a line says; false: it is none of
 * this op table. So parts that ran as processes of their own have one table. */
void coverage_write(const Coverage *coverage, Text *out);
bool coverage_merge(Coverage *coverage, const char *line);

#endif
