/* Recognises im2col (lowering/im2col.h) in the loads of a GEMM's lhs: a concat, along k, of slices
 * of one tensor, or the view `windows` of it, with or without zero padding. A slice by itself is
 * one tap. */
#ifndef FUSEC_TEMPLATE_FIND_IM2COL_H
#define FUSEC_TEMPLATE_FIND_IM2COL_H

#include "lowering/im2col.h"
#include "plan/plan.h"

/* The im2col of the kernel's lhs. Batches must be one axis with m, and taps must cover whole steps
 * of `depth` elements of k. NULL: the lhs has other loads, or exceeds the limits of the copy
 * engine. The result lives as long as the kernel's scalars. */
const Im2col *im2col_find(const Kernel *kernel, const Buffer *buffers, int64_t depth);
/* Whether the lhs may be im2col, before its axes are examined. */
bool im2col_may_be(const Kernel *kernel);

#endif
