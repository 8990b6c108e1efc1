/* A hash table of ids, for tables that intern. All zeros is the empty table. The items stay in the
 * interning table; this one knows their hashes and ids. It grows on an arena and never shrinks. */
#ifndef FUSEC_BASE_HASHIDS_H
#define FUSEC_BASE_HASHIDS_H

#include "base/arena.h"

#include <stdint.h>

typedef struct HashSlot {
    uint64_t hash;
    uint32_t id; /* 0: the slot is free */
} HashSlot;

typedef struct HashIds {
    HashSlot *slots; /* open addressing */
    uint32_t n_slots, n;
} HashIds;

/* Continues a hash by a word; begin with 0. Every bit of the word reaches the low bits, by which a
 * slot is chosen: the bits of small whole doubles are all high. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t word) {
    const uint64_t golden = 0x9E3779B97F4A7C15u; /* 2^64 over the golden ratio */
    hash = (hash ^ word) * golden;
    hash = (hash ^ hash >> 32) * golden;
    return hash ^ hash >> 32;
}

/* The hash of a sequence of words. */
static inline uint64_t hash_words(const uint32_t *words, uint32_t n) {
    uint64_t hash = n;
    for (uint32_t i = 0; i + 1 < n; i += 2)
        hash = hash_mix(hash, words[i] | (uint64_t)words[i + 1] << 32);
    return n & 1 ? hash_mix(hash, words[n - 1]) : hash;
}

/* The next id with this hash; 0 after the last. *probe must be 0 before the first call. */
static inline uint32_t hashids_next(const HashIds *ids, uint64_t hash, uint32_t *probe) {
    while (*probe < ids->n_slots) {
        const HashSlot *slot = &ids->slots[(hash + (*probe)++) & (ids->n_slots - 1)];
        if (!slot->id) return 0;
        if (slot->hash == hash) return slot->id;
    }
    return 0;
}

/* An empty table with room for n ids. */
HashIds hashids_sized(Arena *arena, uint32_t n);
/* Adds an id (not 0) that the table does not have with this hash. */
void hashids_add(Arena *arena, HashIds *ids, uint64_t hash, uint32_t id);
/* A copy with its own slots, for a copy of the interning table. */
HashIds hashids_copy(Arena *arena, const HashIds *ids);

#endif
