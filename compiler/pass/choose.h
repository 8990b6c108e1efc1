/* Choosing between plans by price: where several passes over rows in one kernel, or one that needs
 * more registers than there are, are predicted to take longer than kernels of their own, fusion
 * stops short. */
#ifndef FUSEC_CHOOSE_H
#define FUSEC_CHOOSE_H

#include "base/diag.h"
#include "pass/cost.h"

/* The plan for the target: fuse_graph's, or one with reductions apart or kernels cut in two
 * that is predicted to be faster by more than 2 %, at the dims that cost_dims chooses. Without
 * layouts, not scheduled. Arenas and errors as for fuse_graph. */
Plan *choose_plan(Arena *arena, Arena *scratch, const Graph *graph, const Target *target,
                  Diags *diags);

#endif
