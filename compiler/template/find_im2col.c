/* See find_im2col.h. The lhs is a select by k among loads, or one load at digits of k (the view
 * `windows`, reshaped) or of m (a strided slice). A guard may replace each load by a zero of
 * padding. The steps: list the loads as pieces, split m into the digits that their addresses and
 * guards use, and express each address as a pixel. The result is checked against the guards. */
#include "template/find_im2col.h"
#include "base/arith.h"

#include <string.h>

/* Limits of PTX, by the number of spatial axes: bits of an offset, and of a corner. */
static const uint32_t offset_bits[IM2COL_MAX_SPATIAL + 1] = {0, 16, 8, 5};
static const uint32_t corner_bits[IM2COL_MAX_SPATIAL + 1] = {0, 16, 8, 5};
enum { MAX_STEP = 8, MAX_GUARDS = 8, MAX_DIGITS = IM2COL_MAX_SPATIAL + 1 };

/* One load, for k in [lo, hi), with the guards on the way to it. */
typedef struct Piece {
    int64_t lo, hi;
    const Scalar *load;
    GuardId guards[MAX_GUARDS];
    uint32_t n_guards;
} Piece;

/* A digit of m or k: m / per % n; without bound if n is 0. */
typedef struct Digit {
    int64_t per, n;
} Digit;

typedef struct Finder {
    const Kernel *kernel;
    const Buffer *buffer; /* before a load is found: the plan's first buffer */
    const ScalarTab *scalars;
    const IndexTab *tab;
    const DimTab *dims;
    Piece pieces[IM2COL_MAX_TAPS];
    uint32_t n_pieces;
    int64_t n_rows;           /* the extent of m; 0: unknown */
    int64_t cuts[MAX_DIGITS]; /* where digits of m begin, ascending from 1 */
    uint32_t n_digits;
    Im2col *out;
} Finder;

static bool is_number(const Finder *f, DimId dim, int64_t *value) {
    return dim_is_const(f->dims, dim, value);
}

/* Digits. */

static bool parse_atom(const Finder *f, IndexAtom atom, uint32_t axis, Digit *digit);

/* Parses an index that is exactly one digit of an axis. */
static bool parse_digit(const Finder *f, IndexId id, uint32_t axis, Digit *digit) {
    IndexExpr expr = index_expr(f->tab, id);
    int64_t offset, coefficient;
    return expr.n_terms == 1 && is_number(f, expr.offset, &offset) && offset == 0 &&
           is_number(f, expr.terms[0].coefficient, &coefficient) && coefficient == 1 &&
           parse_atom(f, index_atom(f->tab, expr.terms[0].atom), axis, digit);
}

static bool parse_atom(const Finder *f, IndexAtom atom, uint32_t axis, Digit *digit) {
    int64_t by;
    *digit = (Digit){.per = 1};
    if (atom.kind == ATOM_AXIS) return atom.axis == axis;
    if (atom.kind == ATOM_VALUE || !is_number(f, atom.divisor, &by) ||
        !parse_digit(f, atom.operand, axis, digit))
        return false;
    if (atom.kind == ATOM_MOD) {
        digit->n = by;
    } else {
        digit->per *= by;
        digit->n = digit->n ? digit->n / by : 0;
    }
    return true;
}

static bool is_of_k(const Finder *f, IndexAtom atom, Digit *digit) {
    return parse_atom(f, atom, gemm_axis_k(f->kernel), digit);
}

/* The least distance in k between points where a digit of k in the index, other than the lowest,
 * changes; the lowest digit begins anew there. Unchanged if the index has no such digits. */
static int64_t shortest_run(const Finder *f, IndexId id, int64_t run) {
    IndexExpr expr = index_expr(f->tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        Digit digit;
        if (!is_of_k(f, index_atom(f->tab, expr.terms[i].atom), &digit)) continue;
        int64_t own = digit.per > 1 ? digit.per : digit.n;
        if (own && own < run) run = own;
    }
    return run;
}

/* Pieces. */

/* Whether the guard is a range [lo, hi) of k alone. */
static bool is_range_of_k(const Finder *f, GuardId id, int64_t *lo, int64_t *hi) {
    Guard guard = guard_get(f->scalars, id);
    IndexExpr expr = index_expr(f->tab, guard.index);
    int64_t offset, coefficient;
    if (guard.next || expr.n_terms != 1 || !is_number(f, expr.offset, &offset) ||
        !is_number(f, guard.lo, lo) || !is_number(f, guard.hi, hi))
        return false;
    IndexAtom atom = index_atom(f->tab, expr.terms[0].atom);
    *lo -= offset;
    *hi -= offset;
    return atom.kind == ATOM_AXIS && atom.axis == gemm_axis_k(f->kernel) &&
           is_number(f, expr.terms[0].coefficient, &coefficient) && coefficient == 1;
}

static bool is_zero(const Finder *f, ScalarId id) {
    const Scalar *s = scalar_get(f->scalars, id);
    return s->kind == SCALAR_CONST && s->number == 0;
}

/* Adds a load, cut where its digits of k change. */
static bool add_runs(Finder *f, Piece all) {
    int64_t run = shortest_run(f, all.load->index, all.hi);
    for (uint32_t i = 0; i < all.n_guards; i++)
        for (GuardId id = all.guards[i]; id; id = guard_get(f->scalars, id).next)
            run = shortest_run(f, guard_get(f->scalars, id).index, run);
    for (int64_t lo = all.lo; lo < all.hi; lo += run - lo % run) {
        Piece piece = all;
        piece.lo = lo;
        piece.hi = min_i64(all.hi, lo + run - lo % run);
        if (f->n_pieces == IM2COL_MAX_TAPS) return false;
        f->pieces[f->n_pieces++] = piece;
    }
    return true;
}

/* Adds the pieces of the operand for k in [lo, hi). */
static bool add_pieces(Finder *f, ScalarId id, Piece at) {
    const Scalar *s = scalar_get(f->scalars, id);
    if (s->kind == SCALAR_LOAD) {
        at.load = s;
        return add_runs(f, at);
    }
    if (s->kind != SCALAR_PRIM || s->prim != PRIM_SELECT) return false;
    const Scalar *inside = scalar_get(f->scalars, s->args[0]);
    int64_t lo, hi;
    if (inside->kind != SCALAR_INSIDE) return false;
    if (is_range_of_k(f, inside->guard, &lo, &hi) && lo <= at.lo && hi > at.lo && hi < at.hi) {
        Piece below = at, above = at;
        below.hi = above.lo = hi;
        return add_pieces(f, s->args[1], below) && add_pieces(f, s->args[2], above);
    }
    if (at.n_guards == MAX_GUARDS || !is_zero(f, s->args[2])) return false;
    at.guards[at.n_guards++] = inside->guard;
    return add_pieces(f, s->args[1], at);
}

/* Cuts of m. */

static bool add_cut(Finder *f, int64_t cut) {
    uint32_t at = 0;
    while (at < f->n_digits && f->cuts[at] < cut) at++;
    if (at < f->n_digits && f->cuts[at] == cut) return true;
    if (f->n_digits == MAX_DIGITS) return false;
    memmove(&f->cuts[at + 1], &f->cuts[at], (f->n_digits - at) * sizeof *f->cuts);
    f->cuts[at] = cut;
    f->n_digits++;
    return true;
}

/* Cuts m where the digits of an index begin and end. A guarded digit without bound ends with m:
 * there is one image. */
static bool cut_at(Finder *f, IndexId id, bool is_guarded) {
    IndexExpr expr = index_expr(f->tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(f->tab, expr.terms[i].atom);
        Digit digit;
        if (is_of_k(f, atom, &digit)) continue;
        if (!parse_atom(f, atom, gemm_axis_m(f->kernel), &digit) || !add_cut(f, digit.per))
            return false;
        int64_t end = digit.n ? digit.per * digit.n : is_guarded ? f->n_rows : 0;
        if (end && !add_cut(f, end)) return false;
    }
    return true;
}

static bool find_digits(Finder *f) {
    bool ok = add_cut(f, 1);
    for (uint32_t p = 0; p < f->n_pieces && ok; p++) {
        const Piece *piece = &f->pieces[p];
        ok = cut_at(f, piece->load->index, false);
        for (uint32_t i = 0; i < piece->n_guards; i++)
            for (GuardId id = piece->guards[i]; id && ok; id = guard_get(f->scalars, id).next)
                ok = cut_at(f, guard_get(f->scalars, id).index, true);
    }
    for (uint32_t i = 1; i < f->n_digits && ok; i++) ok = f->cuts[i] % f->cuts[i - 1] == 0;
    return ok;
}

/* Addresses. */

/* An index as a sum of digits times coefficients, k times a coefficient, and a constant. */
typedef struct Linear {
    int64_t by[MAX_DIGITS], by_k, offset;
} Linear;

/* Adds a digit of k, which must be a constant or rise with k in the piece. */
static bool add_digit_of_k(const Piece *piece, Digit digit, int64_t by, Linear *linear) {
    int64_t first = piece->lo / digit.per, last = (piece->hi - 1) / digit.per;
    int64_t value = digit.n ? first % digit.n : first;
    if (digit.per > 1) {
        linear->offset += by * value;
        return first == last;
    }
    linear->by_k += by;
    linear->offset += by * (value - first);
    return !digit.n || first / digit.n == last / digit.n;
}

static bool linear_of(const Finder *f, const Piece *piece, IndexId id, Linear *linear) {
    IndexExpr expr = index_expr(f->tab, id);
    *linear = (Linear){{0}, 0, 0};
    if (!is_number(f, expr.offset, &linear->offset)) return false;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(f->tab, expr.terms[i].atom);
        int64_t by;
        Digit digit;
        if (!is_number(f, expr.terms[i].coefficient, &by)) return false;
        if (is_of_k(f, atom, &digit)) {
            if (!add_digit_of_k(piece, digit, by, linear)) return false;
            continue;
        }
        if (!parse_atom(f, atom, gemm_axis_m(f->kernel), &digit)) return false;
        for (uint32_t k = 0; k < f->n_digits; k++)
            if (f->cuts[k] >= digit.per && (!digit.n || f->cuts[k] < digit.per * digit.n) &&
                f->cuts[k] != f->n_rows)
                linear->by[k] += by * (f->cuts[k] / digit.per);
    }
    return true;
}

/* Finds the image's axes in the buffer: the channels, the spatial axes, and the rest. Outer axes
 * along which windows step evenly may be one with the rest, as every other row of an even number.
 */
static bool find_axes(Finder *f, const Linear *first) {
    Im2col *out = f->out;
    const Shape *shape = &f->buffer->shape;
    int64_t stride;
    out->n_spatial = f->n_digits - 1;
    if (out->n_spatial == 0 || shape->rank < f->n_digits ||
        !is_number(f, shape->dims[shape->rank - 1], &out->n_channels) || out->n_channels < 1)
        return false;
    stride = out->n_channels;
    for (uint32_t i = 0; i < out->n_spatial; i++) {
        Im2colAxis *axis = &out->axes[i];
        *axis = (Im2colAxis){.per = f->cuts[i],
                             .n = f->cuts[i + 1] / f->cuts[i],
                             .stride = stride,
                             .lower = INT64_MAX};
        if (!is_number(f, shape->dims[shape->rank - 2 - i], &axis->size) || axis->size < 1 ||
            first->by[i] % stride != 0)
            return false;
        axis->step = first->by[i] / stride;
        if (axis->step < 1 || axis->step > MAX_STEP) return false;
        stride *= axis->size;
    }
    out->rows = f->cuts[out->n_spatial];
    bool is_one = out->rows == f->n_rows;
    out->image_stride = is_one ? stride : first->by[out->n_spatial];
    return out->image_stride >= stride && out->image_stride % stride == 0;
}

static int64_t nearest(int64_t a, int64_t b) {
    int64_t twice = 2 * a + b;
    return twice / (2 * b) - (twice % (2 * b) < 0);
}

/* The pixel and the channel at which the piece begins in the first row. */
static bool find_pixel(const Finder *f, const Piece *piece, const Linear *linear, int64_t *pixel,
                       int64_t *channel) {
    int64_t rest = linear->offset + piece->lo;
    for (uint32_t i = f->out->n_spatial; i-- > 0;) {
        pixel[i] = nearest(rest, f->out->axes[i].stride);
        rest -= pixel[i] * f->out->axes[i].stride;
    }
    *channel = rest;
    return linear->by_k == 1 && rest >= 0 && rest + piece->hi - piece->lo <= f->out->n_channels;
}

/* Whether the guard asks exactly that the pixel exists along one axis; notes the axis. */
static bool asks_for_pixel(const Finder *f, const Piece *piece, Guard guard, const int64_t *pixel,
                           bool *is_guarded) {
    Linear linear;
    int64_t lo, hi;
    if (!linear_of(f, piece, guard.index, &linear) || !is_number(f, guard.lo, &lo) ||
        !is_number(f, guard.hi, &hi))
        return false;
    uint32_t n_moving = 0, moving = 0;
    for (uint32_t i = 0; i < f->n_digits; i++) {
        n_moving += linear.by[i] != 0;
        if (linear.by[i]) moving = i;
    }
    if (linear.by_k)
        return n_moving == 0 && linear.by_k == 1 && lo <= piece->lo + linear.offset &&
               hi >= piece->hi + linear.offset;
    if (n_moving != 1 || moving >= f->out->n_spatial) return false;
    const Im2colAxis *axis = &f->out->axes[moving];
    is_guarded[moving] = true;
    return linear.by[moving] == axis->step && linear.offset - lo == pixel[moving] &&
           hi - lo == axis->size;
}

/* Along an axis without a guard, the pixel of every row must exist. */
static bool is_as_guarded(const Finder *f, const Piece *piece, const int64_t *pixel) {
    bool is_guarded[IM2COL_MAX_SPATIAL] = {false};
    for (uint32_t i = 0; i < piece->n_guards; i++)
        for (GuardId id = piece->guards[i]; id; id = guard_get(f->scalars, id).next)
            if (!asks_for_pixel(f, piece, guard_get(f->scalars, id), pixel, is_guarded))
                return false;
    for (uint32_t i = 0; i < f->out->n_spatial; i++) {
        const Im2colAxis *axis = &f->out->axes[i];
        bool is_there = pixel[i] >= 0 && pixel[i] + axis->step * (axis->n - 1) < axis->size;
        if (!is_there && !is_guarded[i]) return false;
    }
    return true;
}

/* Sets the taps as offsets from the row's own pixel, which is the smallest along each axis. */
static bool set_taps(const Finder *f, int64_t pixels[][IM2COL_MAX_SPATIAL]) {
    Im2col *out = f->out;
    int64_t corner = INT64_C(1) << (corner_bits[out->n_spatial] - 1);
    for (uint32_t i = 0; i < out->n_spatial; i++) {
        Im2colAxis *axis = &out->axes[i];
        for (uint32_t p = 0; p < f->n_pieces; p++)
            if (pixels[p][i] < axis->lower) axis->lower = pixels[p][i];
        int64_t upper = im2col_upper(axis);
        if (axis->lower < -corner || axis->lower >= corner || upper < -corner || upper >= corner)
            return false;
        for (uint32_t p = 0; p < f->n_pieces; p++) {
            int64_t offset = pixels[p][i] - axis->lower;
            if (offset >> offset_bits[out->n_spatial]) return false;
            out->taps[p].offsets[i] = (uint32_t)offset;
        }
    }
    return true;
}

/* Sets the taps of pieces that all have the same coefficients. */
static bool find_taps(const Finder *f, const Linear *first, int64_t depth) {
    int64_t pixels[IM2COL_MAX_TAPS][IM2COL_MAX_SPATIAL];
    for (uint32_t p = 0; p < f->n_pieces; p++) {
        const Piece *piece = &f->pieces[p];
        Im2colTap *tap = &f->out->taps[p];
        Linear linear;
        bool ok = piece->load->buffer == f->out->buffer && (piece->hi - piece->lo) % depth == 0 &&
                  linear_of(f, piece, piece->load->index, &linear) &&
                  memcmp(linear.by, first->by, sizeof linear.by) == 0 &&
                  find_pixel(f, piece, &linear, pixels[p], &tap->channel) &&
                  is_as_guarded(f, piece, pixels[p]);
        if (!ok) return false;
        tap->first = piece->lo;
    }
    f->out->n_taps = f->n_pieces;
    return set_taps(f, pixels);
}

/* Whether the load is at digits of m or k. */
static bool is_at_digits(const Kernel *kernel, const Scalar *load) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexExpr expr = index_expr(tab, load->index);
    uint32_t axes = 1u << gemm_axis_m(kernel) | 1u << gemm_axis_k(kernel);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        bool is_digit = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD;
        if (is_digit && (atom.axes & axes)) return true;
    }
    return false;
}

bool im2col_may_be(const Kernel *kernel) {
    if (!form_info(kernel->form)->multiplies || kernel->n_reduced != 1) return false;
    const Scalar *s =
        scalar_get(kernel->scalars, gemm_unrounded(kernel, kernel->reduces.data[0].lhs));
    return s->kind == SCALAR_LOAD ? is_at_digits(kernel, s)
                                  : s->kind == SCALAR_PRIM && s->prim == PRIM_SELECT;
}

static bool find(Finder *f, int64_t depth) {
    const Kernel *kernel = f->kernel;
    DimTab *dims = indextab_dims(f->tab);
    DimId n_rows = kernel_axis_extent(kernel, gemm_axis_m(kernel));
    Piece all = {.lo = 0};
    Linear first;
    if (!is_number(f, n_rows, &f->n_rows)) f->n_rows = 0;
    if (!is_number(f, kernel_n_reduced(kernel), &all.hi) ||
        !add_pieces(f, gemm_unrounded(kernel, kernel->reduces.data[0].lhs), all) ||
        f->n_pieces == 0)
        return false;
    f->out->buffer = f->pieces[0].load->buffer;
    f->buffer += f->out->buffer;
    if (f->buffer->pitch != DIM_NONE || !find_digits(f) ||
        !linear_of(f, &f->pieces[0], f->pieces[0].load->index, &first) || !find_axes(f, &first) ||
        !find_taps(f, &first, depth))
        return false;
    f->out->n_images = dim_exact_div(dims, n_rows, dim_const(dims, f->out->rows));
    return f->out->n_images != DIM_NONE;
}

const Im2col *im2col_find(const Kernel *kernel, const Buffer *buffers, int64_t depth) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    Im2col found = {.n_taps = 0};
    Finder f = {.kernel = kernel,
                .buffer = buffers,
                .scalars = kernel->scalars,
                .tab = tab,
                .dims = indextab_dims(tab),
                .out = &found};
    bool is_found = im2col_may_be(kernel) && kernel->n_parallel == 2 && find(&f, depth);
    return is_found ? arena_copy(scalartab_arena(kernel->scalars), &found, sizeof found) : NULL;
}
