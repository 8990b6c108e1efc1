/* Scalar primitives: their table and their value on numbers. */
#include "ir/prim.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

static const PrimInfo infos[PRIM_COUNT] = {
    [PRIM_NONE] = {.name = "none"},
#define VALUE_EXACT true
#define VALUE_TARGET false
#define ULP_4 0x1p-21
#define ULP_6 0x1.8p-21
#define PRIM(sym, nm, n, types, res, cst, value, cd, short_of, rel, abs, text) \
    [PRIM_##sym] = {.name = nm,                                                \
                    .arity = n,                                                \
                    .operands = types,                                         \
                    .result = PRIM_RESULT_##res,                               \
                    .cost = cst,                                               \
                    .is_exact = VALUE_##value,                                 \
                    .code = PRIM_CODE_##cd,                                    \
                    .of = PRIM_##short_of,                                     \
                    .relative = (rel),                                         \
                    .absolute = (abs),                                         \
                    .how = text},
#include "ir/prims.def"
};

const PrimInfo *prim_info(PrimId prim) {
    return &infos[prim];
}

PrimId prim_rounded_to(PrimId prim, Dtype dtype) {
    static const struct {
        PrimId prim;
        uint32_t n_digits; /* digits of the widest dtype whose rounding hides the error */
    } shorter[PRIM_COUNT] = {[PRIM_EXP] = {PRIM_EXP_16, 11},
                             [PRIM_TANH] = {PRIM_TANH_10, 8},
                             [PRIM_LOGISTIC] = {PRIM_LOGISTIC_16, 11},
                             [PRIM_SILU] = {PRIM_SILU_16, 11},
                             [PRIM_NORMAL] = {PRIM_NORMAL_12, 11}};
    if (!dtype_is_narrow(dtype) || dtype_info(dtype)->n_digits > shorter[prim].n_digits)
        return prim;
    return shorter[prim].prim;
}

PrimId prim_fast(PrimId prim, Dtype dtype) {
    for (int p = 1; p < PRIM_COUNT && dtype_is_single(dtype); p++)
        if (infos[p].of == prim) return (PrimId)p;
    return prim;
}

PrimId prim_full(PrimId prim) {
    return infos[prim].of ? infos[prim].of : prim;
}

double prim_error(PrimId prim, Dtype dtype, double value) {
    const PrimInfo *info = &infos[prim];
    double rounding = dtype_is_double(dtype) ? 0x1p-53 : 0x1p-24, size = fabs(value);
    double least = dtype_is_double(dtype) ? 0x1p-1074 : 0x1p-149;
    switch ((int)prim) {
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_SQRT:
        return rounding * size + least;
    }
    if (info->is_exact) return 0;
    /* of f64 the shorter forms are the others, within 4 ULP */
    if (dtype_is_double(dtype)) return 16 * rounding * size + 0x1p-1022;
    return (info->relative + rounding) * size + info->absolute + least;
}

bool prim_has_neutral(PrimId prim, uint32_t arg, double *number) {
    switch ((int)prim) {
    case PRIM_ADD:
        *number = -0.0; /* +0 changes -0 */
        return true;
    case PRIM_SUB:
        *number = 0;
        return arg == 1;
    case PRIM_MUL:
        *number = 1;
        return true;
    case PRIM_DIV:
        *number = 1;
        return arg == 1;
    }
    return false;
}

/* Whether the count is one of a shift of the dtype. */
static bool is_count(Dtype dtype, int64_t count) {
    return count >= 0 && count < 8 * (int64_t)dtype_bytes(dtype);
}

static int64_t bits(PrimId prim, Dtype dtype, int64_t a, int64_t b) {
    switch ((int)prim) {
    case PRIM_BITAND:
        return a & b;
    case PRIM_BITOR:
        return a | b;
    case PRIM_BITXOR:
        return a ^ b;
    case PRIM_SHL:
        return is_count(dtype, b) ? (int64_t)((uint64_t)a << b) : 0;
    case PRIM_SHR: /* ~(~a >> b) shifts ones in */
        if (!is_count(dtype, b)) return a < 0 ? -1 : 0;
        return a < 0 ? ~(int64_t)((uint64_t)~a >> b) : a >> b;
    }
    return 0; /* not defined on integers */
}

/* The value before it wraps. Unsigned arithmetic wraps at 64 bits. */
static int64_t arithmetic(PrimId prim, int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch ((int)prim) {
    case PRIM_ADD:
        return (int64_t)(x + y);
    case PRIM_SUB:
        return (int64_t)(x - y);
    case PRIM_MUL:
        return (int64_t)(x * y);
    case PRIM_DIV:
        return b == 0 ? 0 : b == -1 ? (int64_t)(0 - x) : a / b;
    case PRIM_REM:
        return b == 0 || b == -1 ? 0 : a % b;
    case PRIM_NEG:
        return (int64_t)(0 - x);
    case PRIM_ABS:
        return (int64_t)(a < 0 ? 0 - x : x);
    case PRIM_MIN:
        return a < b ? a : b;
    case PRIM_MAX:
        return a > b ? a : b;
    }
    return 0; /* not defined on integers */
}

int64_t prim_eval_int(PrimId prim, Dtype dtype, int64_t a, int64_t b, int64_t c) {
    switch ((int)prim) {
    case PRIM_LT:
        return a < b;
    case PRIM_LE:
        return a <= b;
    case PRIM_EQ:
        return a == b;
    case PRIM_NE:
        return a != b;
    case PRIM_SELECT:
        return a ? b : c;
    }
    bool is_bits = prim >= PRIM_BITAND && prim <= PRIM_SHR;
    return dtype_wrap(dtype, is_bits ? bits(prim, dtype, a, b) : arithmetic(prim, a, b));
}

/* NaN if either operand is NaN; -0 is less than +0. */
static double least(double a, double b) {
    if (isnan(a) || isnan(b)) return NAN;
    if (a == b) return signbit(a) ? a : b;
    return a < b ? a : b;
}

static double greatest(double a, double b) {
    return -least(-a, -b);
}

static double log_add_exp(double a, double b) {
    double top = greatest(a, b), low = least(a, b);
    bool is_top = isinf(top) || low == -INFINITY;
    return is_top ? top : top + log1p(exp(low - top));
}

/* NaN: the primitive is not defined on floats. */
static double eval_function(PrimId prim, double a, double b) {
    switch ((int)prim) {
    case PRIM_EXP:
    case PRIM_EXP_FTZ:
        return exp(a);
    case PRIM_EXP2:
        return exp2(a);
    case PRIM_LOG:
        return log(a);
    case PRIM_LOG2:
        return log2(a);
    case PRIM_SIN:
        return sin(a);
    case PRIM_COS:
        return cos(a);
    case PRIM_TANH:
        return tanh(a);
    case PRIM_ERF:
        return erf(a);
    case PRIM_LOGISTIC:
        return a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a));
    case PRIM_SILU:
        return a < 0 ? a * exp(a / 2) / (1 + exp(a)) * exp(a / 2) : a / (1 + exp(-a));
    case PRIM_NORMAL:
    case PRIM_NORMAL_12:
        return 0.5 * erfc(-0.70710678118654752440 * a);
    case PRIM_POW:
        return pow(a, b);
    }
    return NAN;
}

static double eval_float(PrimId prim, double a, double b) {
    switch ((int)prim_full(prim)) {
    case PRIM_ADD:
        return a + b;
    case PRIM_SUB:
        return a - b;
    case PRIM_MUL:
        return a * b;
    case PRIM_DIV:
        return a / b;
    case PRIM_REM:
        return fmod(a, b);
    case PRIM_NEG:
        return -a;
    case PRIM_ABS:
        return fabs(a);
    case PRIM_MIN:
        return least(a, b);
    case PRIM_MAX:
        return greatest(a, b);
    case PRIM_SQRT:
        return sqrt(a);
    case PRIM_RSQRT_22:
        return 1 / sqrt(a);
    case PRIM_FLOOR:
        return floor(a);
    case PRIM_CEIL:
        return ceil(a);
    case PRIM_RINT:
        return nearbyint(a);
    case PRIM_TF32:
        return dtype_round_tf32(a);
    }
    return eval_function(prim_full(prim), a, b);
}

double prim_eval(PrimId prim, Dtype dtype, double a, double b, double c) {
    switch ((int)prim) { /* first the primitives that do not depend on the type */
    case PRIM_LT:
        return a < b;
    case PRIM_LE:
        return a <= b;
    case PRIM_EQ:
        return a == b;
    case PRIM_NE:
        return a != b;
    case PRIM_AND:
        return a != 0 && b != 0;
    case PRIM_OR:
        return a != 0 || b != 0;
    case PRIM_NOT:
        return a == 0;
    case PRIM_SELECT:
        return a != 0 ? b : c;
    }
    if (prim == PRIM_LOGADDEXP) return log_add_exp(a, b);
    if (dtype_is_float(dtype)) return eval_float(prim, a, b);
    return (double)prim_eval_int(prim, dtype, dtype_saturate(DT_I64, a), dtype_saturate(DT_I64, b),
                                 0);
}
