/* See hashids.h. */
#include "base/hashids.h"

enum { LEAST_SLOTS = 8 };

static void put(HashIds *ids, HashSlot slot) {
    uint64_t at = slot.hash;
    while (ids->slots[at & (ids->n_slots - 1)].id) at++;
    ids->slots[at & (ids->n_slots - 1)] = slot;
}

HashIds hashids_sized(Arena *arena, uint32_t n) {
    HashIds ids = {.n_slots = LEAST_SLOTS};
    while (ids.n_slots < 2 * n) ids.n_slots *= 2;
    ids.slots = arena_array(arena, HashSlot, ids.n_slots);
    return ids;
}

void hashids_add(Arena *arena, HashIds *ids, uint64_t hash, uint32_t id) {
    if (2 * (ids->n + 1) > ids->n_slots) {
        HashIds larger = {.n = ids->n, .n_slots = ids->n_slots ? 2 * ids->n_slots : LEAST_SLOTS};
        larger.slots = arena_array(arena, HashSlot, larger.n_slots);
        for (uint32_t i = 0; i < ids->n_slots; i++)
            if (ids->slots[i].id) put(&larger, ids->slots[i]);
        *ids = larger;
    }
    put(ids, (HashSlot){hash, id});
    ids->n++;
}

HashIds hashids_copy(Arena *arena, const HashIds *ids) {
    HashIds copy = *ids;
    if (ids->n_slots) copy.slots = arena_copy(arena, ids->slots, ids->n_slots * sizeof *ids->slots);
    return copy;
}
