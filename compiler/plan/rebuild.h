/* Copies scalar programs from one kernel's tables to another's, with other indices for the axes. */
#ifndef FUSEC_PLAN_REBUILD_H
#define FUSEC_PLAN_REBUILD_H

#include "plan/kernel.h"

typedef struct Rebuild {
    Arena *arena;
    const ScalarTab *from;
    ScalarTab *to; /* its indices have the same dims */
    /* Per axis of `from`: its index in `to`; 0 only if nothing depends on the axis. */
    IndexId axes[MAX_AXES];
    GuardId guard;            /* in `to`: a guard for every load, besides its own */
    uint32_t buffer, instead; /* loads of the one become loads of the other */
    ScalarId *results;        /* per slot of `from`: its replacement in `to`; NULL: none */
    ScalarId *copies;         /* per scalar of `from`: its copy; NULL at the beginning */
} Rebuild;

/* Returns the copy of `id`, which may depend only on reductions that are replaced. */
ScalarId rebuild_scalar(Rebuild *rebuild, ScalarId id);
/* Returns the store with copied scalars. Its trace is still that of the other kernel. */
Store rebuild_store(Rebuild *rebuild, Store store);
/* Returns the trace with copied scalars at the same `rank` coordinates. Its operands are still
 * those of the other kernel. */
Trace rebuild_trace(Rebuild *rebuild, Trace trace, uint32_t rank);
/* Gives the kernel `to` the traces of `whole`: of the values that operands are made of, or of the
 * others. Returns per trace of `whole` the number of its copy plus 1, or 0. */
const uint32_t *rebuild_traces(Rebuild *rebuild, const Graph *graph, const Kernel *whole,
                               bool are_operands, Kernel *to);

#endif
