/* Softmax between two products by wgmma: which tiles of columns masks hide. See wgmma_rows.h.
 *
 * A mask is a select between a score and -infinity. Its predicate is evaluated over all rows of the
 * block's tile and all columns of a tile of scores, by intervals of its integers. A value loaded at
 * a place that depends on neither is known; other values may be anything. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

/* An interval of integers (i64). lo NULL: nothing is known. `holds` (i1): whether the values lie in
 * it; NULL: they do. */
typedef struct Range {
    Val lo, hi, holds;
} Range;

typedef struct Box {
    const WgmmaRows *s;
    Point point; /* its batch */
    Range rows, columns;
} Box;

static const Scalar *get(const WgmmaRows *s, ScalarId id) {
    return scalar_get(s->lower->kernel->scalars, id);
}

/* Finding masks. */

static bool is_hidden(const Scalar *arm) {
    return arm->kind == SCALAR_CONST && dtype_is_float(arm->dtype) && arm->number < -1e308;
}

/* Where the scores' program ends. SCALAR_NONE: the rows' exponents are not the scores, so a hidden
 * score may have a weight. */
static ScalarId score_root(const WgmmaRows *s) {
    const ScalarTab *rows = s->out_lower->kernel->scalars;
    ScalarId id = s->exponent;
    if (!s->has_scores) return id;
    while (scalar_get(rows, id)->kind == SCALAR_CVT) id = scalar_get(rows, id)->args[0];
    return scalar_get(rows, id)->kind == SCALAR_LOAD ? s->lower->kernel->row_stores.data[0].value
                                                     : SCALAR_NONE;
}

void wgmma_rows_find_masks(WgmmaRows *s) {
    const ScalarTab *tab = s->lower->kernel->scalars;
    ScalarId id = score_root(s);
    while (id && s->n_masks < MOST_MASKS) {
        id = scalar_without_casts(tab, id);
        const Scalar *select = get(s, id);
        if (select->kind != SCALAR_PRIM || select->prim != PRIM_SELECT) return;
        bool hides_first = is_hidden(get(s, scalar_without_casts(tab, select->args[1])));
        bool hides_second = is_hidden(get(s, scalar_without_casts(tab, select->args[2])));
        if (hides_first == hides_second) return;
        Mask mask = {.select = id,
                     .shows = select->args[0],
                     .score = select->args[hides_first ? 2 : 1],
                     .is_negated = hides_first};
        s->masks[s->n_masks++] = mask;
        id = mask.score;
    }
}

/* Intervals. */

static const Range anything = {NULL, NULL, NULL};

static Range exactly(const WgmmaRows *s, Val value) {
    value = k_index_cast(s->k, value, s->k->i64);
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

static Range range_of_index(Box *box, IndexId id);

static uint32_t inner_axes(const WgmmaRows *s) {
    return 1u << s->row_axis | 1u << s->key_axis;
}

static Range range_of_atom(Box *box, IndexAtom atom) {
    const WgmmaRows *s = box->s;
    const Codegen *k = s->k;
    Range range = anything;
    switch (atom.kind) {
    case ATOM_AXIS:
        if (atom.axis == s->row_axis) return box->rows;
        if (atom.axis == s->key_axis) return box->columns;
        return exactly(s, box->point.axis[atom.axis]);
    case ATOM_DIV: {
        Val divisor = k_index_cast(k, lower_divisor(s->lower, atom.divisor), k->i64);
        range = range_of_index(box, atom.operand);
        if (!range.lo) return range;
        return (Range){k_udiv(k, range.lo, divisor), k_udiv(k, range.hi, divisor), range.holds};
    }
    case ATOM_VALUE:
        if (atom.axes & inner_axes(s)) return range;
        return exactly(s, point_value(&box->point, atom.value));
    case ATOM_MOD:
        return range;
    }
    return range;
}

static Range range_of_index(Box *box, IndexId id) {
    const WgmmaRows *s = box->s;
    const Codegen *k = s->k;
    const IndexTab *tab = scalartab_indices(s->lower->kernel->scalars);
    IndexExpr expr = index_expr(tab, id);
    Range sum = exactly(s, lower_dim(s->lower, expr.offset));
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        Range range = range_of_atom(box, index_atom(tab, expr.terms[i].atom));
        int64_t factor;
        if (!range.lo || !dim_is_const(lower_dims(s->lower), expr.terms[i].coefficient, &factor))
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

static Range range_of(Box *box, ScalarId id) {
    const WgmmaRows *s = box->s;
    const Scalar *scalar = get(s, id);
    if (scalar->kind == SCALAR_INDEX) return range_of_index(box, scalar->index);
    if (!dtype_in(scalar->dtype, DTS_INDEX) || dtype_is_wide(scalar->dtype)) return anything;
    if (scalar->kind == SCALAR_CONST) return exactly(s, k_int(s->k->i64, scalar->whole));
    if (!(scalar->axes & inner_axes(s))) return exactly(s, point_value(&box->point, id));
    if (scalar->kind != SCALAR_PRIM || (scalar->prim != PRIM_ADD && scalar->prim != PRIM_SUB))
        return anything;
    Range a = range_of(box, scalar->args[0]), b = range_of(box, scalar->args[1]);
    return narrow_sum(s->k, a, scalar->prim == PRIM_SUB ? negative(s->k, b) : b);
}

/* Predicates. */

static Seen negated(Seen seen) {
    return (Seen){seen.all, seen.none};
}

static Seen unknown(const WgmmaRows *s) {
    Val no = k_int(s->k->i1, 0);
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
static Seen seen_by(Box *box, ScalarId id) {
    const WgmmaRows *s = box->s;
    const Codegen *k = s->k;
    const Scalar *scalar = get(s, id);
    Seen a, b;
    Range left, right;
    if (scalar->kind != SCALAR_PRIM) return unknown(s);
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
        if (!left.lo || !right.lo) return unknown(s);
        a = compared(k, scalar->prim, left, right);
        return scalar->prim == PRIM_NE ? negated(a) : a;
    default:
        return unknown(s);
    }
}

/* `n` positions from `first` (index_type) on, before `extent`. */
static Range positions(const WgmmaRows *s, Val first, uint32_t n, Val extent) {
    const Codegen *k = s->k;
    Range range = exactly(s, first);
    Val last = k_addi(k, range.lo, (int64_t)n - 1);
    range.hi = k_smin(k, last, k_subi(k, k_index_cast(k, extent, k->i64), 1));
    return range;
}

Seen wgmma_rows_seen(const WgmmaRows *s, Val column) {
    const Codegen *k = s->k;
    if (!s->n_masks && s->is_whole) return (Seen){NULL, NULL};
    Seen seen = {.all = k_ule(k, k_addi(k, column, s->width), s->n_keys)};
    Box box = {.s = s,
               .point = point_inside(&s->block.point),
               .rows = positions(s, s->block.m0, s->tiles.m, s->block.m),
               .columns = positions(s, column, s->width, s->n_keys)};
    for (uint32_t i = 0; i < s->n_masks; i++) {
        Seen own = seen_by(&box, s->masks[i].shows);
        if (s->masks[i].is_negated) own = negated(own);
        seen.none = seen.none ? k_or(k, seen.none, own.none) : own.none;
        seen.all = k_and(k, seen.all, own.all);
    }
    return seen;
}
