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

enum { POSITIONS_AT_ONCE = 8 };

/* Intervals. */

typedef MaskRange Range;

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

static bool is_sum(const Scalar *scalar) {
    return scalar->kind == SCALAR_PRIM && (scalar->prim == PRIM_ADD || scalar->prim == PRIM_SUB);
}

/* Values. */

/* The value at a position (i64) along the axis. */
static Val value_at(const MaskBox *box, ScalarId id, uint32_t axis, Val position) {
    const Codegen *k = box->point.lower->k;
    Point point = point_inside(&box->point);
    point.lanes = 1;
    point.axis[axis] = k_index_cast(k, position, box->point.lower->index_type);
    return point_value(&point, id);
}

/* Widens the extremes (i32: the least, the greatest) by the value at the position. */
static void widen(const MaskBox *box, ScalarId id, uint32_t axis, Val position, Val *extremes) {
    const Codegen *k = box->point.lower->k;
    Val value = value_at(box, id, axis, position);
    extremes[0] = k_smin(k, extremes[0], value);
    extremes[1] = k_smax(k, extremes[1], value);
}

/* A thread has every `n`-th position, of `n` threads; the last one where there are no more. */
static void widen_by_threads(const MaskBox *box, ScalarId id, uint32_t axis, MaskSpan span,
                             Val *extremes) {
    const Codegen *k = box->point.lower->k;
    const MaskThreads *threads = box->threads;
    Val first = k_add(k, span.first, k_index_cast(k, threads->number, k->i64));
    for (uint32_t i = 0; i < span.most; i += threads->n)
        widen(box, id, axis, k_smin(k, k_addi(k, first, i), span.last), extremes);
    extremes[0] = threads->join(k, extremes[0], PRIM_MIN);
    extremes[1] = threads->join(k, extremes[1], PRIM_MAX);
}

/* The interval of a value (i32) that varies along one axis. A few positions are looked at together;
 * the last one again where there are no more. */
static Range range_along(const MaskBox *box, ScalarId id, uint32_t axis) {
    const Codegen *k = box->point.lower->k;
    MaskSpan span = axis == box->row_axis ? box->rows : box->keys;
    Val extremes[2] = {k_i32(k, INT32_MAX), k_i32(k, INT32_MIN)};
    if (box->threads) {
        widen_by_threads(box, id, axis, span, extremes);
    } else {
        Loop loop = loop_begin(k, span.first, k_addi(k, span.last, 1), POSITIONS_AT_ONCE);
        loop_carry(k, &loop, extremes, 2);
        for (uint32_t i = 0; i < POSITIONS_AT_ONCE; i++)
            widen(box, id, axis, k_smin(k, k_addi(k, loop.index, i), span.last), extremes);
        loop_end(k, &loop);
    }
    return (Range){k_sext(k, extremes[0], k->i64), k_sext(k, extremes[1], k->i64), NULL};
}

/* The interval of a value (i32) whose parts have none. */
static Range range_of_values(const MaskBox *box, ScalarId id) {
    uint32_t axes = get(box, id)->axes & inner_axes(box);
    for (uint32_t i = 0; i < box->n_known; i++)
        if (box->known[i] == id) return box->ranges[i];
    if (axes == inner_axes(box)) return anything;
    return range_along(box, id, axes == 1u << box->row_axis ? box->row_axis : box->key_axis);
}

static Range range_of(MaskBox *box, ScalarId id) {
    const Codegen *k = box->point.lower->k;
    const Scalar *scalar = get(box, id);
    if (scalar->kind == SCALAR_INDEX) return range_of_index(box, scalar->index);
    if (!dtype_in(scalar->dtype, DTS_INDEX) || dtype_is_wide(scalar->dtype)) return anything;
    if (scalar->kind == SCALAR_CONST) return exactly(k, k_int(k->i64, scalar->whole));
    if (!(scalar->axes & inner_axes(box))) return exactly(k, point_value(&box->point, id));
    if (!is_sum(scalar)) return range_of_values(box, id);
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
    else {
        Val is_one = k_eq(k, a.hi, b.lo), is_behind = k_slt(k, b.hi, a.lo);
        seen = (Seen){.all = k_and(k, k_eq(k, a.lo, b.hi), is_one),
                      .none = k_or(k, k_slt(k, a.hi, b.lo), is_behind)};
    }
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

/* Notes the values of the predicate, or of a part of it, that vary along the rows alone. */
static void take_values(MaskBox *box, ScalarId id) {
    const Scalar *scalar = get(box, id);
    bool is_integer = dtype_in(scalar->dtype, DTS_INDEX) && !dtype_is_wide(scalar->dtype);
    bool is_predicate = scalar->kind == SCALAR_PRIM && dtype_in(scalar->dtype, DTS_BOOL);
    if (is_predicate || (is_integer && is_sum(scalar)))
        for (uint32_t i = 0; i < prim_info(scalar->prim)->arity; i++)
            take_values(box, scalar->args[i]);
    if (!is_integer || is_sum(scalar) || scalar->kind == SCALAR_INDEX) return;
    for (uint32_t i = 0; i < box->n_known; i++)
        if (box->known[i] == id) return;
    if ((scalar->axes & inner_axes(box)) != 1u << box->row_axis || box->n_known == MASK_MOST_KNOWN)
        return;
    box->known[box->n_known] = id;
    box->ranges[box->n_known++] = range_along(box, id, box->row_axis);
}

void masks_take_rows(MaskBox *box, const Mask *masks, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) take_values(box, masks[i].shows);
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
