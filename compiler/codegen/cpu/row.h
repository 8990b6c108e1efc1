/* What the files of the CPU's row template share: a row while its stages are emitted (row.c),
 * several rows that are taken together (row_group.c), and the tree over the chains of their
 * sums (row_tree.c). */
#ifndef FUSEC_CODEGEN_CPU_ROW_H
#define FUSEC_CODEGEN_CPU_ROW_H

#include "codegen/cpu/cpu.h"

/* What a row keeps between stages, by reduced element; of a group row after row. */
typedef struct Kept {
    const CachedValue *keep;
    CpuArray array;
} Kept;

typedef struct RowGroup RowGroup;

typedef struct Row {
    Lower *lower;
    Point point; /* of the unit: everything but the reduced axes; one lane */
    CpuSpan span;
    uint32_t lanes;
    Kept kept[MAX_CACHED_VALUES];
    uint32_t n_kept;
    int64_t kept_elems; /* of a row in the arrays of what it keeps; a multiple of lanes */
    uint32_t n_steps;   /* of a row that is taken without a loop, else 0 */
    RowGroup *group;    /* NULL: the row is by itself */
    /* The stage being emitted. */
    uint32_t stage_index;
    const Stage *stage;
    const bool *live; /* per scalar: whether the stage has it */
    CpuOrder order;
    CpuArray *chains;  /* of reduction i of the stage at level k: [k * n reduces + i] */
    bool in_registers; /* level 0 while whole rounds over its chains last */
} Row;

static inline const Reduce *row_reduce(const Row *row, uint32_t i) {
    return stage_reduce(row->lower->kernel, row->stage, i);
}

/* A row by itself: number `index` of all. */
Row row_at(const Row *model, Val index);
/* Emits a stage. The results of a row by itself are then its point's; one of a group leaves its
 * chains to group_take. */
void row_stage(Row *row, uint32_t index);

/* Groups: as many rows as they have lanes, one after the other in each stage. What only the results
 * of their reductions determine is computed for all at once, in a lane for each. */
void group_emit(const Row *model, Val begin, Val end);
/* The chains of reduction `i` of the stage at hand, in `n` vectors of the row's lanes; overwrites
 * them. */
void group_take(const Row *row, uint32_t i, Acc *parts, uint32_t n);

/* Trees. Vectors of one width are joined two by two, always of neighbouring chains; `lanes` says
 * where those of one vector are. */
enum { MAX_TREE_LANES = 16 };
typedef struct TreeLanes {
    uint32_t width, n_rows;
    uint8_t rows[MAX_TREE_LANES], chains[MAX_TREE_LANES];
} TreeLanes;
/* Of one row and the chains side by side. */
TreeLanes tree_lanes(uint32_t width);
/* Joins `n` vectors, a power of two, of neighbouring chains of the same rows, or (are_rows) of
 * neighbouring rows, to one; overwrites them. */
Acc tree_join(const Lower *lower, const Reduce *reduce, Acc *parts, uint32_t n, bool are_rows,
              TreeLanes *lanes);
/* Puts the results of as many rows as there are lanes into the order of the rows. */
Acc tree_sort(const Lower *lower, Acc acc, const TreeLanes *lanes);
/* The result of one row, whose chains are the lanes of `n` vectors; overwrites them. */
Acc tree_of_row(const Lower *lower, const Reduce *reduce, Acc *parts, uint32_t n, uint32_t width);

#endif
