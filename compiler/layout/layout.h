/* Layouts: operands copied into the order in which a GEMM wants them, params once, by init
 * steps, inputs in the runs that need it (layout/pad_dynamic.h).
 *
 * An operand that depends on nothing but params is computed by an init kernel into a prepared
 * buffer, and the GEMM reads it from there:
 * - on a CPU the operand whose elements lie side by side in the register tile, in panels of the
 *   tile's width: element (k, c) of panel p at (p * depth + k) * width + c, zeros where there is no
 *   column;
 * - on a GPU a matrix whose rows do not begin at multiples of 16 bytes, with zeros behind each row
 *   up to the next multiple of 128 bytes.
 * What reads it finds the same elements at other addresses, so no bit changes. */
#ifndef FUSEC_LAYOUT_LAYOUT_H
#define FUSEC_LAYOUT_LAYOUT_H

#include "pipeline/pipeline.h"

bool layout_pass(const Planning *p, PlanUnit *unit);

#endif
