/* Chaining kernels: a GEMM and what reads its result at the place where it is made run in
 * the same blocks, one after the other, and the result stays on chip, or where that has no room or
 * others need it too, is read back from memory by the block that stored it. The reader may be
 * another GEMM of the same extents (the two halves of a gated unit) or reductions over whole
 * rows, where a tile holds them. GEMMs by wgmma of one lhs run at once, and what
 * passes between them stays in registers, though it may be stored besides; so do GEMMs of
 * one lhs on a CPU. It changes no bit: each kernel's order of summation is its own.
 * Requires schedules; before launches are joined. */
#ifndef FUSEC_LAUNCH_SEQUENCE_H
#define FUSEC_LAUNCH_SEQUENCE_H

#include "machine/target.h"
#include "plan/plan.h"

/* Moves readers behind the kernels they continue, links them as phases, gives them variants to go
 * with the first kernel's and takes their common buffers out of memory. */
void sequence_kernels(Arena *arena, Arena *scratch, Plan *plan, const Target *target);
/* Says of the edges whose value is on chip by now that they are not stored. */
void sequence_mark_edges(Plan *plan);

#endif
