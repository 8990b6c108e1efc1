/* The pieces of a module's code: the units that a device loads separately. PTX with marks
 * (docs/MANIFEST.md) has one piece per function; all other code is a single piece. */
#ifndef FRT_PTX_SECTION_H
#define FRT_PTX_SECTION_H

#include <fusert.h>

typedef struct Piece {
    const char *symbol; /* name of the only kernel in it: `n_symbol` bytes, no NUL. NULL: all
                         * kernels */
    size_t n_symbol;
    const char *text; /* text of the function; it needs the module's head before it */
    size_t n_bytes;
} Piece;

/* Finds the pieces of a module whose code is set. FRT_E_ARTIFACT, _OUT_OF_MEMORY. */
frt_status pieces_find(frt_module *module, frt_error *err);

/* Whether the code is a single piece with all kernels. */
bool pieces_are_one(const frt_module *module);

/* Finds the piece with kernel `symbol`, searching from *piece on; false if there is none. */
bool pieces_have(const frt_module *module, const char *symbol, uint32_t *piece);

/* The head and the functions of `n` pieces with a final NUL: complete PTX. Free it by mem_free.
 * NULL when memory is out. */
char *pieces_join(const frt_module *module, const uint32_t *pieces, uint32_t n, size_t *n_bytes);

#endif
