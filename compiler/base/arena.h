/* Arenas: memory by lifetime. Allocations are zeroed, 16-byte aligned and never NULL; nothing is
 * freed before its arena is. Running out of memory leaves through the arena's escape, so that the
 * library returns an error instead of killing its host. */
#ifndef FUSEC_BASE_ARENA_H
#define FUSEC_BASE_ARENA_H

#include <setjmp.h>
#include <stddef.h>

/* Why control left through an escape. Zero is what setjmp returns first. */
typedef enum { ESCAPE_OUT_OF_MEMORY = 1, ESCAPE_INTERNAL_ERROR = 2 } EscapeReason;

/* Where a failure that no caller can repair leaves to: one per compilation, set by its entry. */
typedef struct Escape {
    jmp_buf jump;
    char message[256]; /* for ESCAPE_INTERNAL_ERROR */
} Escape;

typedef struct Arena Arena;

/* A new empty arena, or NULL when memory is out. `escape` may be NULL: then running out aborts
 * (tests and tools). */
Arena *arena_new(Escape *escape);
void arena_free(Arena *arena);
/* Forgets every allocation but keeps the first block. */
void arena_reset(Arena *arena);
/* A place to go back to: rewinding gives up everything allocated since. */
typedef struct ArenaMark {
    void *block;
    size_t used, total;
} ArenaMark;
ArenaMark arena_mark(const Arena *arena);
void arena_rewind(Arena *arena, ArenaMark mark);
void *arena_alloc(Arena *arena, size_t n_bytes);
/* For sizes that the user asks for: NULL when there is no such memory. */
void *arena_try_alloc(Arena *arena, size_t n_bytes);
void *arena_copy(Arena *arena, const void *data, size_t n_bytes);
Escape *arena_escape(const Arena *arena);
/* Bytes handed out since creation or reset. */
size_t arena_used_bytes(const Arena *arena);

#define arena_array(arena, T, n) ((T *)arena_alloc_array((arena), (n), sizeof(T)))
void *arena_alloc_array(Arena *arena, size_t n_elems, size_t elem_bytes);

/* Leaves through the escape with an internal error: a broken invariant of ours, never user input.
 */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
void ice(const Arena *arena, const char *format, ...);

#endif
