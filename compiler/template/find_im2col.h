/* Finding windows over images (lowering/im2col.h) in what the lhs of a product loads: a concat,
 * along k, of slices of one tensor, padded with zeros or not. */
#ifndef FUSEC_TEMPLATE_FIND_IM2COL_H
#define FUSEC_TEMPLATE_FIND_IM2COL_H

#include "lowering/im2col.h"
#include "plan/plan.h"

/* The batches must be one axis with m, and taps go over whole steps of `depth` elements of k. NULL
 * where it loads anything else, or so that the copy engine's limits are in the way. It lives as
 * long as the kernel's scalars. */
const Im2col *im2col_find(const Kernel *kernel, const Buffer *buffers, int64_t depth);
/* Whether it may be one, but for the axes. */
bool im2col_may_be(const Kernel *kernel);

#endif
