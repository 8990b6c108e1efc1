/* A small deterministic random number generator for tests: equal seeds give equal tests on every
 * machine. */
#ifndef FUSEC_TESTS_RNG_H
#define FUSEC_TESTS_RNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Rng {
    uint64_t state;
} Rng;

/* Any seed, 0 included. */
static inline Rng rng_new(uint64_t seed) {
    return (Rng){.state = seed};
}

/* 64 random bits (SplitMix64: a counter through a mixing function). */
static inline uint64_t rng_bits(Rng *rng) {
    uint64_t z = rng->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Uniform in [0, n), n >= 1. */
static inline uint32_t rng_below(Rng *rng, uint32_t n) {
    return (uint32_t)((rng_bits(rng) >> 32) * n >> 32);
}

/* Uniform in [lo, hi], both included. */
static inline int64_t rng_between(Rng *rng, int64_t lo, int64_t hi) {
    return lo + (int64_t)(rng_bits(rng) % ((uint64_t)(hi - lo) + 1));
}

/* Uniform in [lo, hi). */
static inline double rng_uniform(Rng *rng, double lo, double hi) {
    return lo + (hi - lo) * ((double)(rng_bits(rng) >> 11) * 0x1p-53);
}

static inline bool rng_chance(Rng *rng, uint32_t percent) {
    return rng_below(rng, 100) < percent;
}

#endif
