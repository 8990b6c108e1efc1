/* Split-k: matmuls with few tiles and a long k, whose k is divided into segments over the whole
 * GPU.
 *
 * One block computes the sum of an output, so few tiles leave most of a GPU idle. If the price says
 * that it pays by far, k is divided into segments. Each segment is summed as usual, and the results
 * are summed as elements of a column. The number of segments is a function of the matmul's own
 * extents, dtype and precision and of the target only: the price is that of the matmul alone, with
 * operands as they are. So all plans have the same order of summation. */
#ifndef FUSEC_SEARCH_SPLIT_K_SEGMENTS_H
#define FUSEC_SEARCH_SPLIT_K_SEGMENTS_H

#include "pipeline/pipeline.h"

/* Sets Attrs.segment_elems of the graph's matmuls. */
bool split_k_pass(const Planning *p, PlanUnit *unit);

#endif
