/* Reading whole files in tests. Paths are relative to the root of the tree, where tests run. */
#ifndef FUSEC_TESTS_TEXT_FILE_H
#define FUSEC_TESTS_TEXT_FILE_H

#include "base/str.h"

/* The bytes of a file followed by a NUL. Fails the test if it cannot be read. `n_bytes` may be
 * NULL. */
const char *text_file_read(Arena *arena, const char *path, size_t *n_bytes);

#endif
