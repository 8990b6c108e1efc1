/* Rows of matrices that wide accesses cannot follow, of what is known when a run begins and not
 * before: inputs, and outputs that are read again.
 *
 * The copy engine and asynchronous copies want rows that begin at multiples of 16 bytes. A kernel
 * copies such an operand of a product of 16-bit floats to the workspace first, zeros behind each
 * row up to a multiple of 128 bytes; that takes a few per cent of what the product takes by single
 * elements. Where extents are symbols, so are the pitch that the product reads with and the width
 * of the copy (ir/predicate.h, DimRule): where the matrix is read as it lies, the pitch is its own
 * and the copy has no elements, so that it takes no memory and no launch. */
#ifndef FUSEC_LAYOUT_PAD_DYNAMIC_H
#define FUSEC_LAYOUT_PAD_DYNAMIC_H

#include "layout/pack.h"
#include "machine/target.h"
#include "plan/plan.h"

/* Has both operands of kernel `gemm` copied as far as they need it; false where neither is, since
 * one alone would not do, or it is not worth it. */
bool pad_dynamic_copy_operands(Packing *packing, uint32_t gemm, const Target *target);

/* Moves kernels from `first` on, which have been added, to where what they read is there. */
void pad_dynamic_place_copies(Plan *plan, uint32_t first);

#endif
