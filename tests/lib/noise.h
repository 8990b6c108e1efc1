/* Background load for a GPU: kernels that fill it, in a stream that waits for no other stream and
 * for which none waits. Without such a stream nothing runs. For one thread. */
#ifndef FUSEC_TESTS_NOISE_H
#define FUSEC_TESTS_NOISE_H

#include "base/arena.h"
#include "machine/target.h"

typedef struct Noise Noise;
/* NULL, with the reason in `why`, if there can be no load. */
Noise *noise_new(Arena *arena, const Target *target, const char **why);
void noise_free(Noise *noise); /* accepts NULL */
/* Enqueues `n` rounds, some 20 to 50 us each on an H200, without waiting. */
void noise_start(Noise *noise, uint32_t n);

#endif
