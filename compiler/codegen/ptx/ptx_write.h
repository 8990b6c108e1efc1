/* PTX, written from LLVM's IR as the emitters built it: NVIDIA's assembler selects instructions,
 * schedules and allocates registers whatever it is given, and LLVM's own code generator in front of
 * it took nine tenths of the compiler's time. */
#ifndef FUSEC_CODEGEN_PTX_PTX_WRITE_H
#define FUSEC_CODEGEN_PTX_PTX_WRITE_H

#include "codegen/llvm/build.h"

/* The text of an artifact, cut so that a reader can take a function by itself (docs/MANIFEST.md):
 * first a head, which all functions need, then for each function a line that names it and its
 * text. */
typedef struct PtxText {
    Text head; /* ptx_write_head, then what functions declare, each once */
    Text functions;
} PtxText;

/* Version, target and address size. */
void ptx_write_head(PtxText *text, const Target *target);
/* Adds the unit's functions. What the writer does not know leaves as an internal error. */
void ptx_write_module(PtxText *text, const Codegen *k);

#endif
