/* Host tensors: extents, and elements decoded from bytes by arithmetic. */
#include "interp/tensor.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

int64_t tensor_n_elems(const Tensor *tensor) {
    int64_t n = 1;
    for (uint32_t k = 0; k < tensor->rank; k++)
        if (tensor->dims[k] == 0) return 0;
    for (uint32_t k = 0; k < tensor->rank; k++) {
        if (tensor->dims[k] < 0 || tensor->dims[k] > TENSOR_MAX_ELEMS / n) return -1;
        n *= tensor->dims[k];
    }
    return n;
}

bool tensor_new(Arena *arena, Dtype dtype, uint32_t rank, const int64_t *dims, Tensor *out) {
    Tensor tensor = {.dtype = dtype, .rank = rank}; /* a local, because `dims` may be out->dims */
    for (uint32_t k = 0; k < rank; k++) {
        if (dims[k] < 0) return false;
        tensor.dims[k] = dims[k];
    }
    int64_t n = tensor_n_elems(&tensor);
    if (n < 0) return false;
    tensor.data = arena_array(arena, double, (size_t)n);
    *out = tensor;
    return true;
}

bool tensor_same_shape(const Tensor *a, const Tensor *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t k = 0; k < a->rank; k++)
        if (a->dims[k] != b->dims[k]) return false;
    return true;
}

void tensor_strides(const Tensor *tensor, int64_t strides[TENSOR_MAX_RANK]) {
    int64_t stride = 1;
    for (uint32_t k = tensor->rank; k-- > 0;) {
        strides[k] = stride;
        stride *= tensor->dims[k];
    }
}

const char *tensor_type_str(const Tensor *tensor, Arena *arena) {
    Text text = {.arena = arena};
    text_printf(&text, "%s[", dtype_name(tensor->dtype));
    for (uint32_t k = 0; k < tensor->rank; k++)
        text_printf(&text, "%s%lld", k ? ", " : "", (long long)tensor->dims[k]);
    text_puts(&text, "]");
    return text_str(&text);
}

/* Bytes. */

typedef struct FloatFormat {
    uint32_t n_fraction_bits;
    int32_t bias;
    uint32_t n_exponent_bits;
} FloatFormat;

static FloatFormat format_of(Dtype dtype) {
    switch (dtype) {
    case DT_F64:
        return (FloatFormat){52, 1023, 11};
    case DT_F32:
        return (FloatFormat){23, 127, 8};
    case DT_F16:
        return (FloatFormat){10, 15, 5};
    case DT_BF16:
        return (FloatFormat){7, 127, 8};
    case DT_I32:
    case DT_BOOL:
    case DT_COUNT:
        break;
    }
    return (FloatFormat){0};
}

static uint64_t float_to_bits(FloatFormat f, double value) {
    uint64_t sign = signbit(value) ? (uint64_t)1 << (f.n_fraction_bits + f.n_exponent_bits) : 0;
    uint64_t max_field = ((uint64_t)1 << f.n_exponent_bits) - 1;
    if (isnan(value))
        return max_field << f.n_fraction_bits | (uint64_t)1 << (f.n_fraction_bits - 1);
    if (isinf(value)) return sign | max_field << f.n_fraction_bits;
    if (value == 0) return sign;
    int exponent; /* |value| = m * 2^exponent, 0.5 <= m < 1 */
    double m = frexp(fabs(value), &exponent);
    int field = exponent - 1 + f.bias;
    if (field < 1) { /* subnormal: counted in units of the least place */
        double units = ldexp(m, exponent - 1 + f.bias + (int)f.n_fraction_bits);
        return sign | (uint64_t)units;
    }
    uint64_t fraction = (uint64_t)ldexp(2 * m - 1, (int)f.n_fraction_bits);
    return sign | (uint64_t)field << f.n_fraction_bits | fraction;
}

static double float_from_bits(FloatFormat f, uint64_t bits) {
    uint64_t fraction = bits & (((uint64_t)1 << f.n_fraction_bits) - 1);
    uint64_t max_field = ((uint64_t)1 << f.n_exponent_bits) - 1;
    uint64_t field = bits >> f.n_fraction_bits & max_field;
    double sign = bits >> (f.n_fraction_bits + f.n_exponent_bits) & 1 ? -1 : 1;
    if (field == max_field) return fraction ? NAN : sign * INFINITY;
    int least = 1 - f.bias - (int)f.n_fraction_bits;
    if (field == 0) return sign * ldexp((double)fraction, least);
    uint64_t significand = fraction | (uint64_t)1 << f.n_fraction_bits;
    return sign * ldexp((double)significand, least + (int)field - 1);
}

void dtype_store(Dtype dtype, double value, uint8_t *bytes) {
    uint64_t bits = 0;
    switch (dtype_kind(dtype)) {
    case KIND_FLOAT:
        bits = float_to_bits(format_of(dtype), value);
        break;
    case KIND_INT:
        bits = (uint64_t)(int64_t)value;
        break;
    case KIND_BOOL:
        bits = value != 0;
        break;
    }
    for (uint32_t i = 0; i < dtype_bytes(dtype); i++) bytes[i] = (uint8_t)(bits >> 8 * i & 0xFF);
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
    uint64_t bits = 0;
    for (uint32_t i = 0; i < dtype_bytes(dtype); i++) bits |= (uint64_t)bytes[i] << 8 * i;
    switch (dtype_kind(dtype)) {
    case KIND_FLOAT:
        return float_from_bits(format_of(dtype), bits);
    case KIND_INT:
        break;
    case KIND_BOOL:
        return bits != 0;
    }
    int64_t value = (int64_t)bits;
    return (double)(value > INT32_MAX ? value - ((int64_t)1 << 32) : value);
}

void tensor_store(const Tensor *tensor, uint8_t *bytes) {
    int64_t n = tensor_n_elems(tensor);
    for (int64_t i = 0; i < n; i++)
        dtype_store(tensor->dtype, tensor->data[i], bytes + i * dtype_bytes(tensor->dtype));
}

void tensor_load(Tensor *tensor, const uint8_t *bytes) {
    int64_t n = tensor_n_elems(tensor);
    for (int64_t i = 0; i < n; i++)
        tensor->data[i] = dtype_load(tensor->dtype, bytes + i * dtype_bytes(tensor->dtype));
}

/* Facts about float dtypes. */

double dtype_max(Dtype dtype) {
    FloatFormat f = format_of(dtype);
    double fraction = ldexp(1, -(int)f.n_fraction_bits);
    return ldexp(2 - fraction, f.bias);
}

double dtype_ulp(Dtype dtype, double value) {
    FloatFormat f = format_of(dtype);
    int exponent, least = 1 - f.bias; /* exponent of the least normal number */
    if (isinf(value)) return ldexp(1, f.bias - (int)f.n_fraction_bits);
    frexp(value, &exponent);
    if (value == 0 || exponent - 1 < least) exponent = least + 1;
    return ldexp(1, exponent - 1 - (int)f.n_fraction_bits);
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
