/* Types and constants of floating point code, and what instructions of NVIDIA's machines and lanes
 * together need. Internal to codegen/math. */
#ifndef FUSEC_CODEGEN_MATH_MATH_OPS_H
#define FUSEC_CODEGEN_MATH_MATH_OPS_H

#include "codegen/math/math.h"

#include <stddef.h>
#include <stdint.h>

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

/* A constant that neither LLVM nor ptxas knows, on NVIDIA's machines. What these compute within a
 * bound, as 2^x, both fold where they can prove the operand constant, exactly; a value known at
 * compile time would then differ in its last bit from the same value read from memory. */
Val fp_opaque(const Fp *p, double value);

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

#endif
