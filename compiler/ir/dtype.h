/* Element types. Each has a row in frt_dtype.def, which the runtime includes too, and a row in
 * dtype.def. */
#ifndef FUSEC_IR_DTYPE_H
#define FUSEC_IR_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* The enumerators equal the runtime's: DT_F32 is FRT_F32. */
typedef enum {
#define X(symbol, number, name, safetensors, bytes, map) DT_##symbol = number,
#include <frt_dtype.def>
#undef X
    DT_COUNT
} Dtype;

typedef enum { KIND_FLOAT, KIND_INT, KIND_BOOL } DtypeKind;

/* How generated code represents an element: as LLVM's type of that name (HELD_BITS: an integer of
 * the element's size; HELD_BIT: an i1). */
typedef enum { HELD_DOUBLE, HELD_FLOAT, HELD_HALF, HELD_BFLOAT, HELD_BITS, HELD_BIT } DtypeHeld;

/* Kinds of operands of tensor cores. */
typedef enum {
    MMA_NONE,
    MMA_DOUBLE,
    MMA_TF32,
    MMA_HALF,
    MMA_BFLOAT,
    MMA_S8,
    MMA_U8,
    MMA_E4M3,
    MMA_E5M2
} DtypeMma;

typedef struct DtypeInfo {
    DtypeKind kind;
    Dtype compute;
    uint32_t n_exponent_bits, n_digits;
    bool has_infinity;
    DtypeHeld native, soft; /* on machines with narrow floats; on all others */
    DtypeMma mma;
    const char *npy; /* descriptions of the dtype in .npy files, separated by blanks; the compiler
                      * writes the first */
} DtypeInfo;

/* Sets of dtypes, for the op table: bit `1 << dtype`. */
typedef uint32_t DtypeSet;
enum {
    DTYPE_LEAST_DIGITS = 8, /* of a float that ops compute in */
    DTS_F32 = 1 << DT_F32,
    DTS_INDEX = 1 << DT_I32 | 1 << DT_I64, /* dtypes of indices */
    DTS_FLOAT = 0                          /* those that ops compute in */
#define DTYPE(sym, knd, comp, exponent, digits, ...) \
    | (KIND_##knd == KIND_FLOAT && digits >= DTYPE_LEAST_DIGITS) << DT_##sym
#include "ir/dtype.def"
    ,
    DTS_STORED = 0 /* floats that are stored, cast, moved and multiplied by matmul alone */
#define DTYPE(sym, knd, comp, exponent, digits, ...) \
    | (KIND_##knd == KIND_FLOAT && digits < DTYPE_LEAST_DIGITS) << DT_##sym
#include "ir/dtype.def"
    ,
    DTS_INT = 0
#define DTYPE(sym, knd, ...) | (KIND_##knd == KIND_INT) << DT_##sym
#include "ir/dtype.def"
    ,
    DTS_BOOL = 0
#define DTYPE(sym, knd, ...) | (KIND_##knd == KIND_BOOL) << DT_##sym
#include "ir/dtype.def"
    ,
    DTS_NUM = DTS_FLOAT | DTS_INT,
    DTS_BYTE =
        1 << DT_I8 | 1 << DT_U8, /* integers whose products of a few hundred f32 sums exactly */
    DTS_QUANTIZED = DTS_FLOAT | DTS_STORED | DTS_BYTE,
    DTS_ANY = DTS_NUM | DTS_STORED | DTS_BOOL
};

const DtypeInfo *dtype_info(Dtype dtype);
const char *dtype_name(Dtype dtype);
/* The name in .safetensors files. */
const char *dtype_safetensors(Dtype dtype);
uint32_t dtype_bytes(Dtype dtype);
DtypeKind dtype_kind(Dtype dtype);
Dtype dtype_compute(Dtype dtype);
/* The type of an accumulator of elements: that in which ops compute, or `dtype` itself, whose
 * numbers wrap and compare alike: u32, which ops compute in 64 bits. */
Dtype dtype_accumulator(Dtype dtype);
/* Finds a dtype by its name in the source; false: no dtype has the name. */
bool dtype_by_name(const char *name, Dtype *dtype);
/* Whether no tensor and no dim may have the name. Names of dtypes that came later are not reserved,
 * because programs may have used them; such a name then hides the dtype. */
bool dtype_is_reserved(const char *name);
static inline bool dtype_in(Dtype dtype, DtypeSet set) {
    return (set >> dtype & 1) != 0;
}
static inline bool dtype_is_float(Dtype dtype) {
    return dtype_in(dtype, DTS_FLOAT | DTS_STORED);
}
static inline bool dtype_is_int(Dtype dtype) {
    return dtype_in(dtype, DTS_INT);
}
static inline bool dtype_is_bool(Dtype dtype) {
    return dtype_in(dtype, DTS_BOOL);
}
/* Whether the dtype is an integer without a sign. Code computes on it in a wider signed integer. */
static inline bool dtype_is_unsigned(Dtype dtype) {
    return dtype_is_int(dtype) && dtype_info(dtype)->n_digits == 8 * dtype_bytes(dtype);
}
/* Whether a double does not hold every number of the integer dtype. */
static inline bool dtype_is_wide(Dtype dtype) {
    return dtype_is_int(dtype) && dtype_info(dtype)->n_digits > 53;
}
/* Whether the dtype is f64, which is computed in double precision. */
static inline bool dtype_is_double(Dtype dtype) {
    return dtype == DT_F64;
}
/* Whether the dtype is f32, the compute type of narrower floats. */
static inline bool dtype_is_single(Dtype dtype) {
    return dtype == DT_F32;
}
/* Whether the dtype is a float narrower than its compute type: code converts its elements, then
 * computes. */
static inline bool dtype_is_narrow(Dtype dtype) {
    return dtype_is_float(dtype) && dtype_compute(dtype) != dtype;
}
/* Whether code for CPUs represents the float dtype as bits, so that rounding to it takes several
 * instructions. */
bool dtype_is_soft(Dtype dtype);
/* Whether the dtype is the upper half of an f32. */
bool dtype_is_bfloat(Dtype dtype);
/* Whether a GPU computes on two elements in one register: for f16, and for bf16 if `has_bf16`. */
bool dtype_is_paired(Dtype dtype, bool has_bf16);
/* The dtype in which matmuls multiply elements: their own, or without tensor cores for 8-bit floats
 * f16, which holds every number of them and is a dtype of all tensor cores. */
static inline Dtype dtype_multiplied(Dtype dtype, bool has_f8_mma) {
    return dtype_in(dtype, DTS_STORED) && !has_f8_mma ? DT_F16 : dtype;
}
/* Whether every number of `from` is a number of `to`, so that a round trip through `to` is
 * exact. */
bool dtype_widens(Dtype from, Dtype to);

/* Rounds `value` to the nearest element of `dtype`, ties to even, and returns it as a double. To an
 * integer it truncates towards zero, saturates, and turns NaN into 0; to bool it is value != 0.
 * This is the reference for every rounding: it is exact and uses only integer arithmetic on the
 * bits of the double. Of i64 a double holds the nearest number; dtype_saturate is exact. */
double dtype_round(Dtype dtype, double value);
/* dtype_round for an integer or bool, exactly. */
int64_t dtype_saturate(Dtype dtype, double value);
/* An integer as an element of an integer dtype, modulo 2 to its width; for bool value != 0. */
int64_t dtype_wrap(Dtype dtype, int64_t value);
/* An integer rounded once to the nearest element of a float dtype. */
double dtype_round_int(Dtype dtype, int64_t value);

/* Rounds an f32 number to the nearest tf32 number (f32's exponents, 11 significant bits), ties to
 * even. A number above the largest becomes infinity; NaN stays NaN. A matmul with
 * `precision="tf32"` rounds its operands so. */
double dtype_round_tf32(double value);

/* Returns the bits of one element in the lower dtype_bytes(dtype) bytes; the bytes above extend an
 * integer's sign. A NaN becomes the quiet NaN of its sign without payload. `value` must be an
 * element of `dtype`. */
uint64_t dtype_bits(Dtype dtype, double value);
/* Stores one element in dtype_bytes(dtype) bytes, little endian; a bool is one byte, 0 or 1.
 * `value` must be an element of `dtype`. A NaN becomes the quiet NaN without payload. */
void dtype_store(Dtype dtype, double value, uint8_t *bytes);
/* Counts the steps from `a` to `b` through the numbers of the dtype. Both zeros are one number, and
 * infinity follows the largest number. NaN if exactly one is NaN, 0 if both are. */
double dtype_ulps(Dtype dtype, double a, double b);
/* Loads one element. Any nonzero byte is true. A NaN's payload is lost, and an i64 is rounded to
 * the nearest double. */
double dtype_load(Dtype dtype, const uint8_t *bytes);
/* Loads or stores one element of an integer dtype or bool. */
int64_t dtype_load_int(Dtype dtype, const uint8_t *bytes);
void dtype_store_int(Dtype dtype, int64_t value, uint8_t *bytes);

/* Facts about float dtypes. */

/* The largest finite number. */
double dtype_max(Dtype dtype);
/* The distance from |value| to the next larger magnitude. For an infinity: the distance from the
 * largest finite number to its successor. */
double dtype_ulp(Dtype dtype, double value);
/* |a - b|, where infinity is the successor of the largest finite number. NaN if exactly one is NaN,
 * 0 if both are. For integers and bool the plain difference. */
double dtype_distance(Dtype dtype, double a, double b);

#endif
