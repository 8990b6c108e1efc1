/* The latest few keys, which are sequences of words, and a value of each. The oldest are
 * forgotten. */
#ifndef FUSEC_BASE_RECENT_H
#define FUSEC_BASE_RECENT_H

#include "base/vec.h"

typedef struct Recent Recent;

/* `n_bytes`: of a value. The table keeps keys and values on the arena. */
Recent *recent_new(Arena *arena, size_t n_bytes);
/* Begins a key: the caller pushes its words, on the table's arena. */
VecU32 *recent_begin(Recent *recent);
/* The value of the key that was begun last, or NULL. It is valid until the next recent_add. */
const void *recent_find(Recent *recent);
/* Keeps a value of the key that was looked up last. */
void recent_add(Recent *recent, const void *value);

#endif
