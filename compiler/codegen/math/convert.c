/* Conversions between element types. A conversion to a type narrower than f32 goes through f32. If
 * the source has more digits than f32, the step to f32 rounds to odd, so that the second rounding
 * still sees whether digits were lost. */
#include "codegen/math/math_ops.h"

#include "codegen/math/convert.h"

#include <assert.h>

enum { CONVERT_MAX_LANES = 32 };

static LLVMTypeRef type_like(const Codegen *k, Val value, Dtype type) {
    return k_value_type(k, type, k_lanes(value));
}

/* Extends lanes in pairs, as bits. If each lane were extended by itself, ptxas would also emit the
 * rounding that computed the lane once per lane, which takes twice as long as rounding a pair. */
static Val pairs_to_f32(const Codegen *k, Val value) {
    unsigned lanes = k_lanes(value), n_pairs = lanes / 2;
    LLVMTypeRef words = LLVMVectorType(k->i32, n_pairs), halves = LLVMVectorType(k->f32, n_pairs);
    Val order[CONVERT_MAX_LANES];
    for (unsigned i = 0; i < lanes; i++) order[i] = k_i32(k, i / 2 + i % 2 * n_pairs);
    Val bits = k_bitcast(k, value, words);
    Val low = k_shl(k, bits, fp_splat(k, k_i32(k, 16), n_pairs));
    Val mask = fp_splat(k, LLVMConstInt(k->i32, 0xffff0000, 0), n_pairs);
    Val high = k_and(k, bits, mask);
    low = k_bitcast(k, low, halves);
    high = k_bitcast(k, high, halves);
    return k_shuffle(k, low, high, LLVMConstVector(order, lanes));
}

static Val bfloat_to_f32(const Codegen *k, Val value) {
    unsigned lanes = k_lanes(value);
    if (lanes % 2 == 0 && lanes <= CONVERT_MAX_LANES) return pairs_to_f32(k, value);
    return k_fpext(k, value, type_like(k, value, DT_F32));
}

/* A float that is held as bits is the upper half of an f32. */
#define DTYPE(sym, kind, compute, exponent, digits, native, soft, ...)             \
    static_assert((KIND_##kind != KIND_FLOAT) || (exponent == 8 && digits == 8) || \
                      (HELD_##native != HELD_BITS && HELD_##soft != HELD_BITS),    \
                  #sym ": bits_to_f32 and f32_to_bits do not know its format");
#include "ir/dtype.def"
static_assert(DTS_INT == 1 << DT_I32, "conversions know one integer dtype");

static Val bits_to_f32(const Codegen *k, Val value) {
    Val wide = k_zext(k, value, type_like(k, value, DT_I32));
    Val bits = k_shl(k, wide, k_splat(k, k_i32(k, 16), k_lanes(value)));
    return k_bitcast(k, bits, type_like(k, value, DT_F32));
}

static Val f32_to_bits(const Codegen *k, Val value, LLVMTypeRef type) {
    return k_trunc(k, math_unary(k, "bf16_bits", value), type);
}

static Val float_to_i32(const Codegen *k, Val value) {
    LLVMTypeRef types[] = {type_like(k, value, DT_I32), LLVMTypeOf(value)};
    return k_intrinsic_of(k, "llvm.fptosi.sat", types, 2, &value, 1);
}

/* The value as f32 or f64, exactly: unchanged if it is one of the two, otherwise in the narrower
 * one that holds every value of `from`. */
static Val to_number(const Codegen *k, Val value, Dtype from) {
    LLVMTypeRef f32 = type_like(k, value, DT_F32);
    Val one = LLVMConstReal(k->f32, 1.0);
    switch (k_held(k, from)) {
    case HELD_DOUBLE:
    case HELD_FLOAT:
        return value;
    case HELD_HALF:
        return k_fpext(k, value, f32);
    case HELD_BFLOAT:
        return bfloat_to_f32(k, value);
    case HELD_BITS:
        if (dtype_is_float(from)) return bits_to_f32(k, value);
        return k_sitofp(k, value, type_like(k, value, DT_F64));
    case HELD_BIT:
        break;
    }
    return k_select(k, value, k_splat(k, one, k_lanes(value)), LLVMConstNull(f32));
}

static Val from_number(const Codegen *k, Val value, Dtype to) {
    Fp p = fp_of(k, value);
    LLVMTypeRef type = type_like(k, value, to);
    if (p.is_f64 && dtype_is_narrow(to)) value = math_unary(k, "f32_by_odd", value);
    switch (k_held(k, to)) {
    case HELD_DOUBLE:
        return p.is_f64 ? value : k_fpext(k, value, type);
    case HELD_FLOAT:
        return p.is_f64 ? k_fptrunc(k, value, type) : value;
    case HELD_HALF:
    case HELD_BFLOAT:
        return k_fptrunc(k, value, type);
    case HELD_BITS:
        return dtype_is_float(to) ? f32_to_bits(k, value, type) : float_to_i32(k, value);
    case HELD_BIT:
        break;
    }
    return k_fcmp(k, LLVMRealUNE, value, LLVMConstNull(p.type));
}

static Val convert_whole(const Codegen *k, Val value, Dtype to) {
    if (dtype_is_int(to)) return k_zext(k, value, type_like(k, value, to));
    Val zero = LLVMConstNull(LLVMTypeOf(value));
    return k_ne(k, value, zero);
}

Val convert_value(const Codegen *k, Val value, Dtype from, Dtype to) {
    if (from == to) return value;
    if (!dtype_is_float(from) && !dtype_is_float(to)) return convert_whole(k, value, to);
    if (dtype_is_int(from) && dtype_is_single(to)) {
        return k_sitofp(k, value, type_like(k, value, to));
    }
    Val number = to_number(k, value, from);
    return from_number(k, number, to);
}
