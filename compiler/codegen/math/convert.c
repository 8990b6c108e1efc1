/* Conversions between element types. A conversion to a type narrower than f32 goes through f32. If
 * the source has more digits than f32, the step to f32 rounds to odd, so that the second rounding
 * still sees whether digits were lost. */
#include "codegen/math/math_ops.h"

#include "codegen/math/convert.h"
#include "codegen/math/prim.h"
#include "machine/machine.h"

#include <assert.h>
#include <math.h>

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

/* Floats that are held as bits: the functions of functions.def that give the f32 of bits, and the
 * bits of an f32. */
typedef struct HeldFloat {
    Dtype dtype;
    const char *value, *bits;
} HeldFloat;

static const HeldFloat held_floats[] = {{DT_BF16, "bf16_value", "bf16_bits"},
                                        {DT_F8E4M3, "f8e4m3_value", "f8e4m3_bits"},
                                        {DT_F8E5M2, "f8e5m2_value", "f8e5m2_bits"}};

static const HeldFloat *held_float(const Codegen *k, Dtype dtype) {
    for (size_t i = 0; i < sizeof held_floats / sizeof *held_floats; i++)
        if (held_floats[i].dtype == dtype) return &held_floats[i];
    ice(k->arena, "no conversion of the bits of %s", dtype_name(dtype));
}

static Val bits_to_f32(const Codegen *k, Val value, Dtype from) {
    Val wide = k_zext(k, value, type_like(k, value, DT_I32));
    return math_unary(k, held_float(k, from)->value,
                      k_bitcast(k, wide, type_like(k, value, DT_F32)));
}

static Val f32_to_bits(const Codegen *k, Val value, Dtype to) {
    Val bits = math_unary(k, held_float(k, to)->bits, k_fence(k, value));
    return k_trunc(k, bits, type_like(k, value, to));
}

/* The sign extension of `value` to `type`. Lanes of i64 that were cut to at most 16 bits are cut to
 * 32 bits and shifted: LLVM 22 for AVX2 compares four such lanes without having cut them, and fails
 * ("Cannot emit physreg copy instruction"). */
static Val sign_extended(const Codegen *k, Val value, LLVMTypeRef type) {
    Val whole = value;
    while (LLVMIsATruncInst(whole)) whole = LLVMGetOperand(whole, 0);
    bool is_cut = k_element_type(whole) == k->i64 && value != whole && k_is_vector(value);
    if (!is_cut || type != k_vector_of(k->i32, k_lanes(value)) || !k->target->has->cores)
        return k_sext(k, value, type);
    Val bits = k_trunc(k, whole, type);
    int64_t n_cut = 32 - (int64_t)LLVMGetIntTypeWidth(k_element_type(value));
    Val by = k_splat(k, k_i32(k, n_cut), k_lanes(value));
    return k_ashr(k, k_shl(k, bits, by), by);
}

/* Integers and bools among themselves. */
static Val convert_whole(const Codegen *k, Val value, Dtype from, Dtype to) {
    LLVMTypeRef type = type_like(k, value, to);
    if (dtype_is_bool(to)) return k_ne(k, value, LLVMConstNull(LLVMTypeOf(value)));
    if (dtype_is_bool(from)) return k_zext(k, value, type);
    uint32_t n_from = dtype_bytes(from), n_to = dtype_bytes(to);
    if (n_from == n_to) return value;
    if (n_from > n_to) return k_trunc(k, value, type);
    return dtype_is_unsigned(from) ? k_zext(k, value, type) : sign_extended(k, value, type);
}

/* llvm.fptosi.sat in vectors: LLVM would convert a CPU's lanes one by one. A conversion of a value
 * outside the range has no result, so such lanes convert 0. */
static Val saturate_lanes(const Codegen *k, Val value, LLVMTypeRef type, Dtype to) {
    uint32_t lanes = k_lanes(value);
    int n_bits = 8 * (int)dtype_bytes(to);
    bool is_unsigned = dtype_is_unsigned(to);
    LLVMTypeRef real = LLVMTypeOf(value), one = LLVMGetElementType(real);
    double first = is_unsigned ? 0 : -ldexp(1, n_bits - 1), past = ldexp(1, n_bits - !is_unsigned);
    Val begin = fp_splat(k, LLVMConstReal(one, first), lanes);
    Val end = fp_splat(k, LLVMConstReal(one, past), lanes);
    Val is_low = k_fcmp(k, LLVMRealOLT, value, begin), is_high = k_fcmp(k, LLVMRealOGE, value, end);
    Val is_outside = k_or(k, k_fcmp(k, LLVMRealULT, value, begin), is_high);
    Val inside = k_select(k, is_outside, LLVMConstNull(real), value);
    Val least = k_splat(k, k_whole(k, to, dtype_saturate(to, -INFINITY)), lanes);
    Val most = k_splat(k, k_whole(k, to, dtype_saturate(to, INFINITY)), lanes);
    Val whole = is_unsigned ? k_fptoui(k, inside, type) : k_fptosi(k, inside, type);
    return k_select(k, is_high, most, k_select(k, is_low, least, whole));
}

/* Truncates in the compute type, then limits to the dtype's range. */
static Val float_to_int(const Codegen *k, Val value, Dtype to) {
    bool is_vector = k_lanes(value) > 1 && k->target->has->cores;
    bool is_word = dtype_bytes(to) == WORD_BYTES; /* its vectors are no slower than wider ones */
    Dtype compute = is_vector && is_word ? to : dtype_compute(to);
    LLVMTypeRef types[] = {type_like(k, value, compute), LLVMTypeOf(value)};
    Val whole = is_vector ? saturate_lanes(k, value, types[0], compute)
                          : k_intrinsic_of(k, "llvm.fptosi.sat", types, 2, &value, 1);
    if (compute == to) return whole;
    Val least = k_whole(k, compute, dtype_saturate(to, -INFINITY));
    Val most = k_whole(k, compute, dtype_saturate(to, INFINITY));
    whole = math_prim(k, PRIM_MAX, compute, whole, k_splat(k, least, k_lanes(value)), NULL);
    whole = math_prim(k, PRIM_MIN, compute, whole, k_splat(k, most, k_lanes(value)), NULL);
    return convert_whole(k, whole, compute, to);
}

/* An i64 beyond 2^53 whose lowest bit that a double keeps stands for the bits that it drops
 * (rounding to odd). */
static Val odd_of_i64(const Codegen *k, Val value) {
    uint32_t lanes = k_lanes(value);
    Val dropped = k_splat(k, k_i64(k, 0x7ff), lanes), kept = k_splat(k, k_i64(k, ~0x7ff), lanes);
    Val zero = LLVMConstNull(LLVMTypeOf(value)), odd = k_splat(k, k_i64(k, 0x800), lanes);
    Val is_inexact = k_ne(k, k_and(k, value, dropped), zero);
    Val wide = k_and(k, k_or(k, value, k_select(k, is_inexact, odd, zero)), kept);
    Val least = k_splat(k, k_i64(k, -(INT64_C(1) << 53)), lanes);
    Val most = k_splat(k, k_i64(k, INT64_C(1) << 53), lanes);
    Val is_at_most = k_sle(k, value, most);
    Val is_exact = k_and(k, k_sge(k, value, least), is_at_most);
    return k_select(k, is_exact, value, wide);
}

/* The same of 32 bits, of which an f32 keeps 24. */
static Val odd_of_word(const Codegen *k, Val value, bool is_unsigned) {
    uint32_t lanes = k_lanes(value);
    Val dropped = k_splat(k, k_i32(k, 0xff), lanes), kept = k_splat(k, k_i32(k, ~0xff), lanes);
    Val zero = LLVMConstNull(LLVMTypeOf(value)), odd = k_splat(k, k_i32(k, 0x100), lanes);
    Val is_inexact = k_ne(k, k_and(k, value, dropped), zero);
    Val wide = k_and(k, k_or(k, value, k_select(k, is_inexact, odd, zero)), kept);
    int32_t below = is_unsigned ? 0 : 1 << 24; /* the number of exact negative ones */
    Val number = k_add(k, value, k_splat(k, k_i32(k, below), lanes));
    Val is_exact = k_ule(k, number, k_splat(k, k_i32(k, below + (1 << 24)), lanes));
    return k_select(k, is_exact, value, wide);
}

/* An integer of at most 32 bits as f32 or f64, in vectors of a CPU, which has none of i64. */
static Val word_to_number(const Codegen *k, Val value, Dtype from, Dtype to) {
    bool is_word = dtype_bytes(from) == WORD_BYTES,
         is_unsigned = is_word && dtype_is_unsigned(from);
    LLVMTypeRef type = type_like(k, value, dtype_is_double(to) ? DT_F64 : DT_F32);
    if (!is_word) value = convert_whole(k, value, from, DT_I32);
    if (is_word && dtype_is_narrow(to)) value = odd_of_word(k, value, is_unsigned);
    return is_unsigned ? k_uitofp(k, value, type) : k_sitofp(k, value, type);
}

/* An integer as f32 or f64. For narrower floats it is exact, or rounded to odd. */
static Val int_to_number(const Codegen *k, Val value, Dtype from, Dtype to) {
    if (k->target->has->cores && dtype_bytes(from) <= WORD_BYTES)
        return word_to_number(k, value, from, to);
    Dtype compute = dtype_compute(from);
    value = convert_whole(k, value, from, compute);
    if (dtype_is_single(to)) return k_sitofp(k, value, type_like(k, value, to));
    if (dtype_is_wide(compute) && dtype_is_narrow(to)) value = odd_of_i64(k, value);
    return k_sitofp(k, value, type_like(k, value, DT_F64));
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
        return bits_to_f32(k, value, from);
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
        return dtype_is_float(to) ? f32_to_bits(k, value, to) : float_to_int(k, value, to);
    case HELD_BIT:
        break;
    }
    return k_fcmp(k, LLVMRealUNE, value, LLVMConstNull(p.type));
}

Val convert_value(const Codegen *k, Val value, Dtype from, Dtype to) {
    if (from == to) return value;
    if (!dtype_is_float(from) && !dtype_is_float(to)) return convert_whole(k, value, from, to);
    if (!dtype_is_int(from)) return from_number(k, to_number(k, value, from), to);
    return from_number(k, int_to_number(k, value, from, to), to);
}

static Val bits_of_float(const Codegen *k, Val value, Dtype from) {
    LLVMTypeRef bit = LLVMIntTypeInContext(k->context, 8 * dtype_bytes(from));
    Val number = to_number(k, value, from);
    Val is_nan = k_fcmp(k, LLVMRealUNO, number, number);
    Val bits = k_bitcast(k, value, k_vector_of(bit, k_lanes(value)));
    Val nan = k_splat(k, LLVMConstInt(bit, dtype_bits(from, (double)NAN), 0), k_lanes(value));
    return k_select(k, is_nan, nan, bits);
}

Val bitcast_value(const Codegen *k, Val value, Dtype from, Dtype to) {
    if (dtype_is_float(from)) value = bits_of_float(k, value, from);
    if (dtype_is_bool(from)) return k_zext(k, value, type_like(k, value, to));
    if (dtype_is_bool(to)) return k_ne(k, value, LLVMConstNull(LLVMTypeOf(value)));
    return k_bitcast(k, value, type_like(k, value, to));
}
