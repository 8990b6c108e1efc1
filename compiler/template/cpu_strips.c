/* See cpu_strips.h. */
#include "template/cpu_strips.h"

#include "base/arith.h"
#include "machine/tuning.h"
#include "template/cpu_pack.h"

/* A digit of k: k / run % n. */
typedef struct Digit {
    int64_t run, n;
} Digit;

typedef struct Finder {
    const Kernel *kernel;
    const ScalarTab *scalars;
    IndexTab *tab;
    ScalarId value;
    uint32_t axis, k;
    bool is_far;  /* neighbours along the axis may be any number of elements apart */
    int64_t near; /* steps of other digits up to this one lie between neighbours in any case: rows
                   * of so small an image share tiles, unless the product has few columns */
    Digit tap;
    int64_t stride, step; /* of an index that moves with m; 0: none has been seen */
    CpuStrips *strips;
    GuardId outer; /* the guard outside of which the operand is a constant */
} Finder;

static bool atom_digit(const Finder *f, uint32_t id, Digit *digit);

/* Whether the index is a digit and nothing else. */
static bool index_digit(const Finder *f, IndexId index, Digit *digit) {
    const DimTab *dims = indextab_dims(f->tab);
    IndexExpr expr = index_expr(f->tab, index);
    return expr.n_terms == 1 && dim_equals_const(dims, expr.offset, 0) &&
           dim_equals_const(dims, expr.terms[0].coefficient, 1) &&
           atom_digit(f, expr.terms[0].atom, digit);
}

static bool atom_digit(const Finder *f, uint32_t id, Digit *digit) {
    const DimTab *dims = indextab_dims(f->tab);
    IndexAtom atom = index_atom(f->tab, id);
    int64_t divisor;
    if (atom.kind == ATOM_VALUE) return false;
    if (atom.kind == ATOM_AXIS) {
        *digit = (Digit){1, f->strips->depth};
        return atom.axis == f->k;
    }
    if (!dim_is_const(dims, atom.divisor, &divisor) || !index_digit(f, atom.operand, digit))
        return false;
    if (atom.kind == ATOM_MOD)
        digit->n = min_i64(digit->n, divisor);
    else
        *digit = (Digit){digit->run * divisor, (digit->n + divisor - 1) / divisor};
    return true;
}

static bool is_tap(const Finder *f, Digit digit) {
    return f->tap.n > 1 && digit.run == f->tap.run && digit.n == f->tap.n;
}

/* Whether the digit is the same for all taps. */
static bool is_apart(const Finder *f, Digit digit) {
    return f->tap.n == 1 || digit.run >= f->tap.run * f->tap.n || digit.run * digit.n <= f->tap.run;
}

/* The largest step of another digit that lies between neighbours, in an index that moves with the
 * axis; else 0. */
static int64_t nearest_step(const Finder *f, IndexId index) {
    if (!(index_axes(f->tab, index) >> f->axis & 1)) return 0;
    int64_t stride = index_stride_const(f->tab, index, f->axis);
    return stride > f->near ? stride : f->near;
}

/* How an index moves with the axis and with the taps. False: it moves in another way, or with k in
 * a way that is not known, or elements of other digits lie between its neighbours or are these. */
static bool index_moves(const Finder *f, IndexId index, int64_t *stride, int64_t *step,
                        bool *has_others) {
    const DimTab *dims = indextab_dims(f->tab);
    IndexExpr expr = index_expr(f->tab, index);
    *stride = *step = 0;
    *has_others = false;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(f->tab, expr.terms[i].atom);
        Digit digit;
        if (atom.axes >> f->axis & 1) {
            bool is_axis = atom.kind == ATOM_AXIS;
            if (!is_axis || !dim_is_const(dims, expr.terms[i].coefficient, stride)) return false;
        } else if (!(atom.axes >> f->k & 1)) {
            *has_others = true;
        } else if (!atom_digit(f, expr.terms[i].atom, &digit)) {
            return false;
        } else if (is_tap(f, digit)) {
            if (!dim_is_const(dims, expr.terms[i].coefficient, step)) return false;
        } else if (is_apart(f, digit)) {
            *has_others = true;
            int64_t apart;
            bool is_between = !f->is_far && dim_is_const(dims, expr.terms[i].coefficient, &apart) &&
                              apart > 0 && apart <= nearest_step(f, index);
            if (is_between) return false;
        } else {
            return false;
        }
    }
    return true;
}

/* Whether the index is a function of the element of the row, and of nothing else on axis and taps.
 */
static bool takes_index(Finder *f, IndexId index, bool *has_others) {
    int64_t stride, step;
    if (!index_moves(f, index, &stride, &step, has_others)) return false;
    if (stride == 0) return step == 0;
    if (stride < 0 || step < 0) return false;
    if (f->stride == 0) f->stride = stride, f->step = step;
    return stride * f->step == step * f->stride;
}

/* Conditions on the axis are those outside of which the operand is a constant. */
static bool takes_guard(Finder *f, GuardId id) {
    for (; id; id = guard_get(f->scalars, id).next) {
        Guard own = guard_get(f->scalars, id);
        bool has_others, moves = index_axes(f->tab, own.index) >> f->axis & 1;
        if (!takes_index(f, own.index, &has_others)) return false;
        if (moves && (has_others || !guard_has(f->scalars, f->outer, own))) return false;
    }
    return true;
}

static bool takes_load(Finder *f, ScalarId id) {
    const Scalar *load = scalar_get(f->scalars, id);
    bool has_others;
    int64_t stride = index_stride_const(f->tab, load->index, f->axis);
    if (!takes_index(f, load->index, &has_others)) return false;
    if (!f->is_far && stride > INDEX_NEAR_STRIDE) return false;
    if (!f->is_far && stride > 1 && dtype_bytes(load->dtype) < 4) return false;
    if (stride > (int64_t)f->strips->stride) {
        f->strips->stride = (uint32_t)stride;
        f->strips->load = id;
    }
    return true;
}

static bool takes_all(Finder *f, const bool *needed) {
    bool has_others, takes = true;
    f->stride = f->step = 0;
    f->strips->stride = 0;
    for (ScalarId id = 1; id <= scalar_count(f->scalars) && takes; id++) {
        const Scalar *s = scalar_get(f->scalars, id);
        if (!needed[id]) continue;
        takes = takes_guard(f, s->guard);
        if (s->kind == SCALAR_LOAD) takes = takes && takes_load(f, id);
        if (s->kind == SCALAR_INDEX) takes = takes && takes_index(f, s->index, &has_others);
    }
    return takes && f->stride > 0 && f->strips->stride > 0;
}

/* The digit of the taps: the one by which a load moves least, if there are few of them.
 * `has_runs`: the lowest digit is that of elements side by side, as the channels of a pixel are,
 * and the taps are the digit above it. */
static Digit digit_of_taps(const Finder *f, const bool *needed, bool has_runs) {
    const DimTab *dims = indextab_dims(f->tab);
    Digit runs = {1, 1}, nearest = {1, 1}, digit;
    int64_t least = INT64_MAX, step;
    for (ScalarId id = 1; id <= scalar_count(f->scalars); id++) {
        const Scalar *s = scalar_get(f->scalars, id);
        if (!needed[id] || s->kind != SCALAR_LOAD || !(index_axes(f->tab, s->index) >> f->axis & 1))
            continue;
        IndexExpr expr = index_expr(f->tab, s->index);
        for (uint32_t i = 0; i < expr.n_terms; i++) {
            if (!dim_is_const(dims, expr.terms[i].coefficient, &step) || step < 1 ||
                !atom_digit(f, expr.terms[i].atom, &digit))
                continue;
            if (has_runs && step == 1 && digit.run == 1)
                runs = digit;
            else if (step < least)
                least = step, nearest = digit;
        }
    }
    bool is_above = !has_runs || (nearest.n > 1 && nearest.run == runs.n);
    bool is_tap = is_above && nearest.n <= CPU_STRIPS_MOST_TAPS &&
                  f->strips->depth % (nearest.n * nearest.run) == 0;
    return is_tap ? nearest : (Digit){1, 1};
}

/* Numbers the strips by the first tap that reads each. False: there are too many, or a tap is too
 * far from the first one: rows of a matrix overlap with no others. */
static bool number_strips(const Finder *f, int64_t n_windows) {
    CpuStrips *s = f->strips;
    s->n = s->reach = 0;
    for (int64_t tap = 0; tap < s->n_taps; tap++) {
        int64_t at = tap * f->step, shift = at / f->stride;
        uint32_t strip = 0;
        while (strip < s->n && (s->first_tap[strip] * f->step - at) % f->stride) strip++;
        if (strip == INDEX_NEAR_STRIDE) return false;
        if (strip == s->n) s->first_tap[s->n++] = (uint32_t)tap;
        shift -= s->first_tap[strip] * f->step / f->stride;
        if (shift >= n_windows) return false;
        s->strip_of[tap] = strip;
        s->shift_of[tap] = s->last_shift[strip] = (uint32_t)shift;
        if (shift > s->reach) s->reach = (uint32_t)shift;
    }
    return true;
}

/* The elements of each strip at which all conditions on the axis hold. */
static bool find_ranges(const Finder *f) {
    const DimTab *dims = indextab_dims(f->tab);
    CpuStrips *s = f->strips;
    for (uint32_t i = 0; i < s->n; i++) {
        s->lo[i] = INT64_MIN, s->hi[i] = INT64_MAX;
        for (GuardId id = f->outer; id; id = guard_get(f->scalars, id).next) {
            Guard g = guard_get(f->scalars, id);
            int64_t stride, step, offset, lo, hi;
            bool has_others;
            if (!(index_axes(f->tab, g.index) >> f->axis & 1)) continue;
            index_moves(f, g.index, &stride, &step, &has_others);
            if (!dim_is_const(dims, index_expr(f->tab, g.index).offset, &offset) ||
                !dim_is_const(dims, g.lo, &lo) || !dim_is_const(dims, g.hi, &hi))
                return false;
            offset += step * s->first_tap[i];
            int64_t first = -floor_div(offset - lo, stride);
            int64_t end = floor_div(hi - 1 - offset, stride) + 1;
            if (first > s->lo[i]) s->lo[i] = first;
            if (end < s->hi[i]) s->hi[i] = end;
        }
    }
    return true;
}

/* The conditions outside of which the operand is a constant. */
static void find_outside(Finder *f, ScalarId value) {
    const Scalar *s = scalar_get(f->scalars, value);
    f->outer = GUARD_NONE;
    f->strips->outside = SCALAR_NONE;
    f->strips->inside = GUARD_NONE;
    if (s->kind != SCALAR_PRIM || s->prim != PRIM_SELECT) return;
    const Scalar *inside = scalar_get(f->scalars, s->args[0]);
    if (inside->kind != SCALAR_INSIDE || scalar_get(f->scalars, s->args[2])->kind != SCALAR_CONST ||
        !(guard_axes(f->scalars, inside->guard) >> f->axis & 1))
        return;
    f->outer = inside->guard;
    f->strips->outside = s->args[2];
    f->strips->inside = inside->guard;
}

uint32_t cpu_strips_pitch(const CpuStrips *strips, uint32_t n_neighbours, uint32_t lanes) {
    return (n_neighbours + strips->reach + lanes - 1) / lanes * lanes;
}

int64_t cpu_strips_depth(const CpuStrips *strips, uint32_t n_neighbours, uint32_t n_rows,
                         uint32_t lanes) {
    enum { ELEM_BYTES = 4 };
    int64_t step = cpu_strips_step(strips), whole = step;
    int64_t row = n_rows * strips->run * strips->n * cpu_strips_pitch(strips, n_neighbours, lanes);
    int64_t most = SCHED_CPU_STRIPS_BYTES / ELEM_BYTES / row * step;
    most = min_i64(most, CPU_STRIPS_MOST_DEPTH);
    while (whole % lanes) whole += step; /* a block of whole vectors, if that fits */
    most -= most % (whole <= most ? whole : step);
    return min_i64(most < step ? step : most, strips->depth);
}

uint32_t cpu_strips_width(const CpuStrips *strips) {
    enum { ELEM_BYTES = 4, LEAST = 24, LANES = 16 };
    int64_t elems = SCHED_CPU_STRIPS_BYTES / ELEM_BYTES / (strips->run * strips->n);
    int64_t width = elems / LANES * LANES - strips->reach;
    return width < LEAST ? LEAST : (uint32_t)min_i64(width, INT32_MAX);
}

/* Whether a product of one row of the image has enough windows, beside the size of its weights. */
static bool are_worth_while(const Finder *f) {
    const DimTab *dims = indextab_dims(f->tab);
    enum { LEAST_WINDOWS = 7, ELEM_BYTES = 4 };
    int64_t windows = dim_hi(dims, kernel_axis_extent(f->kernel, f->axis));
    int64_t columns = dim_hi(dims, kernel_axis_extent(f->kernel, gemm_axis_n(f->kernel)));
    bool is_large = columns > SCHED_CPU_STRIPS_WEIGHTS_BYTES / ELEM_BYTES / f->strips->depth;
    return windows >= (is_large ? SCHED_CPU_STRIPS_WINDOWS : LEAST_WINDOWS) &&
           f->strips->run * f->strips->n <= SCHED_CPU_STRIPS_BYTES / ELEM_BYTES / 32 &&
           cpu_strips_step(f->strips) <= CPU_STRIPS_MOST_DEPTH;
}

/* Whether the operand has strips if this digit is that of the taps. */
static bool take_taps(Finder *f, const bool *needed, Digit tap, int64_t n_windows) {
    f->tap = tap;
    if (!takes_all(f, needed)) return false;
    f->strips->run = f->tap.run;
    f->strips->n_taps = f->tap.n;
    f->strips->step_by = f->step;
    f->strips->step_of = f->stride;
    return number_strips(f, n_windows);
}

/* False: the operand has no strips along any axis. */
static bool finder_new(const Kernel *kernel, ScalarId value, uint32_t axis, CpuStrips *strips,
                       Finder *f) {
    enum { FEW_COLUMNS = 8 };
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    int64_t columns = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_n(kernel)));
    strips->is_turned = strips->has_runs = false;
    *f = (Finder){.kernel = kernel,
                  .scalars = kernel->scalars,
                  .tab = scalartab_indices(kernel->scalars),
                  .value = value,
                  .axis = axis,
                  .k = kernel->first_reduced,
                  .near = columns > FEW_COLUMNS ? INDEX_NEAR_STRIDE : 0,
                  .strips = strips};
    return dim_is_const(indextab_dims(f->tab), kernel_axis_extent(kernel, f->k), &strips->depth) &&
           strips->depth >= 1 && dtype_is_float(scalar_get(f->scalars, value)->dtype);
}

bool cpu_strips_along(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      bool is_far, CpuStrips *strips) {
    Finder f;
    if (!finder_new(kernel, value, axis, strips, &f)) return false;
    f.is_far = is_far;
    const bool *needed = kernel_needed_scalars(arena, kernel, &value, 1);
    find_outside(&f, value);
    Digit nearest = digit_of_taps(&f, needed, false);
    return take_taps(&f, needed, nearest, INT64_MAX) && find_ranges(&f);
}

/* Finds the strips of the taps of this digit, whose ranges are not set. */
static bool strips_of_digit(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                            Digit tap, CpuStrips *strips) {
    Finder f;
    if (tap.n > CPU_STRIPS_MOST_TAPS || !finder_new(kernel, value, axis, strips, &f)) return false;
    const bool *needed = kernel_needed_scalars(arena, kernel, &value, 1);
    f.is_far = true;
    find_outside(&f, value);
    return take_taps(&f, needed, tap, INT64_MAX);
}

bool cpu_strips_across(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                       const CpuStrips *along, CpuStrips *strips) {
    int64_t n_taps = along->depth / along->n_taps;
    if (along->run != 1 && along->run != n_taps) return false;
    Digit tap = {along->run == 1 ? along->n_taps : 1, n_taps};
    return strips_of_digit(arena, kernel, value, axis, tap, strips);
}

bool cpu_strips_outer(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      const CpuStrips *along, CpuStrips *strips) {
    int64_t step = cpu_strips_step(along);
    Digit tap = {step, along->depth / step};
    return tap.n > 1 && strips_of_digit(arena, kernel, value, axis, tap, strips);
}

/* Whether loads are side by side or the same within runs of k, and guards hold for all of a run. */
static bool runs_are_whole(const Finder *f, const bool *needed, uint32_t run) {
    for (ScalarId id = 1; id <= scalar_count(f->scalars); id++) {
        const Scalar *s = scalar_get(f->scalars, id);
        if (!needed[id]) continue;
        if (s->kind == SCALAR_LOAD &&
            index_lane_motion(f->tab, s->index, f->k, run) == LANES_VARYING)
            return false;
        for (GuardId g = s->guard; g; g = guard_get(f->scalars, g).next)
            if (index_lane_motion(f->tab, guard_get(f->scalars, g).index, f->k, run) !=
                LANES_UNIFORM)
                return false;
    }
    return true;
}

bool cpu_strips_of_runs(Arena *arena, const Kernel *kernel, CpuStrips *strips) {
    const Reduce *reduce = &kernel->reduces.data[0];
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t m = gemm_axis_m(kernel);
    int64_t windows = dim_hi(dims, kernel_axis_extent(kernel, m));
    Finder f;
    if (!finder_new(kernel, reduce->lhs, m, strips, &f) ||
        scalar_get(kernel->scalars, reduce->lhs)->dtype != reduce->acc)
        return false;
    const bool *needed = kernel_needed_scalars(arena, kernel, &reduce->lhs, 1);
    find_outside(&f, reduce->lhs);
    f.is_far = true;
    Digit tap = digit_of_taps(&f, needed, true);
    if (tap.n == 1 || !take_taps(&f, needed, tap, windows) ||
        !runs_are_whole(&f, needed, (uint32_t)tap.run))
        return false;
    strips->has_runs = true;
    strips->is_turned = strips->stride > INDEX_NEAR_STRIDE || dtype_bytes(reduce->acc) < 4;
    return find_ranges(&f) && are_worth_while(&f);
}

bool cpu_strips_find(Arena *arena, const Kernel *kernel, CpuStrips *strips) {
    const Reduce *reduce = &kernel->reduces.data[0];
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    int64_t windows = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)));
    Finder f;
    if (!finder_new(kernel, reduce->lhs, gemm_axis_m(kernel), strips, &f) ||
        scalar_get(kernel->scalars, reduce->lhs)->dtype != reduce->acc)
        return false;
    const bool *needed = kernel_needed_scalars(arena, kernel, &reduce->lhs, 1);
    find_outside(&f, reduce->lhs);
    Digit nearest = digit_of_taps(&f, needed, false);
    bool takes = take_taps(&f, needed, nearest, windows);
    if (!takes && nearest.n > 1) takes = take_taps(&f, needed, (Digit){1, 1}, windows);
    bool gains = strips->n_taps > 1 || strips->stride > 1;
    return takes && gains && find_ranges(&f) && are_worth_while(&f);
}
