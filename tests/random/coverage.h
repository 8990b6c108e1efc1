/* The coverage of a set of graphs, counted in readable tables: op x dtype, view x consumer, cast
 * from x to, reduction x position of its axes, positions of symbolic dims, kinds of broadcast,
 * sources of slices, ranks and extents, numbers of consecutive reductions, and patterns of several
 * ops. A zero cell is a gap, unless the op table makes it impossible. Matmuls are counted by
 * precision, and those with `out=` by dtype. */
#ifndef FUSEC_TESTS_COVERAGE_H
#define FUSEC_TESTS_COVERAGE_H

#include "ir/graph.h"

/* The position of a reduction's axes in its argument's shape. */
typedef enum {
    POSITION_FIRST,
    POSITION_INNER,
    POSITION_LAST,
    POSITION_SEVERAL,
    POSITION_ALL,
    POSITION_COUNT
} AxisPosition;

/* The position of a symbolic extent. */
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

/* Patterns of several ops. */
typedef enum {
    PATTERN_PAIR,   /* an elementwise op on two matmuls with a common lhs (dual GEMM) */
    PATTERN_ROWS,   /* an op on two reductions over the same axes of unrelated tensors */
    PATTERN_FACTOR, /* a matmul with a computed operand */
    PATTERN_COUNT
} Pattern;

/* The value of which several slices are taken. */
typedef enum {
    PARTS_OF_PRODUCT,
    PARTS_OF_REDUCTION,
    PARTS_OF_ROWS, /* a value computed from a reduction */
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

/* Consumers by class, views by op; OP_COUNT stands for an output. */
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
    uint64_t views[OP_COUNT][OP_COUNT + 1]; /* consumer: a view's op, else the first op of its
                                             * class */
    uint64_t reductions[OP_COUNT][POSITION_COUNT][DT_COUNT];
    uint64_t precisions[PRECISION_COUNT];
    uint64_t wide_products[DT_COUNT]; /* matmuls by their operands' dtype, with another result */
    uint64_t symbols[SYMBOL_COUNT];
    uint64_t parts[PARTS_COUNT];
    uint64_t broadcasts[BROADCAST_COUNT];
    uint64_t ranks[COVERAGE_MAX_RANK + 1];
    uint64_t extents[EXTENT_COUNT];
    uint64_t stages[COVERAGE_MAX_STAGES + 1]; /* reductions on the longest path; the last entry: or
                                               * more */
    uint64_t shared;                          /* values used more than once */
    uint64_t patterns[PATTERN_COUNT];
} Coverage;

void coverage_add(Coverage *coverage, const Graph *graph);
/* The number of possible cells that are zero; `out` (or NULL) gets a line for each. */
uint32_t coverage_n_zero_cells(const Coverage *coverage, Text *out);
void coverage_print(const Coverage *coverage, Text *out);

/* coverage_write prints the counts as one line of numbers, and coverage_merge adds such a line.
 * False: the line is of another op table. So runs in several processes have one table. */
void coverage_write(const Coverage *coverage, Text *out);
bool coverage_merge(Coverage *coverage, const char *line);

#endif
