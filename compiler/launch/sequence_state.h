/* Shared by the files of sequences: a trial of two launches, the sequence so far and the kernel
 * that may continue it (the consumer). */
#ifndef FUSEC_LAUNCH_SEQUENCE_STATE_H
#define FUSEC_LAUNCH_SEQUENCE_STATE_H

#include "launch/trial.h"

/* The GEMM that starts the sequence. */
static inline Kernel *sequence_first(const Trial *t) {
    return trial_kernel(t, 0);
}
static inline Kernel *sequence_consumer(const Trial *t) {
    return trial_kernel(t, trial_n_kernels(t) - 1);
}
/* Sets the space of the buffer if the sequence stores it and only the consumer loads it; otherwise
 * does nothing. */
void sequence_set_space(const Composer *c, Trial *t, uint32_t buffer, BufferSpace space);

/* Whether the kernel is a tiled GEMM. */
bool sequence_is_tiled(const Kernel *kernel);
/* Gives the sequence and the consumer, another GEMM of the same extents, matching variants. Returns
 * false if there are none. */
bool sequence_continue_gemms(const Composer *c, Trial *t);

/* Whether the consumer reduces whole rows of the sequence's first GEMM, and a tile can hold the
 * rows. */
bool sequence_has_rows(const Composer *c, const Trial *t);
/* Gives the GEMM variants with whole rows, and the consumer matching variants. Returns false if
 * there are none. */
bool sequence_continue_rows(const Composer *c, Trial *t);
/* Whether values of the rows pass to the consumer only, and take few enough bytes. */
bool sequence_passes_rows(const Composer *c, const Trial *t);

/* Whether the sequence with the consumer pays. */
bool sequence_pays(const Composer *c, Trial *t, TrialPrices *prices);

/* GPU: whether the largest tile leaves shared memory for the values that would pass to the
 * consumer. */
bool sequence_fits(const Composer *c, Trial *t);
/* GPU: sets Variant.kept_shared_bytes of the sequence with the consumer. */
void sequence_set_kept_bytes(Trial *t);

#endif
