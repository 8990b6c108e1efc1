/* Rows of matrices that wide accesses cannot follow, of what is known when a run begins and not
 * before: inputs, and outputs that are read again.
 *
 * The copy engine and asynchronous copies want rows that begin at multiples of 16 bytes. A kernel
 * copies such a factor of a product of 16-bit floats to the workspace first, zeros behind each row
 * up to a multiple of 128 bytes; that takes a few per cent of what the product takes by single
 * elements. Where extents are symbols, so are the pitch that the product reads with and the width
 * of the copy (ir/dim.h, DimRule): where the matrix is read as it lies, the pitch is its own and
 * the copy has no elements, so that it takes no memory and no launch. */
#ifndef FUSEC_LAYOUT_PAD_DYNAMIC_H
#define FUSEC_LAYOUT_PAD_DYNAMIC_H

#include "machine/target.h"
#include "layout/pack.h"

/* How a factor lies, if it is a load without conditions and runs along k or its own axis. */
typedef struct Rows {
    bool is_plain;
    bool fit;             /* rows begin at multiples of 16 bytes, whatever the symbols are */
    uint32_t axis, inner; /* its own, and the one that it runs along */
    DimId extent;         /* of the latter */
    uint32_t elem_bytes;
} Rows;
Rows rows_of_factor(const Kernel *gemm, bool is_left);

/* Has both factors of kernel `gemm` copied as far as they need it; false where neither is, since
 * one alone would not do, or it is not worth it. */
bool run_pitch_copy_factors(Packing *packing, uint32_t gemm, const Target *target);

/* Moves kernels from `first` on, which have been added, to where what they read is there. */
void run_pitch_place_copies(Plan *plan, uint32_t first);

#endif
