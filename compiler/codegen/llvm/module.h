/* The LLVM module that code is emitted into. A Codegen owns its LLVM objects. One thread at a time
 * may use it. */
#ifndef FUSEC_CODEGEN_LLVM_MODULE_H
#define FUSEC_CODEGEN_LLVM_MODULE_H

#include "codegen/llvm/build.h"

/* The caller must dispose every module. Disposing a zeroed one does nothing. */
void module_init(Codegen *k, Arena *arena, const Target *target, const char *name);
void module_dispose(Codegen *k);
/* The number of instructions of a function. */
uint32_t k_count_instructions(LLVMValueRef function);

#endif
