/* Row pitches of stored values.
 *
 * A tensor core GEMM wants operand rows that start at multiples of 16 bytes, for the copy engine
 * and for wide accesses, or better at multiples of 128 bytes, a cache line. If the last extent of a
 * temporary does not give such rows, the temporary gets a row pitch larger than its row; nothing
 * reads the gap between rows. A value from which it is computed element by element gets the same
 * pitch, so that one can be stored in place of the other. */
#ifndef FUSEC_LAYOUT_PAD_H
#define FUSEC_LAYOUT_PAD_H

#include "ir/node_flags.h"
#include "plan/operand.h"

/* Whether the node is a matmul whose operands tensor cores multiply. */
bool layout_has_tensor_cores(const Graph *graph, const Node *gemm);

/* The pitch, in elements, of rows of `extent` elements; DIM_NONE if it could be too large. */
DimId pad_pitch(DimTab *dims, DimId extent, Dtype dtype);

/* Per node: the row pitch in elements if the value is stored as a temporary, or DIM_NONE for
 * contiguous rows. `stored` is the flag of stored values; `inner` is the result of order_axes. */
DimId *pad_rows(Arena *arena, const Graph *graph, NodeFlags flags, unsigned stored,
                const uint32_t *inner);

#endif
