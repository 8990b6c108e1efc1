/* Reading whole files. See text_file.h. */
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <stdio.h>

const char *text_file_read(Arena *arena, const char *path, size_t *n_bytes) {
    Text text = {.arena = arena};
    char part[4096];
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "cannot open %s: run from the root of the tree", path);
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;) text_add(&text, part, n);
    cr_assert_eq(ferror(file), 0, "cannot read %s", path);
    fclose(file);
    if (n_bytes) *n_bytes = text.n_bytes;
    return text_str(&text);
}
