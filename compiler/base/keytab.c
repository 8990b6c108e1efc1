/* See keytab.h. */
#include "base/keytab.h"

uint32_t keytab_intern(Arena *arena, KeyTab *tab, const VecU32 *key) {
    size_t n_bytes = key->n * sizeof *key->data;
    uint64_t hash = hash_words(key->data, key->n);
    uint32_t probe = 0, id;
    while ((id = hashids_next(&tab->ids, hash, &probe)) != 0) {
        const VecU32 *known = &tab->keys.data[id - 1];
        if (known->n == key->n && memcmp(known->data, key->data, n_bytes) == 0) return id;
    }
    VecU32 copy = {arena_copy(arena, key->data, n_bytes), key->n, key->n};
    vec_push(arena, &tab->keys, copy);
    hashids_add(arena, &tab->ids, hash, tab->keys.n);
    return tab->keys.n;
}
