/* Element types, expanded from dtype.def. */
#ifndef FUSEC_IR_DTYPE_H
#define FUSEC_IR_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
#define DTYPE(sym, name, bytes, kind, compute) DT_##sym,
#include "ir/dtype.def"
    DT_COUNT
} Dtype;

typedef enum { KIND_FLOAT, KIND_INT, KIND_BOOL } DtypeKind;

/* Sets of dtypes, for the op table: bit `1 << dtype`. */
typedef uint32_t DtypeSet;
enum {
    DTS_F32 = 1 << DT_F32,
    DTS_FLOAT = 1 << DT_F64 | 1 << DT_F32 | 1 << DT_F16 | 1 << DT_BF16,
    DTS_INT = 1 << DT_I32,
    DTS_BOOL = 1 << DT_BOOL,
    DTS_NUM = DTS_FLOAT | DTS_INT,
    DTS_ANY = DTS_NUM | DTS_BOOL
};

const char *dtype_name(Dtype dtype);
uint32_t dtype_bytes(Dtype dtype);
DtypeKind dtype_kind(Dtype dtype);
Dtype dtype_compute(Dtype dtype);
/* By the user's spelling; false when there is none. */
bool dtype_by_name(const char *name, Dtype *dtype);
static inline bool dtype_in(Dtype dtype, DtypeSet set) {
    return (set >> dtype & 1) != 0;
}

/* `value` rounded to the nearest element of `dtype`, ties to even; as numbers in a double. i32
 * truncates towards zero, saturates, and turns NaN into 0; bool is value != 0. The reference for
 * every rounding: exact, by arithmetic on the bits, with no help from the machine's narrower
 * types. */
double dtype_round(Dtype dtype, double value);

/* An f32 number rounded to the nearest of tf32 (f32's exponents, 11 significant bits), ties to
 * even; what passes the largest becomes infinity, NaN stays. What `precision="tf32"` does to
 * the operands of a matmul. */
double dtype_round_tf32(double value);

#endif
