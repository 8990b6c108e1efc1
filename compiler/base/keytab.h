/* Interns keys, which are sequences of words: equal keys have equal ids. A memo keeps its results
 * by these ids. */
#ifndef FUSEC_BASE_KEYTAB_H
#define FUSEC_BASE_KEYTAB_H

#include "base/hashids.h"
#include "base/vec.h"

/* All zeros is the empty table. */
typedef struct KeyTab {
    HashIds ids;
    Vec(VecU32) keys; /* by id - 1 */
} KeyTab;

/* The key's id, from 1 on; a new key gets the next one. The table keeps a copy of a new key on the
 * arena. */
uint32_t keytab_intern(Arena *arena, KeyTab *tab, const VecU32 *key);

#endif
