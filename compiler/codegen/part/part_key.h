/* The key of a part: words that are equal for equal functions, whatever their modules. LLVM's print
 * of a function would serve too, and takes longer than to emit it: it numbers the whole module. */
#ifndef FUSEC_CODEGEN_PART_PART_KEY_H
#define FUSEC_CODEGEN_PART_PART_KEY_H

#include "codegen/llvm/build.h"

/* Writes the key of a function for k->target. False: the function names a global other than an
 * intrinsic, or has something that is not known here; then it counts as equal to none. */
bool part_key(const Codegen *k, Val function, VecU32 *key);

#endif
