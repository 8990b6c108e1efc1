/* Conversion of values between element types, as LLVM IR at the builder's position.
 *
 * Values are in the representation in which they are stored, scalar or fixed vector:
 *     f64 double, f32 float, f16 half, integers iN, bool i1, bf16 bfloat on NVPTX and i16 (the
 *     bits) elsewhere, because x86 turns bfloat arithmetic into calls.
 * Every conversion rounds to nearest even exactly once, keeps subnormals, and overflows to
 * infinity. NaN stays NaN and becomes quiet (bf16 to f32, a shift, keeps it as it is). Float to
 * an integer truncates and saturates, NaN becomes 0; integer to integer keeps the low bits; float
 * or integer to bool is x != 0 (NaN is true); bool becomes 0 or 1. No branch and no external
 * symbol; no double is narrowed to half or bfloat in one step, which x86 could do by a call only.
 * The target must have F16C (x86-64-v3) or be sm_80 or newer. */
#ifndef FUSEC_CODEGEN_MATH_CONVERT_H
#define FUSEC_CODEGEN_MATH_CONVERT_H

#include "codegen/llvm/build.h"

/* `value` has the type k_value_type(from, lanes), the result k_value_type(to, lanes). */
Val convert_value(const Codegen *k, Val value, Dtype from, Dtype to);

/* The bits of `value` as a dtype of the same width. The bits of NaN are those of the quiet NaN
 * without sign and payload. */
Val bitcast_value(const Codegen *k, Val value, Dtype from, Dtype to);

#endif
