/* Splitting long products over the machine. */
#ifndef FUSEC_SPLIT_SPLIT_K_H
#define FUSEC_SPLIT_SPLIT_K_H

#include "plan/plan.h"

/* Appends `kernel`, a GEMM, to the plan: as a partial kernel, the product with segments of k
 * as one more batch axis, which stores its accumulators, another for a last segment that is
 * shorter, and a finishing one, which sums them as elements of a column (ReduceOrder) and has all
 * that followed the product. False, and nothing has changed: its matmul has no segments
 * (Attrs.segment_elems), or is to stay one kernel. */
bool split_k_kernel(Arena *arena, Plan *plan, const Kernel *kernel);

#endif
