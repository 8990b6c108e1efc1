/* Where to cut a kernel whose values do not fit into registers: which of them to store, so that a
 * kernel before and one after the cut hold fewer, and which to compute in both. */
#ifndef FUSEC_SEARCH_SPILL_SPLIT_H
#define FUSEC_SEARCH_SPILL_SPLIT_H

#include "machine/card.h"
#include "pipeline/decisions.h"
#include "plan/kernel.h"

/* Either the cheapest cut after which both kernels fit, or the one that leaves fewest values at
 * once: kernels of few registers hide more of what they wait for. */
typedef enum { CUT_CHEAPEST, CUT_NARROWEST, CUT_AIM_COUNT } CutAim;

/* Adds what cuts this kernel too: which values the kernel before the cut stores for those behind it
 * (DIRECTIVE_CUT), which are computed anew behind it (DIRECTIVE_RECOMPUTE), and for those behind it
 * a part that no other node has. False: no cut lowers what is alive at once. `registers`: of a
 * thread, as estimated for the whole kernel; `dims` by symbol. Deterministic; what it looks at is
 * bounded, whatever the kernel. */
bool spill_split_kernel(Arena *arena, const Graph *graph, const Kernel *kernel, const Card *card,
                        uint32_t registers, const int64_t *dims, CutAim aim, Decisions *decisions);

#endif
