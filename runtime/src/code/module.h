/* A loaded artifact: its bytes, its manifest and where its kernel code and its pieces lie.
 * Immutable after loading, counted by owners. */
#ifndef FRT_MODULE_H
#define FRT_MODULE_H

#include "manifest/manifest.h"
#include "code/ptx_section.h"

#include <stdatomic.h>
#include <stdio.h>

struct frt_module {
    _Atomic uint32_t n_owners;
    char *bytes; /* the whole artifact and a NUL, so that PTX text is a C string */
    size_t n_bytes;
    char *folder; /* where it was loaded from, with the final slash; or NULL */
    frt_code code_kind;
    const char *code; /* of PTX followed by a NUL */
    size_t n_code;
    size_t n_head; /* bytes of the code that stand before every piece */
    Piece *pieces;
    uint32_t n_pieces; /* at least 1 */
    Manifest manifest;
};

frt_module *module_retain(frt_module *module);

#endif
