/* Recognises weights by their primitives. See online_softmax.h. */
#include "launch/online_softmax.h"

static const Scalar *get(const Kernel *kernel, ScalarId id) {
    return scalar_get(kernel->scalars, id);
}

/* Whether the scalar is the primitive or a shorter form of it. */
static bool is_prim(const Kernel *kernel, ScalarId id, PrimId prim) {
    const Scalar *s = get(kernel, id);
    return s->kind == SCALAR_PRIM && (s->prim == prim || prim_full(s->prim) == prim);
}

/* Whether power(a + b) = power(a) power(b), and power(-infinity) = 0. */
static bool is_power(PrimId prim) {
    return prim == PRIM_EXP || prim == PRIM_EXP2;
}

/* Whether the scalar is the unconverted result of reduction `slot`. */
static bool is_result(const Kernel *kernel, ScalarId id, uint32_t slot) {
    return get(kernel, id)->kind == SCALAR_STAGE && get(kernel, id)->slot == slot;
}

/* Whether the scalar depends on no reduction. */
static bool is_early(const Kernel *kernel, ScalarId id) {
    const Scalar *s = get(kernel, id);
    bool is_it = s->kind != SCALAR_STAGE && s->kind != SCALAR_EXTREME;
    for (int i = 0; i < 3; i++)
        if (s->args[i]) is_it = is_it && is_early(kernel, s->args[i]);
    return is_it;
}

static bool finds_slots(const Kernel *rows, OnlineSoftmax *online_softmax) {
    if (rows->stages.n != 3 || rows->reduces.n != 2) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (rows->stages.data[i].reduces.n != 1) return false;
    online_softmax->shift = rows->stages.data[0].reduces.data[0];
    online_softmax->total = rows->stages.data[1].reduces.data[0];
    const Reduce *shift = &rows->reduces.data[online_softmax->shift];
    const Reduce *total = &rows->reduces.data[online_softmax->total];
    return shift->combine == PRIM_MAX && total->combine == PRIM_ADD && !shift->divisor &&
           !total->divisor && dtype_is_single(shift->result) && dtype_is_single(total->result) &&
           dtype_is_single(shift->acc) && dtype_is_single(total->acc);
}

/* Whether the last stage stores weight / total, rounded, with weight = power(x - shift). */
static bool has_weights(const Kernel *rows, OnlineSoftmax *online_softmax) {
    const Stage *last = &rows->stages.data[2];
    const Reduce *shift = &rows->reduces.data[online_softmax->shift];
    const Reduce *total = &rows->reduces.data[online_softmax->total];
    const Scalar *rounded = get(rows, last->stores.data[0].value);
    if (rounded->kind != SCALAR_CVT || !is_prim(rows, rounded->args[0], PRIM_DIV)) return false;
    const Scalar *quotient = get(rows, rounded->args[0]);
    const Scalar *weight = get(rows, total->value);
    if (quotient->args[0] != total->value ||
        !is_result(rows, quotient->args[1], online_softmax->total) || weight->kind != SCALAR_PRIM ||
        !is_power(prim_full(weight->prim)) || !is_prim(rows, weight->args[0], PRIM_SUB))
        return false;
    const Scalar *below = get(rows, weight->args[0]);
    online_softmax->power = prim_full(weight->prim);
    PrimId shorter = prim_rounded_to(weight->prim, rounded->dtype);
    if (shorter == PRIM_EXP_16) shorter = PRIM_EXP_FTZ;
    online_softmax->weight =
        scalar_prim(rows->scalars, shorter, weight->args[0], SCALAR_NONE, SCALAR_NONE);
    return below->args[0] == shift->value &&
           is_result(rows, below->args[1], online_softmax->shift) && is_early(rows, shift->value);
}

/* Masks. */

/* Whether the scalar is the axis's position plus a dim. */
static bool is_position(const Kernel *kernel, ScalarId id, uint32_t axis, DimId *offset) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const Scalar *s = get(kernel, id);
    if (s->kind != SCALAR_INDEX) return false;
    IndexExpr expr = index_expr(tab, s->index);
    *offset = expr.offset;
    if (expr.n_terms != 1 || !dim_equals_const(indextab_dims(tab), expr.terms[0].coefficient, 1))
        return false;
    IndexAtom atom = index_atom(tab, expr.terms[0].atom);
    return atom.kind == ATOM_AXIS && atom.axis == axis;
}

/* Whether the scores in row m are -infinity from column m + 1 + ahead on, so that their weights are
 * 0. */
static bool is_limited(const Kernel *scores, const Kernel *rows,
                       const OnlineSoftmax *online_softmax, uint32_t passed, DimId *ahead) {
    DimTab *dims = indextab_dims(scalartab_indices(scores->scalars));
    const Scalar *score = get(
        rows, scalar_without_casts(rows->scalars, rows->reduces.data[online_softmax->shift].value));
    ScalarId stored = scalar_without_casts(scores->scalars, scores->row_stores.data[0].value);
    if (score->kind != SCALAR_LOAD || score->buffer != passed ||
        !is_prim(scores, stored, PRIM_SELECT))
        return false;
    const Scalar *choice = get(scores, stored);
    const Scalar *other = get(scores, scalar_without_casts(scores->scalars, choice->args[2]));
    const Scalar *sees = get(scores, choice->args[0]);
    DimId column, row;
    if (other->kind != SCALAR_CONST || !(other->number < -1e308) || sees->kind != SCALAR_PRIM ||
        (sees->prim != PRIM_LE && sees->prim != PRIM_LT) ||
        !is_position(scores, sees->args[0], gemm_axis_n(scores), &column) ||
        !is_position(scores, sees->args[1], gemm_axis_m(scores), &row))
        return false;
    *ahead = dim_sub(dims, row, column);
    if (sees->prim == PRIM_LT) *ahead = dim_sub(dims, *ahead, dim_const(dims, 1));
    return true;
}

OnlineSoftmax online_softmax_find(const Kernel *scores, Kernel *rows, uint32_t passed) {
    OnlineSoftmax online_softmax = {.weight = SCALAR_NONE};
    if (!finds_slots(rows, &online_softmax) || !has_weights(rows, &online_softmax))
        return (OnlineSoftmax){.weight = SCALAR_NONE};
    online_softmax.is_limited =
        is_limited(scores, rows, &online_softmax, passed, &online_softmax.ahead);
    return online_softmax;
}
