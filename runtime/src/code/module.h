/* A loaded artifact: its bytes, its manifest, and the positions of its kernel code and pieces.
 * Immutable after loading; reference-counted. */
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
    char *folder; /* folder it was loaded from, with the final slash; or NULL */
    frt_code code_kind;
    const char *code; /* the code; PTX is followed by a NUL */
    size_t n_code;
    size_t n_head; /* bytes of the code that precede every piece */
    Piece *pieces;
    uint32_t n_pieces; /* at least 1 */
    Manifest manifest;
};

frt_module *module_retain(frt_module *module);

#endif
