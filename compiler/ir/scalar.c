/* The scalar DAG: hash-consing with constant folding, guards, cost and printing. */
#include "ir/scalar.h"

#include "base/arith.h"
#include "base/hashids.h"
#include "base/vec.h"

#include <math.h>

struct ScalarTab {
    VecScalar nodes; /* the first member: see scalar.h */
    Arena *arena;
    IndexTab *indices;
    Vec(Guard) guards; /* [0] is unused and stands for GUARD_NONE */
    HashIds ids;       /* hash table of nodes */
    bool has_late_ids; /* `ids` is empty, and gets the nodes when one is added */
    HashIds guard_ids;
    bool is_fast;
};

ScalarTab *scalartab_new(Arena *arena, IndexTab *indices) {
    ScalarTab *tab = arena_array(arena, ScalarTab, 1);
    *tab = (ScalarTab){.arena = arena, .indices = indices};
    vec_push(arena, &tab->nodes, (Scalar){0});
    vec_push(arena, &tab->guards, (Guard){0});
    return tab;
}

ScalarTab *scalartab_copy(Arena *arena, const ScalarTab *tab) {
    ScalarTab *copy = arena_array(arena, ScalarTab, 1);
    *copy = (ScalarTab){.arena = arena, .indices = tab->indices, .is_fast = tab->is_fast};
    copy->nodes.n = copy->nodes.capacity = tab->nodes.n;
    copy->nodes.data = arena_copy(arena, tab->nodes.data, tab->nodes.n * sizeof(Scalar));
    copy->guards.n = copy->guards.capacity = tab->guards.n;
    copy->guards.data = arena_copy(arena, tab->guards.data, tab->guards.n * sizeof(Guard));
    return copy;
}

bool scalartab_has_guards(const ScalarTab *tab) {
    return tab->guards.n > 1;
}

void scalartab_move_loads(ScalarTab *tab, uint32_t buffer, DimId begin) {
    DimTab *dims = indextab_dims(tab->indices);
    DimId back = dim_sub(dims, dim_const(dims, 0), begin);
    for (uint32_t i = 1; i < tab->nodes.n; i++) {
        Scalar *s = &tab->nodes.data[i];
        if (s->kind == SCALAR_LOAD && s->buffer == buffer)
            s->index = index_add_dim(tab->indices, s->index, back);
    }
}

void scalartab_give(ScalarTab *tab, ScalarId constant, uint32_t slot) {
    Dtype dtype = tab->nodes.data[constant].dtype;
    tab->nodes.data[constant] = (Scalar){.kind = SCALAR_GIVEN, .dtype = dtype, .slot = slot};
}

void scalartab_set_fast(ScalarTab *tab) {
    tab->is_fast = true;
}

bool scalartab_is_fast(const ScalarTab *tab) {
    return tab->is_fast;
}

Arena *scalartab_arena(const ScalarTab *tab) {
    return tab->arena;
}

IndexTab *scalartab_indices(const ScalarTab *tab) {
    return tab->indices;
}

static uint64_t scalar_hash(const Scalar *s) {
    uint64_t number, hash = hash_mix(0, (uint64_t)s->whole);
    uint32_t words[] = {
        (uint32_t)s->kind, (uint32_t)s->dtype, (uint32_t)s->prim, s->args[0], s->args[1],
        s->args[2],        s->buffer,          s->index,          s->guard,   s->slot};
    for (size_t i = 0; i < sizeof words / sizeof *words; i += 2)
        hash = hash_mix(hash, (uint64_t)words[i] << 32 | words[i + 1]);
    memcpy(&number, &s->number, sizeof number);
    return hash_mix(hash, number);
}

ScalarTab *scalartab_moved(Arena *arena, const ScalarTab *tab) {
    ScalarTab *copy = scalartab_copy(arena, tab);
    copy->guard_ids = hashids_copy(arena, &tab->guard_ids);
    copy->has_late_ids = true;
    return copy;
}

ScalarTab *scalartab_rebound(Arena *arena, const ScalarTab *tab, const uint32_t *from,
                             const uint32_t *to, uint32_t n) {
    ScalarTab *copy = scalartab_moved(arena, tab);
    for (uint32_t i = 1; i < copy->nodes.n; i++) {
        Scalar *s = &copy->nodes.data[i];
        uint32_t k = 0;
        while (s->kind == SCALAR_LOAD && k < n && s->buffer != from[k]) k++;
        if (s->kind == SCALAR_LOAD && k < n) s->buffer = to[k];
    }
    return copy;
}

ScalarTab *scalartab_rebound_apart(Arena *arena, const ScalarTab *tab, const uint32_t *from,
                                   const uint32_t *to, uint32_t n) {
    ScalarTab *copy = scalartab_rebound(arena, tab, from, to, n);
    copy->indices = indextab_copy(arena, tab->indices);
    return copy;
}

static void add_late_ids(ScalarTab *tab) {
    tab->has_late_ids = false;
    tab->ids = hashids_sized(tab->arena, tab->nodes.n);
    for (uint32_t i = 1; i < tab->nodes.n; i++)
        hashids_add(tab->arena, &tab->ids, scalar_hash(&tab->nodes.data[i]), i);
}

/* Numbers are compared by their bits: -0.0 differs from 0.0, and NaN equals itself. */
static bool scalar_same(const Scalar *a, const Scalar *b) {
    return a->kind == b->kind && a->dtype == b->dtype && a->prim == b->prim &&
           a->args[0] == b->args[0] && a->args[1] == b->args[1] && a->args[2] == b->args[2] &&
           a->buffer == b->buffer && a->index == b->index && a->guard == b->guard &&
           a->slot == b->slot && a->is_loose == b->is_loose && a->whole == b->whole &&
           memcmp(&a->number, &b->number, sizeof a->number) == 0;
}

static ScalarId intern(ScalarTab *tab, Scalar s) {
    uint64_t hash = scalar_hash(&s);
    uint32_t probe = 0;
    if (tab->has_late_ids) add_late_ids(tab);
    for (ScalarId id; (id = hashids_next(&tab->ids, hash, &probe));)
        if (scalar_same(&tab->nodes.data[id], &s)) return id;
    vec_push(tab->arena, &tab->nodes, s);
    hashids_add(tab->arena, &tab->ids, hash, tab->nodes.n - 1);
    return tab->nodes.n - 1;
}

ScalarId scalar_const(ScalarTab *tab, Dtype dtype, double number) {
    if (dtype_is_int(dtype)) return scalar_const_int(tab, dtype, dtype_saturate(dtype, number));
    return intern(
        tab, (Scalar){.kind = SCALAR_CONST, .dtype = dtype, .number = dtype_round(dtype, number)});
}

ScalarId scalar_const_int(ScalarTab *tab, Dtype dtype, int64_t whole) {
    if (dtype_is_bool(dtype)) return scalar_const(tab, dtype, whole != 0);
    return intern(
        tab,
        (Scalar){.kind = SCALAR_CONST, .dtype = dtype, .number = (double)whole, .whole = whole});
}

ScalarId scalar_literal(ScalarTab *tab, Dtype dtype, double number, int64_t whole) {
    if (dtype_is_int(dtype)) return scalar_const_int(tab, dtype, whole);
    return scalar_const(tab, dtype, number);
}

ScalarId scalar_const_like(ScalarTab *tab, const Scalar *constant) {
    return scalar_literal(tab, constant->dtype, constant->number, constant->whole);
}

static ScalarId converted_const(ScalarTab *tab, const Scalar *constant, Dtype dtype) {
    if (!dtype_is_int(constant->dtype)) return scalar_const(tab, dtype, constant->number);
    if (!dtype_is_float(dtype))
        return scalar_const_int(tab, dtype, dtype_wrap(dtype, constant->whole));
    return scalar_const(tab, dtype, dtype_round_int(dtype, constant->whole));
}

ScalarId scalar_load(ScalarTab *tab, Dtype dtype, uint32_t buffer, IndexId address, GuardId guard) {
    return intern(tab, (Scalar){.kind = SCALAR_LOAD,
                                .dtype = dtype,
                                .buffer = buffer,
                                .index = address,
                                .guard = guard,
                                .axes = index_axes(tab->indices, address) | guard_axes(tab, guard),
                                .moved_by = index_moved_by(tab->indices, address)});
}

ScalarId scalar_index(ScalarTab *tab, IndexId index) {
    DimId dim;
    int64_t value;
    if (index_is_dim(tab->indices, index, &dim) &&
        dim_is_const(indextab_dims(tab->indices), dim, &value))
        return scalar_const(tab, DT_I32, (double)value);
    return intern(tab, (Scalar){.kind = SCALAR_INDEX,
                                .dtype = DT_I32,
                                .index = index,
                                .axes = index_axes(tab->indices, index),
                                .moved_by = index_moved_by(tab->indices, index)});
}

IndexId scalar_as_index(ScalarTab *tab, ScalarId value, DimId extent) {
    const Scalar *s = &tab->nodes.data[value];
    return index_value(tab->indices, value, extent, s->axes, s->moved_by);
}

ScalarId scalar_inside(ScalarTab *tab, GuardId guard) {
    if (!guard) return scalar_const(tab, DT_BOOL, 1);
    return intern(tab, (Scalar){.kind = SCALAR_INSIDE,
                                .dtype = DT_BOOL,
                                .guard = guard,
                                .axes = guard_axes(tab, guard),
                                .moved_by = guard_axes(tab, guard)});
}

ScalarId scalar_stage(ScalarTab *tab, Dtype dtype, uint32_t slot, uint32_t axes) {
    return intern(
        tab,
        (Scalar){
            .kind = SCALAR_STAGE, .dtype = dtype, .slot = slot, .axes = axes, .moved_by = axes});
}

ScalarId scalar_extreme(ScalarTab *tab, Dtype dtype, uint32_t slot, uint32_t axes) {
    return intern(
        tab,
        (Scalar){
            .kind = SCALAR_EXTREME, .dtype = dtype, .slot = slot, .axes = axes, .moved_by = axes});
}

static bool is_loose(const ScalarTab *tab, ScalarId id);

/* Whether the scalar is a select (of a pad or a concat) of values of which at least one is loosely
 * rounded. */
static bool is_loose_choice(const ScalarTab *tab, const Scalar *s) {
    return s->kind == SCALAR_PRIM && s->prim == PRIM_SELECT &&
           (is_loose(tab, s->args[1]) || is_loose(tab, s->args[2]));
}

static bool is_loose(const ScalarTab *tab, ScalarId id) {
    const Scalar *s = &tab->nodes.data[id];
    return s->is_loose || is_loose_choice(tab, s);
}

ScalarId scalar_round(ScalarTab *tab, ScalarId a, Dtype dtype) {
    const Scalar *operand = &tab->nodes.data[a];
    bool is_constant = operand->kind == SCALAR_CONST;
    if (!tab->is_fast || operand->dtype == dtype || is_constant || !dtype_is_float(dtype))
        return scalar_cvt(tab, a, dtype);
    return intern(tab, (Scalar){.kind = SCALAR_CVT,
                                .dtype = dtype,
                                .args = {a},
                                .axes = operand->axes,
                                .moved_by = operand->moved_by,
                                .is_loose = true});
}

/* The number of `dtype` that the scalar has in a wider type; SCALAR_NONE: it may be another. */
static ScalarId narrow_of(ScalarTab *tab, ScalarId id, Dtype dtype) {
    Scalar s = tab->nodes.data[id];
    if (!dtype_widens(dtype, s.dtype)) return SCALAR_NONE;
    if (s.kind == SCALAR_CVT && tab->nodes.data[s.args[0]].dtype == dtype) return s.args[0];
    bool is_exact = dtype_is_int(s.dtype) ? dtype_wrap(dtype, s.whole) == s.whole
                                          : dtype_round(dtype, s.number) == s.number;
    if (s.kind == SCALAR_CONST && is_exact) return converted_const(tab, &s, dtype);
    return SCALAR_NONE;
}

/* The number of `wide` of which the scalar is the rounding; SCALAR_NONE: there is none. */
static ScalarId unrounded(const ScalarTab *tab, ScalarId id, Dtype wide) {
    const Scalar *s = &tab->nodes.data[id];
    return s->kind == SCALAR_CVT && tab->nodes.data[s->args[0]].dtype == wide ? s->args[0]
                                                                              : SCALAR_NONE;
}

/* A choice of widened numbers: of roundings it is rounded once, of others it is made in their own
 * type, so that all bits stay. SCALAR_NONE: it is none. */
static ScalarId narrow_choice(ScalarTab *tab, const Scalar *s, Dtype dtype) {
    if (s->kind != SCALAR_PRIM || s->prim != PRIM_SELECT) return SCALAR_NONE;
    Scalar choice = *s;
    ScalarId b = narrow_of(tab, choice.args[1], dtype);
    ScalarId c = b ? narrow_of(tab, choice.args[2], dtype) : SCALAR_NONE;
    if (!c) return SCALAR_NONE;
    ScalarId x = unrounded(tab, b, choice.dtype), z = unrounded(tab, c, choice.dtype);
    if (!x || !z) return scalar_prim(tab, PRIM_SELECT, choice.args[0], b, c);
    return scalar_cvt(tab, scalar_prim(tab, PRIM_SELECT, choice.args[0], x, z), dtype);
}

ScalarId scalar_cvt(ScalarTab *tab, ScalarId a, Dtype dtype) {
    Scalar operand = tab->nodes.data[a];
    if (operand.dtype == dtype) return a;
    if (operand.is_loose) return scalar_cvt(tab, operand.args[0], dtype);
    if (is_loose_choice(tab, &operand)) {
        ScalarId b = scalar_cvt(tab, operand.args[1], dtype);
        ScalarId c = scalar_cvt(tab, operand.args[2], dtype);
        return scalar_prim(tab, PRIM_SELECT, operand.args[0], b, c);
    }
    if (operand.kind == SCALAR_CONST) return converted_const(tab, &operand, dtype);
    ScalarId choice = narrow_choice(tab, &operand, dtype);
    if (choice) return choice;
    if (operand.kind == SCALAR_CVT) {
        ScalarId original = operand.args[0];
        Dtype from = tab->nodes.data[original].dtype;
        if (from == dtype && dtype_widens(from, operand.dtype)) return original;
    }
    return intern(tab, (Scalar){.kind = SCALAR_CVT,
                                .dtype = dtype,
                                .args = {a},
                                .axes = operand.axes,
                                .moved_by = operand.moved_by});
}

ScalarId scalar_bitcast(ScalarTab *tab, ScalarId a, Dtype dtype) {
    const Scalar *operand = &tab->nodes.data[a];
    if (operand->dtype == dtype) return a;
    return intern(tab, (Scalar){.kind = SCALAR_BITCAST,
                                .dtype = dtype,
                                .args = {a},
                                .axes = operand->axes,
                                .moved_by = operand->moved_by});
}

ScalarId scalar_cast(ScalarTab *tab, ScalarId a, Dtype dtype, bool keeps_bits) {
    if (!a) return SCALAR_NONE;
    return keeps_bits ? scalar_bitcast(tab, a, dtype) : scalar_cvt(tab, a, dtype);
}

static bool fold(ScalarTab *tab, PrimId prim, Dtype dtype, const ScalarId *args, uint32_t arity,
                 ScalarId *folded) {
    double v[3] = {0};
    int64_t whole[3] = {0};
    for (uint32_t i = 0; i < arity; i++) {
        const Scalar *s = &tab->nodes.data[args[i]];
        if (s->kind != SCALAR_CONST) return false;
        v[i] = s->number;
        whole[i] = dtype_is_bool(s->dtype) ? s->number != 0 : s->whole;
    }
    if (!prim_info(prim)->is_exact) return false;
    Dtype operand = tab->nodes.data[args[arity - 1]].dtype;
    *folded = dtype_is_int(operand)
                  ? scalar_const_int(tab, dtype,
                                     prim_eval_int(prim, operand, whole[0], whole[1], whole[2]))
                  : scalar_const(tab, dtype, prim_eval(prim, operand, v[0], v[1], v[2]));
    return true;
}

/* The operand that the primitive returns unchanged, since the other one is its neutral number;
 * SCALAR_NONE if it has none. */
static ScalarId unchanged_operand(const ScalarTab *tab, PrimId prim, const ScalarId *args,
                                  uint32_t arity) {
    for (uint32_t i = 0; i < 2 && arity == 2; i++) {
        const Scalar *s = &tab->nodes.data[args[i]];
        double neutral;
        if (s->kind != SCALAR_CONST || !prim_has_neutral(prim, i, &neutral)) continue;
        bool is_float = dtype_is_float(s->dtype);
        bool is_neutral = is_float ? s->number == neutral && signbit(s->number) == signbit(neutral)
                                   : s->whole == (int64_t)neutral;
        if (is_neutral) return args[1 - i];
    }
    return SCALAR_NONE;
}

static ScalarId fast_prim(ScalarTab *tab, PrimId prim, ScalarId a, ScalarId b, ScalarId c);

ScalarId scalar_prim(ScalarTab *tab, PrimId prim, ScalarId a, ScalarId b, ScalarId c) {
    const PrimInfo *info = prim_info(prim);
    ScalarId args[3] = {a, b, c}, folded;
    Dtype operand = tab->nodes.data[args[info->arity - 1]].dtype;
    Dtype dtype = info->result == PRIM_RESULT_BOOL ? DT_BOOL : operand;
    if (!dtype_in(operand, info->operands))
        ice(tab->arena, "%s of %s", info->name, dtype_name(operand));
    if (fold(tab, prim, dtype, args, info->arity, &folded)) return folded;
    if ((folded = unchanged_operand(tab, prim, args, info->arity))) return folded;
    if (prim == PRIM_SELECT && tab->nodes.data[a].kind == SCALAR_CONST)
        return tab->nodes.data[a].number != 0 ? b : c;
    if (tab->is_fast && prim_fast(prim, operand) != prim)
        return fast_prim(tab, prim_fast(prim, operand), a, b, c);
    Scalar s = {.kind = SCALAR_PRIM, .dtype = dtype, .prim = prim, .args = {a, b, c}};
    for (uint32_t i = 0; i < info->arity; i++) {
        s.axes |= tab->nodes.data[args[i]].axes;
        s.moved_by |= tab->nodes.data[args[i]].moved_by;
    }
    return intern(tab, s);
}

ScalarId scalar_clamp_index(ScalarTab *tab, ScalarId index, ScalarId last) {
    Dtype dtype = tab->nodes.data[index].dtype;
    ScalarId zero = scalar_const(tab, dtype, 0);
    index = scalar_prim(tab, PRIM_MIN, index, scalar_cvt(tab, last, dtype), SCALAR_NONE);
    index = scalar_prim(tab, PRIM_MAX, index, zero, SCALAR_NONE);
    return scalar_cvt(tab, index, DT_I32);
}

/* The factor by which one multiplies in place of dividing by `id`, within the bound of a quotient;
 * or SCALAR_NONE. For square roots it is right for 0 and infinity too. For constants it must be a
 * normal number. */
static ScalarId fast_reciprocal(ScalarTab *tab, ScalarId id) {
    Scalar divisor = tab->nodes.data[id];
    if (divisor.kind == SCALAR_PRIM && divisor.prim == PRIM_SQRT_22)
        return scalar_prim(tab, PRIM_RSQRT_22, divisor.args[0], SCALAR_NONE, SCALAR_NONE);
    double size = fabs(divisor.number);
    return divisor.kind == SCALAR_CONST && size >= 0x1p-126 && size <= 0x1p126
               ? scalar_const(tab, DT_F32, 1 / divisor.number)
               : SCALAR_NONE;
}

/* The shorter form of a primitive. */
static ScalarId fast_prim(ScalarTab *tab, PrimId prim, ScalarId a, ScalarId b, ScalarId c) {
    ScalarId reciprocal = prim == PRIM_DIV_22 ? fast_reciprocal(tab, b) : SCALAR_NONE;
    if (!reciprocal) return scalar_prim(tab, prim, a, b, c);
    const Scalar *dividend = &tab->nodes.data[a];
    bool is_one = dividend->kind == SCALAR_CONST && dividend->number == 1;
    return is_one ? reciprocal : scalar_prim(tab, PRIM_MUL, a, reciprocal, SCALAR_NONE);
}

static GuardId intern_guard(ScalarTab *tab, Guard guard) {
    uint64_t hash = hash_mix(hash_mix(0, (uint64_t)guard.next << 32 | guard.index),
                             (uint64_t)guard.lo << 32 | guard.hi);
    uint32_t probe = 0;
    for (GuardId id; (id = hashids_next(&tab->guard_ids, hash, &probe));) {
        const Guard *g = &tab->guards.data[id];
        if (g->next == guard.next && g->index == guard.index && g->lo == guard.lo &&
            g->hi == guard.hi)
            return id;
    }
    vec_push(tab->arena, &tab->guards, guard);
    hashids_add(tab->arena, &tab->guard_ids, hash, tab->guards.n - 1);
    return tab->guards.n - 1;
}

/* Turns lo <= a / d + c < hi into (lo - c) * d <= a < (hi - c) * d, for a number d. */
static void undo_divisions(const ScalarTab *tab, IndexId *index, DimId *lo, DimId *hi) {
    DimTab *dims = indextab_dims(tab->indices);
    for (;;) {
        IndexExpr expr = index_expr(tab->indices, *index);
        if (expr.n_terms != 1 || !dim_equals_const(dims, expr.terms[0].coefficient, 1)) return;
        IndexAtom atom = index_atom(tab->indices, expr.terms[0].atom);
        int64_t divisor;
        if (atom.kind != ATOM_DIV || !dim_is_const(dims, atom.divisor, &divisor)) return;
        *lo = dim_mul(dims, dim_sub(dims, *lo, expr.offset), atom.divisor);
        *hi = dim_mul(dims, dim_sub(dims, *hi, expr.offset), atom.divisor);
        *index = atom.operand;
    }
}

/* The least whole number k with c * k >= x, for c > 0. */
static int64_t ceil_quotient(int64_t x, int64_t c) {
    return -floor_div(-x, c);
}

/* The condition lo <= c * i + offset < hi of an axis i, in numbers, as a range of i; any other as
 * it is. Conditions of different steps can then be compared. */
static Guard of_axis(const ScalarTab *tab, Guard g) {
    DimTab *dims = indextab_dims(tab->indices);
    IndexExpr expr = index_expr(tab->indices, g.index);
    int64_t c, offset, lo, hi;
    if (expr.n_terms != 1 || !dim_is_const(dims, expr.terms[0].coefficient, &c) || c == 1 ||
        !dim_is_const(dims, expr.offset, &offset) || !dim_is_const(dims, g.lo, &lo) ||
        !dim_is_const(dims, g.hi, &hi))
        return g;
    IndexAtom atom = index_atom(tab->indices, expr.terms[0].atom);
    if (atom.kind != ATOM_AXIS) return g;
    lo -= offset;
    hi -= offset;
    g.index = index_axis(tab->indices, atom.axis);
    g.lo = dim_const(dims, c > 0 ? ceil_quotient(lo, c) : ceil_quotient(1 - hi, -c));
    g.hi = dim_const(dims, c > 0 ? ceil_quotient(hi, c) : ceil_quotient(1 - lo, -c));
    return g;
}

/* Whether the indices differ by a dim alone; *ahead is then what `a` has more than `b`. */
static bool differ_by_dim(const ScalarTab *tab, IndexId a, IndexId b, DimId *ahead) {
    IndexExpr expr = index_expr(tab->indices, a), other = index_expr(tab->indices, b);
    if (other.n_terms != expr.n_terms ||
        memcmp(other.terms, expr.terms, expr.n_terms * sizeof *expr.terms) != 0)
        return false;
    *ahead = dim_sub(indextab_dims(tab->indices), expr.offset, other.offset);
    return true;
}

/* Whether the other condition holds wherever the first one does. */
static bool implies(const ScalarTab *tab, const Guard *g, const Guard *other) {
    DimTab *dims = indextab_dims(tab->indices);
    DimId ahead; /* of the other condition's index */
    return differ_by_dim(tab, other->index, g->index, &ahead) &&
           dim_always_le(dims, other->lo, dim_add(dims, g->lo, ahead)) &&
           dim_always_le(dims, dim_add(dims, g->hi, ahead), other->hi);
}

/* The list without the conditions that `g` implies. */
static GuardId without_implied(ScalarTab *tab, GuardId list, const Guard *g) {
    if (!list) return GUARD_NONE;
    Guard first = tab->guards.data[list];
    GuardId rest = without_implied(tab, first.next, g);
    if (implies(tab, g, &first)) return rest;
    if (rest == first.next) return list;
    first.next = rest;
    return intern_guard(tab, first);
}

GuardId guard_and(ScalarTab *tab, GuardId outer, IndexId index, DimId lo, DimId hi) {
    DimTab *dims = indextab_dims(tab->indices);
    undo_divisions(tab, &index, &lo, &hi);
    DimId max = index_max(tab->indices, index), min = index_min(tab->indices, index);
    if (max && min && dim_always_le(dims, lo, min) &&
        dim_always_le(dims, dim_add(dims, max, dim_const(dims, 1)), hi))
        return outer;
    Guard own = {.index = index, .lo = lo, .hi = hi};
    for (GuardId id = outer; id; id = tab->guards.data[id].next)
        if (implies(tab, &tab->guards.data[id], &own)) return outer;
    own.next = without_implied(tab, outer, &own);
    return intern_guard(tab, own);
}

Guard guard_get(const ScalarTab *tab, GuardId id) {
    return tab->guards.data[id];
}

bool guard_excludes(const ScalarTab *tab, GuardId guard, GuardId outer) {
    DimTab *dims = indextab_dims(tab->indices);
    if (guard == outer) return false;
    const Guard own = of_axis(tab, tab->guards.data[guard]);
    if (dim_always_le(dims, own.hi, own.lo)) return true;
    for (GuardId id = outer; id; id = tab->guards.data[id].next) {
        const Guard g = of_axis(tab, tab->guards.data[id]);
        DimId ahead; /* of `own`'s index */
        if (differ_by_dim(tab, own.index, g.index, &ahead) &&
            (dim_always_le(dims, dim_add(dims, g.hi, ahead), own.lo) ||
             dim_always_le(dims, own.hi, dim_add(dims, g.lo, ahead))))
            return true;
    }
    return false;
}

bool guard_has(const ScalarTab *tab, GuardId list, Guard condition) {
    for (; list; list = guard_get(tab, list).next) {
        Guard own = guard_get(tab, list);
        if (own.index == condition.index && own.lo == condition.lo && own.hi == condition.hi)
            return true;
    }
    return false;
}

uint32_t guard_axes(const ScalarTab *tab, GuardId id) {
    uint32_t axes = 0;
    for (; id; id = tab->guards.data[id].next)
        axes |= index_axes(tab->indices, tab->guards.data[id].index);
    return axes;
}

/* Marks the gathered values on which the index depends in `wanted` (may be NULL) and returns the
 * cost of the index's divisions that depend on none of `axes`. */
static uint32_t index_cost(const ScalarTab *tab, IndexId id, uint32_t axes, bool *wanted) {
    uint32_t cost = 0;
    IndexExpr expr = index_expr(tab->indices, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab->indices, expr.terms[i].atom);
        switch (atom.kind) {
        case ATOM_AXIS:
            break;
        case ATOM_DIV:
        case ATOM_MOD:
            cost += (atom.axes & axes ? 0 : 4) + index_cost(tab, atom.operand, axes, wanted);
            break;
        case ATOM_VALUE:
            if (wanted) wanted[atom.value] = true;
            break;
        }
    }
    return cost;
}

uint32_t scalar_shared_cost(const ScalarTab *tab, ScalarId id, uint32_t axes) {
    IndexId index = scalar_get(tab, id)->index;
    return index ? index_cost(tab, index, axes, NULL) : 0;
}

static uint32_t own_cost(const ScalarTab *tab, const Scalar *s, bool *wanted) {
    switch (s->kind) {
    case SCALAR_CONST:
    case SCALAR_GIVEN:
    case SCALAR_STAGE:
    case SCALAR_EXTREME:
        return 0;
    case SCALAR_INSIDE:
        return 2;
    case SCALAR_INDEX:
        return 1 + index_cost(tab, s->index, 0, wanted);
    case SCALAR_LOAD:
        return 2 + index_cost(tab, s->index, 0, wanted);
    case SCALAR_CVT:
    case SCALAR_BITCAST:
        return 1;
    case SCALAR_PRIM:
        return prim_info(s->prim)->cost;
    }
    return 0;
}

bool scalar_chooses_part(const ScalarTab *tab, const Scalar *s) {
    return s->kind == SCALAR_PRIM && s->prim == PRIM_SELECT &&
           scalar_get(tab, s->args[0])->kind == SCALAR_INSIDE;
}

uint32_t scalar_own_cost(const ScalarTab *tab, ScalarId id) {
    return own_cost(tab, &tab->nodes.data[id], NULL);
}

/* Arguments have smaller ids than their users, so one loop with descending ids reaches
 * everything. */
bool *scalar_marks(const ScalarTab *tab) {
    return arena_array(tab->arena, bool, tab->nodes.n);
}

uint32_t scalar_cost(const ScalarTab *tab, ScalarId id, bool *seen) {
    uint32_t cost = 0;
    bool *wanted = scalar_marks(tab);
    wanted[id] = true;
    for (ScalarId at = id; at > 0; at--) {
        if (!wanted[at] || seen[at]) continue;
        seen[at] = true;
        const Scalar *s = &tab->nodes.data[at];
        cost += own_cost(tab, s, wanted);
        for (int i = 0; i < 3; i++) wanted[s->args[i]] = true;
    }
    return cost;
}

void scalar_mark_arguments(const ScalarTab *tab, bool *marked) {
    for (ScalarId id = scalar_count(tab); id > 0; id--)
        for (int i = 0; i < 3 && marked[id]; i++) marked[scalar_get(tab, id)->args[i]] = true;
    marked[SCALAR_NONE] = false;
}

ScalarId scalar_without_casts(const ScalarTab *tab, ScalarId id) {
    for (const Scalar *s = scalar_get(tab, id);
         s->kind == SCALAR_CVT && dtype_is_float(s->dtype) && !dtype_in(s->dtype, DTS_STORED) &&
         dtype_is_float(scalar_get(tab, s->args[0])->dtype);
         s = scalar_get(tab, id))
        id = s->args[0];
    return id;
}

bool *scalar_reached(Arena *arena, const ScalarTab *tab, ScalarId root) {
    bool *reached = arena_array(arena, bool, scalar_count(tab) + (size_t)1);
    reached[root] = true;
    scalar_mark_arguments(tab, reached);
    return reached;
}

static void print_args(const ScalarTab *tab, const Scalar *s, Text *out) {
    text_puts(out, "(");
    for (int i = 0; i < 3 && s->args[i]; i++) {
        if (i) text_puts(out, ", ");
        scalar_print(tab, s->args[i], out);
    }
    text_puts(out, ")");
}

void scalar_print(const ScalarTab *tab, ScalarId id, Text *out) {
    const Scalar *s = &tab->nodes.data[id];
    switch (s->kind) {
    case SCALAR_CONST:
        if (dtype_is_int(s->dtype))
            text_printf(out, "%lld", (long long)s->whole);
        else
            text_printf(out, "%.17g", s->number);
        return;
    case SCALAR_GIVEN:
        text_printf(out, "given%u", s->slot);
        return;
    case SCALAR_LOAD:
        text_printf(out, "b%u[", s->buffer);
        index_print(tab->indices, s->index, out);
        text_puts(out, s->guard ? "]?" : "]");
        return;
    case SCALAR_INDEX:
        index_print(tab->indices, s->index, out);
        return;
    case SCALAR_INSIDE:
        text_printf(out, "inside%u", s->guard);
        return;
    case SCALAR_STAGE:
        text_printf(out, "r%u", s->slot);
        return;
    case SCALAR_EXTREME:
        text_printf(out, "extreme%u", s->slot);
        return;
    case SCALAR_BITCAST:
        text_puts(out, "bits ");
        text_puts(out, dtype_name(s->dtype));
        print_args(tab, s, out);
        return;
    case SCALAR_CVT:
        text_puts(out, dtype_name(s->dtype));
        print_args(tab, s, out);
        return;
    case SCALAR_PRIM:
        text_puts(out, prim_info(s->prim)->name);
        print_args(tab, s, out);
        return;
    }
}
