/* Conversion of values between element types, as LLVM IR at the builder's position.
 *
 * Values are in the representation in which they are stored, scalar or fixed vector:
 *     f64 double, f32 float, f16 half, i32 i32, bool i1, bf16 bfloat on NVPTX and i16 (the
 *     bits) elsewhere, because x86 turns bfloat arithmetic into calls.
 * Every conversion rounds to nearest even exactly once, keeps subnormals, and overflows to
 * infinity. NaN stays NaN and becomes quiet (bf16 to f32, a shift, keeps it as it is). Float to
 * i32 truncates and saturates, NaN becomes 0; float or i32 to bool is x != 0 (NaN is true); bool
 * becomes 0 or 1.
 * No branch and no external symbol; no double is narrowed to half or bfloat in one step, which
 * x86 could do by a call only. The target must have F16C (x86-64-v3) or be sm_80 or newer. */
#ifndef FUSEC_CODEGEN_LLVM_CONVERT_H
#define FUSEC_CODEGEN_LLVM_CONVERT_H

#include "codegen/math/math.h"

typedef enum ConvertType {
    CONVERT_F64,
    CONVERT_F32,
    CONVERT_F16,
    CONVERT_BF16,
    CONVERT_I32,
    CONVERT_BOOL
} ConvertType;

enum { CONVERT_N_TYPES = CONVERT_BOOL + 1 };

/* The IR type of a value; `lanes` 0 is a scalar. */
LLVMTypeRef convert_ir_type(const MathCtx *m, ConvertType type, unsigned lanes);

/* `value` has convert_ir_type(from, lanes), the result convert_ir_type(to, lanes). */
LLVMValueRef convert_value(const MathCtx *m, LLVMValueRef value, ConvertType from, ConvertType to);

#endif
