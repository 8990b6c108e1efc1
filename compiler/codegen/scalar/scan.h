/* Scans: one thread, or the lanes of one vector, walk along the scanned axis in the order of
 * lowering/order.h. */
#ifndef FUSEC_CODEGEN_SCALAR_SCAN_H
#define FUSEC_CODEGEN_SCALAR_SCAN_H

#include "codegen/scalar/acc.h"

/* A walk over elements [begin, end) (index_type) of the scanned axis, at the row's point. */
typedef struct ScanWalk {
    Point *row; /* sets all axes but the scanned one, and the lanes */
    Val begin, end;
    uint32_t level; /* 0: they are part of a run; SCAN_LEVELS: they may be more than a tile */
    bool stores;    /* store the results */
} ScanWalk;

/* The kernel's only stage. */
static inline const Stage *scan_stage(const Kernel *kernel) {
    return &kernel->stages.data[0];
}
/* Computes now, at the point of a row, what does not depend on the scanned axis. */
void scan_prepare(Point *row);
/* Reductions of the stage that are combined together: one, or all that share a join. Their
 * accumulators, one for each value of a join, are `n` from `first` on of those of the stage. */
typedef struct ScanUnit {
    const Reduce *reduce; /* the first */
    uint32_t first, n;
} ScanUnit;

/* Lists the stage's units and returns their number. */
uint32_t scan_units(const Lower *lower, ScanUnit units[MAX_STAGE_VALUES]);
/* The accumulators of the stage, which the functions below take and return in arrays. */
uint32_t scan_n_accs(const Lower *lower);
/* The dtype of accumulator `i` of the unit. */
static inline Dtype scan_unit_dtype(ScanUnit unit, uint32_t i) {
    return unit.reduce->join ? unit.reduce->join->types[i] : unit.reduce->acc;
}
void scan_put_accs(Acc *to, const Acc *from, uint32_t n);
/* Accumulators of no elements. */
Acc *scan_identities(const Lower *lower, uint32_t lanes);
/* Joins each accumulator with one that follows it. */
Acc *scan_combine(const Lower *lower, const Acc *before, const Acc *after);
/* The same for the accumulators of one unit, into those of `to`, which may be `before`. */
void scan_combine_unit(const Lower *lower, ScanUnit unit, const Acc *before, const Acc *after,
                       Acc *to);
/* Walks over the elements. `before` is what comes before them. Returns what they add up to by
 * themselves. */
Acc *scan_walk(const ScanWalk *walk, const Acc *before);

#endif
