/* Ids by hashes: all that were put in are found, also of one hash. */
#include "base/hashids.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

enum { N_IDS = 5000 };

/* A few hashes that many have, some of which meet in a slot. */
static uint64_t hash_of(uint32_t id) {
    return id % 3 ? id * 64ull : id % 30;
}

static void expect_all(const HashIds *ids, uint32_t most) {
    for (uint32_t id = 1; id <= most; id++) {
        uint32_t probe = 0, found, n = 0;
        while ((found = hashids_next(ids, hash_of(id), &probe))) {
            cr_assert_eq(hash_of(found), hash_of(id));
            n += found == id;
        }
        cr_assert_eq(n, 1, "%u", id);
    }
}

Test(hashids, finds_what_was_added) {
    Arena *arena = arena_new(NULL);
    HashIds ids = {0}, copy;
    uint32_t probe = 0;
    cr_expect_eq(hashids_next(&ids, 7, &probe), 0);
    for (uint32_t id = 1; id <= N_IDS / 2; id++) hashids_add(arena, &ids, hash_of(id), id);
    copy = hashids_copy(arena, &ids);
    for (uint32_t id = N_IDS / 2 + 1; id <= N_IDS; id++) hashids_add(arena, &ids, hash_of(id), id);
    expect_all(&ids, N_IDS);
    expect_all(&copy, N_IDS / 2);
    cr_expect_eq(copy.n, N_IDS / 2);
    arena_free(arena);
}

/* Small whole numbers as doubles, whose low bits are all zero, must not share a few slots. */
Test(hashids, doubles_reach_many_slots) {
    enum { N_SLOTS = 4096 };
    static bool is_taken[N_SLOTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_SLOTS; i++) {
        double number = i;
        uint64_t word;
        memcpy(&word, &number, sizeof word);
        bool *slot = &is_taken[hash_mix(hash_mix(0, 5), word) & (N_SLOTS - 1)];
        n += !*slot;
        *slot = true;
    }
    cr_expect(n > N_SLOTS / 2, "%u slots", n);
}
