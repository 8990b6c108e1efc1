/* Where to cut a kernel whose values do not fit into registers: which of them to store, so that a
 * kernel before and one after the cut hold fewer, and which to compute in both. */
#ifndef FUSEC_SEARCH_SPILL_SPLIT_H
#define FUSEC_SEARCH_SPILL_SPLIT_H

#include "machine/card.h"
#include "plan/kernel.h"

/* A cut, per node. */
typedef struct Cut {
    bool *store;    /* values that the kernel before the cut stores for those behind it */
    bool *again;    /* values of before the cut that those behind it compute anew */
    uint32_t *part; /* those behind it get a number that no other node has */
} Cut;

/* Either the cheapest cut after which both kernels fit, or the one that leaves fewest values at
 * once: kernels of few registers hide more of what they wait for. */
typedef enum { CUT_CHEAPEST, CUT_NARROWEST, CUT_AIM_COUNT } CutAim;

/* Adds to `cut` what cuts this kernel too. False: no cut lowers what is alive at once. `registers`:
 * of a thread, as estimated for the whole kernel; `dims` by symbol. Deterministic; what it looks at
 * is bounded, whatever the kernel. */
bool spill_split_kernel(Arena *arena, const Graph *graph, const Kernel *kernel, const Card *card,
                        uint32_t registers, const int64_t *dims, CutAim aim, Cut *cut);

#endif
