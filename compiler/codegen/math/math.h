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
 * Threads: a context may be used by one thread at a time, as LLVM's builders. */
#ifndef FUSEC_CODEGEN_MATH_MATH_H
#define FUSEC_CODEGEN_MATH_MATH_H

#include <llvm-c/Core.h>

#include <stdbool.h>

typedef struct MathCtx {
    LLVMContextRef context;
    LLVMModuleRef module; /* receives the declarations of the intrinsics used */
    LLVMBuilderRef builder;
    bool is_gpu;
    /* GPU: quotients of a vector's lanes are to overlap, because few warps run that could hide one
     * another's waiting. Costs a few instructions more where the divisor differs from lane to lane.
     * The bits are the same. */
    bool overlaps_quotients;
} MathCtx;

LLVMValueRef math_exp(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_exp_below_0(const MathCtx *m, LLVMValueRef x); /* the same, x <= 0 or NaN */
LLVMValueRef math_exp2(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_log(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_log2(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_sin(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_cos(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_tanh(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_erf(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_logistic(const MathCtx *m, LLVMValueRef x); /* 1 / (1 + e^-x) */
LLVMValueRef math_normal(const MathCtx *m, LLVMValueRef x);   /* (1 + erf(x / sqrt 2)) / 2 */
/* For results that are rounded to 16 bits: relative errors 2^-16, 2^-16, 2^-10 and 2^-12, the last
 * one where that is more than 10^-6 / |x|. */
LLVMValueRef math_exp_16(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_logistic_16(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_tanh_10(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_normal_12(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_pow(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);
/* fast.c: shorter forms of f32, within what prims.def says of them; by NVIDIA's own
 * approximations, elsewhere by the functions above. Sine and cosine branch on a GPU, as math_frem
 * does. */
LLVMValueRef math_div_22(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef math_sqrt_22(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_rsqrt_22(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_log_21(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_log2_22(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_sin_20(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_cos_20(const MathCtx *m, LLVMValueRef x);

/* C's fmod, exact: the sign of x, x when y is infinite, NaN when x is infinite or y is zero.
 * float has no branch. double loops (one round for each 2^50 in the quotient, 42 at most):
 * it ends the current block and leaves the builder at the end of a new one, so the builder must
 * stand at the end of a block without terminator. */
LLVMValueRef math_frem(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);

/* Correctly rounded. With overlaps_quotients a vector of float branches: it ends the current block
 * as math_frem does.
 */
LLVMValueRef math_div(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);
/* Within 2 ULP, and cheap; a float `y` must be normal and below 2^126 or infinite, else it is taken
 * for 0 or infinite. */
LLVMValueRef math_near_quotient(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);

/* Correctly rounded quotients by one divisor, a scalar float that is worked on once: faster than
 * math_div where several lanes, or several places in the code, divide by the same. `x` is a vector
 * of at most 64 float: the more, the less code for each. It branches, as math_div may. What is less
 * code still: `x` are fractions where each is known to be from +0 to 1, or NaN. */
typedef struct MathDivisor {
    LLVMValueRef value, reciprocal, minus_value, minus_reciprocal;
    LLVMValueRef moderate; /* i32: 0 of divisors that are small, large or negative */
} MathDivisor;
MathDivisor math_divisor(const MathCtx *m, LLVMValueRef y);
LLVMValueRef math_quotient(const MathCtx *m, LLVMValueRef x, const MathDivisor *divisor,
                           bool are_fractions);

/* Correctly rounded or exact. */
LLVMValueRef math_fma(const MathCtx *m, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);
LLVMValueRef math_sqrt(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_fabs(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_tf32(const MathCtx *m, LLVMValueRef x); /* f32, as dtype_round_tf32 */
LLVMValueRef math_copysign(const MathCtx *m, LLVMValueRef magnitude, LLVMValueRef sign);
LLVMValueRef math_floor(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_ceil(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_trunc(const MathCtx *m, LLVMValueRef x);
LLVMValueRef math_rint(const MathCtx *m, LLVMValueRef x); /* half to even */

LLVMValueRef math_compare(const MathCtx *m, LLVMRealPredicate predicate, LLVMValueRef x,
                          LLVMValueRef y);

/* NaN when either operand is; +0 is greater than -0. */
LLVMValueRef math_maximum(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef math_minimum(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);

/* i32 or a vector of i32: truncating; x / 0 and x % 0 are 0, INT_MIN / -1 is INT_MIN, and
 * INT_MIN % -1 is 0. Never traps. */
LLVMValueRef math_idiv(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef math_irem(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);

#endif
