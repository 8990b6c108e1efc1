/* Whole files for tests. Paths count from the root of the tree, where tests run. */
#ifndef FUSEC_TESTS_TEXT_FILE_H
#define FUSEC_TESTS_TEXT_FILE_H

#include "base/str.h"

/* The bytes of a file, which may hold any, with a NUL behind them; stops the test where it cannot
 * be read. `n_bytes` may be NULL. */
const char *text_file_read(Arena *arena, const char *path, size_t *n_bytes);

#endif
