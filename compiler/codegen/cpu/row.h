/* Interfaces between the files of the CPU's row template: one row while its stages are emitted
 * (row.c), groups of rows (row_group.c), and the tree over the chains of a sum (row_tree.c). */
#ifndef FUSEC_CODEGEN_CPU_ROW_H
#define FUSEC_CODEGEN_CPU_ROW_H

#include "codegen/cpu/cpu.h"

/* A value of a row that later stages read, by reduced element; in a group, row after row. */
typedef struct Kept {
    const CachedValue *keep;
    CpuArray array;
} Kept;

typedef struct RowGroup RowGroup;

typedef struct Row {
    Lower *lower;
    Point point; /* of the unit: every axis but the reduced ones is set; a scalar point */
    CpuSpan span;
    uint32_t lanes;
    Kept kept[MAX_CACHED_VALUES];
    uint32_t n_kept;
    int64_t kept_elems; /* elements of one row in the arrays of `kept`; a multiple of lanes */
    uint32_t n_steps;   /* steps of a row without a loop, else 0 */
    RowGroup *group;    /* NULL: the row is not in a group */
    /* The state while a stage is emitted. */
    uint32_t stage_index;
    const Stage *stage;
    const bool *live; /* per scalar: whether the stage uses it */
    CpuOrder order;
    CpuArray *chains;  /* of reduction i of the stage at level k: chains[k * n reduces + i] */
    bool in_registers; /* the chains of level 0 are in registers during whole rounds */
} Row;

static inline const Reduce *row_reduce(const Row *row, uint32_t i) {
    return stage_reduce(row->lower->kernel, row->stage, i);
}

/* Row number `index`, not in a group. */
Row row_at(const Row *model, Val index);
/* Emits a stage. For a single row, its point gets the results. For a row of a group, group_take
 * gets the chains. */
void row_stage(Row *row, uint32_t index);

/* Groups of as many rows as there are lanes. In each stage the rows run one after the other. Values
 * that depend on reduction results alone are computed once for all rows, with one row per lane. */
void group_emit(const Row *model, Val begin, Val end);
/* Takes over the chains of reduction `i` of the current stage, in `n` vectors of the row's lanes.
 * Overwrites them. */
void group_take(const Row *row, uint32_t i, Acc *partials, uint32_t n);

/* Trees. Vectors of one width are joined in pairs of neighbouring chains. TreeLanes says which
 * chain and which row each lane of a vector holds. */
enum { MAX_TREE_LANES = 16 };
typedef struct TreeLanes {
    uint32_t width, n_rows;
    uint8_t rows[MAX_TREE_LANES], chains[MAX_TREE_LANES];
} TreeLanes;
/* The lanes of one row with its chains side by side. */
TreeLanes tree_lanes(uint32_t width);
/* Joins `n` vectors (a power of two) of neighbouring chains of the same rows to one; are_rows: of
 * neighbouring rows. Overwrites them. */
Acc tree_join(const Lower *lower, const Reduce *reduce, Acc *partials, uint32_t n, bool are_rows,
              TreeLanes *lanes);
/* Permutes the results of as many rows as lanes into the order of the rows. */
Acc tree_sort(const Lower *lower, Acc acc, const TreeLanes *lanes);
/* The result of one row whose chains are the lanes of `n` vectors. Overwrites them. */
Acc tree_of_row(const Lower *lower, const Reduce *reduce, Acc *partials, uint32_t n,
                uint32_t width);

#endif
