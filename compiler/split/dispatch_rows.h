/* Rows in two ways. A kernel of several passes over rows has a block for each, so a few long rows
 * would leave most of the machine idle. Where rows may be that few and that long, and may be others
 * too, the plan holds beside the kernel the same in kernels of one pass each, which are split over
 * the machine (split/split_reduce.h). Which of the two start follows from the extents when a run is
 * prepared: grids of the others are 0 then, and so are their temps (Kernel.choice). The bits are
 * the same. Where extents leave no choice, and of columns, a kernel of one pass that stores
 * elements as it goes is split if that has the better price.
 *
 * What is wanted as one kernel by `fuse must` is one at all extents, if it has several passes: a
 * split of one stores nothing for its own readers but partial results. */
#ifndef FUSEC_SPLIT_DISPATCH_ROWS_H
#define FUSEC_SPLIT_DISPATCH_ROWS_H

#include "pipeline/pipeline.h"

bool dispatch_pass(const Planning *p, PlanUnit *unit);

#endif
