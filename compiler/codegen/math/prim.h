/* The language's primitives as LLVM IR. */
#ifndef FUSEC_CODEGEN_MATH_PRIM_H
#define FUSEC_CODEGEN_MATH_PRIM_H

#include "codegen/llvm/build.h"
#include "ir/prim.h"

/* A primitive on values of `dtype` (the operands' compute type), scalars or vectors alike. */
Val math_prim(const Codegen *k, PrimId prim, Dtype dtype, Val a, Val b, Val c);

/* a * b + sum of `dtype`: floats are rounded once. */
Val math_multiply_add(const Codegen *k, Dtype dtype, Val a, Val b, Val sum);

#endif
