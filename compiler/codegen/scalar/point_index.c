/* Indices and guards at a point. See point_index.h. */
#include "codegen/scalar/point_index.h"

#include "plan/access.h"
#include "template/flat.h"

bool point_on_lanes(const Point *point, uint32_t axes) {
    if (point->flat) return point->lanes > 1 && axes;
    return point->lanes > 1 && point->lane_axis != NO_AXIS && (axes >> point->lane_axis & 1);
}

static Val lane_numbers(const Point *point) {
    Val *numbers = arena_array(point->lower->k->arena, Val, point->lanes);
    for (uint32_t i = 0; i < point->lanes; i++) numbers[i] = lower_index_const(point->lower, i);
    return LLVMConstVector(numbers, point->lanes);
}

static Val atom_at(Point *point, const IndexAtom *atom, bool per_lane) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    Val operand, divisor, value;
    switch (atom->kind) {
    case ATOM_AXIS:
        if (per_lane && point->flat) return point->coordinates[atom->axis];
        value = point->axis[atom->axis];
        if (!per_lane) return value;
        value = k_splat(k, value, point->lanes);
        return k_add(k, value, lane_numbers(point));
    case ATOM_VALUE:
        value = point_value(point, atom->value);
        if (per_lane) value = k_splat(k, value, point->lanes);
        if (lower->index_type == k->i32) return value;
        return k_sext(k, value, k_vector_of(lower->index_type, per_lane ? point->lanes : 1));
    case ATOM_DIV:
    case ATOM_MOD:
        break;
    }
    operand = point_index_at(point, atom->operand, per_lane);
    divisor = lower_divisor(lower, atom->divisor);
    if (per_lane) divisor = k_splat(k, divisor, point->lanes);
    return atom->kind == ATOM_DIV ? k_udiv(k, operand, divisor) : k_urem(k, operand, divisor);
}

Val point_without_constant(Val value, int64_t *constant) {
    *constant = 0;
    while (LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMAdd) {
        Val a = LLVMGetOperand(value, 0), b = LLVMGetOperand(value, 1);
        Val number = LLVMIsAConstantInt(a) ? a : b;
        if (!LLVMIsAConstantInt(number)) break;
        *constant += LLVMConstIntGetSExtValue(number);
        value = number == a ? b : a;
    }
    return value;
}

/* A term that is the same in all lanes. A constant that was added to its axis goes to *rest, so
 * that indices a constant distance apart share the remaining code. */
static Val term_at(Point *point, const IndexAtom *atom, DimId coefficient, Val *rest) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    int64_t constant = 0;
    Val value = atom_at(point, atom, false), more = NULL;
    if (atom->kind == ATOM_AXIS) value = point_without_constant(value, &constant);
    if (constant) more = lower_index_const(lower, constant);
    if (!dim_equals_const(lower_dims(lower), coefficient, 1)) {
        Val c = lower_dim(lower, coefficient);
        value = k_mul(k, value, c);
        if (more) more = k_mul(k, c, more);
    }
    if (more) *rest = *rest ? k_add(k, *rest, more) : more;
    return value;
}

static Val moving_term_at(Point *point, const IndexAtom *atom, DimId coefficient) {
    Lower *lower = point->lower;
    Val value = atom_at(point, atom, true);
    if (dim_equals_const(lower_dims(lower), coefficient, 1)) return value;
    Val c = k_splat(lower->k, lower_dim(lower, coefficient), point->lanes);
    return k_mul(lower->k, value, c);
}

/* A CPU looks at the values in an index too: which of them the lanes share. NULL: there are none.
 */
static const bool *shared_values(const Point *point, IndexId index, uint32_t lanes) {
    Lower *lower = point->lower;
    uint32_t axis = point->lane_axis;
    if (axis == NO_AXIS || !lower->k->target->has->cores ||
        !index_is_gathered(scalartab_indices(lower->kernel->scalars), index))
        return NULL;
    if (!lower->shared.of || lower->shared.axis != axis || lower->shared.lanes != lanes) {
        lower->shared.of = kernel_shared_scalars(lower->k->arena, lower->kernel, axis, lanes);
        lower->shared.axis = axis;
        lower->shared.lanes = lanes;
    }
    return lower->shared.of;
}

LaneMotion point_motion(const Point *point, IndexId index) {
    IndexTab *tab = scalartab_indices(point->lower->kernel->scalars);
    DimId offset;
    uint32_t lanes = point->block ? point->block : point->lanes;
    if (!point->flat)
        return index_shared_motion(tab, index, point->lane_axis, lanes,
                                   shared_values(point, index, lanes));
    if (flat_is_in_order(point->lower->kernel, index, &offset)) return LANES_CONTIGUOUS;
    return index_axes(tab, index) ? LANES_VARYING : LANES_UNIFORM;
}

bool point_is_multiple(const Point *point, IndexId index, int64_t multiple) {
    IndexTab *tab = scalartab_indices(point->lower->kernel->scalars);
    DimId offset;
    uint32_t axis = point->block ? NO_AXIS : point->lane_axis;
    if (!point->flat) return index_is_multiple(tab, index, axis, multiple);
    return flat_is_in_order(point->lower->kernel, index, &offset) &&
           dim_multiple(indextab_dims(tab), offset) % multiple == 0;
}

uint32_t point_repeated_lanes(const Point *point, IndexId index) {
    IndexTab *tab = scalartab_indices(point->lower->kernel->scalars);
    if (!point->lower->k->target->has->cores || point->flat || point->block || point->mask)
        return 0;
    return index_lanes_repeated(tab, index, point->lane_axis, point->lanes,
                                shared_values(point, index, point->lanes));
}

bool point_is_shared(const Point *point, IndexId index) {
    const IndexTab *tab = scalartab_indices(point->lower->kernel->scalars);
    if (!point_on_lanes(point, index_axes(tab, index))) return true;
    return point->lower->k->target->has->cores && point_motion(point, index) == LANES_UNIFORM;
}

/* The number of the element in a flat map, plus `offset`. */
static Val flat_index(const Point *point, DimId offset, bool per_lane) {
    const Codegen *k = point->lower->k;
    Val first = point->flat;
    if (!dim_equals_const(lower_dims(point->lower), offset, 0))
        first = k_add(k, first, lower_dim(point->lower, offset));
    if (!per_lane) return first;
    first = k_splat(k, first, point->lanes);
    return k_add(k, first, lane_numbers(point));
}

/* Adds the terms that are equal in all lanes first, as scalars, and constants last. */
Val point_index_at(Point *point, IndexId id, bool per_lane) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    DimTab *dims = lower_dims(lower);
    IndexExpr expr = index_expr(tab, id);
    DimId offset;
    if (point->flat && flat_is_in_order(lower->kernel, id, &offset))
        return flat_index(point, offset, per_lane);
    Val in_block = per_lane ? NULL : point_index_in_block(point, id);
    if (in_block) return in_block;
    Val total = lower_dim(lower, expr.offset);
    Val rest = NULL;
    bool is_zero = dim_equals_const(dims, expr.offset, 0);
    for (int moving = 0; moving < 2; moving++) {
        for (uint32_t i = 0; i < expr.n_terms; i++) {
            IndexAtom atom = index_atom(tab, expr.terms[i].atom);
            bool moves = per_lane && point_on_lanes(point, atom.axes);
            if (moves != (moving == 1)) continue;
            Val value = moves ? moving_term_at(point, &atom, expr.terms[i].coefficient)
                              : term_at(point, &atom, expr.terms[i].coefficient, &rest);
            if (moves) total = k_splat(k, total, point->lanes);
            total = is_zero ? value : k_add(k, total, value);
            is_zero = false;
        }
        if (rest) total = k_add(k, total, rest);
        rest = NULL;
    }
    return per_lane ? k_splat(k, total, point->lanes) : total;
}

Val point_index(Point *point, IndexId id) {
    return point_index_at(point, id, false);
}

/* Guards. */

/* Whether neighbouring lanes are all inside the range or all outside: the index does not change
 * with the lane, or no bound falls between two lanes. */
static bool is_guard_uniform(const Point *point, const Guard *g) {
    IndexTab *tab = scalartab_indices(point->lower->kernel->scalars);
    if (!point_on_lanes(point, index_axes(tab, g->index))) return true;
    LaneMotion motion = point_motion(point, g->index);
    if (motion != LANES_CONTIGUOUS) return motion == LANES_UNIFORM;
    IndexId lo = index_dim(tab, g->lo), hi = index_dim(tab, g->hi);
    uint32_t axis = point->lane_axis, lanes = point->lanes;
    return point_is_multiple(point, g->index, lanes) && index_is_multiple(tab, lo, axis, lanes) &&
           index_is_multiple(tab, hi, axis, lanes);
}

/* The guard of a quotient as a guard of its dividend: x / d is in [lo, hi) if x is in [lo * d,
 * hi * d), as no x is negative. A CPU divides the lanes one by one. */
static Guard without_quotient(const Point *point, const Guard *g) {
    const Lower *lower = point->lower;
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    IndexExpr expr = index_expr(tab, g->index);
    if (!lower->k->target->has->cores || expr.n_terms != 1 ||
        !dim_equals_const(dims, expr.terms[0].coefficient, 1))
        return *g;
    IndexAtom atom = index_atom(tab, expr.terms[0].atom);
    if (atom.kind != ATOM_DIV) return *g;
    DimId lo = dim_sub(dims, g->lo, expr.offset), hi = dim_sub(dims, g->hi, expr.offset);
    Guard own = *g;
    own.index = atom.operand;
    own.lo = dim_mul(dims, lo, atom.divisor);
    own.hi = dim_mul(dims, hi, atom.divisor);
    bool fits = own.lo != DIM_NONE && own.hi != DIM_NONE && dim_lo(dims, own.lo) >= INT32_MIN &&
                dim_hi(dims, own.lo) <= INT32_MAX && dim_hi(dims, own.hi) <= INT32_MAX;
    return fits ? own : *g;
}

/* Whether no index is below the guard's range. A CPU compares elements one by one, and LLVM does
 * not know that all of them are numbers of axes. */
static bool is_above(const Lower *lower, const Guard *g) {
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId least = index_min(tab, g->index);
    if (!lower->k->target->has->cores || least == DIM_NONE) return false;
    DimId over = dim_sub(dims, least, g->lo);
    return over != DIM_NONE && dim_lo(dims, over) >= 0;
}

Val point_guard_range(Point *point, const Guard *guard) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    Val in_block = point_range_in_block(point, guard);
    if (in_block) return in_block;
    Guard of_dividend = without_quotient(point, guard);
    const Guard *g = &of_dividend;
    uint32_t lanes = is_guard_uniform(point, g) ? 1 : point->lanes;
    Val index = point_index_at(point, g->index, lanes > 1);
    Val lo = is_above(lower, g) ? NULL : k_splat(k, lower_dim(lower, g->lo), lanes);
    Val hi = k_splat(k, lower_dim(lower, g->hi), lanes);
    Val above = lo ? k_sge(k, index, lo) : NULL;
    Val below = k_slt(k, index, hi);
    return lo ? k_and(k, above, below) : below;
}

bool point_cut_of(const Kernel *kernel, Guard guard, uint32_t axis, int64_t *lo, int64_t *hi) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const DimTab *dims = indextab_dims(tab);
    IndexExpr expr = index_expr(tab, guard.index);
    int64_t offset, coefficient;
    if (expr.n_terms != 1 || !dim_is_const(dims, expr.offset, &offset) ||
        !dim_is_const(dims, expr.terms[0].coefficient, &coefficient) ||
        !dim_is_const(dims, guard.lo, lo) || !dim_is_const(dims, guard.hi, hi))
        return false;
    IndexAtom atom = index_atom(tab, expr.terms[0].atom);
    *lo -= offset;
    *hi -= offset;
    return atom.kind == ATOM_AXIS && atom.axis == axis && coefficient == 1;
}

bool point_guard_is_known(const Point *point, const Guard *g, bool *holds) {
    const Kernel *kernel = point->lower->kernel;
    const PointPiece *piece = &point->piece;
    int64_t lo, hi, n = INT64_MAX;
    if (!piece->is_any) return false;
    if (piece->is_inside &&
        (index_axes(scalartab_indices(kernel->scalars), g->index) >> piece->axis & 1))
        return *holds = true;
    dim_is_const(lower_dims(point->lower), kernel_axis_extent(kernel, piece->axis), &n);
    int64_t end = piece->hi < n ? piece->hi : n;
    *holds = true;
    if (kernel_guard_holds_in(kernel, *g, piece->axis, &lo, &hi) && lo <= piece->lo && end <= hi)
        return true;
    if (!point_cut_of(kernel, *g, piece->axis, &lo, &hi)) return false;
    *holds = lo <= piece->lo && end <= hi;
    return *holds || end <= lo || hi <= piece->lo;
}

/* The range of the guard's next condition that the point's piece leaves open; *guard is behind it
 * then. NULL: no condition is left, or with *fails one fails in the whole piece. */
static Val next_range(Point *point, GuardId *guard, bool *fails) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    while (*guard && !*fails) {
        Guard g = guard_get(scalars, *guard);
        bool holds;
        *guard = g.next;
        if (!point_guard_is_known(point, &g, &holds)) return point_guard_range(point, &g);
        *fails = !holds;
    }
    return NULL;
}

Val point_guard_split(Point *point, GuardId guard, Val *of_lanes) {
    const Codegen *k = point->lower->k;
    Val same = NULL, own;
    bool fails = false;
    *of_lanes = NULL;
    while ((own = next_range(point, &guard, &fails))) {
        Val *part = k_is_vector(own) ? of_lanes : &same;
        *part = *part ? k_and(k, *part, own) : own;
    }
    if (fails) *of_lanes = NULL;
    return fails ? LLVMConstInt(k->i1, 0, 0) : same;
}

Val point_guard(Point *point, GuardId guard) {
    const Codegen *k = point->lower->k;
    Val all = NULL, own;
    bool fails = false;
    while ((own = next_range(point, &guard, &fails))) {
        if (all && k_is_vector(own)) all = k_splat(k, all, point->lanes);
        if (all && k_is_vector(all)) own = k_splat(k, own, point->lanes);
        all = all ? k_and(k, all, own) : own;
    }
    return all && !fails ? all : LLVMConstInt(k->i1, !fails, 0);
}
