/* Bounds of the masks of softmax and product, on a GPU. A mask may compare values that vary along
 * the keys, such as the number of each key's document. A row kernel in front of the launch stores
 * the least and the greatest of such a value over each block of ONLINE_BLOCK keys. By these the
 * launch knows of each tile whether the mask hides it:
 *
 *     ids    [batch, n]         [ 0 0 0 0 1 1 | 1 1 2 2 2 2 | 2 2 2 5 5 5 | .. ]
 *     least, greatest           [     0, 1    |     1, 2    |     2, 5    | .. ]
 *     [batch, (n + 127) / 128]
 *
 * Launches whose masks have the same value share its bounds. The row kernel also stores a zero,
 * from which blocks of the launch count the tiles of rows that they take: by such masks these take
 * different times. */
#ifndef FUSEC_LAUNCH_MASK_BOUNDS_H
#define FUSEC_LAUNCH_MASK_BOUNDS_H

#include "pipeline/pipeline.h"

/* Adds row kernels and their launches to the plan, and Kernel.bounds to the kernels that read their
 * results. Requires composed launches. */
bool mask_bounds_pass(const Planning *p, PlanUnit *unit);

#endif
