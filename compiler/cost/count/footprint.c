/* Counting touched elements. See footprint.h.
 *
 * An access is a box: each term of its address has the interval of the term's atom. The terms by
 * ascending stride give the number of distinct addresses and the length of contiguous runs. A guard
 * on a single atom cuts its interval; other guards thin the box out. Boxes of one buffer with the
 * same terms are joined to their common hull, if that is smaller than the sum. */
#include "cost/count/footprint.h"
#include "machine/machine.h"

#include <math.h>

enum { MAX_BOX_TERMS = 24 };

typedef struct BoxTerm {
    uint32_t atom;
    bool is_axis;
    double stride;     /* elements */
    double begin, end; /* interval of the atom */
} BoxTerm;

typedef struct Box {
    const Kernel *kernel;
    double offset, share; /* share: part of the points that the guards leave, 0 to 1 */
    uint32_t moved_by;    /* axes, as a bit set */
    uint32_t n;
    BoxTerm terms[MAX_BOX_TERMS]; /* ascending by stride */
} Box;

typedef struct Measurer {
    const Kernel *kernel;
    IndexTab *indices;
    const DimTab *dims;
    const int64_t *values;
    double elem_bytes, n_elems; /* of the buffer */
} Measurer;

double footprint_points(const Kernel *kernel, uint32_t axes, const int64_t *dims) {
    IndexTab *indices = scalartab_indices(kernel->scalars);
    double n = 1;
    for (uint32_t k = 0; k < index_n_axes(indices); k++)
        if (axes >> k & 1)
            n *= dim_number(indextab_dims(indices), index_axis_extent(indices, k), dims);
    return n;
}

static double number(const Measurer *m, DimId dim) {
    return dim_number(m->dims, dim, m->values);
}

/* The range [begin, end) of an index. */
static void index_range(const Measurer *m, IndexId id, double *begin, double *end);

static void atom_range(const Measurer *m, const IndexAtom *atom, double *begin, double *end) {
    double divisor = 1;
    *begin = 0;
    switch (atom->kind) {
    case ATOM_AXIS:
        *end = number(m, index_axis_extent(m->indices, atom->axis));
        return;
    case ATOM_VALUE: {
        double extent = number(m, atom->divisor);
        double n = footprint_points(m->kernel, atom->moved_by, m->values);
        *end = extent > 0 ? extent * -expm1(n * log1p(-1 / (extent + 1e-9))) : 0;
        if (extent <= 1) *end = extent;
        return;
    }
    case ATOM_DIV:
    case ATOM_MOD:
        divisor = number(m, atom->divisor);
        index_range(m, atom->operand, begin, end);
        break;
    }
    if (divisor < 1) divisor = 1;
    if (atom->kind == ATOM_DIV) {
        *begin = floor(*begin / divisor);
        *end = floor((*end - 1) / divisor) + 1;
    } else {
        double n = *end - *begin;
        *begin = 0;
        *end = n < divisor ? n : divisor;
    }
}

static void index_range(const Measurer *m, IndexId id, double *begin, double *end) {
    IndexExpr expr = index_expr(m->indices, id);
    double lo = number(m, expr.offset), hi = lo;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(m->indices, expr.terms[i].atom);
        double stride = number(m, expr.terms[i].coefficient), first, last;
        atom_range(m, &atom, &first, &last);
        last -= 1;
        lo += stride * (stride < 0 ? last : first);
        hi += stride * (stride < 0 ? first : last);
    }
    *begin = lo;
    *end = hi + 1;
}

static void add_term(Box *box, BoxTerm term) {
    if (box->n >= MAX_BOX_TERMS || term.stride == 0) return;
    uint32_t at = box->n++;
    for (; at > 0 && fabs(box->terms[at - 1].stride) > fabs(term.stride); at--)
        box->terms[at] = box->terms[at - 1];
    box->terms[at] = term;
}

static Box box_of(const Measurer *m, IndexId address) {
    IndexExpr expr = index_expr(m->indices, address);
    Box box = {.kernel = m->kernel,
               .offset = number(m, expr.offset),
               .share = 1,
               .moved_by = index_moved_by(m->indices, address)};
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(m->indices, expr.terms[i].atom);
        BoxTerm term = {.atom = expr.terms[i].atom,
                        .is_axis = atom.kind == ATOM_AXIS,
                        .stride = number(m, expr.terms[i].coefficient)};
        atom_range(m, &atom, &term.begin, &term.end);
        add_term(&box, term);
    }
    return box;
}

/* Cuts the box to lo <= index < hi. */
static void cut(const Measurer *m, Box *box, IndexId index, double lo, double hi) {
    IndexExpr expr = index_expr(m->indices, index);
    double begin, end;
    index_range(m, index, &begin, &end);
    if (lo < begin) lo = begin;
    if (hi > end) hi = end;
    double left = hi > lo ? hi - lo : 0, all = end > begin ? end - begin : 1;
    for (uint32_t i = 0; i < box->n && expr.n_terms == 1; i++) {
        BoxTerm *term = &box->terms[i];
        double stride = number(m, expr.terms[0].coefficient), offset = number(m, expr.offset);
        if (term->atom != expr.terms[0].atom || stride <= 0) continue;
        double first = ceil((lo - offset) / stride), last = ceil((hi - offset) / stride);
        if (first > term->begin) term->begin = first;
        if (last < term->end) term->end = last;
        if (term->end < term->begin) term->end = term->begin;
        return;
    }
    uint32_t axes = index_moved_by(m->indices, index);
    bool moves = (axes & box->moved_by) != 0; /* otherwise the guard leaves all of the box at some
                                               * points and nothing at others */
    box->share *= moves ? left / all : left > 0;
}

static void cut_by(const Measurer *m, Box *box, GuardId id) {
    for (GuardId g = id; g; g = guard_get(m->kernel->scalars, g).next) {
        Guard guard = guard_get(m->kernel->scalars, g);
        cut(m, box, guard.index, number(m, guard.lo), number(m, guard.hi));
    }
}

static double box_extent(const BoxTerm *term) {
    return term->end > term->begin ? term->end - term->begin : 0;
}

/* The number of distinct elements, and the bytes of their sectors. */
static Footprint box_measure(const Measurer *m, const Box *box) {
    double count = 1, span = 1, run = 1, pitch = 0;
    for (uint32_t i = 0; i < box->n; i++) {
        double n = box_extent(&box->terms[i]), stride = fabs(box->terms[i].stride);
        if (n < 1) return (Footprint){0};
        if (n == 1) continue;
        bool is_dense = pitch == 0 && stride <= span;
        double wider = stride * (n - 1) + span;
        count = stride >= span ? count * n : fmin(count * n, wider);
        span = wider;
        if (is_dense)
            run = count = span;
        else if (pitch == 0)
            pitch = stride;
    }
    double run_bytes = run * m->elem_bytes, pitch_bytes = pitch * m->elem_bytes;
    double touched = run_bytes;
    if (pitch_bytes > 0) {
        bool is_whole = fmod(pitch_bytes, SECTOR_BYTES) == 0 &&
                        fmod(box->offset * m->elem_bytes, SECTOR_BYTES) == 0;
        touched = is_whole ? ceil(run_bytes / SECTOR_BYTES) * SECTOR_BYTES
                           : run_bytes + SECTOR_BYTES - m->elem_bytes;
        if (touched > pitch_bytes) touched = pitch_bytes;
    }
    count *= box->share;
    return (Footprint){.elems = count, .bytes = count / run * touched};
}

/* Axes of two kernels match if they have equal strides. */
static bool is_same_term(const Box *a, const Box *b, uint32_t i) {
    const BoxTerm *one = &a->terms[i], *other = &b->terms[i];
    bool is_same =
        a->kernel == b->kernel ? one->atom == other->atom : one->is_axis && other->is_axis;
    return is_same && one->stride == other->stride;
}

static bool has_same_terms(const Box *a, const Box *b) {
    if (a->n != b->n) return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!is_same_term(a, b, i)) return false;
    return true;
}

static bool goes_by_axes(const Box *box) {
    for (uint32_t i = 0; i < box->n; i++)
        if (!box->terms[i].is_axis) return false;
    return true;
}

/* Extends `hull` to contain `box`, whose offset is decomposed into steps of the terms. */
static bool extend(Box *hull, const Box *box) {
    Box wider = *hull;
    double rest = box->offset - hull->offset;
    for (uint32_t i = hull->n; i-- > 0;) {
        BoxTerm *term = &wider.terms[i];
        double steps = round(rest / term->stride);
        rest -= steps * term->stride;
        term->begin = fmin(term->begin, box->terms[i].begin + steps);
        term->end = fmax(term->end, box->terms[i].end + steps);
    }
    wider.share = fmax(hull->share, box->share);
    if (fabs(rest) < 0.5) *hull = wider;
    return fabs(rest) < 0.5;
}

struct FootprintHulls {
    Vec(Box) hulls;
    Vec(Footprint) sums; /* footprints of the boxes in each hull */
};

static void union_add(Arena *arena, const Measurer *m, FootprintHulls *all, const Box *box) {
    Footprint own = box_measure(m, box);
    for (uint32_t i = 0; i < all->hulls.n; i++) {
        if (!has_same_terms(&all->hulls.data[i], box) || !extend(&all->hulls.data[i], box))
            continue;
        all->sums.data[i].elems += own.elems;
        all->sums.data[i].bytes += own.bytes;
        return;
    }
    vec_push(arena, &all->hulls, *box);
    vec_push(arena, &all->sums, own);
}

static Footprint union_measure(const Measurer *m, const FootprintHulls *all) {
    Footprint total = {0};
    for (uint32_t i = 0; i < all->hulls.n; i++) {
        Footprint hull = box_measure(m, &all->hulls.data[i]), sum = all->sums.data[i];
        total.elems += fmin(hull.elems, sum.elems);
        total.bytes += fmin(hull.bytes, sum.bytes);
    }
    total.elems = fmin(total.elems, m->n_elems);
    total.bytes = fmin(total.bytes, m->n_elems * m->elem_bytes);
    return total;
}

static Measurer measurer_of(const Plan *plan, const Kernel *kernel, uint32_t buffer,
                            const int64_t *dims) {
    const Buffer *of = &plan->buffers.data[buffer];
    Measurer m = {.kernel = kernel,
                  .indices = scalartab_indices(kernel->scalars),
                  .dims = plan->graph->dims,
                  .values = dims,
                  .elem_bytes = dtype_bytes(of->dtype)};
    m.n_elems = number(&m, shape_n_elems(plan->graph->dims, &of->shape));
    if (of->choice) {
        const Buffer *source = &plan->buffers.data[of->source];
        m.n_elems = fmax(m.n_elems, number(&m, shape_n_elems(plan->graph->dims, &source->shape)));
    }
    return m;
}

/* Adds the boxes of the kernel's loads in `live` whose addresses consist of axes alone. */
static void add_loads_by_axes(Arena *arena, const Measurer *m, uint32_t buffer, const bool *live,
                              FootprintHulls *all) {
    for (ScalarId id = 1; id <= scalar_count(m->kernel->scalars); id++) {
        const Scalar *load = scalar_get(m->kernel->scalars, id);
        if (load->kind != SCALAR_LOAD || load->buffer != buffer || (live && !live[id])) continue;
        Box box = box_of(m, load->index);
        cut_by(m, &box, load->guard);
        if (goes_by_axes(&box)) union_add(arena, m, all, &box);
    }
}

Footprint footprint_loads(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                          const bool *live, const int64_t *dims) {
    Measurer m = measurer_of(plan, kernel, buffer, dims);
    FootprintHulls all = {0};
    ArenaMark mark = arena_mark(arena);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *load = scalar_get(kernel->scalars, id);
        if (load->kind != SCALAR_LOAD || load->buffer != buffer || (live && !live[id])) continue;
        Box box = box_of(&m, load->index);
        cut_by(&m, &box, load->guard);
        union_add(arena, &m, &all, &box);
    }
    Footprint whole = union_measure(&m, &all);
    arena_rewind(arena, mark);
    return whole;
}

static FootprintHulls *seen_hulls(Arena *arena, FootprintSeen *seen) {
    if (!seen->hulls) seen->hulls = arena_array(arena, FootprintHulls, 1);
    return seen->hulls;
}

/* A load that is known now may have been counted among unknown ones before. If the whole buffer was
 * touched, nothing else matters. */
double footprint_see_loads(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                           const bool *live, const int64_t *dims, Footprint own,
                           FootprintSeen *seen) {
    Measurer m = measurer_of(plan, kernel, buffer, dims);
    double known = own.bytes;
    if (fmax(own.bytes, seen->bytes) < m.n_elems * m.elem_bytes) {
        FootprintHulls *hulls = seen_hulls(arena, seen);
        add_loads_by_axes(arena, &m, buffer, live, hulls);
        known = fmax(known, union_measure(&m, hulls).bytes);
    }
    double fresh = fmax(0, known - seen->bytes);
    seen->bytes += fresh;
    return fresh;
}

Footprint footprint_least_loads(Arena *arena, const Plan *plan, const VecU32 *readers,
                                uint32_t buffer, const int64_t *dims) {
    Footprint most = {0};
    Measurer m = {.kernel = NULL};
    FootprintHulls all = {0};
    for (uint32_t k = 0; k < readers->n; k++) {
        const Kernel *kernel = &plan->kernels.data[readers->data[k]];
        for (uint32_t i = 0; i < kernel->args.n && !kernel_is_alternative(kernel); i++) {
            uint32_t arg = kernel->args.data[i];
            if (plan_read_buffer(plan, arg, dims) != buffer) continue;
            Footprint own = footprint_loads(arena, plan, kernel, arg, NULL, dims);
            if (own.bytes > most.bytes) most = own;
            m = measurer_of(plan, kernel, arg, dims);
            add_loads_by_axes(arena, &m, arg, NULL, &all);
        }
    }
    Footprint whole = m.kernel ? union_measure(&m, &all) : most;
    return whole.bytes > most.bytes ? whole : most;
}

static void add_stores(Arena *arena, const Measurer *m, const Store *stores, uint32_t n,
                       uint32_t buffer, FootprintHulls *all) {
    for (uint32_t i = 0; i < n; i++) {
        if (stores[i].buffer != buffer) continue;
        Box box = box_of(m, stores[i].address);
        if (stores[i].begin) box.offset += number(m, stores[i].begin);
        cut_by(m, &box, stores[i].guard);
        union_add(arena, m, all, &box);
    }
}

static void add_all_stores(Arena *arena, const Measurer *m, uint32_t buffer, FootprintHulls *all) {
    const Kernel *kernel = m->kernel;
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        add_stores(arena, m, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n,
                   buffer, all);
    add_stores(arena, m, kernel->row_stores.data, kernel->row_stores.n, buffer, all);
}

Footprint footprint_stores(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                           const int64_t *dims) {
    Measurer m = measurer_of(plan, kernel, buffer, dims);
    FootprintHulls all = {0};
    ArenaMark mark = arena_mark(arena);
    add_all_stores(arena, &m, buffer, &all);
    Footprint whole = union_measure(&m, &all);
    arena_rewind(arena, mark);
    return whole;
}

/* Kernels that store to the same buffer store different slices of it. */
void footprint_see_stores(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                          const int64_t *dims, Footprint own, FootprintSeen *seen) {
    Measurer m = measurer_of(plan, kernel, buffer, dims);
    seen->bytes = fmin(seen->bytes + own.bytes, m.n_elems * m.elem_bytes);
    if (seen->bytes < m.n_elems * m.elem_bytes)
        add_all_stores(arena, &m, buffer, seen_hulls(arena, seen));
}

/* The share of [begin, end) that lies in [lo, hi). If the step's axis alone moves through it, whole
 * steps count. */
static double range_share(double lo, double hi, double begin, double end, double step) {
    double first = fmax(lo, begin) - begin, last = fmin(hi, end) - begin;
    if (end <= begin) return 1;
    if (last <= first || step <= 1) return fmax(0, last - first) / (end - begin);
    return (ceil(last / step) - floor(first / step)) / ceil((end - begin) / step);
}

static double guard_share(const Kernel *kernel, GuardId guard, FootprintStep step,
                          const int64_t *dims) {
    IndexTab *indices = scalartab_indices(kernel->scalars);
    Measurer m = {
        .kernel = kernel, .indices = indices, .dims = indextab_dims(indices), .values = dims};
    double share = 1;
    for (GuardId g = guard; g; g = guard_get(kernel->scalars, g).next) {
        Guard range = guard_get(kernel->scalars, g);
        double begin, end, lo = number(&m, range.lo), hi = number(&m, range.hi);
        bool is_stepped =
            step.axis != NO_AXIS && index_axes(indices, range.index) == 1u << step.axis;
        index_range(&m, range.index, &begin, &end);
        share *= range_share(lo, hi, begin, end, is_stepped ? step.n : 1);
    }
    return share;
}

double footprint_guard_share(const Kernel *kernel, GuardId guard, const int64_t *dims) {
    return guard_share(kernel, guard, footprint_no_step, dims);
}

double *footprint_shares(Arena *arena, const Kernel *kernel, uint32_t stage, FootprintStep step,
                         const int64_t *dims) {
    Stage last = {.stores = {.data = kernel->row_stores.data, .n = kernel->row_stores.n}};
    const Stage *of = stage < kernel->stages.n ? &kernel->stages.data[stage] : &last;
    uint32_t n = scalar_count(kernel->scalars) + 1;
    double *shares = arena_array(arena, double, n);
    bool has_guards = false;
    for (uint32_t i = 0; i < of->stores.n; i++) has_guards = has_guards || of->stores.data[i].guard;
    const ScalarNeed *needs = has_guards ? stage_needs(arena, kernel, of) : NULL;
    for (ScalarId id = 1; id < n; id++)
        shares[id] =
            needs && needs[id].n == 1 ? guard_share(kernel, needs[id].guard, step, dims) : 1;
    return shares;
}
