/* Keys of words. */
#include "base/keytab.h"

#include <criterion/criterion.h>

Test(keytab, equal_keys_have_equal_ids) {
    Arena *arena = arena_new(NULL);
    KeyTab tab = {.keys = {0}};
    uint32_t words[] = {7, 7, 8};
    for (uint32_t n = 0; n <= 3; n++)
        cr_expect_eq(keytab_intern(arena, &tab, &(VecU32){words, n, n}), n + 1, "%u words", n);
    uint32_t again[] = {7, 7, 8}, other[] = {7, 8, 7};
    cr_expect_eq(keytab_intern(arena, &tab, &(VecU32){again, 3, 3}), 4u);
    cr_expect_eq(keytab_intern(arena, &tab, &(VecU32){other, 3, 3}), 5u);
    words[0] = 9; /* the table has its own copy */
    cr_expect_eq(keytab_intern(arena, &tab, &(VecU32){again, 2, 2}), 3u);
    arena_free(arena);
}
