/* Scalar programs copied from one kernel's tables to another's, with other indices for the axes. */
#ifndef FUSEC_PLAN_REBUILD_H
#define FUSEC_PLAN_REBUILD_H

#include "plan/kernel.h"

typedef struct Rebuild {
    Arena *arena;
    const ScalarTab *from;
    ScalarTab *to; /* its indices have the same dims */
    /* Per axis of `from`: what stands for it in `to`; 0 only where nothing depends on it. */
    IndexId axes[MAX_AXES];
    GuardId guard;     /* of `to`: holds for every load besides the load's own */
    ScalarId *results; /* per slot of `from`: what stands for its result in `to`, if anything does;
                        * NULL: nothing for any */
    ScalarId *copies;  /* per scalar of `from`, once copied; NULL at the beginning */
} Rebuild;

/* The copy of `id`, which depends on no reductions but those that something stands for. */
ScalarId rebuild_scalar(Rebuild *rebuild, ScalarId id);
IndexId rebuild_index(Rebuild *rebuild, IndexId id);
GuardId rebuild_guard(Rebuild *rebuild, GuardId id);
/* The same store, of copies. Its trace is still the other kernel's. */
Store rebuild_store(Rebuild *rebuild, Store store);
/* The same value at the same coordinates, which are `rank` ones, of copies. Its operands are still
 * the other kernel's. */
Trace rebuild_trace(Rebuild *rebuild, Trace trace, uint32_t rank);

#endif
