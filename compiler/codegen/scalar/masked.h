/* Loads and stores of those lanes of a vector that a mask has, on a CPU. */
#ifndef FUSEC_CODEGEN_SCALAR_MASKED_H
#define FUSEC_CODEGEN_SCALAR_MASKED_H

#include "codegen/llvm/build.h"

/* Elements side by side from `pointer` on, each of `bytes`. Elements outside the mask are not read:
 * their lanes are those of `outside`. */
Val masked_load(const Codegen *k, Val pointer, uint32_t bytes, Val mask, Val outside);
/* Elements outside the mask are not written. */
void masked_store(const Codegen *k, Val pointer, uint32_t bytes, Val mask, Val value);

#endif
