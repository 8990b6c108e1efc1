/* The vocabulary in which the math_*.c files write their functions: IEEE operations on values of
 * one floating type (scalar or vector) and on their bits. Internal to those files.
 *
 * The files make one emitting call a statement, so the IR comes in the order in which they read,
 * whatever order the C compiler evaluates arguments in. Only constants (fp_num, fp_int, fp_nan,
 * fp_inf) are nested: they emit nothing. Comparisons are ordered: false when an operand is NaN. */
#ifndef FUSEC_CODEGEN_MATH_MATH_OPS_H
#define FUSEC_CODEGEN_MATH_MATH_OPS_H

#include "codegen/math/math.h"

#include <stddef.h>
#include <stdint.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ln 2 and log2 e, each the sum of two doubles. */
#define LN2_HIGH 0x1.62e42fefa39efp-1
#define LN2_LOW 0x1.abc9e3b39803fp-56
#define LOG2_E_HIGH 0x1.71547652b82fep+0
#define LOG2_E_LOW 0x1.777d0ffda0d24p-56

typedef struct Fp {
    const Codegen *k;
    LLVMTypeRef type; /* float, double or a vector of them */
    LLVMTypeRef bits; /* the integers of that width and count */
    unsigned lanes;   /* 0: scalar */
    bool is_f64;
} Fp;

Fp fp_of(const Codegen *k, Val x);
Fp fp_f32(const Fp *p); /* float, with the lanes of `p` */
Fp fp_f64(const Fp *p); /* likewise double */

/* `lanes` 0 is a scalar, 1 a vector of one lane. */
Val fp_splat(const Codegen *k, Val scalar, unsigned lanes);
Val fp_num(const Fp *p, double value); /* rounded to the type */
Val fp_int(const Fp *p, uint64_t value);
Val fp_nan(const Fp *p);
Val fp_inf(const Fp *p);

Val fp_add(const Fp *p, Val x, Val y);
Val fp_sub(const Fp *p, Val x, Val y);
Val fp_mul(const Fp *p, Val x, Val y);
Val fp_neg(const Fp *p, Val x);
Val fp_fma(const Fp *p, Val x, Val y, Val z);
/* c[0] + x*(c[1] + x*(...)) by fma, n_coefs > 1. */
Val fp_poly(const Fp *p, Val x, const double *coefs, size_t n_coefs);

Val fp_lt(const Fp *p, Val x, Val y);
Val fp_gt(const Fp *p, Val x, Val y);
Val fp_eq(const Fp *p, Val x, Val y);
Val fp_ne(const Fp *p, Val x, Val y); /* false for NaN, unlike C's != */
Val fp_unordered(const Fp *p, Val x, Val y);
Val fp_select(const Fp *p, Val condition, Val then_value, Val else_value);
Val fp_and(const Fp *p, Val x, Val y); /* integers or conditions, as fp_or */
Val fp_or(const Fp *p, Val x, Val y);

/* `x` held between the bounds; NaN stays. */
Val fp_clamp(const Fp *p, Val x, double low, double high);
Val fp_at_most(const Fp *p, Val x, double high);

Val fp_to_bits(const Fp *p, Val x);
Val fp_from_bits(const Fp *p, Val bits);
Val fp_iadd(const Fp *p, Val x, Val y);
Val fp_isub(const Fp *p, Val x, Val y);
Val fp_imul(const Fp *p, Val x, Val y);
Val fp_shl(const Fp *p, Val x, unsigned n_bits);
Val fp_shr(const Fp *p, Val x, unsigned n_bits);  /* logical */
Val fp_is_set(const Fp *p, Val x, uint64_t mask); /* any bit of `mask`, by two instructions */

/* A constant that neither LLVM nor ptxas knows, on NVIDIA's machines. What these compute within a
 * bound, as 2^x, both fold where they can prove the operand constant, exactly; a value known at
 * compile time would then differ in its last bit from the same value read from memory. */
Val fp_opaque(const Fp *p, double value);

/* An instruction of NVIDIA's machines that has no name in LLVM, "name $0, $1;", of up to
 * MAX_MACHINE_ARGS numbers, lane by lane. */
enum { MAX_MACHINE_ARGS = 3 };
Val fp_machine(const Fp *p, const char *text, const Val *args, unsigned n_args);
/* Within an ULP (f32) or 2^-20 (f64); of 0 and infinity the other. */
Val fp_machine_reciprocal(const Fp *p, Val y);
/* Next to the nearest number at worst; infinite or 0 where that is. Subnormal ones are not taken.
 */
Val fp_refined_reciprocal(const Fp *p, Val y);

/* An overloaded intrinsic of one type: llvm.NAME.type. */
Val fp_intrinsic(const Codegen *k, const char *name, LLVMTypeRef type, Val *args, unsigned n_args);

/* Vectors of float. */
/* By an addition for each lane and an instruction for every second one: whether the sizes of all
 * lanes are at least 2^-94 and less than 2^34, and the condition that fp_condition_bits made an i32
 * of holds; of lanes known to be from +0 to 1 or NaN, whether each is at least 2^-94, zero or NaN.
 */
Val fp_all_usual(const Fp *p, Val x, Val condition_bits);
Val fp_all_usual_fractions(const Fp *p, Val x, Val condition_bits);
/* Whether a condition holds for any lane. */
Val fp_any_lane(const Fp *p, Val condition);
Val fp_condition_bits(const Fp *p, Val condition);
/* `of` a few lanes at a time, at most 64 in all, in a loop that ends the current block and goes on
 * to `done`. `of` makes no block. */
Val fp_few_lanes(const Fp *p, Val x, Val (*of)(const Fp *few, Val x, const void *user),
                 const void *user, LLVMBasicBlockRef done);

/* Rounding by adding 1.5 * 2^(mantissa bits): `shifted` holds the integer in its low bits (two's
 * complement), `whole` is it as a number. Right for |x| < 2^22 (float), 2^51 (double). NaN gives
 * NaN, unlike a conversion to integer, which would be poison. */
typedef struct Rounded {
    Val shifted, whole;
} Rounded;
Rounded fp_round(const Fp *p, Val x);
Rounded fp_round_product(const Fp *p, Val x, double factor); /* of x * operand, unrounded */

/* 2^n; n within the normal exponents. */
Val fp_power(const Fp *p, Rounded n);
/* value * 2^n in two steps, rounding once: `value` near 1, n from twice the least exponent to
 * twice the greatest. */
Val fp_scale(const Fp *p, Val value, Rounded n);

/* An unevaluated sum, |low| at most half a last place of `high`. */
typedef struct Pair {
    Val high, low;
} Pair;
Pair pair_sum(const Fp *p, Val x, Val y);      /* exact */
Pair pair_fast_sum(const Fp *p, Val x, Val y); /* exact if |x| >= |y| or x is zero */
Pair pair_product(const Fp *p, Val x, Val y);  /* exact but for underflow */
Pair pair_mul(const Fp *p, Pair x, Pair y);

/* x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for finite x > 0, and f = m - 1, exact. */
typedef struct LogParts {
    Val e, m, f;
} LogParts;
LogParts fp_log_parts(const Fp *p, Val x, bool subnormals);
/* Replaces the results of x = 0, x < 0, infinity and NaN by a logarithm's. */
Val fp_log_specials(const Fp *p, Val x, Val result);

/* 2^r for |r| <= 1/2. */
Val fp_exp2_near(const Fp *p, Val r);

/* e^x where the result is normal and x moderate: |x| < 80. */
Val fp_exp_normal(const Fp *p, Val x);

#endif
