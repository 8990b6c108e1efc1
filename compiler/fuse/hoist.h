/* Init steps: what depends on nothing but params runs once for a program, not at every run.
 *
 * A value can be prepared when params, literals and iotas are all that it comes from, when no dim
 * in it is left open by the params' shapes, and when it is no output: outputs are written by every
 * run. Grouping keeps such values in kernels of their own; here those kernels become init kernels
 * and what they store becomes prepared buffers. Layouts that schedules ask for are layout.h's. */
#ifndef FUSEC_FUSE_HOIST_H
#define FUSEC_FUSE_HOIST_H

#include "pipeline/pipeline.h"

/* Per node: whether it can be prepared. Params, literals and iotas are taken to be. */
bool *hoist_nodes(Arena *arena, const Graph *graph);

/* Makes init kernels of all kernels that read nothing but params and what init kernels make, write
 * no output and need no dim but those that params fix; moves them before the others. */
void hoist_plan(Arena *arena, Plan *plan);

bool hoist_pass(const Planning *p, PlanUnit *unit);

#endif
