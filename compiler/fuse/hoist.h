/* Init kernels: work that depends on params only runs once per program, not in every run.
 *
 * A value can be prepared if it depends only on params, literals and iotas, if the shapes of params
 * fix all its dims, and if it is no output (each run writes its outputs). Grouping keeps such
 * values in kernels of their own. This pass makes init kernels of these kernels and prepared
 * buffers of their results. layout.h adds the layouts that schedules need. */
#ifndef FUSEC_FUSE_HOIST_H
#define FUSEC_FUSE_HOIST_H

#include "fuse/grouping_flags.h"
#include "pipeline/pipeline.h"

/* Makes grouping's flags with the outputs (GROUPING_OUTPUT) and the values that can be prepared
 * (GROUPING_CAN_PREPARE). Params, literals and iotas count as prepared. Literals, and what ops that
 * are exact on every target make of them element by element, are numbers (GROUPING_NUMBER). */
NodeFlags hoist_flags(Arena *arena, const Graph *graph);

/* Makes init kernels of all kernels that read only params and results of init kernels, write no
 * output and need only dims that params fix. Moves them before the other kernels. */
void hoist_plan(Arena *arena, Plan *plan);

bool hoist_pass(const Planning *p, PlanUnit *unit);

#endif
