/* Writes PTX directly from the LLVM IR that the templates have built. ptxas selects instructions,
 * schedules and allocates registers in any case. LLVM's NVPTX back end ahead of it took nine tenths
 * of the compile time. */
#ifndef FUSEC_CODEGEN_PTX_PTX_WRITE_H
#define FUSEC_CODEGEN_PTX_PTX_WRITE_H

#include "codegen/llvm/build.h"

/* The PTX text of an artifact in two parts, so that a reader can load one function alone
 * (docs/MANIFEST.md). The head serves all functions. Then each function has one line with its name,
 * followed by its text. */
typedef struct PtxText {
    Text head; /* the version and target, then each shared declaration once */
    Text functions;
} PtxText;

/* Writes the version, the target and the address size. has_f8_mma: functions use tensor cores for
 * 8-bit floats. */
void ptx_write_head(Text *head, const Target *target, bool has_f8_mma);
/* Adds the declarations of another module, lines of text, to a head that may have some of them. */
void ptx_add_declarations(Text *head, const Text *declarations);
/* Adds the functions of the module, which have about so many instructions each. IR that the writer
 * does not know is an internal error. */
void ptx_write_module(PtxText *text, const Codegen *k, uint32_t n_instructions);

#endif
