/* Work for a GPU beside what is tested: kernels that fill it, in a stream that waits for none and
 * that none waits for. Where there is no such stream nothing runs. One thread. */
#ifndef FUSEC_TESTS_NOISE_H
#define FUSEC_TESTS_NOISE_H

#include "base/arena.h"
#include "machine/target.h"

typedef struct Noise Noise;
/* NULL where it cannot be; `why` says so then. */
Noise *noise_new(Arena *arena, const Target *target, const char **why);
void noise_free(Noise *noise); /* accepts NULL */
/* Enqueues `n` rounds, some 20 to 50 us each on an H200, and does not wait for them. */
void noise_start(Noise *noise, uint32_t n);

#endif
