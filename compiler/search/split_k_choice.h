/* Products of few tiles and a long k, of which segments go over the machine.
 *
 * The sum of an output is one chain in one block, so few tiles leave most of a GPU idle. Where the
 * price says that it pays by far, a matmul's k is divided into segments, each of which is summed as
 * ever, and whose results are summed as elements of a column. How many is a function of the
 * matmul's own extents, dtype, precision and of the target alone: the price is that of the product
 * by itself, of operands that lie as they are. So all plans have one order of summation. */
#ifndef FUSEC_SEARCH_SPLIT_K_CHOICE_H
#define FUSEC_SEARCH_SPLIT_K_CHOICE_H

#include "pipeline/pipeline.h"

/* Notes them with the graph's matmuls (Attrs.segment_elems). */
bool split_k_pass(const Planning *p, PlanUnit *unit);

#endif
