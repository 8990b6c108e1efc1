/* Element types: their table and the reference rounding. The rounding works on the bits of a double
 * alone, so it depends neither on the machine's narrower types nor on its rounding mode. */
#include "ir/dtype.h"

#include <math.h>
#include <string.h>

typedef struct DtypeInfo {
    const char *name;
    uint32_t n_bytes;
    DtypeKind kind;
    Dtype compute;
} DtypeInfo;

static const DtypeInfo infos[DT_COUNT] = {
#define DTYPE(sym, nm, bytes, knd, comp) \
    [DT_##sym] = {.name = nm, .n_bytes = bytes, .kind = KIND_##knd, .compute = DT_##comp},
#include "ir/dtype.def"
};

const char *dtype_name(Dtype dtype) {
    return infos[dtype].name;
}

uint32_t dtype_bytes(Dtype dtype) {
    return infos[dtype].n_bytes;
}

DtypeKind dtype_kind(Dtype dtype) {
    return infos[dtype].kind;
}

Dtype dtype_compute(Dtype dtype) {
    return infos[dtype].compute;
}

bool dtype_by_name(const char *name, Dtype *dtype) {
    for (int i = 0; i < DT_COUNT; i++) {
        if (strcmp(infos[i].name, name) != 0) continue;
        *dtype = (Dtype)i;
        return true;
    }
    return false;
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

/* To a binary format of `precision` significant bits (the leading one counted), with exponents of
 * normal numbers from `min_exponent` to -min_exponent + 1.
 *
 * The bits of a double below the sign order its magnitude, and adding to them carries from the
 * fraction into the exponent. So rounding is: add just under half of the last kept place (exactly
 * half when the kept part is odd), then clear what is not kept. */
static double round_to_format(double value, int precision, int min_exponent) {
    uint64_t bits = bits_of(value), sign = bits >> 63 << 63, magnitude = bits ^ sign;
    int exponent = (int)(magnitude >> F64_FRACTION_BITS) - F64_BIAS;
    if (exponent == F64_EXPONENT_MASK - F64_BIAS) return value; /* infinity, NaN */
    int n_dropped = F64_FRACTION_BITS + 1 - precision;
    if (exponent < min_exponent) n_dropped += min_exponent - exponent;
    if (n_dropped > F64_FRACTION_BITS + 1) return double_of(sign); /* below half the least */
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
    int max_exponent = -min_exponent + 1;
    if ((int)(magnitude >> F64_FRACTION_BITS) - F64_BIAS > max_exponent)
        magnitude = (uint64_t)F64_EXPONENT_MASK << F64_FRACTION_BITS;
    return double_of(sign | magnitude);
}

/* Towards zero, saturating; NaN becomes 0. */
static double truncate_to_i32(double value) {
    if (isnan(value)) return 0;
    if (value <= INT32_MIN) return INT32_MIN;
    if (value >= INT32_MAX) return INT32_MAX;
    return (double)(int32_t)value;
}

double dtype_round(Dtype dtype, double value) {
    switch (dtype) {
    case DT_F64:
        return value;
    case DT_F32:
        return round_to_format(value, 24, -126);
    case DT_F16:
        return round_to_format(value, 11, -14);
    case DT_BF16:
        return round_to_format(value, 8, -126);
    case DT_I32:
        return truncate_to_i32(value);
    case DT_BOOL:
        return value != 0;
    case DT_COUNT:
        break;
    }
    return value;
}

/* Adding half of the last kept place to the magnitude, or a little less where that place is even,
 * carries into the exponent as it should. */
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
