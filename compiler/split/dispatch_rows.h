/* Two versions of a row kernel. A kernel of several passes gives each row one block, so a few long
 * rows would leave most of the machine idle; and a core does not keep costly values of a row that
 * is longer than its cache. If rows may be few and long, or so long, at some extents, the plan
 * holds the kernel and, as the alternative, the same work in kernels of one pass each, which are
 * split over the machine (split/split_reduce.h). The extents decide at the start of a run which
 * version runs: the grids and temporaries of the other version have size 0 (Kernel.choice). Both
 * versions have the same bits. If extents allow one version only, the plan has no choice. A kernel
 * of one pass that stores elements, and a column kernel, is split if the split has the better
 * price.
 *
 * `fuse must` keeps a kernel of several passes whole at all extents. A kernel of one pass may be
 * split, because the split adds only partial results. */
#ifndef FUSEC_SPLIT_DISPATCH_ROWS_H
#define FUSEC_SPLIT_DISPATCH_ROWS_H

#include "pipeline/pipeline.h"

bool dispatch_pass(const Planning *p, PlanUnit *unit);

#endif
