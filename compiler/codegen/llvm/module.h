/* The LLVM module that code is emitted to. Owns the LLVM objects; one thread at a time may use it.
 */
#ifndef FUSEC_CODEGEN_LLVM_MODULE_H
#define FUSEC_CODEGEN_LLVM_MODULE_H

#include "codegen/llvm/build.h"

/* Every module must be disposed; disposing a zeroed one does nothing. */
void module_init(Codegen *k, Arena *arena, const Target *target, const char *name);
void module_dispose(Codegen *k);

#endif
