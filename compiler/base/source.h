/* The text of one input, and the offsets of its lines. */
#ifndef FUSEC_BASE_SOURCE_H
#define FUSEC_BASE_SOURCE_H

#include "base/arena.h"

#include <stdint.h>

/* A byte range [begin, end) of the source; all zeros: no place (made by the compiler). */
typedef struct Span {
    uint32_t begin, end;
} Span;

typedef struct Source {
    const char *name; /* as the user wrote it, for messages */
    const char *text; /* NUL-terminated copy */
    uint32_t n_bytes;
    uint32_t *line_begins; /* n_lines ascending offsets, the first is 0 */
    uint32_t n_lines;
} Source;

typedef struct Position {
    uint32_t line, column; /* both from 1; columns count bytes */
} Position;

/* Copies `text`. The caller checks SOURCE_MAX_BYTES. */
enum { SOURCE_MAX_BYTES = 1 << 26 };
Source *source_new(Arena *arena, const char *name, const char *text, size_t n_bytes);
Position source_position(const Source *source, uint32_t offset);
/* The line's text without its newline. `line` counts from 1. */
const char *source_line(const Source *source, uint32_t line, uint32_t *n_bytes);

#endif
