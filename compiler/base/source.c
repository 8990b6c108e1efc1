/* Source text and its line map. */
#include "base/source.h"

#include "base/vec.h"

Source *source_new(Arena *arena, const char *name, const char *text, size_t n_bytes) {
    Source *source = arena_array(arena, Source, 1);
    char *copy = arena_alloc(arena, n_bytes + 1);
    if (n_bytes) memcpy(copy, text, n_bytes);
    Vec(uint32_t) lines = {0};
    vec_push(arena, &lines, 0);
    for (size_t i = 0; i < n_bytes; i++)
        if (text[i] == '\n') vec_push(arena, &lines, (uint32_t)(i + 1));
    *source = (Source){.name = name,
                       .text = copy,
                       .n_bytes = (uint32_t)n_bytes,
                       .line_begins = lines.data,
                       .n_lines = lines.n};
    return source;
}

Position source_position(const Source *source, uint32_t offset) {
    uint32_t low = 0, high = source->n_lines;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (source->line_begins[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return (Position){.line = low + 1, .column = offset - source->line_begins[low] + 1};
}

const char *source_line(const Source *source, uint32_t line, uint32_t *n_bytes) {
    uint32_t begin = source->line_begins[line - 1];
    uint32_t end = line < source->n_lines ? source->line_begins[line] - 1 : source->n_bytes;
    *n_bytes = end - begin;
    return source->text + begin;
}
