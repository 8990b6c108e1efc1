/* The memory plan: places temps in one workspace, reusing space by lifetime.
 *
 * Requires a fused plan in launch order. Sets Buffer.offset_bytes, Plan.workspace and
 * Plan.peak_bytes_unshared, and Buffer.takes_over. Two temps share bytes only when the last launch
 * that touches the one runs before the first that touches the other, or where a kernel alone in its
 * launch, the last that reads the one, stores the other in its place element by element
 * (plan/in_place.h). Where sizes cannot be compared for all values of the dims, as T and T*T, temps
 * lie so that both orders are right, and the workspace is the largest of several expressions. */
#ifndef FUSEC_MEMORY_MEMPLAN_H
#define FUSEC_MEMORY_MEMPLAN_H

#include "pipeline/pipeline.h"

/* False when the temps together could pass 2^62 bytes. */
bool memplan_place(Arena *arena, Plan *plan);

bool place_pass(const Planning *p, PlanUnit *unit);

#endif
