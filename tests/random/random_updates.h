/* Random programs of updates: whole tensors and parts, of inputs and of values that kernels
 * compute, several of one tensor, by itself, by products and in loops. */
#ifndef FUSEC_TESTS_RANDOM_UPDATES_H
#define FUSEC_TESTS_RANDOM_UPDATES_H

#include "base/arena.h"

#include <stdint.h>

/* The program of that seed, as source text. */
const char *random_updates_source(Arena *arena, uint64_t seed);

#endif
