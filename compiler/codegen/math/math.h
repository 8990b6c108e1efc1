/* Elementary functions as LLVM IR, emitted inline at the builder's position.
 *
 * Operands are float, double, or a fixed vector of either; both operands of a binary function
 * have the same type and the result has it too. The IR uses only IEEE operations and explicit
 * fma, carries no fast-math flag, calls no library and is the same on every target, but for
 * math_maximum, math_minimum and integer division, whose results are the same, and for functions of
 * float that a GPU computes by its own 2^x, tanh or reciprocal. Equal inputs give equal bits in any
 * vector width. Which NaN comes out is left to the target. Apart from math_frem on double, and from
 * division of vectors of float on a GPU or by one divisor, no function makes a basic block.
 *
 * Rounding is to nearest even and subnormals are kept, in operands and results; the caller sees
 * to the machine's floating-point state. Special cases are those of C99's Annex F.
 *
 * Largest error in units in the last place, over the whole range of inputs (sin and cos too: any
 * argument is reduced exactly). f32 was measured on every input, pow on 67 million pairs; f64 on
 * 67 million inputs each and on the arguments nearest to multiples of pi/2. The program
 * tests/tools/ulp.c measures again; bench/gpu_ulp.py what a GPU computes in its own way.
 *
 *            exp   exp2  log   log2  sin   cos   tanh  erf   pow
 *     f32    1.05  0.95  0.88  1.04  1.54  1.54  1.33  1.23  0.50
 *     f64    0.98  0.88  0.86  0.83  0.81  0.80  2.59  0.92  0.88
 *
 * The target must have fma and the rounding instructions (x86-64-v3, sm_80).
 */
#ifndef FUSEC_CODEGEN_MATH_MATH_H
#define FUSEC_CODEGEN_MATH_MATH_H

#include "codegen/llvm/build.h"

Val math_exp(const Codegen *k, Val x);
Val math_exp_below_0(const Codegen *k, Val x); /* the same, x <= 0 or NaN */
Val math_exp2(const Codegen *k, Val x);
Val math_log(const Codegen *k, Val x);
Val math_log2(const Codegen *k, Val x);
Val math_sin(const Codegen *k, Val x);
Val math_cos(const Codegen *k, Val x);
Val math_tanh(const Codegen *k, Val x);
Val math_erf(const Codegen *k, Val x);
Val math_logistic(const Codegen *k, Val x); /* 1 / (1 + e^-x) */
Val math_normal(const Codegen *k, Val x);   /* (1 + erf(x / sqrt 2)) / 2 */
/* For results that are rounded to 16 bits: relative errors 2^-16, 2^-16, 2^-10 and 2^-12, the last
 * one where that is more than 10^-6 / |x|. */
Val math_exp_16(const Codegen *k, Val x);
Val math_logistic_16(const Codegen *k, Val x);
Val math_tanh_10(const Codegen *k, Val x);
Val math_normal_12(const Codegen *k, Val x);
Val math_pow(const Codegen *k, Val x, Val y);
/* fast.c: shorter forms of f32, within what prims.def says of them; by NVIDIA's own
 * approximations, elsewhere by the functions above. Sine and cosine branch on a GPU, as math_frem
 * does. */
Val math_div_22(const Codegen *k, Val x, Val y);
Val math_sqrt_22(const Codegen *k, Val x);
Val math_rsqrt_22(const Codegen *k, Val x);
Val math_log_21(const Codegen *k, Val x);
Val math_log2_22(const Codegen *k, Val x);
Val math_sin_20(const Codegen *k, Val x);
Val math_cos_20(const Codegen *k, Val x);

/* C's fmod, exact: the sign of x, x when y is infinite, NaN when x is infinite or y is zero.
 * float has no branch. double loops (one round for each 2^50 in the quotient, 42 at most):
 * it ends the current block and leaves the builder at the end of a new one, so the builder must
 * stand at the end of a block without terminator. */
Val math_frem(const Codegen *k, Val x, Val y);

/* Correctly rounded. With overlaps_quotients a vector of float branches: it ends the current block
 * as math_frem does.
 */
Val math_div(const Codegen *k, Val x, Val y);
/* Within 2 ULP, and cheap; a float `y` must be normal and below 2^126 or infinite, else it is taken
 * for 0 or infinite. */
Val math_near_quotient(const Codegen *k, Val x, Val y);

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

/* Correctly rounded or exact. */
Val math_fma(const Codegen *k, Val x, Val y, Val z);
Val math_sqrt(const Codegen *k, Val x);
Val math_fabs(const Codegen *k, Val x);
Val math_tf32(const Codegen *k, Val x); /* f32, as dtype_round_tf32 */
Val math_copysign(const Codegen *k, Val magnitude, Val sign);
Val math_floor(const Codegen *k, Val x);
Val math_ceil(const Codegen *k, Val x);
Val math_trunc(const Codegen *k, Val x);
Val math_rint(const Codegen *k, Val x); /* half to even */

Val math_compare(const Codegen *k, LLVMRealPredicate predicate, Val x, Val y);

/* NaN when either operand is; +0 is greater than -0. */
Val math_maximum(const Codegen *k, Val x, Val y);
Val math_minimum(const Codegen *k, Val x, Val y);

/* i32 or a vector of i32: truncating; x / 0 and x % 0 are 0, INT_MIN / -1 is INT_MIN, and
 * INT_MIN % -1 is 0. Never traps. */
Val math_idiv(const Codegen *k, Val x, Val y);
Val math_irem(const Codegen *k, Val x, Val y);

#endif
