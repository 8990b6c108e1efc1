/* Arenas as lists of blocks. Builds with the address sanitizer poison the memory that a rewind
 * gives up, so an access through a stale pointer fails. Other builds keep the largest block for
 * reuse. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/asan_interface.h> /* its macros do nothing without the sanitizer */

enum { FIRST_BLOCK_BYTES = 64 * 1024, ALIGN_BYTES = 16 };

typedef struct Block {
    struct Block *next;
    size_t used, capacity;
    max_align_t data[];
} Block;

struct Arena {
    Escape *escape;
    Block *head;  /* newest first; the last one is the first block */
    Block *spare; /* a kept block, or NULL */
    size_t used_bytes;
};

static void fail(const Escape *escape_const, EscapeReason reason) {
    Escape *escape = (Escape *)(uintptr_t)escape_const;
    if (!escape) abort();
    longjmp(escape->jump, (int)reason);
}

static Block *block_new(size_t capacity) {
    Block *block = malloc(sizeof(Block) + capacity);
    if (block) *block = (Block){.capacity = capacity};
    return block;
}

Arena *arena_new(Escape *escape) {
    Arena *arena = malloc(sizeof *arena);
    Block *block = block_new(FIRST_BLOCK_BYTES);
    if (!arena || !block) {
        free(arena);
        free(block);
        return NULL;
    }
    *arena = (Arena){.escape = escape, .head = block};
    return arena;
}

void arena_free(Arena *arena) {
    if (!arena) return;
    free(arena->spare);
    for (Block *block = arena->head; block;) {
        Block *next = block->next;
        free(block);
        block = next;
    }
    free(arena);
}

ArenaMark arena_mark(const Arena *arena) {
    return (ArenaMark){.block = arena->head, .used = arena->head->used, .total = arena->used_bytes};
}

static void give_up(Arena *arena, Block *block) {
#ifndef __SANITIZE_ADDRESS__
    if (!arena->spare || arena->spare->capacity < block->capacity) {
        Block *smaller = arena->spare;
        arena->spare = block;
        block = smaller;
    }
#else
    (void)arena;
#endif
    free(block);
}

/* The spare block, if it is large enough; else a new one. */
static Block *next_block(Arena *arena, size_t capacity, size_t least) {
    Block *block = arena->spare;
    if (block && block->capacity >= least) {
        arena->spare = NULL;
        *block = (Block){.capacity = block->capacity};
        return block;
    }
    block = block_new(capacity);
    return block || capacity == least ? block : block_new(least);
}

void arena_rewind(Arena *arena, ArenaMark mark) {
    while (arena->head != mark.block) {
        Block *next = arena->head->next;
        give_up(arena, arena->head);
        arena->head = next;
    }
    ASAN_POISON_MEMORY_REGION((char *)arena->head->data + mark.used, arena->head->used - mark.used);
    arena->head->used = mark.used;
    arena->used_bytes = mark.total;
}

void arena_reset(Arena *arena) {
    Block *first = arena->head;
    while (first->next) first = first->next;
    arena_rewind(arena, (ArenaMark){.block = first});
}

static size_t aligned(size_t n_bytes) {
    return (n_bytes + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
}

/* Memory that is not zeroed; NULL when there is not enough. */
static void *take(Arena *arena, size_t n_bytes) {
    if (n_bytes > SIZE_MAX / 2) return NULL;
    n_bytes = aligned(n_bytes);
    Block *block = arena->head;
    if (block->capacity - block->used < n_bytes) {
        size_t capacity = block->capacity * 2;
        if (capacity < n_bytes) capacity = n_bytes;
        Block *fresh = next_block(arena, capacity, n_bytes);
        if (!fresh) return NULL;
        fresh->next = block;
        arena->head = block = fresh;
    }
    void *p = (char *)block->data + block->used;
    block->used += n_bytes;
    arena->used_bytes += n_bytes;
    ASAN_UNPOISON_MEMORY_REGION(p, n_bytes);
    return p;
}

void *arena_try_alloc(Arena *arena, size_t n_bytes) {
    void *p = take(arena, n_bytes);
    return p ? memset(p, 0, n_bytes) : NULL;
}

void *arena_alloc(Arena *arena, size_t n_bytes) {
    void *p = arena_try_alloc(arena, n_bytes);
    if (!p) fail(arena->escape, ESCAPE_OUT_OF_MEMORY);
    return p;
}

void *arena_alloc_array(Arena *arena, size_t n_elems, size_t elem_bytes) {
    if (elem_bytes && n_elems > SIZE_MAX / 2 / elem_bytes)
        fail(arena->escape, ESCAPE_OUT_OF_MEMORY);
    return arena_alloc(arena, n_elems * elem_bytes);
}

void *arena_copy(Arena *arena, const void *data, size_t n_bytes) {
    void *p = take(arena, n_bytes);
    if (!p) fail(arena->escape, ESCAPE_OUT_OF_MEMORY);
    return n_bytes ? memcpy(p, data, n_bytes) : p;
}

/* The last allocation grows in place while its block has room. */
void *arena_extend(Arena *arena, void *data, size_t n_bytes, size_t wanted) {
    Block *block = arena->head;
    char *end = (char *)block->data + block->used;
    bool is_last = data && (char *)data + aligned(n_bytes) == end;
    size_t more = is_last && wanted < SIZE_MAX / 2 ? aligned(wanted) - aligned(n_bytes) : 0;
    if (is_last && block->capacity - block->used >= more) {
        ASAN_UNPOISON_MEMORY_REGION(end, more);
        block->used += more;
        arena->used_bytes += more;
        return data;
    }
    void *p = take(arena, wanted);
    if (!p) fail(arena->escape, ESCAPE_OUT_OF_MEMORY);
    return n_bytes ? memcpy(p, data, n_bytes) : p;
}

Escape *arena_escape(const Arena *arena) {
    return arena->escape;
}

size_t arena_used_bytes(const Arena *arena) {
    return arena->used_bytes;
}

void ice(const Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (arena->escape) {
        vsnprintf(arena->escape->message, sizeof arena->escape->message, format, args);
    } else {
        fputs("internal error: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
    }
    va_end(args);
    fail(arena->escape, ESCAPE_INTERNAL_ERROR);
    abort();
}
