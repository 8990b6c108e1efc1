/* See mask.h. */
#include "codegen/scalar/mask.h"

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

/* Whether all numbers of the interval are in [-most - 1, most]. */
static Val are_within(const Codegen *k, Range range, int64_t most) {
    Val rises = k_sge(k, range.lo, k_int(k->i64, -most - 1));
    Val ends = k_sle(k, range.hi, k_int(k->i64, most));
    return k_and(k, rises, ends);
}

/* The sum or difference of two numbers. Where it may wrap, the interval does not hold. */
static Range range_of_sum(const Codegen *k, const Scalar *sum, Range a, Range b) {
    Range range = add_ranges(k, a, sum->prim == PRIM_SUB ? negative(k, b) : b);
    if (!range.lo) return range;
    if (dtype_is_wide(sum->dtype)) {
        Val first = are_within(k, a, INT64_MAX / 2), second = are_within(k, b, INT64_MAX / 2);
        range.holds = both(k, range.holds, k_and(k, first, second));
    } else
        range.holds = both(k, range.holds, are_within(k, range, INT32_MAX));
    return range;
}

/* Values. */

/* The value at a position (i64) along the axis; i32 of a bool. */
static Val value_at(const MaskBox *box, ScalarId id, uint32_t axis, Val position) {
    const Codegen *k = box->point.lower->k;
    Point point = point_inside(&box->point);
    point.lanes = 1;
    point.axis[axis] = k_index_cast(k, position, box->point.lower->index_type);
    Val value = point_value(&point, id);
    return dtype_is_bool(get(box, id)->dtype) ? k_zext(k, value, k->i32) : value;
}

/* Widens the extremes (the least, the greatest) by the value at the position. */
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

/* The interval of a value that varies along one axis. A few positions are looked at together; the
 * last one again where there are no more. */
static Range range_along(const MaskBox *box, ScalarId id, uint32_t axis) {
    const Codegen *k = box->point.lower->k;
    MaskSpan span = axis == box->row_axis ? box->rows : box->keys;
    bool is_wide = dtype_is_wide(get(box, id)->dtype);
    LLVMTypeRef type = is_wide ? k->i64 : k->i32;
    Val extremes[2] = {k_int(type, is_wide ? INT64_MAX : INT32_MAX),
                       k_int(type, is_wide ? INT64_MIN : INT32_MIN)};
    if (box->threads) {
        widen_by_threads(box, id, axis, span, extremes);
    } else {
        Loop loop = loop_begin(k, span.first, k_addi(k, span.last, 1), POSITIONS_AT_ONCE);
        loop_carry(k, &loop, extremes, 2);
        for (uint32_t i = 0; i < POSITIONS_AT_ONCE; i++)
            widen(box, id, axis, k_smin(k, k_addi(k, loop.index, i), span.last), extremes);
        loop_end(k, &loop);
    }
    return (Range){k_index_cast(k, extremes[0], k->i64), k_index_cast(k, extremes[1], k->i64),
                   NULL};
}

/* The interval of a value that varies along the keys, by its bounds; or anything. */
static Range range_by_bounds(const MaskBox *box, ScalarId id) {
    const Kernel *kernel = box->point.lower->kernel;
    const Codegen *k = box->point.lower->k;
    for (uint32_t i = 0; i < kernel->bounds.n; i++) {
        const Bounds *bounds = &kernel->bounds.data[i];
        if (bounds->value != id) continue;
        Val key = k_smin(k, box->keys.first, box->keys.last); /* behind the last there is none */
        Val lo = value_at(box, bounds->least, box->key_axis, key);
        Val hi = value_at(box, bounds->greatest, box->key_axis, key);
        return (Range){k_index_cast(k, lo, k->i64), k_index_cast(k, hi, k->i64), NULL};
    }
    return anything;
}

/* The interval of a value by itself. */
static Range range_of_values(MaskBox *box, ScalarId id) {
    const Codegen *k = box->point.lower->k;
    const Scalar *scalar = get(box, id);
    uint32_t axes = scalar->axes & inner_axes(box);
    for (uint32_t i = 0; i < box->n_known; i++)
        if (box->known[i] == id) return box->ranges[i];
    if (!axes) {
        Val value = point_value(&box->point, id);
        return exactly(k, dtype_is_bool(scalar->dtype) ? k_zext(k, value, k->i32) : value);
    }
    if (axes != 1u << box->key_axis) return anything;
    return box->threads ? range_by_bounds(box, id) : range_along(box, id, box->key_axis);
}

static Range range_of(MaskBox *box, ScalarId id) {
    const Codegen *k = box->point.lower->k;
    const Scalar *scalar = get(box, id);
    Range a, b;
    switch (mask_part(box->point.lower->kernel->scalars, id)) {
    case MASK_NUMBER:
        if (scalar->kind == SCALAR_INDEX) return range_of_index(box, scalar->index);
        return exactly(k, k_int(k->i64, scalar->whole));
    case MASK_WIDER:
        return range_of(box, scalar->args[0]);
    case MASK_SUM:
        a = range_of(box, scalar->args[0]);
        b = range_of(box, scalar->args[1]);
        return range_of_sum(k, scalar, a, b);
    case MASK_VALUE:
        return range_of_values(box, id);
    case MASK_JOINED:
    case MASK_UNKNOWN:
        break;
    }
    return anything;
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

/* Of a bool by its interval. */
static Seen seen_by_value(MaskBox *box, ScalarId id) {
    const Codegen *k = box->point.lower->k;
    Range range = range_of(box, id);
    if (!range.lo) return unknown(k);
    return (Seen){.none = k_eqi(k, range.hi, 0), .all = k_eqi(k, range.lo, 1)};
}

/* Over the box: whether the predicate is false everywhere (none), and whether it is true
 * everywhere (all). */
static Seen seen_by(MaskBox *box, ScalarId id) {
    const Codegen *k = box->point.lower->k;
    const Scalar *scalar = get(box, id);
    Seen a, b;
    Range left, right;
    if (mask_part(box->point.lower->kernel->scalars, id) != MASK_JOINED)
        return seen_by_value(box, id);
    switch ((int)scalar->prim) {
    case PRIM_AND:
    case PRIM_BITAND:
        a = seen_by(box, scalar->args[0]);
        b = seen_by(box, scalar->args[1]);
        return (Seen){.none = k_or(k, a.none, b.none), .all = k_and(k, a.all, b.all)};
    case PRIM_OR:
    case PRIM_BITOR:
        a = seen_by(box, scalar->args[0]);
        b = seen_by(box, scalar->args[1]);
        return (Seen){.none = k_and(k, a.none, b.none), .all = k_or(k, a.all, b.all)};
    case PRIM_NOT:
        return negated(seen_by(box, scalar->args[0]));
    default:
        left = range_of(box, scalar->args[0]);
        right = range_of(box, scalar->args[1]);
        if (!left.lo || !right.lo) return unknown(k);
        a = compared(k, scalar->prim, left, right);
        return scalar->prim == PRIM_NE ? negated(a) : a;
    }
}

/* Notes the interval of a value that varies along the rows alone. */
static void take_value(void *user, ScalarId id) {
    MaskBox *box = user;
    for (uint32_t i = 0; i < box->n_known; i++)
        if (box->known[i] == id) return;
    if ((get(box, id)->axes & inner_axes(box)) != 1u << box->row_axis ||
        box->n_known == MASK_MOST_KNOWN)
        return;
    box->known[box->n_known] = id;
    box->ranges[box->n_known++] = range_along(box, id, box->row_axis);
}

void masks_take_rows(MaskBox *box, const Mask *masks, uint32_t n) {
    const ScalarTab *tab = box->point.lower->kernel->scalars;
    for (uint32_t i = 0; i < n; i++) mask_each_value(tab, masks[i].shows, take_value, box);
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
