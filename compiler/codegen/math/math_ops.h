/* Types and constants of floating-point code, and helpers for PTX instructions and for all lanes of
 * a vector. Internal to codegen/math. */
#ifndef FUSEC_CODEGEN_MATH_MATH_OPS_H
#define FUSEC_CODEGEN_MATH_MATH_OPS_H

#include "codegen/math/math.h"

#include <stddef.h>
#include <stdint.h>

typedef struct Fp {
    const Codegen *k;
    LLVMTypeRef type; /* float, double or a vector of them */
    LLVMTypeRef bits; /* integers with the width and lane count of `type` */
    unsigned lanes;   /* 0 for a scalar */
    bool is_f64;
} Fp;

Fp fp_of(const Codegen *k, Val x);
Fp fp_f32(const Fp *p); /* float, with the lanes of `p` */
Fp fp_f64(const Fp *p); /* double, with the lanes of `p` */

/* `lanes` 0 makes a scalar, 1 a vector of one lane. */
Val fp_splat(const Codegen *k, Val scalar, unsigned lanes);
Val fp_num(const Fp *p, double value); /* rounded to the type */
Val fp_int(const Fp *p, uint64_t value);

/* A constant that neither LLVM nor ptxas can see, on NVIDIA GPUs. Both fold a function such as 2^x
 * exactly if they can prove the operand constant, whereas the GPU computes it within a bound.
 * Without the hidden constant, a value known at compile time would differ in its last bit from the
 * same value read from memory. */
Val fp_opaque(const Fp *p, double value);

/* Calls an overloaded intrinsic of one type: llvm.NAME.type. */
Val fp_intrinsic(const Codegen *k, const char *name, LLVMTypeRef type, Val *args, unsigned n_args);

/* Functions of vectors of float. */
/* fp_all_usual: whether all lanes have 2^-94 <= |x| < 2^34 and the condition holds that
 * fp_condition_bits turned into an i32. It costs an addition per lane and one more instruction per
 * two lanes. fp_all_usual_fractions takes lanes from +0 to 1 or NaN, and tests that each is at
 * least 2^-94, zero or NaN. */
Val fp_all_usual(const Fp *p, Val x, Val condition_bits);
Val fp_all_usual_fractions(const Fp *p, Val x, Val condition_bits);
/* Whether the condition holds for any lane. */
Val fp_any_lane(const Fp *p, Val condition);
Val fp_condition_bits(const Fp *p, Val condition);
/* Calls `of` for a few lanes of x at a time, in a loop; x has at most 64 lanes. The loop ends the
 * current block and continues at `done`. `of` must not make a block. */
Val fp_few_lanes(const Fp *p, Val x, Val (*of)(const Fp *few, Val x, const void *user),
                 const void *user, LLVMBasicBlockRef done);

#endif
