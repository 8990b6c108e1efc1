/* A hash table with open addressing. See inline_memo.h. */
#include "fuse/inline/inline_memo.h"

#include <string.h>

enum { FIRST_CAPACITY = 64 };

MemoEntry memo_key(NodeId node, GuardId guard, const IndexId *coords, uint32_t rank) {
    uint64_t hash = hash_mix(hash_words(coords, rank), node | (uint64_t)guard << 32);
    return (MemoEntry){
        .hash = hash ? hash : 1, .node = node, .guard = guard, .coords = coords, .rank = rank};
}

static bool is_same(const MemoEntry *a, const MemoEntry *b) {
    return a->hash == b->hash && a->node == b->node && a->guard == b->guard &&
           a->is_again == b->is_again &&
           memcmp(a->coords, b->coords, b->rank * sizeof *b->coords) == 0;
}

/* The entry of the key, or the free entry where it would be. */
static MemoEntry *place_of(const InlineMemo *memo, const MemoEntry *key) {
    for (uint64_t i = key->hash;; i++) {
        MemoEntry *entry = &memo->entries[i & (memo->capacity - 1)];
        if (!entry->hash || is_same(entry, key)) return entry;
    }
}

const MemoEntry *memo_find(const InlineMemo *memo, const MemoEntry *key) {
    const MemoEntry *found = memo->n ? place_of(memo, key) : NULL;
    return found && found->hash ? found : NULL;
}

static void grow(Arena *arena, InlineMemo *memo) {
    InlineMemo larger = {.n = memo->n,
                         .capacity = memo->capacity ? memo->capacity * 2 : FIRST_CAPACITY};
    larger.entries = arena_array(arena, MemoEntry, larger.capacity);
    for (uint32_t i = 0; i < memo->capacity; i++)
        if (memo->entries[i].hash) *place_of(&larger, &memo->entries[i]) = memo->entries[i];
    *memo = larger;
}

void memo_put(Arena *arena, InlineMemo *memo, MemoEntry entry) {
    if (memo->n * 2 >= memo->capacity) grow(arena, memo);
    *place_of(memo, &entry) = entry;
    memo->n++;
}
