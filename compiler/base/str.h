/* Interned strings (equal strings have equal pointers), and text buffers. */
#ifndef FUSEC_BASE_STR_H
#define FUSEC_BASE_STR_H

#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define STR_PRINTF(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))
#else
#define STR_PRINTF(format_index, first_arg)
#endif

/* An interned, NUL-terminated string; compare by pointer. */
typedef const char *Str;

typedef struct StrTab StrTab;

StrTab *strtab_new(Arena *arena);
Str strtab_intern(StrTab *tab, const char *text, size_t n_bytes);
Str strtab_intern_z(StrTab *tab, const char *text);

/* Formats text on the arena. */
STR_PRINTF(2, 3) char *str_format(Arena *arena, const char *format, ...);
STR_PRINTF(2, 0) char *str_vformat(Arena *arena, const char *format, va_list args);

/* A growing text on an arena. `data` is NUL-terminated as soon as anything was added. */
typedef struct Text {
    Arena *arena;
    char *data;
    size_t n_bytes, capacity;
} Text;

/* Makes room for `n_bytes` more bytes and returns the end of the text. */
char *text_reserve(Text *text, size_t n_bytes);
void text_add(Text *text, const char *bytes, size_t n_bytes);
void text_puts(Text *text, const char *s);
/* Adds `n` in decimal. */
void text_put_count(Text *text, uint64_t n);
STR_PRINTF(2, 3) void text_printf(Text *text, const char *format, ...);
/* The text so far; "" when nothing was added. */
const char *text_str(const Text *text);

/* FNV-1a, continued from `hash` (begin with STR_HASH_SEED). */
#define STR_HASH_SEED 14695981039346656037u
uint64_t hash_bytes(uint64_t hash, const void *data, size_t n_bytes);

#endif
