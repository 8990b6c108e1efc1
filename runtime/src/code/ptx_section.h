/* The pieces of a module's code: what a device can load by itself. PTX that says where its
 * functions begin (docs/MANIFEST.md) has one for each; all other code is one piece. */
#ifndef FRT_PTX_SECTION_H
#define FRT_PTX_SECTION_H

#include <fusert.h>

typedef struct Piece {
    const char *symbol; /* the only kernel in it: `n_symbol` bytes, no NUL. NULL: all kernels */
    size_t n_symbol;
    const char *text; /* of the function; needs the module's head before it */
    size_t n_bytes;
} Piece;

/* Find the pieces of a module whose code is known. FRT_E_ARTIFACT, _OUT_OF_MEMORY. */
frt_status pieces_find(frt_module *module, frt_error *err);

/* Whether the code is one piece, with all kernels. */
bool pieces_are_one(const frt_module *module);

/* The piece with the kernel `symbol`, looked for from *piece on; false if there is none. */
bool pieces_have(const frt_module *module, const char *symbol, uint32_t *piece);

/* The head and the functions of `n` pieces, with a NUL: PTX that can be compiled. Free by mem_free;
 * NULL when memory is out. */
char *pieces_join(const frt_module *module, const uint32_t *pieces, uint32_t n, size_t *n_bytes);

#endif
