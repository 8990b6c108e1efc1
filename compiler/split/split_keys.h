/* Splitting softmax and product along the keys. */
#ifndef FUSEC_SPLIT_SPLIT_KEYS_H
#define FUSEC_SPLIT_SPLIT_KEYS_H

#include "plan/plan.h"

/* Appends kernel `k` of `whole`, of the form `online`, to the plan as two kernels if it may have at
 * most ONLINE_FEW_ROWS rows and more than ONLINE_PART_KEYS keys. The partial kernel has the parts
 * of the keys (online_part_keys) as one more batch axis. For each part and row it stores the sums
 * of the products, the greatest score and the sum of the weights. The finishing kernel is of the
 * form `online` too: its keys are the parts, its scores the greatest scores of the parts, its
 * values their sums, and a part counts as often as the sum of its weights.
 *
 * If there may be more rows, the kernel stays as the default of a choice. A matmul that makes
 * scores for this kernel alone then has two versions too, so that either may share a launch with
 * its reader.
 *
 * Returns false and changes nothing if the kernel is not split at any extents. */
bool split_keys_kernel(Arena *arena, Plan *plan, const Kernel *whole, uint32_t n, uint32_t k);

#endif
