/* Conversions between element types. Anything narrower than f32 goes through f32; where the
 * source has more digits than f32 the step to f32 rounds to odd, so that the second rounding
 * sees whether anything was lost. */
#include "codegen/math/math_ops.h"

#include "codegen/llvm/convert.h"

enum { CONVERT_MAX_LANES = 32 };

static LLVMTypeRef element_type(const MathCtx *m, ConvertType type) {
    switch (type) {
    case CONVERT_F64:
        return LLVMDoubleTypeInContext(m->context);
    case CONVERT_F32:
        return LLVMFloatTypeInContext(m->context);
    case CONVERT_F16:
        return LLVMHalfTypeInContext(m->context);
    case CONVERT_BF16:
        return m->is_gpu ? LLVMBFloatTypeInContext(m->context) : LLVMInt16TypeInContext(m->context);
    case CONVERT_I32:
        return LLVMInt32TypeInContext(m->context);
    case CONVERT_BOOL:
        return LLVMInt1TypeInContext(m->context);
    }
    return NULL;
}

LLVMTypeRef convert_ir_type(const MathCtx *m, ConvertType type, unsigned lanes) {
    LLVMTypeRef element = element_type(m, type);
    return lanes ? LLVMVectorType(element, lanes) : element;
}

static unsigned lanes_of(Val value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetVectorSize(type) : 0;
}

static LLVMTypeRef type_like(const MathCtx *m, Val value, ConvertType type) {
    return convert_ir_type(m, type, lanes_of(value));
}

/* Two at a time, as bits: were each extended by itself, the assembler would also round each by
 * itself what was just computed, which takes it twice as long as to round two. */
static Val pairs_to_f32(const MathCtx *m, Val value) {
    LLVMTypeRef i32 = LLVMInt32TypeInContext(m->context);
    LLVMTypeRef f32 = LLVMFloatTypeInContext(m->context);
    unsigned lanes = lanes_of(value), n_pairs = lanes / 2;
    LLVMTypeRef words = LLVMVectorType(i32, n_pairs), halves = LLVMVectorType(f32, n_pairs);
    Val order[CONVERT_MAX_LANES];
    for (unsigned i = 0; i < lanes; i++) order[i] = LLVMConstInt(i32, i / 2 + i % 2 * n_pairs, 0);
    Val bits = LLVMBuildBitCast(m->builder, value, words, "");
    Val low = LLVMBuildShl(m->builder, bits, fp_splat(m, LLVMConstInt(i32, 16, 0), n_pairs), "");
    Val mask = fp_splat(m, LLVMConstInt(i32, 0xffff0000, 0), n_pairs);
    Val high = LLVMBuildAnd(m->builder, bits, mask, "");
    low = LLVMBuildBitCast(m->builder, low, halves, "");
    high = LLVMBuildBitCast(m->builder, high, halves, "");
    return LLVMBuildShuffleVector(m->builder, low, high, LLVMConstVector(order, lanes), "");
}

static Val bf16_to_f32(const MathCtx *m, Val value) {
    LLVMTypeRef f32 = type_like(m, value, CONVERT_F32);
    unsigned lanes_now = lanes_of(value);
    if (m->is_gpu && lanes_now && lanes_now % 2 == 0 && lanes_now <= CONVERT_MAX_LANES)
        return pairs_to_f32(m, value);
    if (m->is_gpu) return LLVMBuildFPExt(m->builder, value, f32, "");
    Val wide = LLVMBuildZExt(m->builder, value, type_like(m, value, CONVERT_I32), "");
    unsigned lanes = lanes_of(value);
    Val n_bits = LLVMConstInt(LLVMInt32TypeInContext(m->context), 16, 0);
    Val bits = LLVMBuildShl(m->builder, wide, fp_splat(m, n_bits, lanes), "");
    return LLVMBuildBitCast(m->builder, bits, f32, "");
}

/* Adds just under half of the last place kept, and the rest of the half if that place is odd. */
static Val f32_to_bf16(const MathCtx *m, Val value) {
    LLVMTypeRef bf16 = type_like(m, value, CONVERT_BF16);
    if (m->is_gpu) return LLVMBuildFPTrunc(m->builder, value, bf16, "");
    Fp p = fp_of(m, value);
    Val bits = fp_to_bits(&p, value);
    Val place = fp_shr(&p, bits, 16);
    Val odd = fp_and(&p, place, fp_int(&p, 1));
    Val raised = fp_iadd(&p, bits, fp_int(&p, 0x7fff));
    raised = fp_iadd(&p, raised, odd);
    Val quiet = fp_or(&p, bits, fp_int(&p, 0x400000));
    Val is_nan = fp_unordered(&p, value, value);
    Val chosen = fp_select(&p, is_nan, quiet, raised);
    Val top = fp_shr(&p, chosen, 16);
    return LLVMBuildTrunc(m->builder, top, bf16, "");
}

/* Where the nearest float is even and not exact, its odd neighbour on the side of `value`. An
 * overflow becomes the largest float, NaN stays. */
static Val f64_to_f32_odd(const MathCtx *m, Val value) {
    LLVMTypeRef f32 = type_like(m, value, CONVERT_F32);
    Val nearest = LLVMBuildFPTrunc(m->builder, value, f32, "");
    Fp p = fp_of(m, nearest);
    Val back = LLVMBuildFPExt(m->builder, nearest, LLVMTypeOf(value), "");
    Val size = math_fabs(m, value);
    Val back_size = math_fabs(m, back);
    Val is_high = fp_gt(&p, back_size, size);
    Val is_inexact = fp_ne(&p, back_size, size);
    Val bits = fp_to_bits(&p, nearest);
    Val odd = fp_and(&p, bits, fp_int(&p, 1));
    Val is_even = LLVMBuildICmp(m->builder, LLVMIntEQ, odd, fp_int(&p, 0), "");
    Val is_moved = fp_and(&p, is_inexact, is_even);
    Val step = fp_select(&p, is_high, fp_int(&p, UINT32_MAX), fp_int(&p, 1));
    step = fp_select(&p, is_moved, step, fp_int(&p, 0));
    Val moved = fp_iadd(&p, bits, step);
    return fp_from_bits(&p, moved);
}

static Val float_to_i32(const MathCtx *m, Val value) {
    LLVMTypeRef types[] = {type_like(m, value, CONVERT_I32), LLVMTypeOf(value)};
    static const char name[] = "llvm.fptosi.sat";
    unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
    Val callee = LLVMGetIntrinsicDeclaration(m->module, id, types, 2);
    LLVMTypeRef signature = LLVMIntrinsicGetType(m->context, id, types, 2);
    return LLVMBuildCall2(m->builder, signature, callee, &value, 1, "");
}

/* The value as f32 or f64, exactly: the type it was given in or the least that holds it. */
static Val to_number(const MathCtx *m, Val value, ConvertType from) {
    switch (from) {
    case CONVERT_F64:
    case CONVERT_F32:
        return value;
    case CONVERT_F16:
        return LLVMBuildFPExt(m->builder, value, type_like(m, value, CONVERT_F32), "");
    case CONVERT_BF16:
        return bf16_to_f32(m, value);
    case CONVERT_I32:
        return LLVMBuildSIToFP(m->builder, value, type_like(m, value, CONVERT_F64), "");
    case CONVERT_BOOL:
        break;
    }
    LLVMTypeRef f32 = type_like(m, value, CONVERT_F32);
    Val one = LLVMConstReal(LLVMFloatTypeInContext(m->context), 1.0);
    return LLVMBuildSelect(m->builder, value, fp_splat(m, one, lanes_of(value)), LLVMConstNull(f32),
                           "");
}

static Val from_number(const MathCtx *m, Val value, ConvertType to) {
    Fp p = fp_of(m, value);
    LLVMTypeRef type = type_like(m, value, to);
    LLVMBuilderRef b = m->builder;
    Val zero = LLVMConstNull(p.type);
    switch (to) {
    case CONVERT_F64:
        return p.is_f64 ? value : LLVMBuildFPExt(b, value, type, "");
    case CONVERT_F32:
        return p.is_f64 ? LLVMBuildFPTrunc(b, value, type, "") : value;
    case CONVERT_F16:
        if (p.is_f64) value = f64_to_f32_odd(m, value);
        return LLVMBuildFPTrunc(b, value, type, "");
    case CONVERT_BF16:
        if (p.is_f64) value = f64_to_f32_odd(m, value);
        return f32_to_bf16(m, value);
    case CONVERT_I32:
        return float_to_i32(m, value);
    case CONVERT_BOOL:
        return LLVMBuildFCmp(b, LLVMRealUNE, value, zero, "");
    }
    return NULL;
}

static bool is_whole(ConvertType type) {
    return type == CONVERT_I32 || type == CONVERT_BOOL;
}

static Val convert_whole(const MathCtx *m, Val value, ConvertType to) {
    if (to == CONVERT_I32) {
        return LLVMBuildZExt(m->builder, value, type_like(m, value, to), "");
    }
    Val zero = LLVMConstNull(LLVMTypeOf(value));
    return LLVMBuildICmp(m->builder, LLVMIntNE, value, zero, "");
}

LLVMValueRef convert_value(const MathCtx *m, LLVMValueRef value, ConvertType from, ConvertType to) {
    if (from == to) return value;
    if (is_whole(from) && is_whole(to)) return convert_whole(m, value, to);
    if (from == CONVERT_I32 && to == CONVERT_F32) {
        return LLVMBuildSIToFP(m->builder, value, type_like(m, value, to), "");
    }
    Val number = to_number(m, value, from);
    return from_number(m, number, to);
}
