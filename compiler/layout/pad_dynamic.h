/* Copies of operands whose rows wide accesses cannot follow and which are known only at the start
 * of a run: inputs, and outputs that are read again.
 *
 * The copy engine and asynchronous copies need rows that start at multiples of 16 bytes. For a GEMM
 * of 16-bit floats, a kernel first copies such an operand to the workspace, with zeros after each
 * row up to a multiple of 128 bytes. The copy takes a few percent of the time of a GEMM that loads
 * single elements. If extents are symbols, the GEMM's pitch and the width of the copy are symbols
 * too (ir/predicate.h, DimRule). If the matrix can be read in place, the pitch is the matrix's own
 * and the copy has no elements, so it takes no memory and no launch. */
#ifndef FUSEC_LAYOUT_PAD_DYNAMIC_H
#define FUSEC_LAYOUT_PAD_DYNAMIC_H

#include "layout/pack.h"
#include "machine/target.h"
#include "plan/plan.h"

/* Copies the operands of kernel `gemm` that need it. Returns false if no operand is copied: because
 * none needs a copy, because one of them cannot be copied, or because copies do not pay. */
bool pad_dynamic_copy_operands(Packing *packing, uint32_t gemm, const Target *target);

/* Moves the kernels from `first` on, the added copies, to the first place where their inputs
 * exist. The arena is for temporary data. */
void pad_dynamic_place_copies(Arena *arena, Plan *plan, uint32_t first);

#endif
