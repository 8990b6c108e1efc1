/* See access.h. */
#include "plan/access.h"

#include "base/arith.h"
#include "ir/indexmap.h"

AccessAxes access_first_axes(uint32_t n) {
    AccessAxes axes = {.n = n <= MAX_ACCESS_AXES ? n : 0};
    for (uint32_t k = 0; k < axes.n; k++) axes.of[k] = k;
    return axes;
}

IndexId access_address(const Kernel *kernel, const AccessAxes *axes, const Buffer *buffer) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    Shape shape = {.rank = axes->n};
    IndexId coords[MAX_ACCESS_AXES];
    for (uint32_t k = 0; k < axes->n; k++) {
        shape.dims[k] = index_axis_extent(tab, axes->of[k]);
        coords[k] = index_axis(tab, axes->of[k]);
    }
    if (buffer->pitch) shape.dims[axes->n - 1] = buffer->pitch;
    return indexmap_address(tab, &shape, coords);
}

bool access_reads(const Plan *plan, const Kernel *kernel, const AccessAxes *axes, uint32_t buffer) {
    if (!axes->n) return false;
    IndexId plain = access_address(kernel, axes, &plan->buffers.data[buffer]);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (s->kind == SCALAR_LOAD && s->buffer == buffer && (s->index != plain || s->guard))
            return false;
    }
    return true;
}

static DimId axis_coefficient(const IndexTab *tab, IndexExpr expr, uint32_t axis, DimId zero) {
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (atom.kind == ATOM_AXIS && atom.axis == axis) return expr.terms[i].coefficient;
    }
    return zero;
}

/* Two axes with none of several elements between them. */
typedef struct AxisPair {
    uint32_t outer, inner;
} AxisPair;

static bool index_joins(IndexTab *tab, IndexId id, AxisPair axes) {
    DimTab *dims = indextab_dims(tab);
    uint32_t pair = 1u << axes.outer | 1u << axes.inner;
    IndexExpr expr = index_expr(tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        bool is_opaque = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD;
        if (is_opaque && (atom.axes & pair) && !index_joins(tab, atom.operand, axes)) return false;
    }
    DimId zero = dim_const(dims, 0);
    DimId outer = axis_coefficient(tab, expr, axes.outer, zero);
    DimId inner = axis_coefficient(tab, expr, axes.inner, zero);
    if (dim_equals_const(dims, index_axis_extent(tab, axes.outer), 1)) return true;
    if (dim_equals_const(dims, index_axis_extent(tab, axes.inner), 1)) return true;
    return outer == dim_mul(dims, inner, index_axis_extent(tab, axes.inner));
}

/* Whether the index is the axis and a dim, and the next axis has a known extent. A range of the
 * index is a range of the joined axis. */
static bool is_shifted_axis(IndexTab *tab, IndexId id, AxisPair axes) {
    DimTab *dims = indextab_dims(tab);
    int64_t inner;
    if (!dim_is_const(dims, index_axis_extent(tab, axes.inner), &inner)) return false;
    IndexExpr expr = index_expr(tab, id);
    DimId coefficient = axis_coefficient(tab, expr, axes.outer, dim_const(dims, 0));
    return expr.n_terms == 1 && dim_equals_const(dims, coefficient, 1);
}

static bool guard_joins(const ScalarTab *scalars, GuardId guard, AxisPair axes, bool in_ranges) {
    IndexTab *tab = scalartab_indices(scalars);
    for (GuardId g = guard; g; g = guard_get(scalars, g).next) {
        IndexId index = guard_get(scalars, g).index;
        bool has_range = in_ranges && is_shifted_axis(tab, index, axes);
        if (!has_range && !index_joins(tab, index, axes)) return false;
    }
    return true;
}

static bool stores_join(const ScalarTab *scalars, const Store *stores, uint32_t n, AxisPair axes,
                        bool in_ranges) {
    for (uint32_t k = 0; k < n; k++)
        if (!index_joins(scalartab_indices(scalars), stores[k].address, axes) ||
            !guard_joins(scalars, stores[k].guard, axes, in_ranges))
            return false;
    return true;
}

bool kernel_axes_join(const Kernel *kernel, uint32_t outer, uint32_t inner, bool in_ranges) {
    const AxisPair axes = {outer, inner};
    const ScalarTab *scalars = kernel->scalars;
    IndexTab *tab = scalartab_indices(scalars);
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *s = scalar_get(scalars, id);
        if (s->index && !index_joins(tab, s->index, axes)) return false;
        if (!guard_joins(scalars, s->guard, axes, in_ranges)) return false;
    }
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        if (!stores_join(scalars, stage->stores.data, stage->stores.n, axes, in_ranges))
            return false;
    }
    return stores_join(scalars, kernel->row_stores.data, kernel->row_stores.n, axes, in_ranges);
}

/* Runs. */

typedef struct RunFinder {
    IndexTab *tab;
    const ScalarTab *scalars;
    const bool *needed;
    uint32_t axis;
} RunFinder;

/* Whether each condition holds for all lanes or for none. */
static bool guards_are_shared(const RunFinder *f, GuardId id, uint32_t lanes, const bool *shared) {
    for (; id; id = guard_get(f->scalars, id).next)
        if (index_shared_motion(f->tab, guard_get(f->scalars, id).index, f->axis, lanes, shared) !=
            LANES_UNIFORM)
            return false;
    return true;
}

static bool are_runs(const RunFinder *f, uint32_t run, bool with_guards) {
    for (ScalarId id = 1; id <= scalar_count(f->scalars); id++) {
        const Scalar *s = scalar_get(f->scalars, id);
        if (!f->needed[id]) continue;
        if (s->kind == SCALAR_LOAD &&
            index_lane_motion(f->tab, s->index, f->axis, run) == LANES_VARYING)
            return false;
        if (with_guards && !guards_are_shared(f, s->guard, run, NULL)) return false;
    }
    return true;
}

/* Runs are as long as some divisor in the indices. */
static uint32_t longest_run(const RunFinder *f, IndexId id, bool with_guards, uint32_t longest) {
    IndexExpr expr = index_expr(f->tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(f->tab, expr.terms[i].atom);
        int64_t run;
        bool divides = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD;
        if (!divides || !(atom.axes >> f->axis & 1)) continue;
        longest = longest_run(f, atom.operand, with_guards, longest);
        if (dim_is_const(indextab_dims(f->tab), atom.divisor, &run) && run > longest &&
            run <= INT32_MAX && are_runs(f, (uint32_t)run, with_guards))
            longest = (uint32_t)run;
    }
    return longest;
}

static uint32_t longest_of_loads(const RunFinder *f, bool with_guards) {
    uint32_t longest = 0;
    for (ScalarId id = 1; id <= scalar_count(f->scalars); id++) {
        const Scalar *s = scalar_get(f->scalars, id);
        if (f->needed[id] && s->kind == SCALAR_LOAD)
            longest = longest_run(f, s->index, with_guards, longest);
    }
    return longest;
}

static RunFinder finder_new(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis) {
    return (RunFinder){.tab = scalartab_indices(kernel->scalars),
                       .scalars = kernel->scalars,
                       .needed = kernel_needed_scalars(arena, kernel, &value, 1),
                       .axis = axis};
}

uint32_t kernel_run(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                    uint32_t least) {
    RunFinder finder = finder_new(arena, kernel, value, axis);
    uint32_t run = longest_of_loads(&finder, true);
    if (run < least) run = longest_of_loads(&finder, false);
    return run < least ? 0 : run;
}

static bool store_is_run(const RunFinder *f, const Store *store, uint32_t run) {
    return index_lane_motion(f->tab, store->address, f->axis, run) == LANES_CONTIGUOUS &&
           are_runs(f, run, false);
}

/* The longest run of divisors in the index. */
static uint32_t longest_of_store(const RunFinder *f, const Store *store, IndexId id) {
    IndexExpr expr = index_expr(f->tab, id);
    uint32_t longest = 0;
    int64_t run;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(f->tab, expr.terms[i].atom);
        bool divides = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD;
        if (!divides || !(atom.axes >> f->axis & 1)) continue;
        longest = max_u32(longest, longest_of_store(f, store, atom.operand));
        if (dim_is_const(indextab_dims(f->tab), atom.divisor, &run) && run > longest &&
            run < INDEX_ANY_START && store_is_run(f, store, (uint32_t)run))
            longest = (uint32_t)run;
    }
    return longest;
}

uint32_t kernel_store_run(Arena *arena, const Kernel *kernel, uint32_t axis) {
    uint32_t shortest = kernel->row_stores.n ? INDEX_ANY_START : 0;
    for (uint32_t i = 0; i < kernel->row_stores.n && shortest; i++) {
        const Store *store = &kernel->row_stores.data[i];
        RunFinder finder = finder_new(arena, kernel, store->value, axis);
        if (store_is_run(&finder, store, INDEX_ANY_START)) continue;
        uint32_t run = longest_of_store(&finder, store, store->address);
        if (shortest != INDEX_ANY_START && run != shortest) return 0;
        shortest = run;
    }
    return shortest;
}

/* Whether the atom is (axis / apart) % n, or axis % n. */
static bool atom_is_digit(const IndexTab *tab, IndexAtom atom, uint32_t axis, uint32_t n,
                          int64_t *apart) {
    const DimTab *dims = indextab_dims(tab);
    *apart = 1;
    if (atom.kind != ATOM_MOD || !dim_equals_const(dims, atom.divisor, n)) return false;
    IndexExpr inner = index_expr(tab, atom.operand);
    if (inner.n_terms != 1 || !dim_equals_const(dims, inner.offset, 0) ||
        !dim_equals_const(dims, inner.terms[0].coefficient, 1))
        return false;
    IndexAtom own = index_atom(tab, inner.terms[0].atom);
    if (own.kind == ATOM_AXIS) return own.axis == axis;
    return own.kind == ATOM_DIV && dim_is_const(dims, own.divisor, apart) &&
           index_stride_const(tab, own.operand, axis) == 1 && index_is_affine(tab, own.operand) &&
           index_expr(tab, own.operand).n_terms == 1;
}

/* Whether each term of the address but that of the digit is the same for all of its values. */
static bool other_terms_stay(const IndexTab *tab, IndexExpr expr, uint32_t axis, StoreWeave weave) {
    const DimTab *dims = indextab_dims(tab);
    int64_t apart, divisor, whole = (int64_t)weave.apart * weave.n;
    uint32_t n_digits = 0;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (!(atom.axes >> axis & 1)) continue;
        if (atom_is_digit(tab, atom, axis, weave.n, &apart) && apart == weave.apart) {
            n_digits++;
            continue;
        }
        while (atom.kind == ATOM_MOD && index_expr(tab, atom.operand).n_terms == 1 &&
               index_atom(tab, index_expr(tab, atom.operand).terms[0].atom).kind == ATOM_DIV)
            atom = index_atom(tab, index_expr(tab, atom.operand).terms[0].atom);
        bool is_plain = (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD) &&
                        index_is_affine(tab, atom.operand) &&
                        index_expr(tab, atom.operand).n_terms == 1 &&
                        dim_equals_const(dims, index_expr(tab, atom.operand).offset, 0) &&
                        index_stride_const(tab, atom.operand, axis) == 1;
        if (!is_plain || !dim_is_const(dims, atom.divisor, &divisor)) return false;
        if (atom.kind == ATOM_DIV ? divisor % whole : weave.apart % divisor) return false;
    }
    return n_digits == 1;
}

/* The distance of neighbours along the axis, and the run in which all are so; 0: there is none. */
static int64_t stride_in_runs(const RunFinder *f, IndexId address, uint32_t *run) {
    DimTab *dims = indextab_dims(f->tab);
    int64_t stride = index_stride_const(f->tab, address, f->axis), length;
    *run = INDEX_ANY_START;
    if (stride) return stride;
    IndexExpr expr = index_expr(f->tab, address);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(f->tab, expr.terms[i].atom);
        if (atom.kind != ATOM_MOD || atom.operand != index_axis(f->tab, f->axis) ||
            !dim_is_const(dims, atom.divisor, &length) || length >= INDEX_ANY_START ||
            !dim_is_const(dims, expr.terms[i].coefficient, &stride))
            continue;
        IndexId own = index_mod(f->tab, atom.operand, atom.divisor);
        IndexId rest =
            index_add(f->tab, address, index_scale(f->tab, own, dim_const(dims, -stride)));
        *run = (uint32_t)length;
        if (index_lane_motion(f->tab, rest, f->axis, *run) == LANES_UNIFORM) return stride;
    }
    return 0;
}

bool kernel_store_weave(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t other,
                        StoreWeave *weave) {
    if (kernel->row_stores.n != 1) return false;
    const Store *store = &kernel->row_stores.data[0];
    RunFinder f = finder_new(arena, kernel, store->value, axis);
    const DimTab *dims = indextab_dims(f.tab);
    uint32_t run;
    int64_t n = stride_in_runs(&f, store->address, &run), extent, apart, found = 0;
    if (n < 2 || n > STORE_WEAVE_MOST || !are_runs(&f, run, false) ||
        !dim_is_const(dims, kernel_axis_extent(kernel, other), &extent))
        return false;
    IndexExpr expr = index_expr(f.tab, store->address);
    for (uint32_t i = 0; i < expr.n_terms; i++)
        if (dim_equals_const(dims, expr.terms[i].coefficient, 1) &&
            atom_is_digit(f.tab, index_atom(f.tab, expr.terms[i].atom), other, (uint32_t)n, &apart))
            found = apart;
    if (!found || extent % (found * n)) return false;
    *weave = (StoreWeave){(uint32_t)n, (uint32_t)found, run};
    return other_terms_stay(f.tab, expr, other, *weave);
}

bool kernel_is_smooth(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      uint32_t lanes) {
    RunFinder finder = finder_new(arena, kernel, value, axis);
    return are_runs(&finder, lanes, false);
}

static bool is_shared(const RunFinder *f, const Scalar *s, uint32_t lanes, const bool *shared) {
    bool are_shared = true;
    if (f->axis == NO_AXIS || !(s->axes >> f->axis & 1)) return true;
    switch (s->kind) {
    case SCALAR_CONST:
    case SCALAR_GIVEN:
    case SCALAR_STAGE:
    case SCALAR_EXTREME:
        return false;
    case SCALAR_INDEX:
    case SCALAR_LOAD:
    case SCALAR_INSIDE:
        return (!s->index ||
                index_shared_motion(f->tab, s->index, f->axis, lanes, shared) == LANES_UNIFORM) &&
               guards_are_shared(f, s->guard, lanes, shared);
    case SCALAR_PRIM:
    case SCALAR_BITCAST:
    case SCALAR_CVT:
        break;
    }
    for (int i = 0; i < 3; i++) are_shared &= !s->args[i] || shared[s->args[i]];
    return are_shared;
}

bool kernel_guard_is_shared(const Kernel *kernel, GuardId guard, uint32_t axis, uint32_t lanes) {
    const RunFinder f = {
        .tab = scalartab_indices(kernel->scalars), .scalars = kernel->scalars, .axis = axis};
    return guards_are_shared(&f, guard, lanes, NULL);
}

const bool *kernel_shared_scalars(Arena *arena, const Kernel *kernel, uint32_t axis,
                                  uint32_t lanes) {
    uint32_t n = scalar_count(kernel->scalars);
    bool *shared = arena_array(arena, bool, n + 1);
    const RunFinder f = {
        .tab = scalartab_indices(kernel->scalars), .scalars = kernel->scalars, .axis = axis};
    for (ScalarId id = 1; id <= n; id++)
        shared[id] = is_shared(&f, scalar_get(kernel->scalars, id), lanes, shared);
    return shared;
}

bool kernel_is_strided(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis) {
    RunFinder finder = finder_new(arena, kernel, value, axis);
    bool are_strided = true;
    DimId stride;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars) && are_strided; id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        are_strided = !finder.needed[id] || s->kind != SCALAR_LOAD ||
                      index_stride(finder.tab, s->index, axis, &stride);
    }
    return are_strided;
}

bool kernel_guard_holds_in(const Kernel *kernel, Guard guard, uint32_t axis, int64_t *lo,
                           int64_t *hi) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    int64_t stride = index_stride_const(tab, guard.index, axis), least, most;
    if (stride <= 0 || !dim_is_const(dims, guard.lo, lo) || !dim_is_const(dims, guard.hi, hi))
        return false;
    IndexId back = index_scale(tab, index_axis(tab, axis), dim_const(dims, -stride));
    IndexId others = index_add(tab, guard.index, back);
    DimId min = index_min(tab, others), max = index_max(tab, others);
    if (min == DIM_NONE || max == DIM_NONE || !dim_is_const(dims, min, &least) ||
        !dim_is_const(dims, max, &most))
        return false;
    *lo = -floor_div(least - *lo, stride);
    *hi = floor_div(*hi - 1 - most, stride) + 1;
    return true;
}

/* The same of one guard. Sets *moves if the axis moves a condition. */
static bool has_ends(const Kernel *kernel, GuardId guard, uint32_t axis, uint32_t lane_axes,
                     bool *moves) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    for (; guard; guard = guard_get(kernel->scalars, guard).next) {
        IndexId index = guard_get(kernel->scalars, guard).index;
        uint32_t axes = index_axes(tab, index);
        DimId stride;
        if (!(axes >> axis & 1)) continue;
        if ((axes & lane_axes) || !index_stride(tab, index, axis, &stride)) return false;
        *moves = true;
    }
    return true;
}

bool kernel_guards_have_ends(Arena *arena, const Kernel *kernel, const Sched *sched,
                             uint32_t axis) {
    uint32_t lane_axes = sched->lanes > 1 ? kernel_lane_axes(kernel, sched) : 0;
    const bool *live = kernel_live_scalars(arena, kernel);
    bool moves = false, have_ends = true;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars) && have_ends; id++)
        have_ends = !live[id] || has_ends(kernel, scalar_get(kernel->scalars, id)->guard, axis,
                                          lane_axes, &moves);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        for (uint32_t k = 0; k < kernel->stages.data[i].stores.n && have_ends; k++)
            have_ends = has_ends(kernel, kernel->stages.data[i].stores.data[k].guard, axis,
                                 lane_axes, &moves);
    return have_ends && moves;
}
