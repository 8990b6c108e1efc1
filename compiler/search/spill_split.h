/* Cuts a kernel whose values do not fit into registers: chooses the values to store, so that the
 * kernels before and after the cut hold fewer values, and the values to compute in both. */
#ifndef FUSEC_SEARCH_SPILL_SPLIT_H
#define FUSEC_SEARCH_SPILL_SPLIT_H

#include "machine/card.h"
#include "pipeline/decisions.h"
#include "plan/kernel.h"

/* The cheapest cut after which both kernels fit, or the cut with the fewest live values: kernels
 * with few registers have more warps and hide more latency. */
typedef enum { CUT_CHEAPEST, CUT_NARROWEST, CUT_AIM_COUNT } CutAim;

/* Adds the directives that cut the kernel: DIRECTIVE_CUT for values that the first kernel stores
 * for the second, DIRECTIVE_RECOMPUTE for values that the second kernel recomputes, and a side
 * number of its own for the nodes after the cut. Returns false if no cut lowers the number of live
 * registers. `registers`: the estimate per thread for the whole kernel; `dims`: values by symbol.
 * The function is deterministic and its work is bounded. */
bool spill_split_kernel(Arena *arena, const Graph *graph, const Kernel *kernel, const Card *card,
                        uint32_t registers, const int64_t *dims, CutAim aim, Decisions *decisions);

#endif
