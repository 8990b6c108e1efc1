/* Element types: a row of frt_dtype.def, which the runtime shares, and one of dtype.def for each.
 */
#ifndef FUSEC_IR_DTYPE_H
#define FUSEC_IR_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers are the runtime's: DT_F32 is FRT_F32. */
typedef enum {
#define X(symbol, number, name, safetensors, bytes, map) DT_##symbol = number,
#include <frt_dtype.def>
#undef X
    DT_COUNT
} Dtype;

typedef enum { KIND_FLOAT, KIND_INT, KIND_BOOL } DtypeKind;

/* How code holds an element: as LLVM's type of that name, as an integer of its size, or as an i1.
 */
typedef enum { HELD_DOUBLE, HELD_FLOAT, HELD_HALF, HELD_BFLOAT, HELD_BITS, HELD_BIT } DtypeHeld;

/* Kinds of operands of tensor cores. */
typedef enum { MMA_NONE, MMA_DOUBLE, MMA_TF32, MMA_HALF, MMA_BFLOAT } DtypeMma;

typedef struct DtypeInfo {
    DtypeKind kind;
    Dtype compute;
    uint32_t n_exponent_bits, n_digits;
    DtypeHeld native, soft; /* on machines that have narrow floats, and on others */
    DtypeMma mma;
    const char *npy; /* descriptions, between blanks; the first is written */
} DtypeInfo;

/* Sets of dtypes, for the op table: bit `1 << dtype`. */
typedef uint32_t DtypeSet;
enum {
    DTS_F32 = 1 << DT_F32,
    DTS_INDEX = 1 << DT_I32, /* of indices */
    DTS_FLOAT = 0
#define DTYPE(sym, knd, ...) | (KIND_##knd == KIND_FLOAT) << DT_##sym
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
    DTS_ANY = DTS_NUM | DTS_BOOL
};

const DtypeInfo *dtype_info(Dtype dtype);
const char *dtype_name(Dtype dtype);
uint32_t dtype_bytes(Dtype dtype);
DtypeKind dtype_kind(Dtype dtype);
Dtype dtype_compute(Dtype dtype);
/* By the user's spelling; false when there is none. */
bool dtype_by_name(const char *name, Dtype *dtype);
static inline bool dtype_in(Dtype dtype, DtypeSet set) {
    return (set >> dtype & 1) != 0;
}
static inline bool dtype_is_float(Dtype dtype) {
    return dtype_in(dtype, DTS_FLOAT);
}
static inline bool dtype_is_int(Dtype dtype) {
    return dtype_in(dtype, DTS_INT);
}
static inline bool dtype_is_bool(Dtype dtype) {
    return dtype_in(dtype, DTS_BOOL);
}
/* Whether it is a type of numbers that are computed in double precision: f64. */
static inline bool dtype_is_double(Dtype dtype) {
    return dtype == DT_F64;
}
/* Whether it is the type of numbers in single precision, f32, which narrower floats become. */
static inline bool dtype_is_single(Dtype dtype) {
    return dtype == DT_F32;
}
/* Whether a float is narrower than its compute type: its numbers are converted, then computed. */
static inline bool dtype_is_narrow(Dtype dtype) {
    return dtype_is_float(dtype) && dtype_compute(dtype) != dtype;
}
/* Whether code for CPUs holds a float as bits, so that rounding to it takes several instructions.
 */
bool dtype_is_soft(Dtype dtype);
/* Whether a GPU computes on it by itself, two to a register: of f16, and of bf16 if `has_bf16`. */
bool dtype_is_paired(Dtype dtype, bool has_bf16);
/* Whether every number of `from` is one of `to`, so that a round trip through `to` is exact. */
bool dtype_widens(Dtype from, Dtype to);

/* `value` rounded to the nearest element of `dtype`, ties to even; as numbers in a double. i32
 * truncates towards zero, saturates, and turns NaN into 0; bool is value != 0. The reference for
 * every rounding: exact, by arithmetic on the bits, with no help from the machine's narrower
 * types. */
double dtype_round(Dtype dtype, double value);

/* An f32 number rounded to the nearest of tf32 (f32's exponents, 11 significant bits), ties to
 * even; what passes the largest becomes infinity, NaN stays. What `precision="tf32"` does to
 * the operands of a matmul. */
double dtype_round_tf32(double value);

/* The bits of one element in dtype_bytes(dtype) bytes, above them an integer's sign; a NaN becomes
 * the quiet one of its sign without payload. `value` must be an element of `dtype`. */
uint64_t dtype_bits(Dtype dtype, double value);
/* Stores one element, little endian in dtype_bytes(dtype) bytes; a bool is one byte, 0 or 1.
 * `value` must be representable in `dtype`. A NaN becomes the quiet one without payload. */
void dtype_store(Dtype dtype, double value, uint8_t *bytes);
/* The number of steps from `a` to `b` through the numbers of the dtype. Both zeros count as one
 * number, and infinity follows the largest. NaN when exactly one is NaN, 0 when both are. */
double dtype_ulps(Dtype dtype, double a, double b);
/* Loads one element. Any nonzero byte is true. A NaN's payload is lost. */
double dtype_load(Dtype dtype, const uint8_t *bytes);

/* Facts about float dtypes. */

/* The largest finite number. */
double dtype_max(Dtype dtype);
/* The distance from |value| to the next larger magnitude. For an infinity: the distance from the
 * largest finite number to its successor. */
double dtype_ulp(Dtype dtype, double value);
/* |a - b|, where an infinity counts as the successor of the largest finite number. NaN when exactly
 * one is NaN, 0 when both are. For i32 and bool the plain difference. */
double dtype_distance(Dtype dtype, double a, double b);

#endif
