/* Arithmetic in f16, bf16 and u32. See point_narrow.h.
 *
 * The operands are widened narrow values. An f32 sum, difference or product of them that is rounded
 * right away equals the narrow instruction's result, because f32 has more than twice the digits
 * plus two, so double rounding is harmless. Min, max, abs, neg and select make no new digits, so
 * they may work on narrow values; and because rounding is monotonic, on rounded values too.
 *
 * The program computes on u32 in i64, where every widened value is at least 0. An i64 that wraps to
 * u32 right away has the bits of the 32-bit instruction. Quotients, shifts to the right and choices
 * of widened values are numbers of u32, so the instruction may be one of u32. */
#include "codegen/scalar/point_narrow.h"

/* Programs are DAGs, and this recursion visits each path on its own, so its depth is limited. */
enum { MAX_DEPTH = 4 };

/* Whether the machine has arithmetic of `dtype`. */
static bool is_native(const Codegen *k, Dtype dtype) {
    if (dtype_is_unsigned(dtype)) return dtype_is_wide(dtype_compute(dtype));
    return k->target->has->narrow_floats && dtype_is_paired(dtype, k->target->has_bf16);
}

/* Whether the result depends on no digits beyond those of `dtype`, if it is rounded right away. */
static bool is_arithmetic(PrimId prim, Dtype dtype) {
    bool is_sum = prim == PRIM_ADD || prim == PRIM_SUB || prim == PRIM_MUL;
    return is_sum || (dtype_is_int(dtype) && (prim == PRIM_NEG || prim == PRIM_SHL));
}

/* Whether narrow operands give a narrow result. */
static bool is_closed(PrimId prim, Dtype dtype) {
    if (prim == PRIM_MIN || prim == PRIM_MAX || prim == PRIM_ABS || prim == PRIM_SELECT)
        return true;
    if (dtype_is_float(dtype)) return prim == PRIM_NEG;
    return prim == PRIM_DIV || prim == PRIM_REM || prim == PRIM_SHR || prim == PRIM_BITAND ||
           prim == PRIM_BITOR || prim == PRIM_BITXOR;
}

/* Whether rounding the operands instead of the result gives the same. */
static bool rounds_operands(PrimId prim, Dtype dtype) {
    return prim == PRIM_SELECT || (dtype_is_float(dtype) && is_closed(prim, dtype));
}

/* The first operand that is no condition. */
static uint32_t first_operand(PrimId prim) {
    return prim == PRIM_SELECT ? 1 : 0;
}

static bool is_const_of(const Scalar *s, Dtype dtype) {
    if (dtype_is_int(dtype)) return dtype_wrap(dtype, s->whole) == s->whole;
    return dtype_round(dtype, s->number) == s->number;
}

/* Whether the value of the compute type is representable in `dtype`. is_rounded: whether rounding
 * the value gives the same as computing it from rounded operands. */
static bool is_narrow(const ScalarTab *scalars, ScalarId id, Dtype dtype, bool is_rounded,
                      uint32_t depth) {
    const Scalar *s = scalar_get(scalars, id);
    if (s->dtype != dtype_compute(dtype)) return false;
    if (s->kind == SCALAR_CVT) return scalar_get(scalars, s->args[0])->dtype == dtype;
    if (s->kind == SCALAR_CONST)
        return (is_rounded && dtype_is_float(dtype)) || is_const_of(s, dtype);
    if (s->kind != SCALAR_PRIM || depth == MAX_DEPTH) return false;
    bool is_sum = is_rounded && is_arithmetic(s->prim, dtype);
    if (!is_closed(s->prim, dtype) && !is_sum) return false;
    bool rounds = is_rounded && !is_sum && rounds_operands(s->prim, dtype);
    for (uint32_t i = first_operand(s->prim); i < prim_info(s->prim)->arity; i++)
        if (!is_narrow(scalars, s->args[i], dtype, rounds, depth + 1)) return false;
    return true;
}

static Val narrow_value(Point *point, ScalarId id, Dtype dtype) {
    Codegen *k = point->lower->k;
    const Scalar *s = scalar_get(point->lower->kernel->scalars, id);
    if (s->kind == SCALAR_CVT) return point_value(point, s->args[0]);
    if (s->kind == SCALAR_CONST && dtype_is_int(dtype)) return k_whole(k, dtype, s->whole);
    if (s->kind == SCALAR_CONST) return k_number(k, dtype, dtype_round(dtype, s->number));
    Val args[3] = {NULL};
    uint32_t first = first_operand(s->prim), arity = prim_info(s->prim)->arity;
    bool any_vector = false;
    for (uint32_t i = 0; i < arity; i++) {
        args[i] =
            i < first ? point_value(point, s->args[i]) : narrow_value(point, s->args[i], dtype);
        any_vector = any_vector || k_is_vector(args[i]);
    }
    for (uint32_t i = 0; i < arity && any_vector; i++) args[i] = k_splat(k, args[i], point->lanes);
    return math_prim(k, s->prim, dtype, args[0], args[1], args[2]);
}

Val point_narrow_rounded(Point *point, const Scalar *s) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    if (!is_native(point->lower->k, s->dtype)) return NULL;
    if (scalar_get(scalars, s->args[0])->kind != SCALAR_PRIM) return NULL;
    if (!is_narrow(scalars, s->args[0], s->dtype, true, 0)) return NULL;
    return narrow_value(point, s->args[0], s->dtype);
}

/* The type of the first widened value on the way down, or the value's own. */
static Dtype widened_from(const ScalarTab *scalars, ScalarId id) {
    const Scalar *s = scalar_get(scalars, id);
    for (uint32_t depth = 0; s->kind == SCALAR_PRIM && depth < MAX_DEPTH; depth++)
        s = scalar_get(scalars, s->args[first_operand(s->prim)]);
    return scalar_get(scalars, s->kind == SCALAR_CVT ? s->args[0] : id)->dtype;
}

Val point_narrow_compared(Point *point, const Scalar *s) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    bool compares =
        s->prim == PRIM_LT || s->prim == PRIM_LE || s->prim == PRIM_EQ || s->prim == PRIM_NE;
    if (!compares) return NULL;
    Dtype dtype = widened_from(scalars, s->args[0]);
    if (dtype == scalar_get(scalars, s->args[0])->dtype) dtype = widened_from(scalars, s->args[1]);
    if (!is_native(point->lower->k, dtype)) return NULL;
    Val args[2];
    for (uint32_t i = 0; i < 2; i++)
        if (!is_narrow(scalars, s->args[i], dtype, false, 0)) return NULL;
    for (uint32_t i = 0; i < 2; i++) args[i] = narrow_value(point, s->args[i], dtype);
    bool any_vector = k_is_vector(args[0]) || k_is_vector(args[1]);
    for (uint32_t i = 0; i < 2 && any_vector; i++)
        args[i] = k_splat(point->lower->k, args[i], point->lanes);
    return math_prim(point->lower->k, s->prim, dtype, args[0], args[1], NULL);
}
