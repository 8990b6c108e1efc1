/* Splitting matmuls along k over the machine. */
#ifndef FUSEC_SPLIT_SPLIT_K_H
#define FUSEC_SPLIT_SPLIT_K_H

#include "plan/plan.h"

/* Appends `kernel`, a GEMM, to the plan as several kernels: a partial kernel, which is the matmul
 * with the segments of k as one more batch axis and stores its accumulators; a second partial
 * kernel if the last segment is shorter; and a finishing kernel, which sums the accumulators as
 * elements of a column (ReduceOrder) and runs the matmul's epilogue. Returns false and changes
 * nothing if the matmul has no segments (Attrs.segment_elems) or must stay one kernel. */
bool split_k_kernel(Arena *arena, Plan *plan, const Kernel *kernel);

#endif
