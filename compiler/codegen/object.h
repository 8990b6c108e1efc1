/* Joining of relocatable ELF objects for x86-64, as a linker does with -r. */
#ifndef FUSEC_CODEGEN_OBJECT_H
#define FUSEC_CODEGEN_OBJECT_H

#include "codegen/codegen.h"

/* One object with the sections, symbols and relocations of all, in their order. The objects are
 * LLVM's, at least one: a broken one is an internal error. The result is on the arena. Of one
 * object the result is the object itself. */
CodeBytes object_join(Arena *arena, const CodeBytes *objects, uint32_t n);

#endif
