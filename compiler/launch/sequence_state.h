/* What the files of chaining share: a launch that grows, and the kernel that may continue it. */
#ifndef FUSEC_LAUNCH_SEQUENCE_STATE_H
#define FUSEC_LAUNCH_SEQUENCE_STATE_H

#include "plan/launch.h"
#include "search/search.h"

typedef struct Sequence {
    Arena *arena, *scratch;
    Plan *plan;
    const Target *target;
    DimTab *dims;
    CostPoints points;
    uint32_t first, next; /* kernels: the one that opens the launch, and the one to continue it */
    Launch launch;        /* so far */
    bool has_chip;        /* there is room for what passes and is needed nowhere else */
} Sequence;

/* Whether no kernel but those of the launch and the reader needs the buffer. */
bool sequence_is_private(const Sequence *c, uint32_t buffer);
/* Sets whether a buffer that the launch makes and nothing but the reader takes is on chip. */
void sequence_set_on_chip(Sequence *c, uint32_t buffer, bool is_on_chip);

/* Whether the source wants a value of the kernel kept apart. */
bool sequence_is_apart(const Plan *plan, const Kernel *kernel);
/* Whether the kernel computes something of the value that is in the block of contracts. */
bool sequence_has_user(const Graph *graph, const Kernel *kernel, NodeId value, uint32_t block);

/* Whether the kernel is a GEMM by tiles. */
bool sequence_is_tiled(const Kernel *kernel);
/* Gives the launch and the reader, another product of the same extents, variants that go together.
 * False: there are none, and theirs are as they were. */
bool sequence_continue_gemms(Sequence *c);

/* Whether the reader reduces whole rows of the product that opens the launch, and a tile can hold
 * them. */
bool sequence_has_rows(const Sequence *c);
/* Gives the product variants that have whole rows, and the reader those that go with them. False:
 * there are none; then variants are to be put back. */
bool sequence_continue_rows(Sequence *c);
/* Whether something of the rows passes to the reader alone, and little enough. */
bool sequence_passes_rows(const Sequence *c);

/* What the launch and the reader take by themselves, behind what is ahead of them. `saved`: kernels
 * from `first` to `next`, as they were. */
Prices sequence_price_apart(const Sequence *c, const Kernel *saved);
/* Whether the launch is worth it, which the reader is part of by now. */
bool sequence_pays(const Sequence *c, const Prices *apart);

/* GPU: whether the largest tile leaves room on chip for what would pass to the reader. */
bool sequence_fits(Sequence *c);
/* GPU: of the launch, once it is linked. */
void sequence_set_smem_bytes(Sequence *c);

#endif
