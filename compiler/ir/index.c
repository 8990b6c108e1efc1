/* Index expressions in canonical form. Simplification happens on construction. It uses three facts:
 * axes are nonnegative and bounded by their extents, floor((D*q + r) / D) = q + floor(r / D), and
 * D*floor(x / D) + x mod D = x. */
#include "ir/index.h"

#include "base/hashids.h"
#include "base/vec.h"

typedef struct Expr {
    DimId offset;
    uint32_t n_terms;
    const IndexTerm *terms;
    uint32_t axes, moved_by;
    uint32_t weight;
} Expr;

enum { MAX_ASSUMED = 2 };

struct IndexTab {
    Arena *arena;
    DimTab *dims;
    Vec(DimId) extents;
    Vec(IndexAtom) atoms;
    struct {
        DimId dim; /* assumed to be a multiple */
        int64_t multiple;
    } assumed[MAX_ASSUMED];
    uint32_t n_assumed;
    Vec(Expr) exprs; /* [0] is unused, so that id 0 is never an index */
    HashIds ids;     /* hash table of exprs */
    /* What is asked for most; 0: not yet. */
    IndexId zero, axes[MAX_AXES];
};

enum { MAX_TERMS = 64 };

/* An index under construction. */
typedef struct Sum {
    DimId offset;
    uint32_t n;
    IndexTerm terms[MAX_TERMS];
} Sum;

/* Leaves the terms as they are: most indices have few. */
static void sum_begin(Sum *sum, DimId offset) {
    sum->offset = offset;
    sum->n = 0;
}

IndexTab *indextab_new(Arena *arena, DimTab *dims) {
    IndexTab *tab = arena_array(arena, IndexTab, 1);
    tab->arena = arena;
    tab->dims = dims;
    vec_push(arena, &tab->exprs, (Expr){0});
    return tab;
}

/* Arrays are only appended to, so the copy shares them until it appends. */
IndexTab *indextab_copy(Arena *arena, const IndexTab *tab) {
    IndexTab *copy = arena_copy(arena, tab, sizeof *tab);
    copy->arena = arena;
    copy->extents.capacity = copy->extents.n;
    copy->atoms.capacity = copy->atoms.n;
    copy->exprs.capacity = copy->exprs.n;
    copy->ids = hashids_copy(arena, &tab->ids);
    return copy;
}

DimTab *indextab_dims(const IndexTab *tab) {
    return tab->dims;
}

uint32_t index_new_axis(IndexTab *tab, DimId extent) {
    if (tab->extents.n >= MAX_AXES) ice(tab->arena, "more than %d loop axes", MAX_AXES);
    vec_push(tab->arena, &tab->extents, extent);
    return tab->extents.n - 1;
}

uint32_t index_n_axes(const IndexTab *tab) {
    return tab->extents.n;
}

DimId index_axis_extent(const IndexTab *tab, uint32_t axis) {
    return tab->extents.data[axis];
}

static uint32_t intern_atom(IndexTab *tab, IndexAtom atom) {
    for (uint32_t i = 0; i < tab->atoms.n; i++) {
        const IndexAtom *a = &tab->atoms.data[i];
        if (a->kind == atom.kind && a->axis == atom.axis && a->operand == atom.operand &&
            a->divisor == atom.divisor && a->value == atom.value)
            return i;
    }
    vec_push(tab->arena, &tab->atoms, atom);
    return tab->atoms.n - 1;
}

static void sum_add_term(IndexTab *tab, Sum *sum, DimId coefficient, uint32_t atom) {
    for (uint32_t i = 0; i < sum->n; i++)
        if (sum->terms[i].atom == atom) {
            sum->terms[i].coefficient = dim_add(tab->dims, sum->terms[i].coefficient, coefficient);
            return;
        }
    if (sum->n >= MAX_TERMS) ice(tab->arena, "index of more than %d terms", MAX_TERMS);
    sum->terms[sum->n++] = (IndexTerm){.coefficient = coefficient, .atom = atom};
}

/* Replaces c*D*(x / D) + c*(x mod D) by c*x. Returns whether anything changed. */
static bool sum_rejoin(IndexTab *tab, Sum *sum);

static void sum_add_scaled(IndexTab *tab, Sum *sum, IndexId id, DimId factor) {
    Expr expr = tab->exprs.data[id];
    sum->offset = dim_add(tab->dims, sum->offset, dim_mul(tab->dims, expr.offset, factor));
    for (uint32_t i = 0; i < expr.n_terms; i++)
        sum_add_term(tab, sum, dim_mul(tab->dims, expr.terms[i].coefficient, factor),
                     expr.terms[i].atom);
}

static void sum_remove(Sum *sum, uint32_t i) {
    for (; i + 1 < sum->n; i++) sum->terms[i] = sum->terms[i + 1];
    sum->n--;
}

/* Whether the atom is x / D where `rest` is x mod D. If x = y / E, the quotient is y / (E*D). */
static bool is_quotient_of(IndexTab *tab, const IndexAtom *atom, const IndexAtom *rest) {
    if (atom->kind != ATOM_DIV) return false;
    if (atom->operand == rest->operand) return atom->divisor == rest->divisor;
    const Expr *expr = &tab->exprs.data[rest->operand];
    if (expr->n_terms != 1 || !dim_equals_const(tab->dims, expr->offset, 0) ||
        !dim_equals_const(tab->dims, expr->terms[0].coefficient, 1))
        return false;
    const IndexAtom *inner = &tab->atoms.data[expr->terms[0].atom];
    return inner->kind == ATOM_DIV && atom->operand == inner->operand &&
           atom->divisor == dim_mul(tab->dims, inner->divisor, rest->divisor);
}

static bool sum_rejoin(IndexTab *tab, Sum *sum) {
    for (uint32_t i = 0; i < sum->n; i++) {
        IndexAtom rest = tab->atoms.data[sum->terms[i].atom];
        DimId c = sum->terms[i].coefficient;
        if (rest.kind != ATOM_MOD) continue;
        DimId wanted = dim_mul(tab->dims, c, rest.divisor);
        for (uint32_t j = 0; j < sum->n; j++) {
            IndexAtom quotient = tab->atoms.data[sum->terms[j].atom];
            if (sum->terms[j].coefficient != wanted || !is_quotient_of(tab, &quotient, &rest))
                continue;
            sum_remove(sum, i > j ? i : j);
            sum_remove(sum, i > j ? j : i);
            sum_add_scaled(tab, sum, rest.operand, c);
            return true;
        }
    }
    return false;
}

static void sum_sort(const DimTab *dims, Sum *sum) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < sum->n; i++)
        if (!dim_equals_const(dims, sum->terms[i].coefficient, 0)) sum->terms[n++] = sum->terms[i];
    sum->n = n;
    for (uint32_t i = 1; i < n; i++) {
        IndexTerm term = sum->terms[i];
        uint32_t j = i;
        for (; j > 0 && sum->terms[j - 1].atom > term.atom; j--) sum->terms[j] = sum->terms[j - 1];
        sum->terms[j] = term;
    }
}

/* Makes the sum canonical. */
static void sum_settle(IndexTab *tab, Sum *sum) {
    while (sum_rejoin(tab, sum)) continue;
    sum_sort(tab->dims, sum);
}

static IndexId intern_sum(IndexTab *tab, Sum *sum) {
    sum_settle(tab, sum);
    bool overflows = !sum->offset;
    for (uint32_t i = 0; i < sum->n; i++) overflows = overflows || !sum->terms[i].coefficient;
    if (overflows) ice(tab->arena, "an address passes 2^62");
    uint64_t hash = hash_mix(0, sum->offset);
    for (uint32_t i = 0; i < sum->n; i++)
        hash = hash_mix(hash, (uint64_t)sum->terms[i].atom << 32 | sum->terms[i].coefficient);
    uint32_t probe = 0;
    for (IndexId id; (id = hashids_next(&tab->ids, hash, &probe));) {
        const Expr *e = &tab->exprs.data[id];
        if (e->offset == sum->offset && e->n_terms == sum->n &&
            memcmp(e->terms, sum->terms, sum->n * sizeof *sum->terms) == 0)
            return id;
    }
    Expr expr = {.offset = sum->offset, .n_terms = sum->n};
    expr.terms = arena_copy(tab->arena, sum->terms, sum->n * sizeof *sum->terms);
    for (uint32_t i = 0; i < sum->n; i++) {
        IndexAtom atom = tab->atoms.data[sum->terms[i].atom];
        bool is_nested = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD;
        expr.axes |= atom.axes;
        expr.moved_by |= atom.moved_by;
        expr.weight += 1 + (is_nested ? index_weight(tab, atom.operand) : 0);
        if (expr.weight > INDEX_MAX_WEIGHT) expr.weight = INDEX_MAX_WEIGHT;
    }
    vec_push(tab->arena, &tab->exprs, expr);
    hashids_add(tab->arena, &tab->ids, hash, tab->exprs.n - 1);
    return tab->exprs.n - 1;
}

IndexId index_dim(IndexTab *tab, DimId value) {
    bool is_zero = dim_equals_const(tab->dims, value, 0);
    if (is_zero && tab->zero) return tab->zero;
    Sum sum;
    sum_begin(&sum, value);
    IndexId id = intern_sum(tab, &sum);
    if (is_zero) tab->zero = id;
    return id;
}

static IndexId of_atom(IndexTab *tab, IndexAtom atom) {
    Sum sum;
    sum_begin(&sum, dim_const(tab->dims, 0));
    sum_add_term(tab, &sum, dim_const(tab->dims, 1), intern_atom(tab, atom));
    return intern_sum(tab, &sum);
}

IndexId index_axis(IndexTab *tab, uint32_t axis) {
    if (dim_equals_const(tab->dims, tab->extents.data[axis], 1))
        return index_dim(tab, dim_const(tab->dims, 0));
    uint32_t own = 1u << axis;
    IndexAtom atom = {.kind = ATOM_AXIS, .axis = axis, .axes = own, .moved_by = own};
    if (!tab->axes[axis]) tab->axes[axis] = of_atom(tab, atom);
    return tab->axes[axis];
}

IndexId index_value(IndexTab *tab, uint32_t scalar, DimId extent, uint32_t axes,
                    uint32_t moved_by) {
    return of_atom(tab, (IndexAtom){.kind = ATOM_VALUE,
                                    .divisor = extent,
                                    .value = scalar,
                                    .axes = axes,
                                    .moved_by = moved_by});
}

static bool is_zero(const IndexTab *tab, IndexId id) {
    const Expr *expr = &tab->exprs.data[id];
    return expr->n_terms == 0 && dim_equals_const(tab->dims, expr->offset, 0);
}

IndexId index_add(IndexTab *tab, IndexId a, IndexId b) {
    if (is_zero(tab, a)) return b;
    if (is_zero(tab, b)) return a;
    DimId one = dim_const(tab->dims, 1);
    Sum sum;
    sum_begin(&sum, dim_const(tab->dims, 0));
    sum_add_scaled(tab, &sum, a, one);
    sum_add_scaled(tab, &sum, b, one);
    return intern_sum(tab, &sum);
}

IndexId index_add_dim(IndexTab *tab, IndexId a, DimId b) {
    return index_add(tab, a, index_dim(tab, b));
}

IndexId index_scale(IndexTab *tab, IndexId a, DimId factor) {
    if (dim_equals_const(tab->dims, factor, 1)) return a;
    Sum sum;
    sum_begin(&sum, dim_const(tab->dims, 0));
    sum_add_scaled(tab, &sum, a, factor);
    return intern_sum(tab, &sum);
}

IndexId index_address(IndexTab *tab, uint32_t n, const IndexId *coords, const DimId *extents) {
    DimId stride = dim_const(tab->dims, 1);
    Sum sum;
    sum_begin(&sum, dim_const(tab->dims, 0));
    for (uint32_t k = n; k-- > 0;) {
        if (!is_zero(tab, coords[k])) {
            sum_add_scaled(tab, &sum, coords[k], stride);
            sum_settle(tab, &sum);
        }
        stride = dim_mul(tab->dims, stride, extents[k]);
    }
    return intern_sum(tab, &sum);
}

IndexId index_row_major(IndexTab *tab, uint32_t n_axes) {
    IndexId at = index_dim(tab, dim_const(tab->dims, 0));
    for (uint32_t k = 0; k < n_axes; k++) {
        at = index_scale(tab, at, index_axis_extent(tab, k));
        at = index_add(tab, at, index_axis(tab, k));
    }
    return at;
}

/* Splits the offset of an index by the divisor. A constant divisor leaves a remainder between 0 and
 * itself, so that the rest is not negative. */
static void split_offset(DimTab *dims, DimId offset, DimId divisor, DimId *quotient, DimId *rest) {
    int64_t d, c = dim_constant_part(dims, offset);
    *quotient = dim_exact_div(dims, offset, divisor);
    *rest = *quotient ? dim_const(dims, 0) : offset;
    if (!*quotient) *quotient = dim_const(dims, 0);
    if (!dim_is_const(dims, divisor, &d) || d <= 0) return;
    int64_t below = (c % d + d) % d; /* c = d * q + below */
    DimId whole = dim_exact_div(dims, dim_sub(dims, offset, dim_const(dims, below)), divisor);
    if (!whole) return;
    *quotient = whole;
    *rest = dim_const(dims, below);
}

/* Whether a term that the divisor does not divide may be negative. */
static bool falls_in_rest(IndexTab *tab, const Expr *expr, DimId divisor) {
    for (uint32_t i = 0; i < expr->n_terms; i++) {
        DimId c = expr->terms[i].coefficient;
        if (dim_lo(tab->dims, c) < 0 && !dim_exact_div(tab->dims, c, divisor)) return true;
    }
    return false;
}

/* a = divisor * quotient + rest; the quotient gets every term that the divisor divides. An index is
 * not negative as a whole, so terms may be removed only from an offset that is not negative
 * either. */
static void split_by(IndexTab *tab, IndexId a, DimId divisor, Sum *quotient, Sum *rest) {
    Expr expr = tab->exprs.data[a];
    quotient->n = rest->n = 0;
    split_offset(tab->dims, expr.offset, divisor, &quotient->offset, &rest->offset);
    bool is_safe = dim_lo(tab->dims, rest->offset) >= 0 && !falls_in_rest(tab, &expr, divisor);
    if (!is_safe) {
        quotient->offset = dim_const(tab->dims, 0);
        rest->offset = expr.offset;
    }
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        DimId q = is_safe ? dim_exact_div(tab->dims, expr.terms[i].coefficient, divisor) : DIM_NONE;
        if (q)
            sum_add_term(tab, quotient, q, expr.terms[i].atom);
        else
            sum_add_term(tab, rest, expr.terms[i].coefficient, expr.terms[i].atom);
    }
}

/* Whether 0 <= a < bound for all values of the axes. */
static bool is_below(IndexTab *tab, IndexId a, DimId bound) {
    DimId max = index_max(tab, a), min = index_min(tab, a);
    if (!max || !min || dim_lo(tab->dims, min) < 0) return false;
    return dim_always_le(tab->dims, dim_add(tab->dims, max, dim_const(tab->dims, 1)), bound);
}

static int64_t common_factor(const DimTab *dims, int64_t factor, DimId of) {
    int64_t number;
    if (!dim_is_const(dims, of, &number)) return 1;
    while (number) {
        int64_t rest = factor % number;
        factor = number;
        number = rest;
    }
    return factor < 0 ? -factor : factor;
}

/* Takes a number out of the index and the constant divisor that divides all terms of both. Returns
 * the number. */
static int64_t take_factor(IndexTab *tab, IndexId *a, DimId *divisor) {
    const Expr expr = tab->exprs.data[*a];
    int64_t factor;
    if (!expr.n_terms || !dim_is_const(tab->dims, *divisor, &factor) || factor < 1) return 1;
    factor = common_factor(tab->dims, factor, expr.offset);
    for (uint32_t i = 0; i < expr.n_terms; i++)
        factor = common_factor(tab->dims, factor, expr.terms[i].coefficient);
    if (factor == 1) return factor;
    DimId by = dim_const(tab->dims, factor);
    Sum less;
    sum_begin(&less, dim_exact_div(tab->dims, expr.offset, by));
    for (uint32_t i = 0; i < expr.n_terms; i++)
        sum_add_term(tab, &less, dim_exact_div(tab->dims, expr.terms[i].coefficient, by),
                     expr.terms[i].atom);
    *a = intern_sum(tab, &less);
    *divisor = dim_exact_div(tab->dims, *divisor, by);
    return factor;
}

/* Division by an extent of 0 gives 0: there is no element with this index. */
IndexId index_div(IndexTab *tab, IndexId a, DimId divisor) {
    take_factor(tab, &a, &divisor);
    if (dim_equals_const(tab->dims, divisor, 1)) return a;
    if (dim_equals_const(tab->dims, divisor, 0)) return index_dim(tab, divisor);
    Sum quotient, rest;
    split_by(tab, a, divisor, &quotient, &rest);
    IndexId q = intern_sum(tab, &quotient), r = intern_sum(tab, &rest);
    if (is_below(tab, r, divisor)) return q;
    Expr expr = tab->exprs.data[r];
    if (expr.n_terms == 1 && dim_equals_const(tab->dims, expr.offset, 0) &&
        dim_equals_const(tab->dims, expr.terms[0].coefficient, 1)) {
        IndexAtom inner = tab->atoms.data[expr.terms[0].atom];
        DimId joined =
            inner.kind == ATOM_DIV ? dim_mul(tab->dims, inner.divisor, divisor) : DIM_NONE;
        if (joined) return index_add(tab, q, index_div(tab, inner.operand, joined));
    }
    IndexAtom atom = {.kind = ATOM_DIV,
                      .operand = r,
                      .divisor = divisor,
                      .axes = expr.axes,
                      .moved_by = expr.moved_by};
    return index_add(tab, q, of_atom(tab, atom));
}

IndexId index_mod(IndexTab *tab, IndexId a, DimId divisor) {
    int64_t factor = take_factor(tab, &a, &divisor);
    if (factor > 1)
        return index_scale(tab, index_mod(tab, a, divisor), dim_const(tab->dims, factor));
    if (dim_equals_const(tab->dims, divisor, 1) || dim_equals_const(tab->dims, divisor, 0))
        return index_dim(tab, dim_const(tab->dims, 0));
    Sum quotient, rest;
    split_by(tab, a, divisor, &quotient, &rest);
    IndexId r = intern_sum(tab, &rest);
    if (is_below(tab, r, divisor)) return r;
    return of_atom(tab, (IndexAtom){.kind = ATOM_MOD,
                                    .operand = r,
                                    .divisor = divisor,
                                    .axes = tab->exprs.data[r].axes,
                                    .moved_by = tab->exprs.data[r].moved_by});
}

IndexExpr index_expr(const IndexTab *tab, IndexId id) {
    const Expr *e = &tab->exprs.data[id];
    return (IndexExpr){.offset = e->offset, .n_terms = e->n_terms, .terms = e->terms};
}

IndexAtom index_atom(const IndexTab *tab, uint32_t atom) {
    return tab->atoms.data[atom];
}

bool index_is_dim(const IndexTab *tab, IndexId id, DimId *value) {
    *value = tab->exprs.data[id].offset;
    return tab->exprs.data[id].n_terms == 0;
}

uint32_t index_weight(const IndexTab *tab, IndexId id) {
    return tab->exprs.data[id].weight;
}

uint32_t index_axes(const IndexTab *tab, IndexId id) {
    return tab->exprs.data[id].axes;
}

uint32_t index_moved_by(const IndexTab *tab, IndexId id) {
    return tab->exprs.data[id].moved_by;
}

bool index_is_affine(const IndexTab *tab, IndexId id) {
    IndexExpr expr = index_expr(tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++)
        if (index_atom(tab, expr.terms[i].atom).kind != ATOM_AXIS) return false;
    return true;
}

bool index_is_gathered(const IndexTab *tab, IndexId id) {
    IndexExpr expr = index_expr(tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        bool is_nested = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD;
        if (atom.kind == ATOM_VALUE || (is_nested && index_is_gathered(tab, atom.operand)))
            return true;
    }
    return false;
}

/* n * divisor - 1 divided by the divisor is n - 1: where the divisor is 0, no element has this
 * index. */
static DimId atom_max(IndexTab *tab, const IndexAtom *atom) {
    DimId one = dim_const(tab->dims, 1), max, parts;
    switch (atom->kind) {
    case ATOM_AXIS:
        return dim_sub(tab->dims, tab->extents.data[atom->axis], one);
    case ATOM_MOD:
    case ATOM_VALUE:
        return dim_sub(tab->dims, atom->divisor, one);
    case ATOM_DIV:
        max = index_max(tab, atom->operand);
        if (!max) return DIM_NONE;
        parts = dim_exact_div(tab->dims, dim_add(tab->dims, max, one), atom->divisor);
        return parts ? dim_sub(tab->dims, parts, one) : dim_div(tab->dims, max, atom->divisor);
    }
    return DIM_NONE;
}

/* The extreme of a sum whose atoms start at 0: terms of one sign count with their maximum. */
static DimId extreme(IndexTab *tab, IndexId id, bool is_max) {
    Expr expr = tab->exprs.data[id];
    DimId total = expr.offset;
    for (uint32_t i = 0; i < expr.n_terms && total; i++) {
        DimId c = expr.terms[i].coefficient;
        if (dim_lo(tab->dims, c) < 0 && dim_hi(tab->dims, c) > 0) return DIM_NONE;
        IndexAtom atom = tab->atoms.data[expr.terms[i].atom];
        DimId min = atom.kind == ATOM_DIV ? index_min(tab, atom.operand) : expr.offset;
        if (atom.kind == ATOM_DIV && (!min || dim_lo(tab->dims, min) < 0)) return DIM_NONE;
        if ((dim_lo(tab->dims, c) >= 0) != is_max) continue;
        DimId max = atom_max(tab, &atom);
        total = max ? dim_add(tab->dims, total, dim_mul(tab->dims, c, max)) : DIM_NONE;
    }
    return total;
}

DimId index_max(IndexTab *tab, IndexId id) {
    return extreme(tab, id, true);
}

DimId index_min(IndexTab *tab, IndexId id) {
    return extreme(tab, id, false);
}

/* Lane motion. */

void index_assume_multiple(IndexTab *tab, DimId dim, int64_t multiple) {
    tab->n_assumed = 0;
    index_assume_also(tab, dim, multiple);
}

void index_assume_also(IndexTab *tab, DimId dim, int64_t multiple) {
    if (dim == DIM_NONE) return;
    if (tab->n_assumed == MAX_ASSUMED) ice(tab->arena, "more than %d assumed", MAX_ASSUMED);
    tab->assumed[tab->n_assumed].dim = dim;
    tab->assumed[tab->n_assumed++].multiple = multiple;
}

static bool dim_divides(IndexTab *tab, DimId dim, int64_t multiple) {
    if (dim_multiple(tab->dims, dim) % multiple == 0) return true;
    for (uint32_t i = 0; i < tab->n_assumed; i++)
        if (tab->assumed[i].multiple % multiple == 0 &&
            dim_exact_div(tab->dims, dim, tab->assumed[i].dim) != DIM_NONE)
            return true;
    return false;
}

static LaneMotion atom_motion(IndexTab *tab, const IndexAtom *atom, uint32_t axis, uint32_t lanes,
                              const bool *shared) {
    if (!(atom->axes >> axis & 1)) return LANES_UNIFORM;
    switch (atom->kind) {
    case ATOM_AXIS:
        return LANES_CONTIGUOUS;
    case ATOM_VALUE:
        return shared && shared[atom->value] ? LANES_UNIFORM : LANES_VARYING;
    case ATOM_DIV:
    case ATOM_MOD:
        break;
    }
    LaneMotion inner = index_shared_motion(tab, atom->operand, axis, lanes, shared);
    if (inner == LANES_UNIFORM) return LANES_UNIFORM;
    bool stays_inside = inner == LANES_CONTIGUOUS && dim_divides(tab, atom->divisor, lanes) &&
                        index_is_multiple(tab, atom->operand, axis, lanes);
    if (!stays_inside) return LANES_VARYING;
    return atom->kind == ATOM_DIV ? LANES_UNIFORM : LANES_CONTIGUOUS;
}

bool index_stride(const IndexTab *tab, IndexId id, uint32_t axis, DimId *stride) {
    IndexExpr expr = index_expr(tab, id);
    *stride = DIM_NONE;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (!(atom.axes >> axis & 1)) continue;
        if (atom.kind != ATOM_AXIS) return false;
        *stride = expr.terms[i].coefficient;
    }
    return true;
}

int64_t index_stride_const(const IndexTab *tab, IndexId id, uint32_t axis) {
    DimId stride;
    int64_t value;
    bool is_known = index_stride(tab, id, axis, &stride) && stride != DIM_NONE &&
                    dim_is_const(tab->dims, stride, &value);
    return is_known ? value : 0;
}

LaneMotion index_shared_motion(IndexTab *tab, IndexId id, uint32_t axis, uint32_t lanes,
                               const bool *shared) {
    const Expr *e = &tab->exprs.data[id];
    if (!(e->axes >> axis & 1) || lanes == 1) return LANES_UNIFORM;
    LaneMotion motion = LANES_UNIFORM;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        IndexAtom atom = tab->atoms.data[e->terms[i].atom];
        switch (atom_motion(tab, &atom, axis, lanes, shared)) {
        case LANES_UNIFORM:
            break;
        case LANES_VARYING:
            return LANES_VARYING;
        case LANES_CONTIGUOUS:
            if (motion == LANES_CONTIGUOUS ||
                !dim_equals_const(tab->dims, e->terms[i].coefficient, 1))
                return LANES_VARYING;
            motion = LANES_CONTIGUOUS;
            break;
        }
    }
    return motion;
}

LaneMotion index_lane_motion(IndexTab *tab, IndexId id, uint32_t axis, uint32_t lanes) {
    return index_shared_motion(tab, id, axis, lanes, NULL);
}

static bool atom_is_multiple(IndexTab *tab, const IndexAtom *atom, uint32_t axis,
                             int64_t multiple) {
    if (atom->kind == ATOM_AXIS) return atom->axis == axis;
    if (atom->kind == ATOM_MOD)
        return dim_divides(tab, atom->divisor, multiple) &&
               index_is_multiple(tab, atom->operand, axis, multiple);
    return false;
}

bool index_is_near(IndexTab *tab, IndexId id, uint32_t axis, int64_t most) {
    if (index_lane_motion(tab, id, axis, INDEX_ANY_START) != LANES_VARYING) return true;
    int64_t stride = index_stride_const(tab, id, axis);
    return stride > 0 && stride <= most;
}

uint32_t index_lanes_shared(const IndexTab *tab, IndexId id, uint32_t axis) {
    IndexExpr expr = index_expr(tab, id);
    int64_t divisor, n = 0;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (!(atom.axes >> axis & 1)) continue;
        if (n || atom.kind != ATOM_DIV || !dim_is_const(tab->dims, atom.divisor, &divisor) ||
            !dim_equals_const(tab->dims, expr.terms[i].coefficient, 1) ||
            index_stride_const(tab, atom.operand, axis) != 1)
            return 0;
        n = divisor;
    }
    return n <= INDEX_MOST_SHARED ? (uint32_t)n : 0;
}

uint32_t index_lanes_repeated(IndexTab *tab, IndexId id, uint32_t axis, uint32_t lanes,
                              const bool *shared) {
    IndexExpr expr = index_expr(tab, id);
    int64_t n = 0;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (atom_motion(tab, &atom, axis, lanes, shared) == LANES_UNIFORM) continue;
        if (n || atom.kind != ATOM_MOD || !dim_is_const(tab->dims, atom.divisor, &n) ||
            n >= lanes || lanes % n || !index_is_multiple(tab, atom.operand, axis, n) ||
            !dim_equals_const(tab->dims, expr.terms[i].coefficient, 1) ||
            index_lane_motion(tab, atom.operand, axis, lanes) != LANES_CONTIGUOUS)
            return 0;
    }
    return (uint32_t)n;
}

bool index_is_multiple(IndexTab *tab, IndexId id, uint32_t axis, int64_t multiple) {
    const Expr *e = &tab->exprs.data[id];
    if (!dim_divides(tab, e->offset, multiple)) return false;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        IndexAtom atom = tab->atoms.data[e->terms[i].atom];
        if (!dim_divides(tab, e->terms[i].coefficient, multiple) &&
            !atom_is_multiple(tab, &atom, axis, multiple))
            return false;
    }
    return true;
}

/* Printing. */

static void atom_print(const IndexTab *tab, const IndexAtom *atom, Text *out) {
    if (atom->kind == ATOM_AXIS) {
        text_printf(out, "i%u", atom->axis);
        return;
    }
    if (atom->kind == ATOM_VALUE) {
        text_printf(out, "[s%u]", atom->value);
        return;
    }
    text_puts(out, "(");
    index_print(tab, atom->operand, out);
    text_puts(out, atom->kind == ATOM_DIV ? ") / (" : ") % (");
    dim_print(tab->dims, atom->divisor, out);
    text_puts(out, ")");
}

void index_print(const IndexTab *tab, IndexId id, Text *out) {
    const Expr *e = &tab->exprs.data[id];
    bool has_offset = !dim_equals_const(tab->dims, e->offset, 0) || e->n_terms == 0;
    if (has_offset) dim_print(tab->dims, e->offset, out);
    for (uint32_t i = 0; i < e->n_terms; i++) {
        if (i || has_offset) text_puts(out, " + ");
        if (!dim_equals_const(tab->dims, e->terms[i].coefficient, 1)) {
            text_puts(out, "(");
            dim_print(tab->dims, e->terms[i].coefficient, out);
            text_puts(out, ")*");
        }
        atom_print(tab, &tab->atoms.data[e->terms[i].atom], out);
    }
}
