/* Row pitches of stored values.
 *
 * What a product of tensor cores reads row by row wants rows that begin at multiples of 16 bytes,
 * for the copy engine and for wide accesses, and better of 128, a line of memory. Where the extent
 * of the last axis does not give that, an intermediate, which nobody outside sees, gets rows that
 * are further apart than they are long; what lies between is never used. What such a value is made
 * of element by element gets them too, so that it can take that one's place. */
#ifndef FUSEC_LAYOUT_PAD_H
#define FUSEC_LAYOUT_PAD_H

#include "plan/operand.h"

/* Elements from row to row, of rows of `extent`; DIM_NONE where that could be too large. */
DimId pad_pitch(DimTab *dims, DimId extent, Dtype dtype);

/* Per node: elements from row to row if the value is stored as an intermediate, DIM_NONE for rows
 * side by side. `is_stored`: per node, as in Grouping. */
DimId *pad_rows(Arena *arena, const Graph *graph, const bool *is_stored);

#endif
