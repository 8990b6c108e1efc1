/* What the files of sequences share: a trial of two launches, a sequence so far and the kernel that
 * may continue it (the consumer). */
#ifndef FUSEC_LAUNCH_SEQUENCE_STATE_H
#define FUSEC_LAUNCH_SEQUENCE_STATE_H

#include "launch/trial.h"

/* The product that opens the sequence. */
static inline Kernel *sequence_first(const Trial *t) {
    return trial_kernel(t, 0);
}
static inline Kernel *sequence_consumer(const Trial *t) {
    return trial_kernel(t, trial_n_kernels(t) - 1);
}
/* Sets the space of a buffer that the sequence stores and only the consumer loads; of others it
 * leaves the space as it is. */
void sequence_set_space(const Composer *c, Trial *t, uint32_t buffer, BufferSpace space);

/* Whether the kernel is a GEMM by tiles. */
bool sequence_is_tiled(const Kernel *kernel);
/* Gives the sequence and the consumer, another product of the same extents, variants that go
 * together. False: there are none. */
bool sequence_continue_gemms(const Composer *c, Trial *t);

/* Whether the consumer reduces whole rows of the product that opens the sequence, and a tile can
 * hold them. */
bool sequence_has_rows(const Composer *c, const Trial *t);
/* Gives the product variants that have whole rows, and the consumer those that go with them. False:
 * there are none. */
bool sequence_continue_rows(const Composer *c, Trial *t);
/* Whether something of the rows passes to the consumer alone, and little enough. */
bool sequence_passes_rows(const Composer *c, const Trial *t);

/* Whether the sequence, which has the consumer by now, is worth it. */
bool sequence_pays(const Composer *c, Trial *t, TrialPrices *prices);

/* GPU: whether the largest tile leaves shared memory for what would pass to the consumer. */
bool sequence_fits(const Composer *c, Trial *t);
/* GPU: of the sequence, once it has the consumer. */
void sequence_set_kept_bytes(Trial *t);

#endif
