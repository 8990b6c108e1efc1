/* Elementary functions as LLVM IR, emitted inline at the builder's position.
 *
 * Operands are float, double, or a fixed vector of either; both operands of a binary function
 * have the same type and the result has it too. The IR uses only IEEE operations and explicit
 * fma, carries no fast-math flag, calls no library and is the same on every target, but for
 * max, min and integer division, whose results are the same, and for functions of float that a GPU
 * computes by its own 2^x, tanh or reciprocal. Equal inputs give equal bits in any
 * vector width. Which NaN comes out is left to the target. Apart from math_frem on double, from
 * sin_20 and cos_20, and from division of vectors of float on a GPU or by one divisor, no function
 * makes a basic block.
 *
 * Rounding is to nearest even and subnormals are kept, in operands and results; the caller sees
 * to the machine's floating-point state. Special cases are those of C99's Annex F.
 *
 * The target must have fma and the rounding instructions (x86-64-v3, sm_80).
 */
#ifndef FUSEC_CODEGEN_MATH_MATH_H
#define FUSEC_CODEGEN_MATH_MATH_H

#include "codegen/llvm/build.h"

/* A function of functions.def, or an operation of program.h, by its name. All operands have the
 * type of the first. */
void math_call(const Codegen *k, const char *name, const Val *args, Val *results);
Val math_unary(const Codegen *k, const char *name, Val x);
Val math_binary(const Codegen *k, const char *name, Val x, Val y);

/* C's fmod, exact: the sign of x, x when y is infinite, NaN when x is infinite or y is zero.
 * float has no branch. double loops (one round for each 2^50 in the quotient, 42 at most):
 * it ends the current block and leaves the builder at the end of a new one, so the builder must
 * stand at the end of a block without terminator. */
Val math_frem(const Codegen *k, Val x, Val y);

/* Correctly rounded. With overlaps_quotients a vector of float branches: it ends the current block
 * as math_frem does.
 */
Val math_div(const Codegen *k, Val x, Val y);
/* Correctly rounded quotients by one divisor, a scalar float that is worked on once: faster than
 * math_div where several lanes, or several places in the code, divide by the same. `x` is a vector
 * of at most 64 float: the more, the less code for each. It branches, as math_div may. What is less
 * code still: `x` are fractions where each is known to be from +0 to 1, or NaN. */
typedef struct MathDivisor {
    Val value, reciprocal, minus_value, minus_reciprocal;
    Val moderate; /* i32: 0 of divisors that are small, large or negative */
} MathDivisor;
MathDivisor math_divisor(const Codegen *k, Val y);
Val math_quotient(const Codegen *k, Val x, const MathDivisor *divisor, bool are_fractions);

Val math_fma(const Codegen *k, Val x, Val y, Val z);

Val math_compare(const Codegen *k, LLVMRealPredicate predicate, Val x, Val y);

/* i32 or a vector of i32: truncating; x / 0 and x % 0 are 0, INT_MIN / -1 is INT_MIN, and
 * INT_MIN % -1 is 0. Never traps. */
Val math_idiv(const Codegen *k, Val x, Val y);
Val math_irem(const Codegen *k, Val x, Val y);

#endif
