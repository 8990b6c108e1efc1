/* Floats. See emu.h. */
#include "emulator/emu.h"

#include "interp/tensor.h"

#include <math.h>
#include <string.h>

enum { NAN_32 = 0x7FFFFFFF, NAN_16 = 0x7FFF };
static const uint64_t nan_64 = UINT64_C(0x7FFFFFFFFFFFFFFF);

/* Conversions. */

float emu_float(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

uint64_t emu_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? NAN_32 : bits;
}

double emu_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t emu_double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? nan_64 : bits;
}

/* Rounds to the nearest number of a 16-bit dtype. */
static uint64_t narrowed(Dtype dtype, double value) {
    uint8_t bytes[2];
    if (isnan(value)) return NAN_16;
    dtype_store(dtype, dtype_round(dtype, value), bytes);
    return bytes[0] | (uint64_t)bytes[1] << 8;
}

float emu_of_bf16(uint64_t bits) {
    return emu_float((bits & 0xFFFF) << 16);
}

uint64_t emu_to_bf16(double value) {
    if (isnan(value)) return NAN_16;
    if ((double)(float)value == value) {
        uint64_t bits = emu_bits((float)value);
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    }
    return narrowed(DT_BF16, value);
}

float emu_of_f16(uint64_t bits) {
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023, sign = (uint32_t)bits >> 15 & 1;
    if (exponent == 0) return (sign ? -0x1p-24f : 0x1p-24f) * (float)fraction;
    exponent = exponent == 31 ? 255 : exponent + 112;
    return emu_float(sign << 31 | exponent << 23 | fraction << 13);
}

uint64_t emu_to_f16(double value) {
    return narrowed(DT_F16, value);
}

float emu_to_tf32(float value) {
    return (float)dtype_round_tf32(value);
}

/* One number of a type as a double, and back. */
static double value_of(EmuType type, uint64_t bits) {
    switch (type) {
    case EMU_BF16:
    case EMU_BF16X2:
        return emu_of_bf16(bits);
    case EMU_F16:
    case EMU_F16X2:
        return emu_of_f16(bits);
    case EMU_F64:
        return emu_double(bits);
    default:
        return emu_float(bits);
    }
}

static uint64_t number_of(EmuType type, double value) {
    switch (type) {
    case EMU_BF16:
    case EMU_BF16X2:
        return emu_to_bf16(value);
    case EMU_F16:
    case EMU_F16X2:
        return emu_to_f16(value);
    case EMU_F64:
        return emu_double_bits(value);
    default:
        return emu_bits((float)value);
    }
}

static bool is_pair(EmuType type) {
    return type == EMU_F16X2 || type == EMU_BF16X2;
}

/* Arithmetic. For narrower types double is exact enough: it has more than twice their bits plus
 * two. */

static double extreme(double a, double b, bool is_most) {
    if (isnan(a) || isnan(b)) return NAN;
    if (a == b) return signbit(a) == is_most ? b : a;
    return (a > b) == is_most ? a : b;
}

/* An approximation with an error as large as the PTX manual allows, whose size and sign depend on
 * the operands alone. NaN, infinity and 0 are exact. */
static double approximately(double exact, double operand, double relative, double absolute) {
    uint64_t hash = emu_double_bits(operand) * UINT64_C(0x9E3779B97F4A7C15);
    double share = (double)(int32_t)(uint32_t)(hash >> 32) * 0x1p-31;
    if (!isfinite(exact) || exact == 0) return exact;
    return exact + share * (relative * fabs(exact) + absolute);
}

/* The error of sine and cosine: 2^-20.5 within a period, 2^-14.7 within fifty, unbounded beyond. */
static double wave(double exact, double operand) {
    double size = fabs(operand);
    return approximately(exact, operand, 0,
                         size < 6.2832 ? 0x1.6ap-21
                         : size < 314  ? 0x1.3ap-15
                                       : 1);
}

static double log_to_base_2(double a) {
    bool is_near_1 = a > 0.5 && a < 2;
    return approximately(log2(a), a, is_near_1 ? 0 : 0x1p-22, is_near_1 ? 0x1p-22 : 0);
}

/* `test`: the operator, d(ivision within 2 ULP), or < and > for min and max. */
static double of_two(uint8_t test, double a, double b) {
    switch (test) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return a / b;
    case 'd':
        return approximately(a / b, a + 3 * b, 0x1.8p-23, 0);
    default:
        return extreme(a, b, test == '>');
    }
}

EmuOutcome emu_float_2(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EmuType type = inst->type;
    EMU_EACH_LANE(lane, mask) {
        uint64_t a = emu_get(warp, &inst->x[1], lane), b = emu_get(warp, &inst->x[2], lane);
        uint64_t result = number_of(type, of_two(inst->test, value_of(type, a), value_of(type, b)));
        if (is_pair(type))
            result |= number_of(type, of_two(inst->test, value_of(type, a >> 16),
                                             value_of(type, b >> 16)))
                      << 16;
        emu_set(warp, &inst->x[0], lane, result);
    }
    return EMU_GO_ON;
}

static uint64_t multiply_add(EmuType type, uint64_t a, uint64_t b, uint64_t c) {
    if (type == EMU_F32) return emu_bits(fmaf(emu_float(a), emu_float(b), emu_float(c)));
    return number_of(type, fma(value_of(type, a), value_of(type, b), value_of(type, c)));
}

/* Clamps to [0, 1]; NaN becomes 0. */
static float saturated(float value) {
    return value > 0 ? value < 1 ? value : 1 : 0;
}

/* `test`: s for f32 with saturation. */
EmuOutcome emu_fma(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t x[3];
        for (uint32_t i = 0; i < 3; i++) x[i] = emu_get(warp, &inst->x[1 + i], lane);
        uint64_t result = multiply_add(inst->type, x[0], x[1], x[2]);
        if (inst->test == 's') result = emu_bits(saturated(emu_float(result)));
        if (is_pair(inst->type))
            result |= multiply_add(inst->type, x[0] >> 16, x[1] >> 16, x[2] >> 16) << 16;
        emu_set(warp, &inst->x[0], lane, result);
    }
    return EMU_GO_ON;
}

static double flushed(EmuType type, double value) {
    double least = type == EMU_F64 ? 0x1p-1022 : 0x1p-126;
    return fabs(value) < least ? copysign(0, value) : value;
}

/* `test`: n(egative) a(bsolute) s(quare root) r(eciprocal) e(2 to the power) t(anh); a capital
 * letter flushes subnormals. Approximations: q, Q (square root, its reciprocal) l(ogarithm) i, o
 * (sine, cosine). */
static double of_one(EmuType type, uint8_t test, double a) {
    switch (test) {
    case 's':
        return sqrt(a);
    case 'r':
        return 1 / a;
    case 'R':
        return flushed(type, 1 / flushed(type, a));
    case 'e':
        return exp2(a);
    case 'E':
        return flushed(type, exp2(flushed(type, a)));
    case 'q':
        return approximately(sqrt(a), a, 0x1p-23 - 0x1p-24, 0);
    case 'Q':
        return approximately(1 / sqrt(a), a, 0x1.12p-23 - 0x1p-24, 0);
    case 'l':
        return log_to_base_2(a);
    case 'i':
        return wave(sin(a), a);
    case 'o':
        return wave(cos(a), a);
    default:
        return approximately(tanh(a), a, 0x1p-11, 0);
    }
}

static uint64_t sign_bits(EmuType type) {
    return type == EMU_F64   ? UINT64_C(1) << 63
           : type == EMU_F32 ? UINT64_C(1) << 31
           : is_pair(type)   ? 0x80008000u
                             : 0x8000;
}

EmuOutcome emu_float_1(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t a = emu_get(warp, &inst->x[1], lane), result;
        if (inst->test == 'n')
            result = a ^ sign_bits(inst->type);
        else if (inst->test == 'a')
            result = a & ~sign_bits(inst->type);
        else
            result = number_of(inst->type, of_one(inst->type, inst->test, value_of(inst->type, a)));
        /* an f64 reciprocal has only its upper half */
        if (inst->test == 'R' && inst->type == EMU_F64) result = result >> 32 << 32;
        emu_set(warp, &inst->x[0], lane, result);
    }
    return EMU_GO_ON;
}

/* `test`: = ! < l(<=) > g(>=), 1 both numbers, 0 not both numbers; a capital letter or + 128: also
 * true for NaN. */
static bool compares(uint8_t test, double a, double b) {
    bool is_unordered = isnan(a) || isnan(b);
    uint8_t plain = test & 127;
    if (plain == '1') return !is_unordered;
    if (plain == '0') return is_unordered;
    if (is_unordered) return test & 128;
    return plain == '='   ? a == b
           : plain == '!' ? a != b
           : plain == '<' ? a < b
           : plain == 'l' ? a <= b
           : plain == '>' ? a > b
                          : a >= b;
}

EmuOutcome emu_compare_float(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        double a = value_of(inst->type, emu_get(warp, &inst->x[1], lane));
        double b = value_of(inst->type, emu_get(warp, &inst->x[2], lane));
        emu_set(warp, &inst->x[0], lane, compares(inst->test, a, b));
    }
    return EMU_GO_ON;
}

/* Sets all bits where the comparison holds; for a pair, those of each half. */
EmuOutcome emu_set_float(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EmuType type = inst->from;
    uint32_t n = is_pair(type) ? 2 : 1;
    EMU_EACH_LANE(lane, mask) {
        uint64_t a = emu_get(warp, &inst->x[1], lane), b = emu_get(warp, &inst->x[2], lane);
        uint64_t result = 0, all = n == 2 ? 0xFFFF : UINT32_MAX;
        for (uint32_t i = 0; i < n; i++)
            if (compares(inst->test, value_of(type, a >> (16 * i)), value_of(type, b >> (16 * i))))
                result |= all << (16 * i);
        emu_set(warp, &inst->x[0], lane, result);
    }
    return EMU_GO_ON;
}

/* Conversions as instructions. */

static bool is_float(EmuType type) {
    return type >= EMU_F16;
}

/* `test` is the letter after "r" in PTX, for float to integer after "i": n z m p. */
static double to_whole(uint8_t test, double value) {
    return test == 'z'   ? trunc(value)
           : test == 'm' ? floor(value)
           : test == 'p' ? ceil(value)
                         : rint(value);
}

static uint64_t of_integer(EmuType from, uint64_t bits) {
    return from == EMU_S32   ? (uint64_t)(int64_t)(int32_t)bits
           : from == EMU_U32 ? (uint32_t)bits
           : from == EMU_U16 ? (uint16_t)bits
           : from == EMU_U8  ? (uint8_t)bits
                             : bits;
}

/* What sm_80 and later give for NaN: 0 as s32, the lowest number as s64. */
static uint64_t to_s64(double value) {
    if (isnan(value)) return (uint64_t)INT64_MIN;
    if (value >= 0x1p63) return INT64_MAX;
    return value < -0x1p63 ? (uint64_t)INT64_MIN : (uint64_t)(int64_t)value;
}

static uint64_t to_s32(double value) {
    if (isnan(value)) return 0;
    if (value >= 0x1p31) return INT32_MAX;
    if (value < -0x1p31) return (uint32_t)INT32_MIN;
    return (uint32_t)(int32_t)value;
}

static uint64_t convert(const EmuInst *inst, uint64_t bits) {
    EmuType to = inst->type, from = inst->from;
    if (!is_float(from)) {
        uint64_t whole = of_integer(from, bits);
        bool has_sign = from == EMU_S32 || from == EMU_S64;
        if (to == EMU_F32) return emu_bits(has_sign ? (float)(int64_t)whole : (float)whole);
        if (is_float(to)) return number_of(to, has_sign ? (double)(int64_t)whole : (double)whole);
        return to == EMU_U16                    ? (uint16_t)whole
               : to == EMU_U32 || to == EMU_S32 ? (uint32_t)whole
                                                : whole;
    }
    double value = value_of(from, bits);
    if (to == EMU_TF32) return emu_bits(emu_to_tf32((float)value));
    if (to == EMU_S64) return to_s64(to_whole(inst->test, value));
    if (!is_float(to)) return to_s32(to_whole(inst->test, value));
    bool keeps_type = to == from;
    return number_of(to, keeps_type ? to_whole(inst->test, value) : value);
}

EmuOutcome emu_convert(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t bits = emu_get(warp, &inst->x[1], lane);
        emu_set(warp, &inst->x[0], lane, convert(inst, bits));
    }
    return EMU_GO_ON;
}

/* Packs two f32 into a pair; the first is the upper half. */
EmuOutcome emu_convert_2(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        double above = emu_float(emu_get(warp, &inst->x[1], lane));
        double below = emu_float(emu_get(warp, &inst->x[2], lane));
        uint64_t pair = number_of(inst->type, above) << 16 | number_of(inst->type, below);
        emu_set(warp, &inst->x[0], lane, pair);
    }
    return EMU_GO_ON;
}
