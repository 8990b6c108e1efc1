/* See mask.h. */
#include "codegen/scalar/mask.h"

/* Finding masks. */

static bool is_hidden(const Scalar *arm) {
    return arm->kind == SCALAR_CONST && dtype_is_float(arm->dtype) && arm->number < -1e308;
}

uint32_t masks_find(const ScalarTab *tab, ScalarId root, Mask *masks) {
    uint32_t n = 0;
    while (root && n < MOST_MASKS) {
        root = scalar_without_casts(tab, root);
        const Scalar *select = scalar_get(tab, root);
        if (select->kind != SCALAR_PRIM || select->prim != PRIM_SELECT) return n;
        bool hides_first = is_hidden(scalar_get(tab, scalar_without_casts(tab, select->args[1])));
        bool hides_second = is_hidden(scalar_get(tab, scalar_without_casts(tab, select->args[2])));
        if (hides_first == hides_second) return n;
        masks[n++] = (Mask){.select = root,
                            .shows = select->args[0],
                            .score = select->args[hides_first ? 2 : 1],
                            .is_negated = hides_first};
        root = masks[n - 1].score;
    }
    return n;
}

/* Intervals. */

/* An interval of integers (i64). lo NULL: nothing is known. `holds` (i1): whether the values lie in
 * it; NULL: they do. */
typedef struct Range {
    Val lo, hi, holds;
} Range;

static const Range anything = {NULL, NULL, NULL};

static const Scalar *get(const MaskBox *box, ScalarId id) {
    return scalar_get(box->point.lower->kernel->scalars, id);
}

static Range exactly(const Codegen *k, Val value) {
    value = k_index_cast(k, value, k->i64);
    return (Range){value, value, NULL};
}

static Val both(const Codegen *k, Val a, Val b) {
    return a && b ? k_and(k, a, b) : a ? a : b;
}

static Range add_ranges(const Codegen *k, Range a, Range b) {
    if (!a.lo || !b.lo) return anything;
    return (Range){k_add(k, a.lo, b.lo), k_add(k, a.hi, b.hi), both(k, a.holds, b.holds)};
}

static Range negative(const Codegen *k, Range a) {
    if (!a.lo) return anything;
    return (Range){k_neg(k, a.hi), k_neg(k, a.lo), a.holds};
}

static Range range_of_index(MaskBox *box, IndexId id);

static uint32_t inner_axes(const MaskBox *box) {
    return 1u << box->row_axis | 1u << box->key_axis;
}

static Range positions(MaskSpan span) {
    return (Range){span.first, span.last, NULL};
}

static Range range_of_atom(MaskBox *box, IndexAtom atom) {
    Lower *lower = box->point.lower;
    const Codegen *k = lower->k;
    Range range = anything;
    switch (atom.kind) {
    case ATOM_AXIS:
        if (atom.axis == box->row_axis) return positions(box->rows);
        if (atom.axis == box->key_axis) return positions(box->keys);
        return exactly(k, box->point.axis[atom.axis]);
    case ATOM_DIV: {
        Val divisor = k_index_cast(k, lower_divisor(lower, atom.divisor), k->i64);
        range = range_of_index(box, atom.operand);
        if (!range.lo) return range;
        return (Range){k_udiv(k, range.lo, divisor), k_udiv(k, range.hi, divisor), range.holds};
    }
    case ATOM_VALUE:
        if (atom.axes & inner_axes(box)) return range;
        return exactly(k, point_value(&box->point, atom.value));
    case ATOM_MOD:
        return range;
    }
    return range;
}

static Range range_of_index(MaskBox *box, IndexId id) {
    Lower *lower = box->point.lower;
    const Codegen *k = lower->k;
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    IndexExpr expr = index_expr(tab, id);
    Range sum = exactly(k, lower_dim(lower, expr.offset));
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        Range range = range_of_atom(box, index_atom(tab, expr.terms[i].atom));
        int64_t factor;
        if (!range.lo || !dim_is_const(lower_dims(lower), expr.terms[i].coefficient, &factor))
            return anything;
        if (factor < 0) range = negative(k, range);
        Val by = k_int(k->i64, factor < 0 ? -factor : factor);
        sum = add_ranges(k, sum,
                         (Range){k_mul(k, range.lo, by), k_mul(k, range.hi, by), range.holds});
    }
    return sum;
}

/* The sum of two numbers of a narrow dtype: where it would wrap, the interval does not hold. */
static Range narrow_sum(const Codegen *k, Range a, Range b) {
    Range sum = add_ranges(k, a, b);
    if (!sum.lo) return sum;
    Val rises = k_sge(k, sum.lo, k_int(k->i64, INT32_MIN));
    Val ends = k_sle(k, sum.hi, k_int(k->i64, INT32_MAX));
    sum.holds = both(k, sum.holds, k_and(k, rises, ends));
    return sum;
}

static Range range_of(MaskBox *box, ScalarId id) {
    const Codegen *k = box->point.lower->k;
    const Scalar *scalar = get(box, id);
    if (scalar->kind == SCALAR_INDEX) return range_of_index(box, scalar->index);
    if (!dtype_in(scalar->dtype, DTS_INDEX) || dtype_is_wide(scalar->dtype)) return anything;
    if (scalar->kind == SCALAR_CONST) return exactly(k, k_int(k->i64, scalar->whole));
    if (!(scalar->axes & inner_axes(box))) return exactly(k, point_value(&box->point, id));
    if (scalar->kind != SCALAR_PRIM || (scalar->prim != PRIM_ADD && scalar->prim != PRIM_SUB))
        return anything;
    Range a = range_of(box, scalar->args[0]), b = range_of(box, scalar->args[1]);
    return narrow_sum(k, a, scalar->prim == PRIM_SUB ? negative(k, b) : b);
}

/* Predicates. */

static Seen negated(Seen seen) {
    return (Seen){seen.all, seen.none};
}

static Seen unknown(const Codegen *k) {
    Val no = k_int(k->i1, 0);
    return (Seen){no, no};
}

static Seen compared(const Codegen *k, PrimId prim, Range a, Range b) {
    Seen seen;
    if (prim == PRIM_LT)
        seen = (Seen){.all = k_slt(k, a.hi, b.lo), .none = k_sge(k, a.lo, b.hi)};
    else if (prim == PRIM_LE)
        seen = (Seen){.all = k_sle(k, a.hi, b.lo), .none = k_sgt(k, a.lo, b.hi)};
    else
        seen = (Seen){.all = k_and(k, k_eq(k, a.lo, b.hi), k_eq(k, a.hi, b.lo)),
                      .none = k_or(k, k_slt(k, a.hi, b.lo), k_slt(k, b.hi, a.lo))};
    Val holds = both(k, a.holds, b.holds);
    return (Seen){.all = both(k, seen.all, holds), .none = both(k, seen.none, holds)};
}

/* Over the box: whether the predicate is false everywhere (none), and whether it is true
 * everywhere (all). */
static Seen seen_by(MaskBox *box, ScalarId id) {
    const Codegen *k = box->point.lower->k;
    const Scalar *scalar = get(box, id);
    Seen a, b;
    Range left, right;
    if (scalar->kind != SCALAR_PRIM) return unknown(k);
    switch ((int)scalar->prim) {
    case PRIM_AND:
    case PRIM_OR:
        a = seen_by(box, scalar->args[0]);
        b = seen_by(box, scalar->args[1]);
        if (scalar->prim == PRIM_AND)
            return (Seen){.none = k_or(k, a.none, b.none), .all = k_and(k, a.all, b.all)};
        return (Seen){.none = k_and(k, a.none, b.none), .all = k_or(k, a.all, b.all)};
    case PRIM_NOT:
        return negated(seen_by(box, scalar->args[0]));
    case PRIM_LT:
    case PRIM_LE:
    case PRIM_EQ:
    case PRIM_NE:
        left = range_of(box, scalar->args[0]);
        right = range_of(box, scalar->args[1]);
        if (!left.lo || !right.lo) return unknown(k);
        a = compared(k, scalar->prim, left, right);
        return scalar->prim == PRIM_NE ? negated(a) : a;
    default:
        return unknown(k);
    }
}

Seen masks_seen(MaskBox *box, const Mask *masks, uint32_t n) {
    const Codegen *k = box->point.lower->k;
    Seen seen = {NULL, NULL};
    for (uint32_t i = 0; i < n; i++) {
        Seen own = seen_by(box, masks[i].shows);
        if (masks[i].is_negated) own = negated(own);
        seen.none = seen.none ? k_or(k, seen.none, own.none) : own.none;
        seen.all = seen.all ? k_and(k, seen.all, own.all) : own.all;
    }
    return seen;
}
