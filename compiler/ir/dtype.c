/* Element types: their tables, the reference rounding, and elements as bits. The rounding uses only
 * integer arithmetic on the bits of a double, so it depends neither on the machine's narrower types
 * nor on its rounding mode. */
#include "ir/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* The table of frt_dtype.def. */
static const struct {
    const char *name, *safetensors;
    uint32_t n_bytes;
} stored[DT_COUNT] = {
#define X(symbol, number, nm, in_safetensors, bytes, map) \
    [number] = {.name = nm, .safetensors = in_safetensors, .n_bytes = bytes},
#include <frt_dtype.def>
#undef X
};

enum { INFINITY_FIN = false, INFINITY_INF = true };

static const DtypeInfo infos[DT_COUNT] = {
#define DTYPE(sym, knd, comp, exponent, digits, inf, natively, softly, operand, descrs) \
    [DT_##sym] = {.kind = KIND_##knd,                                                   \
                  .compute = DT_##comp,                                                 \
                  .n_exponent_bits = exponent,                                          \
                  .n_digits = digits,                                                   \
                  .has_infinity = INFINITY_##inf,                                       \
                  .native = HELD_##natively,                                            \
                  .soft = HELD_##softly,                                                \
                  .mma = MMA_##operand,                                                 \
                  .npy = descrs},
#include "ir/dtype.def"
};

enum {
    N_ROWS = 0
#define DTYPE(...) +1
#include "ir/dtype.def"
};
static_assert((int)N_ROWS == (int)DT_COUNT, "dtype.def has a row for each of frt_dtype.def");

const DtypeInfo *dtype_info(Dtype dtype) {
    return &infos[dtype];
}

const char *dtype_name(Dtype dtype) {
    return stored[dtype].name;
}

const char *dtype_safetensors(Dtype dtype) {
    return stored[dtype].safetensors;
}

uint32_t dtype_bytes(Dtype dtype) {
    return stored[dtype].n_bytes;
}

DtypeKind dtype_kind(Dtype dtype) {
    return infos[dtype].kind;
}

Dtype dtype_compute(Dtype dtype) {
    return infos[dtype].compute;
}

Dtype dtype_accumulator(Dtype dtype) {
    return dtype_is_unsigned(dtype) && dtype_is_wide(dtype_compute(dtype)) ? dtype
                                                                           : dtype_compute(dtype);
}

bool dtype_by_name(const char *name, Dtype *dtype) {
    for (int i = 0; i < DT_COUNT; i++) {
        if (strcmp(stored[i].name, name) != 0) continue;
        *dtype = (Dtype)i;
        return true;
    }
    return false;
}

bool dtype_is_reserved(const char *name) {
    Dtype dtype;
    return dtype_by_name(name, &dtype) && dtype <= DT_BOOL;
}

typedef struct FloatFormat {
    uint32_t n_fraction_bits;
    int32_t bias;
    uint32_t n_exponent_bits;
    bool has_infinity;
} FloatFormat;

/* The format of a float dtype; zeros for an integer dtype. */
static FloatFormat format_of(Dtype dtype) {
    const DtypeInfo *info = &infos[dtype];
    if (info->kind != KIND_FLOAT) return (FloatFormat){0};
    return (FloatFormat){.n_fraction_bits = info->n_digits - 1,
                         .bias = (1 << (info->n_exponent_bits - 1)) - 1,
                         .n_exponent_bits = info->n_exponent_bits,
                         .has_infinity = info->has_infinity};
}

enum { F64_FRACTION_BITS = 52, F64_BIAS = 1023, F64_EXPONENT_MASK = 2047 };

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double power_of_2(int exponent) {
    if (exponent <= -F64_BIAS || exponent > F64_BIAS) return ldexp(1, exponent);
    return double_of((uint64_t)(exponent + F64_BIAS) << F64_FRACTION_BITS);
}

/* Rounds to a binary format of `precision` significant bits (the leading one counted), whose normal
 * numbers have exponents from `min_exponent` on.
 *
 * The bits of a double below the sign order its magnitude, and a sum on them carries from the
 * fraction into the exponent. So rounding adds just under half of the last kept place (exactly half
 * if the kept part is odd), and then clears all lower bits. */
static double round_to_format(double value, int precision, int min_exponent) {
    uint64_t bits = bits_of(value), sign = bits >> 63 << 63, magnitude = bits ^ sign;
    int exponent = (int)(magnitude >> F64_FRACTION_BITS) - F64_BIAS;
    if (exponent == F64_EXPONENT_MASK - F64_BIAS) return value; /* infinity, NaN */
    int n_dropped = F64_FRACTION_BITS + 1 - precision;
    if (exponent < min_exponent) n_dropped += min_exponent - exponent;
    if (n_dropped > F64_FRACTION_BITS + 1)
        return double_of(sign); /* less than half of the least
                                 * subnormal */
    uint64_t one = (uint64_t)1 << F64_FRACTION_BITS;
    if (n_dropped == F64_FRACTION_BITS + 1) { /* only the leading one reaches the half place */
        bool rounds_up = (magnitude & (one - 1)) != 0;
        double least =
            double_of((uint64_t)(min_exponent - precision + 1 + F64_BIAS) << F64_FRACTION_BITS);
        return double_of(sign | (rounds_up ? bits_of(least) : 0));
    }
    uint64_t place = (uint64_t)1 << n_dropped;
    /* With every fraction bit dropped the lowest kept bit is the implicit one: odd. */
    bool is_odd = n_dropped == F64_FRACTION_BITS || (magnitude & place) != 0;
    magnitude += place / 2 - 1 + is_odd;
    magnitude &= ~(place - 1);
    return double_of(sign | magnitude);
}

static int64_t int_max(Dtype dtype) {
    return (int64_t)(UINT64_MAX >> (64 - infos[dtype].n_digits));
}

static int64_t int_min(Dtype dtype) {
    if (dtype_is_unsigned(dtype)) return 0;
    return -int_max(dtype) - 1;
}

int64_t dtype_saturate(Dtype dtype, double value) {
    if (infos[dtype].kind == KIND_BOOL) return value != 0;
    if (isnan(value)) return 0;
    if (value <= (double)int_min(dtype)) return int_min(dtype);
    return value >= (double)int_max(dtype) ? int_max(dtype) : (int64_t)value;
}

int64_t dtype_wrap(Dtype dtype, int64_t value) {
    if (infos[dtype].kind == KIND_BOOL) return value != 0;
    uint64_t below = (uint64_t)int_max(dtype), sign = below + 1;
    uint64_t low = (uint64_t)value & below;
    if (dtype_is_unsigned(dtype) || !((uint64_t)value & sign)) return (int64_t)low;
    return -(int64_t)(below - low) - 1;
}

/* Below 64 bits, the lowest bit that a double keeps stands for all bits that it drops (rounding to
 * odd), so the second rounding sees them. */
double dtype_round_int(Dtype dtype, int64_t value) {
    const int64_t dropped = 0x7ff, exact = (int64_t)1 << 53;
    if (dtype_is_double(dtype) || (value >= -exact && value <= exact))
        return dtype_round(dtype, (double)value);
    if (value & dropped) value |= dropped + 1;
    return dtype_round(dtype, (double)(value & ~dropped));
}

double dtype_round(Dtype dtype, double value) {
    switch (infos[dtype].kind) {
    case KIND_FLOAT:
        if (dtype_is_double(dtype)) return value;
        value = round_to_format(value, (int)infos[dtype].n_digits, 1 - format_of(dtype).bias);
        if (!(fabs(value) > dtype_max(dtype))) return value;
        return copysign(infos[dtype].has_infinity ? (double)INFINITY : dtype_max(dtype), value);
    case KIND_INT:
        return (double)dtype_saturate(dtype, value);
    case KIND_BOOL:
        break;
    }
    return value != 0;
}

/* Adds half of the last kept place to the magnitude, or a little less if that place is even. The
 * sum carries into the exponent. */
double dtype_round_tf32(double value) {
    const uint32_t half = 1u << 12;
    if (isnan(value)) return value;
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    bits = (bits + half - 1 + (bits / (2 * half) & 1)) & ~(2 * half - 1);
    memcpy(&narrow, &bits, sizeof narrow);
    return narrow;
}

/* Bytes. */

static uint64_t float_to_bits(FloatFormat f, double value) {
    uint64_t sign = signbit(value) ? (uint64_t)1 << (f.n_fraction_bits + f.n_exponent_bits) : 0;
    uint64_t max_field = ((uint64_t)1 << f.n_exponent_bits) - 1;
    if (isnan(value) && !f.has_infinity) return sign | (((max_field + 1) << f.n_fraction_bits) - 1);
    if (isnan(value))
        return sign | max_field << f.n_fraction_bits | (uint64_t)1 << (f.n_fraction_bits - 1);
    if (isinf(value)) return sign | max_field << f.n_fraction_bits;
    if (value == 0) return sign;
    uint64_t magnitude = bits_of(fabs(value));
    int field = (int)(magnitude >> F64_FRACTION_BITS) - F64_BIAS + f.bias;
    if (field < 1) /* subnormal: counted in units of the least place */
        return sign | (uint64_t)ldexp(fabs(value), f.bias - 1 + (int)f.n_fraction_bits);
    uint64_t fraction = magnitude & (((uint64_t)1 << F64_FRACTION_BITS) - 1);
    return sign | (uint64_t)field << f.n_fraction_bits |
           fraction >> ((uint32_t)F64_FRACTION_BITS - f.n_fraction_bits);
}

static double float_from_bits(FloatFormat f, uint64_t bits) {
    uint64_t most = ((uint64_t)1 << f.n_fraction_bits) - 1, fraction = bits & most;
    uint64_t max_field = ((uint64_t)1 << f.n_exponent_bits) - 1;
    uint64_t field = bits >> f.n_fraction_bits & max_field;
    uint64_t is_negative = bits >> (f.n_fraction_bits + f.n_exponent_bits) & 1;
    double sign = is_negative ? -1 : 1;
    if (field == max_field && !f.has_infinity && fraction == most) return NAN;
    if (field == max_field && f.has_infinity) return fraction ? NAN : sign * INFINITY;
    if (field == 0) return sign * ldexp((double)fraction, 1 - f.bias - (int)f.n_fraction_bits);
    uint64_t exponent = field + (uint64_t)(F64_BIAS - f.bias);
    return double_of(is_negative << 63 | exponent << F64_FRACTION_BITS |
                     fraction << ((uint32_t)F64_FRACTION_BITS - f.n_fraction_bits));
}

uint64_t dtype_bits(Dtype dtype, double value) {
    switch (infos[dtype].kind) {
    case KIND_FLOAT:
        return float_to_bits(format_of(dtype), value);
    case KIND_INT:
        return (uint64_t)dtype_saturate(dtype, value);
    case KIND_BOOL:
        break;
    }
    return value != 0;
}

static void store_bits(Dtype dtype, uint64_t bits, uint8_t *bytes) {
    for (uint32_t i = 0; i < dtype_bytes(dtype); i++) bytes[i] = (uint8_t)(bits >> 8 * i & 0xFF);
}

static uint64_t load_bits(Dtype dtype, const uint8_t *bytes) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < dtype_bytes(dtype); i++) bits |= (uint64_t)bytes[i] << 8 * i;
    return bits;
}

void dtype_store(Dtype dtype, double value, uint8_t *bytes) {
    store_bits(dtype, dtype_bits(dtype, isnan(value) ? (double)NAN : value), bytes);
}

void dtype_store_int(Dtype dtype, int64_t value, uint8_t *bytes) {
    store_bits(dtype, (uint64_t)dtype_wrap(dtype, value), bytes);
}

/* Maps the numbers of a dtype to integers in the same order. */
static int64_t ordinal(Dtype dtype, double value) {
    uint8_t bytes[8] = {0};
    uint64_t bits = 0;
    dtype_store(dtype, fabs(value), bytes);
    for (int i = 7; i >= 0; i--) bits = bits << 8 | bytes[i];
    return signbit(value) ? -(int64_t)bits : (int64_t)bits;
}

double dtype_ulps(Dtype dtype, double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : NAN;
    if (dtype_kind(dtype) != KIND_FLOAT) return fabs(a - b);
    int64_t from = ordinal(dtype, a), to = ordinal(dtype, b);
    return (double)(from < to ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to);
}

double dtype_load(Dtype dtype, const uint8_t *bytes) {
    if (dtype_is_float(dtype)) return float_from_bits(format_of(dtype), load_bits(dtype, bytes));
    return (double)dtype_load_int(dtype, bytes);
}

int64_t dtype_load_int(Dtype dtype, const uint8_t *bytes) {
    return dtype_wrap(dtype, (int64_t)load_bits(dtype, bytes));
}

/* Facts about float dtypes. */

bool dtype_is_bfloat(Dtype dtype) {
    return infos[dtype].native == HELD_BFLOAT;
}

bool dtype_is_paired(Dtype dtype, bool has_bf16) {
    switch (infos[dtype].native) {
    case HELD_HALF:
        return true;
    case HELD_BFLOAT:
        return has_bf16;
    case HELD_DOUBLE:
    case HELD_FLOAT:
    case HELD_BITS:
    case HELD_BIT:
        break;
    }
    return false;
}

bool dtype_is_soft(Dtype dtype) {
    return dtype_is_float(dtype) && infos[dtype].soft == HELD_BITS;
}

bool dtype_widens(Dtype from, Dtype to) {
    const DtypeInfo *narrow = &infos[from], *wide = &infos[to];
    if (from == to || narrow->kind == KIND_BOOL) return true;
    if (narrow->n_digits > wide->n_digits || wide->kind == KIND_BOOL) return false;
    if (wide->kind == KIND_INT)
        return narrow->kind == KIND_INT && (dtype_is_unsigned(from) || !dtype_is_unsigned(to));
    return narrow->n_exponent_bits <= wide->n_exponent_bits;
}

double dtype_max(Dtype dtype) {
    FloatFormat f = format_of(dtype);
    double fraction = power_of_2(-(int)f.n_fraction_bits);
    if (!f.has_infinity) return (2 - 2 * fraction) * power_of_2(f.bias + 1); /* one is NaN */
    return (2 - fraction) * power_of_2(f.bias);
}

double dtype_ulp(Dtype dtype, double value) {
    FloatFormat f = format_of(dtype);
    int exponent, least = 1 - f.bias; /* exponent of the least normal number */
    if (isinf(value)) return power_of_2(f.bias - (int)f.n_fraction_bits);
    frexp(value, &exponent);
    if (value == 0 || exponent - 1 < least) exponent = least + 1;
    return power_of_2(exponent - 1 - (int)f.n_fraction_bits);
}

double dtype_distance(Dtype dtype, double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : NAN;
    if (a == b) return 0;
    if (dtype_kind(dtype) != KIND_FLOAT) return fabs(a - b);
    double max = dtype_max(dtype), beyond = 0;
    if (isinf(a)) {
        a = copysign(max, a);
        beyond += dtype_ulp(dtype, INFINITY);
    }
    if (isinf(b)) {
        b = copysign(max, b);
        beyond += dtype_ulp(dtype, INFINITY);
    }
    return fabs(a - b) + beyond;
}
