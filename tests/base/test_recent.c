/* The latest keys and their values. */
#include "base/recent.h"

#include <criterion/criterion.h>

/* The key of `n` words `number`. */
static const int *find(Arena *arena, Recent *recent, uint32_t number, uint32_t n) {
    VecU32 *key = recent_begin(recent);
    for (uint32_t i = 0; i < n; i++) vec_push(arena, key, number);
    return recent_find(recent);
}

Test(recent, values_of_the_latest_keys_are_found) {
    Arena *arena = arena_new(NULL);
    Recent *recent = recent_new(arena, sizeof(int));
    enum { N = 100 };
    for (int i = 0; i < N; i++) {
        cr_expect_null(find(arena, recent, (uint32_t)i, 3), "%d", i);
        recent_add(recent, &i);
        const int *value = find(arena, recent, (uint32_t)i, 3);
        cr_expect(value && *value == i, "%d", i);
        cr_expect_null(find(arena, recent, (uint32_t)i, 2), "%d", i);
    }
    int n_found = 0;
    for (int i = 0; i < N; i++) {
        const int *value = find(arena, recent, (uint32_t)i, 3);
        cr_expect(!value || *value == i, "%d", i);
        n_found += value != NULL;
        cr_expect(!value || i >= N / 2, "%d is forgotten", i);
    }
    cr_expect_gt(n_found, 0);
    arena_free(arena);
}
