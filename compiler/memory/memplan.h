/* The memory plan: places temporaries in one workspace and reuses memory by lifetime.
 *
 * Requires a fused plan in launch order. Sets Buffer.offset_bytes, Plan.workspace,
 * Plan.peak_bytes_unshared (bytes) and Buffer.in_place_of. Two temporaries share bytes in two cases
 * only: the last launch that touches one of them runs before the first launch that touches the
 * other; or a kernel alone in its launch is the last to read one of them and stores the other in
 * its place, element by element (plan/in_place.h). If two sizes cannot be compared for all values
 * of the dims, such as T and T*T, temporaries are placed so that both orders are right, and the
 * size of the workspace is the largest of several expressions. */
#ifndef FUSEC_MEMORY_MEMPLAN_H
#define FUSEC_MEMORY_MEMPLAN_H

#include "pipeline/pipeline.h"

/* Returns false if all temporaries together could exceed 2^62 bytes. */
bool memplan_place(Arena *arena, Plan *plan);

bool place_pass(const Planning *p, PlanUnit *unit);

#endif
