/* When the work of grouping is spent. See group_state.h. */
#include "fuse/group_state.h"
#include "machine/tuning.h"

bool group_work_is_spent(const GroupingWork *work, const Graph *graph) {
    uint64_t most = FUSE_MOST_STEPS, n_bytes = graph->source ? graph->source->n_bytes : 0;
    if (n_bytes * FUSE_STEPS_OF_BYTE > most) most = n_bytes * FUSE_STEPS_OF_BYTE;
    return work && work->n_steps + work->n_scalars * FUSE_STEPS_OF_SCALAR > most;
}

bool group_is_spent(const Grouper *p) {
    return p->has_limit && !p->is_apart && group_work_is_spent(p->work, p->graph);
}
