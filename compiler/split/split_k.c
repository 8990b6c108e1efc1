/* Splitting matmuls along k. See split_k.h. */
#include "split/split_k.h"

#include "plan/rebuild.h"
#include "split/split_reduce.h"

/* Consecutive segments of one length. */
typedef struct Segments {
    int64_t first, n, n_elems;
    uint32_t buffer; /* their partials, [segments] outermost, then the matmul's elements */
} Segments;

/* The source of the partial kernels: the programs of the whole kernel, over other axes. */
typedef struct GemmSplit {
    Arena *arena;
    Plan *plan;
    const Kernel *whole;
    int64_t k, segment_elems;
} GemmSplit;

/* Makes the segments the innermost batch axis; each segment has its own range of k. */
static Rebuild segment_axes(const GemmSplit *s, const Segments *segments, Kernel *partial) {
    const IndexTab *from = scalartab_indices(s->whole->scalars);
    DimTab *dims = s->plan->graph->dims;
    IndexTab *to = indextab_new(s->arena, dims);
    uint32_t m = gemm_axis_m(s->whole), k = gemm_axis_k(s->whole);
    Rebuild rebuild = {.arena = s->arena, .from = s->whole->scalars};
    for (uint32_t axis = 0; axis < s->whole->n_parallel; axis++) {
        if (axis == m) partial->segment_axis = index_new_axis(to, dim_const(dims, segments->n));
        rebuild.axes[axis] = index_axis(to, index_new_axis(to, index_axis_extent(from, axis)));
    }
    partial->n_parallel = s->whole->n_parallel + 1;
    partial->first_reduced = index_new_axis(to, dim_const(dims, segments->n_elems));
    IndexId begin = index_axis(to, partial->segment_axis);
    begin = index_add_dim(to, begin, dim_const(dims, segments->first));
    begin = index_scale(to, begin, dim_const(dims, s->segment_elems));
    rebuild.axes[k] = index_add(to, begin, index_axis(to, partial->first_reduced));
    rebuild.to = partial->scalars = scalartab_new(s->arena, to);
    return rebuild;
}

/* The address of the partial of a segment, for the matmul's element at the loops' position. */
static IndexId partial_address(const Kernel *kernel, IndexId segment) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexId at = segment;
    for (uint32_t axis = 0; axis < kernel->n_parallel; axis++) {
        if (axis == kernel->segment_axis) continue;
        at = index_scale(tab, at, index_axis_extent(tab, axis));
        at = index_add(tab, at, index_axis(tab, axis));
    }
    return at;
}

static Segments add_partial(const GemmSplit *s, Str suffix, int64_t first, int64_t n,
                            int64_t n_elems) {
    Segments segments = {.first = first, .n = n, .n_elems = n_elems};
    Kernel partial = *s->whole;
    Reduce reduce = s->whole->reduces.data[0];
    partial.name = str_format(s->arena, "%s_%s", s->whole->name, suffix);
    Rebuild rebuild = segment_axes(s, &segments, &partial);
    reduce.value = rebuild_scalar(&rebuild, reduce.value);
    reduce.rhs = rebuild_scalar(&rebuild, reduce.rhs);
    reduce.result = reduce.acc;
    rebuild_traces(&rebuild, s->plan->graph, s->whole, true, &partial);
    memset(&partial.reduces, 0, sizeof partial.reduces);
    memset(&partial.row_stores, 0, sizeof partial.row_stores);
    vec_push(s->arena, &partial.reduces, reduce);
    Shape shape = {.rank = 2,
                   .dims = {dim_const(s->plan->graph->dims, n), kernel_n_rows(s->whole)}};
    segments.buffer = plan_add_temp(s->arena, s->plan, reduce.node, reduce.acc, shape);
    IndexId segment = index_axis(scalartab_indices(partial.scalars), partial.segment_axis);
    uint32_t axes = kernel_parallel_axes(&partial);
    Store store = {.buffer = segments.buffer,
                   .address = partial_address(&partial, segment),
                   .value = scalar_stage(partial.scalars, reduce.acc, 0, axes),
                   .node = reduce.node};
    vec_push(s->arena, &partial.row_stores, store);
    vec_push(s->arena, &s->plan->kernels, partial);
    return segments;
}

/* Loads the segment's partial if the segment is one of `segments`. */
static ScalarId load_partial(const Kernel *kernel, const Segments *segments, IndexId segment,
                             GuardId guard, Dtype dtype) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId before = dim_const(indextab_dims(tab), -segments->first);
    IndexId address = partial_address(kernel, index_add_dim(tab, segment, before));
    return scalar_load(kernel->scalars, dtype, segments->buffer, address, guard);
}

static GuardId guard_of(const Kernel *kernel, const Segments *segments, IndexId segment) {
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    return guard_and(kernel->scalars, GUARD_NONE, segment, dim_const(dims, segments->first),
                     dim_const(dims, segments->first + segments->n));
}

/* Adds the finishing kernel: the matmul's epilogue continues from the summed result, in the same
 * loops. `last` is the shorter last segment, or NULL. */
static void add_finish(const GemmSplit *s, const Segments *alike, const Segments *last) {
    Kernel finish = *s->whole;
    ScalarTab *scalars = finish.scalars;
    IndexTab *tab = scalartab_indices(scalars);
    Reduce sum = s->whole->reduces.data[0];
    uint32_t axis = index_new_axis(tab, dim_const(s->plan->graph->dims, alike->n + last->n));
    IndexId segment = index_axis(tab, axis);
    GuardId guard = last->n ? guard_of(&finish, alike, segment) : GUARD_NONE;
    finish.form = FORM_COLUMN;
    finish.first_reduced = axis;
    finish.n_reduced = 1;
    sum.value = load_partial(&finish, alike, segment, guard, sum.acc);
    if (last->n)
        sum.value = scalar_prim(
            scalars, PRIM_SELECT, scalar_inside(scalars, guard), sum.value,
            load_partial(&finish, last, segment, guard_of(&finish, last, segment), sum.acc));
    sum.rhs = SCALAR_NONE;
    sum.precision = PRECISION_FULL;
    sum.identity = op_info(OP_SUM)->identity;
    memset(&finish.reduces, 0, sizeof finish.reduces);
    vec_push(s->arena, &finish.reduces, sum);
    vec_push(s->arena, &s->plan->kernels, finish);
}

bool split_k_kernel(Arena *arena, Plan *plan, const Kernel *kernel) {
    GemmSplit s = {.arena = arena, .plan = plan, .whole = kernel};
    s.segment_elems = graph_segment_elems(plan->graph, kernel->reduces.data[0].node);
    if (!s.segment_elems || !dim_is_const(plan->graph->dims, kernel_n_reduced(kernel), &s.k))
        return false;
    int64_t n = s.k / s.segment_elems, rest = s.k % s.segment_elems;
    Segments last = {.n = 0}, alike = add_partial(&s, "part", 0, n, s.segment_elems);
    if (rest) last = add_partial(&s, "rest", n, 1, rest);
    add_finish(&s, &alike, &last);
    return true;
}
