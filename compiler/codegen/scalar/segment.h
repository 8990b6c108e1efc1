/* Reductions of segments: a result reduces the run of elements whose number is that of its segment.
 * The numbers ascend, so two binary searches find the run. Its elements are combined one after the
 * other, in ascending order, on every target. */
#ifndef FUSEC_CODEGEN_SCALAR_SEGMENT_H
#define FUSEC_CODEGEN_SCALAR_SEGMENT_H

#include "codegen/scalar/acc.h"

typedef struct SegmentRun {
    Val begin, end; /* index_type, along the reduced axis; there are no elements if end <= begin */
} SegmentRun;
/* The run of the point's segment. The point needs no axis on which no number depends. */
SegmentRun segment_find(Point *point);
/* Reduces the run to the results at the point, and stores what the kernel stores. */
void segment_reduce(Point *point, SegmentRun run);

#endif
