/* Interning by an open-addressed table, and text buffers that double. */
#include "base/str.h"

#include <stdio.h>
#include <string.h>

struct StrTab {
    Arena *arena;
    Str *slots;
    size_t n, capacity; /* capacity is a power of two */
};

uint64_t hash_bytes(uint64_t hash, const void *data, size_t n_bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n_bytes; i++) hash = (hash ^ p[i]) * 1099511628211u;
    return hash;
}

StrTab *strtab_new(Arena *arena) {
    StrTab *tab = arena_array(arena, StrTab, 1);
    *tab = (StrTab){.arena = arena, .capacity = 256};
    tab->slots = arena_array(arena, Str, tab->capacity);
    return tab;
}

static Str *find_slot(Str *slots, size_t capacity, const char *text, size_t n_bytes) {
    size_t i = (size_t)hash_bytes(STR_HASH_SEED, text, n_bytes);
    for (;; i++) {
        Str *slot = &slots[i & (capacity - 1)];
        if (!*slot || (strncmp(*slot, text, n_bytes) == 0 && (*slot)[n_bytes] == '\0')) return slot;
    }
}

static void grow(StrTab *tab) {
    size_t capacity = tab->capacity * 2;
    Str *slots = arena_array(tab->arena, Str, capacity);
    for (size_t i = 0; i < tab->capacity; i++)
        if (tab->slots[i])
            *find_slot(slots, capacity, tab->slots[i], strlen(tab->slots[i])) = tab->slots[i];
    tab->slots = slots;
    tab->capacity = capacity;
}

Str strtab_intern(StrTab *tab, const char *text, size_t n_bytes) {
    Str *slot = find_slot(tab->slots, tab->capacity, text, n_bytes);
    if (*slot) return *slot;
    char *copy = arena_alloc(tab->arena, n_bytes + 1);
    if (n_bytes) memcpy(copy, text, n_bytes);
    *slot = copy;
    if (++tab->n * 2 > tab->capacity) grow(tab);
    return copy;
}

Str strtab_intern_z(StrTab *tab, const char *text) {
    return strtab_intern(tab, text, strlen(text));
}

char *str_vformat(Arena *arena, const char *format, va_list args) {
    char small[256];
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    if (n < 0) ice(arena, "cannot format `%s`", format);
    char *out = arena_alloc(arena, (size_t)n + 1);
    if ((size_t)n < sizeof small)
        memcpy(out, small, (size_t)n + 1);
    else
        vsnprintf(out, (size_t)n + 1, format, again);
    va_end(again);
    return out;
}

char *str_format(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *out = str_vformat(arena, format, args);
    va_end(args);
    return out;
}

char *text_reserve(Text *text, size_t n_bytes) {
    if (text->capacity - text->n_bytes < n_bytes + 1 || !text->data) {
        size_t capacity = text->capacity ? text->capacity * 2 : 256;
        while (capacity < text->n_bytes + n_bytes + 1) capacity *= 2;
        text->data = arena_extend(text->arena, text->data, text->capacity, capacity);
        text->capacity = capacity;
    }
    return text->data + text->n_bytes;
}

void text_add(Text *text, const char *bytes, size_t n_bytes) {
    char *end = text_reserve(text, n_bytes);
    if (n_bytes) memcpy(end, bytes, n_bytes);
    text->n_bytes += n_bytes;
    text->data[text->n_bytes] = '\0';
}

void text_puts(Text *text, const char *s) {
    text_add(text, s, strlen(s));
}

void text_put_count(Text *text, uint64_t n) {
    char digits[20];
    size_t first = sizeof digits;
    do digits[--first] = (char)('0' + n % 10);
    while (n /= 10);
    text_add(text, digits + first, sizeof digits - first);
}

void text_printf(Text *text, const char *format, ...) {
    char small[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    if (n >= 0 && (size_t)n < sizeof small)
        text_add(text, small, (size_t)n);
    else
        text_puts(text, str_vformat(text->arena, format, again));
    va_end(again);
    va_end(args);
}

const char *text_str(const Text *text) {
    return text->data ? text->data : "";
}
