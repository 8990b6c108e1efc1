/* Arenas: memory by lifetime. Allocations are zeroed, 16-byte aligned and never NULL. Memory is
 * freed together with its arena. Running out of memory leaves through the arena's escape, so that
 * the library returns an error instead of ending its host process. */
#ifndef FUSEC_BASE_ARENA_H
#define FUSEC_BASE_ARENA_H

#include <setjmp.h>
#include <stddef.h>

/* The reason of an escape. setjmp first returns zero. */
typedef enum { ESCAPE_OUT_OF_MEMORY = 1, ESCAPE_INTERNAL_ERROR = 2 } EscapeReason;

/* The target of a failure that no caller can handle. There is one per compilation, set by its
 * entry. */
typedef struct Escape {
    jmp_buf jump;
    char message[256]; /* for ESCAPE_INTERNAL_ERROR */
} Escape;

typedef struct Arena Arena;

/* A new empty arena, or NULL when memory is out. `escape` may be NULL (tests and tools): running
 * out of memory then aborts. */
Arena *arena_new(Escape *escape);
void arena_free(Arena *arena);
/* Frees all allocations but keeps the first block. */
void arena_reset(Arena *arena);
/* A mark to rewind to. Rewinding frees all later allocations. */
typedef struct ArenaMark {
    void *block;
    size_t used, total;
} ArenaMark;
ArenaMark arena_mark(const Arena *arena);
void arena_rewind(Arena *arena, ArenaMark mark);
void *arena_alloc(Arena *arena, size_t n_bytes);
/* For sizes chosen by the user: NULL when there is not enough memory. */
void *arena_try_alloc(Arena *arena, size_t n_bytes);
/* The allocation of `n_bytes` at `data`, or a copy of it, with room for `wanted` bytes. The bytes
 * beyond `n_bytes` are not zeroed. */
void *arena_extend(Arena *arena, void *data, size_t n_bytes, size_t wanted);
void *arena_copy(Arena *arena, const void *data, size_t n_bytes);
Escape *arena_escape(const Arena *arena);
/* Bytes allocated since creation or reset. */
size_t arena_used_bytes(const Arena *arena);

#define arena_array(arena, T, n) ((T *)arena_alloc_array((arena), (n), sizeof(T)))
void *arena_alloc_array(Arena *arena, size_t n_elems, size_t elem_bytes);

/* Leaves through the escape with an internal error. For broken invariants only, never for wrong
 * input. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
void ice(const Arena *arena, const char *format, ...);

#endif
