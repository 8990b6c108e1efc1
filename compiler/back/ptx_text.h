/* Modules of PTX as the one text of an artifact, cut so that a reader can take a function by itself
 * (docs/MANIFEST.md): first a head, which all functions need, then for each function a line that
 * names it and its text. Text alone: knows nothing of LLVM but how it writes. */
#ifndef FUSEC_PTX_TEXT_H
#define FUSEC_PTX_TEXT_H

#include "base/str.h"

typedef struct PtxText {
    Text head; /* version, target, address size; then what functions declare, each once */
    Text functions;
} PtxText;

/* Adds what LLVM wrote for one module. All modules begin alike, and declare nothing at their own
 * scope but external names. */
void ptx_add_module(PtxText *ptx, const char *module);

#endif
