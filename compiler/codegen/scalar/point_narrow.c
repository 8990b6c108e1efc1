/* Arithmetic in f16 and bf16. See point_narrow.h.
 *
 * The operands are widened narrow values. An f32 sum, difference or product of them that is rounded
 * right away equals the narrow instruction's result, because f32 has more than twice the digits
 * plus two, so double rounding is harmless. Min, max, abs, neg and select make no new digits, so
 * they may work on narrow values; and because rounding is monotonic, on rounded values too. */
#include "codegen/scalar/point_narrow.h"

/* Programs are DAGs, and this recursion visits each path on its own, so its depth is limited. */
enum { MAX_DEPTH = 4 };

/* Whether the machine has arithmetic of `dtype`. */
static bool is_native(const Codegen *k, Dtype dtype) {
    return k->target->has->narrow_floats && dtype_is_paired(dtype, k->target->has_bf16);
}

static bool is_arithmetic(PrimId prim) {
    return prim == PRIM_ADD || prim == PRIM_SUB || prim == PRIM_MUL;
}

/* Whether the result is one of the operands up to its sign. `first` is the first such operand. */
static bool is_choice(PrimId prim, uint32_t *first) {
    *first = prim == PRIM_SELECT ? 1 : 0;
    return prim == PRIM_MIN || prim == PRIM_MAX || prim == PRIM_NEG || prim == PRIM_ABS ||
           prim == PRIM_SELECT;
}

/* Whether the f32 value is representable in `dtype`. is_rounded: whether rounding the value gives
 * the same as computing it from rounded operands. */
static bool is_narrow(const ScalarTab *scalars, ScalarId id, Dtype dtype, bool is_rounded,
                      uint32_t depth) {
    const Scalar *s = scalar_get(scalars, id);
    uint32_t first;
    if (!dtype_is_single(s->dtype)) return false;
    if (s->kind == SCALAR_CVT) return scalar_get(scalars, s->args[0])->dtype == dtype;
    if (s->kind == SCALAR_CONST) return is_rounded || dtype_round(dtype, s->number) == s->number;
    if (s->kind != SCALAR_PRIM || depth == MAX_DEPTH) return false;
    bool is_sum = is_rounded && is_arithmetic(s->prim);
    if (!is_choice(s->prim, &first) && !is_sum) return false;
    for (uint32_t i = first; i < prim_info(s->prim)->arity; i++)
        if (!is_narrow(scalars, s->args[i], dtype, is_rounded && !is_sum, depth + 1)) return false;
    return true;
}

static Val narrow_value(Point *point, ScalarId id, Dtype dtype) {
    Codegen *k = point->lower->k;
    const Scalar *s = scalar_get(point->lower->kernel->scalars, id);
    if (s->kind == SCALAR_CVT) return point_value(point, s->args[0]);
    if (s->kind == SCALAR_CONST) return k_number(k, dtype, dtype_round(dtype, s->number));
    Val args[3] = {NULL};
    uint32_t first, arity = prim_info(s->prim)->arity;
    bool any_vector = false;
    is_choice(s->prim, &first);
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

/* The narrow type of the first widened value on the way down, or f32. */
static Dtype widened_from(const ScalarTab *scalars, ScalarId id) {
    const Scalar *s = scalar_get(scalars, id);
    uint32_t first;
    for (uint32_t depth = 0; s->kind == SCALAR_PRIM && depth < MAX_DEPTH; depth++) {
        if (!is_choice(s->prim, &first)) return DT_F32;
        s = scalar_get(scalars, s->args[first]);
    }
    return s->kind == SCALAR_CVT ? scalar_get(scalars, s->args[0])->dtype : DT_F32;
}

Val point_narrow_compared(Point *point, const Scalar *s) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    bool compares =
        s->prim == PRIM_LT || s->prim == PRIM_LE || s->prim == PRIM_EQ || s->prim == PRIM_NE;
    if (!compares) return NULL;
    Dtype dtype = widened_from(scalars, s->args[0]);
    if (dtype_is_single(dtype)) dtype = widened_from(scalars, s->args[1]);
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
