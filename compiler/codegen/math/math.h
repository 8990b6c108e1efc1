/* Elementary functions as LLVM IR, emitted inline at the builder's position.
 *
 * Operands are float, double, or a fixed vector of either. Both operands of a binary function have
 * the same type, which is also the type of the result. The IR uses only IEEE operations and
 * explicit fma, carries no fast-math flag and calls no library. The IR is the same on every target
 * with two exceptions: max, min and integer division differ but give the same results; functions of
 * float that a GPU computes with its own 2^x, tanh or reciprocal give other results. Equal inputs
 * give equal bits in any vector width. Which NaN comes out depends on the target. Only these make
 * basic blocks: math_frem on double, sin_20 and cos_20, and on a GPU the division of vectors of
 * float and the division by a shared divisor.
 *
 * Rounding is to nearest even. Subnormals are kept in operands and results. The caller sets the
 * machine's floating-point state accordingly. Special cases are those of C99's Annex F.
 *
 * The target must have fma and the rounding instructions (x86-64-v3, sm_80). */
#ifndef FUSEC_CODEGEN_MATH_MATH_H
#define FUSEC_CODEGEN_MATH_MATH_H

#include "codegen/llvm/build.h"

/* Emits a function of functions.def, or an operation of program.h, by its name. All operands have
 * the type of the first. */
void math_call(const Codegen *k, const char *name, const Val *args, Val *results);
Val math_unary(const Codegen *k, const char *name, Val x);
Val math_binary(const Codegen *k, const char *name, Val x, Val y);

/* C's fmod, exact: the result has the sign of x, is x if y is infinite, and is NaN if x is infinite
 * or y is zero. The code for float has no branch. The code for double loops, once for each 2^50 in
 * the quotient, 42 times at most: it ends the current block and leaves the builder at the end of a
 * new block. Therefore the builder must stand at the end of a block without terminator. */
Val math_frem(const Codegen *k, Val x, Val y);

/* The correctly rounded quotient. With overlaps_quotients the code for a vector of float branches
 * and ends the current block, as math_frem does. */
Val math_div(const Codegen *k, Val x, Val y);
/* Correctly rounded quotients by one shared divisor, a scalar float. Work on the divisor is done
 * once, so this is faster than math_div if several lanes, or several places in the code, divide by
 * the same value. `x` is a vector of at most 64 floats; a longer vector needs less code per
 * element. The code branches, as that of math_div may. `are_fractions` promises that every x is
 * between +0 and 1 or NaN, which saves more code. */
typedef struct MathDivisor {
    Val value, reciprocal, minus_value, minus_reciprocal;
    Val moderate; /* i32; 0 if the divisor is small, large or negative */
} MathDivisor;
MathDivisor math_divisor(const Codegen *k, Val y);
Val math_quotient(const Codegen *k, Val x, const MathDivisor *divisor, bool are_fractions);

Val math_fma(const Codegen *k, Val x, Val y, Val z);

Val math_compare(const Codegen *k, LLVMRealPredicate predicate, Val x, Val y);

/* Division of i32 or i64, or vectors of them, truncating. x / 0 and x % 0 are 0, INT_MIN / -1 is
 * INT_MIN, and INT_MIN % -1 is 0. The code never traps. */
Val math_idiv(const Codegen *k, Val x, Val y);
Val math_irem(const Codegen *k, Val x, Val y);
/* The same of integers without a sign. */
Val math_udiv(const Codegen *k, Val x, Val y);
Val math_urem(const Codegen *k, Val x, Val y);

#endif
