/* Splitting long products. See split_product.h. */
#include "pass/split_product.h"

#include "pass/rebuild.h"
#include "pass/segments.h"
#include "pass/split.h"

/* What the partial kernel is made of: the whole one's programs over other axes. */
typedef struct ProductSplit {
    Arena *arena;
    Plan *plan;
    const Kernel *whole;
    int64_t n_segments, segment_elems;
    uint32_t buffer; /* of the partials: segments, outermost, by the product's elements */
} ProductSplit;

/* Segments are a batch, the innermost, of which each has its own part of k. */
static Rebuild segment_axes(const ProductSplit *s, Kernel *partial) {
    const IndexTab *from = scalartab_indices(s->whole->scalars);
    DimTab *dims = s->plan->graph->dims;
    IndexTab *to = indextab_new(s->arena, dims);
    uint32_t m = gemm_axis_m(s->whole), k = gemm_axis_k(s->whole);
    DimId length = dim_const(dims, s->segment_elems);
    Rebuild rebuild = {.arena = s->arena, .from = s->whole->scalars};
    for (uint32_t axis = 0; axis < s->whole->n_parallel; axis++) {
        if (axis == m)
            partial->segment_axis = index_new_axis(to, dim_const(dims, s->n_segments));
        rebuild.axes[axis] = index_axis(to, index_new_axis(to, index_axis_extent(from, axis)));
    }
    partial->n_parallel = s->whole->n_parallel + 1;
    partial->first_reduced = index_new_axis(to, length);
    IndexId begin = index_scale(to, index_axis(to, partial->segment_axis), length);
    rebuild.axes[k] = index_add(to, begin, index_axis(to, partial->first_reduced));
    rebuild.to = partial->scalars = scalartab_new(s->arena, to);
    return rebuild;
}

/* The values that the factors are made of. */
static void copy_traces(const ProductSplit *s, Rebuild *rebuild, Kernel *partial) {
    const Kernel *whole = s->whole;
    const bool *is_factor = kernel_reduced_scalars(s->arena, whole);
    uint32_t *copy_of = arena_array(s->arena, uint32_t, whole->traces.n + (size_t)1);
    memset(&partial->traces, 0, sizeof partial->traces);
    for (uint32_t i = 0; i < whole->traces.n; i++) {
        const Trace *from = &whole->traces.data[i];
        uint32_t rank = graph_node(s->plan->graph, from->node)->shape.rank;
        IndexId *coords = arena_array(s->arena, IndexId, rank);
        if (!is_factor[from->value]) continue;
        for (uint32_t d = 0; d < rank; d++) coords[d] = rebuild_index(rebuild, from->coords[d]);
        Trace copy = {.node = from->node,
                      .value = rebuild_scalar(rebuild, from->value),
                      .guard = rebuild_guard(rebuild, from->guard),
                      .coords = coords,
                      .is_loaded = from->is_loaded};
        for (uint32_t k = 0; k < from->operands.n; k++)
            if (copy_of[from->operands.data[k]])
                vec_push(s->arena, &copy.operands, copy_of[from->operands.data[k]] - 1);
        vec_push(s->arena, &partial->traces, copy);
        copy_of[i] = partial->traces.n;
    }
}

/* Of the partial of a segment and the product's element that the kernel's loops stand at. */
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

static void add_partial(const ProductSplit *s) {
    Kernel partial = *s->whole;
    Reduce reduce = s->whole->reduces.data[0];
    partial.name = str_format(s->arena, "%s_part", s->whole->name);
    Rebuild rebuild = segment_axes(s, &partial);
    reduce.value = rebuild_scalar(&rebuild, reduce.value);
    reduce.factor = rebuild_scalar(&rebuild, reduce.factor);
    reduce.result = reduce.acc;
    copy_traces(s, &rebuild, &partial);
    memset(&partial.reduces, 0, sizeof partial.reduces);
    memset(&partial.row_stores, 0, sizeof partial.row_stores);
    vec_push(s->arena, &partial.reduces, reduce);
    IndexId segment = index_axis(scalartab_indices(partial.scalars), partial.segment_axis);
    uint32_t axes = (1u << partial.n_parallel) - 1;
    Store store = {.buffer = s->buffer,
                   .address = partial_address(&partial, segment),
                   .value = scalar_stage(partial.scalars, reduce.acc, 0, axes),
                   .node = reduce.node};
    vec_push(s->arena, &partial.row_stores, store);
    vec_push(s->arena, &s->plan->kernels, partial);
}

/* What follows the product goes on from the same result, in the same loops. */
static void add_finish(const ProductSplit *s) {
    Kernel finish = *s->whole;
    IndexTab *tab = scalartab_indices(finish.scalars);
    Reduce sum = s->whole->reduces.data[0];
    uint32_t axis = index_new_axis(tab, dim_const(s->plan->graph->dims, s->n_segments));
    IndexId address = partial_address(&finish, index_axis(tab, axis));
    finish.form = FORM_COLUMN;
    finish.first_reduced = axis;
    finish.n_reduced = 1;
    sum.value = scalar_load(finish.scalars, sum.acc, s->buffer, address, GUARD_NONE);
    sum.factor = SCALAR_NONE;
    sum.precision = PRECISION_FULL;
    sum.identity = op_info(OP_SUM)->identity;
    memset(&finish.reduces, 0, sizeof finish.reduces);
    vec_push(s->arena, &finish.reduces, sum);
    vec_push(s->arena, &s->plan->kernels, finish);
}

bool split_product(Arena *arena, Plan *plan, const Kernel *kernel) {
    DimTab *dims = plan->graph->dims;
    NodeId node = kernel->reduces.data[0].node;
    ProductSplit s = {.arena = arena, .plan = plan, .whole = kernel};
    int64_t k;
    s.n_segments = segments_of(plan->graph, node);
    if (s.n_segments <= 1 || !dim_is_const(dims, kernel_n_reduced(kernel), &k)) return false;
    s.segment_elems = k / s.n_segments;
    DimId rows = kernel_n_rows(kernel), segments = dim_const(dims, s.n_segments);
    s.buffer = split_add_partials(arena, plan, node, kernel->reduces.data[0].acc, segments, rows);
    add_partial(&s);
    add_finish(&s);
    return true;
}
