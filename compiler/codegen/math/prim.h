/* The language's primitives as LLVM IR. */
#ifndef FUSEC_CODEGEN_MATH_PRIM_H
#define FUSEC_CODEGEN_MATH_PRIM_H

#include "codegen/llvm/build.h"
#include "ir/prim.h"

/* Emits a primitive on values of `dtype`, scalars or vectors: the operands' compute type, or a
 * narrower one that gives the same bits (point_narrow.h). */
Val math_prim(const Codegen *k, PrimId prim, Dtype dtype, Val a, Val b, Val c);

/* a * b + sum in `dtype`. Floats round once. */
Val math_multiply_add(const Codegen *k, Dtype dtype, Val a, Val b, Val sum);

#endif
