/* Layouts: copies of GEMM operands in the element order that the GEMM reads. Init kernels copy
 * params once; runs copy inputs if they need it (layout/pad_dynamic.h).
 *
 * An init kernel computes an operand that depends on params alone into a prepared buffer, and the
 * GEMM reads that buffer:
 * - on a CPU, the operand whose elements are the columns of the register tile, in panels of the
 *   tile's width: element (k, c) of panel p lies at (p * depth + k) * width + c; missing columns
 *   are zeros;
 * - on a GPU, a matrix whose rows do not start at multiples of 16 bytes; each row is followed by
 *   zeros up to the next multiple of 128 bytes. The reader finds the same elements at other
 *   addresses, so no bit changes. */
#ifndef FUSEC_LAYOUT_LAYOUT_H
#define FUSEC_LAYOUT_LAYOUT_H

#include "pipeline/pipeline.h"

bool layout_pass(const Planning *p, PlanUnit *unit);

#endif
