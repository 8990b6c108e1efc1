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
/* An accumulator per reduction of the stage, with its identity. */
Acc *scan_identities(const Lower *lower, uint32_t lanes);
/* Joins each accumulator with one that follows it. */
Acc *scan_combine(const Lower *lower, const Acc *before, const Acc *after);
/* Walks over the elements. `before` is what comes before them. Returns what they add up to by
 * themselves. */
Acc *scan_walk(const ScanWalk *walk, const Acc *before);

#endif
