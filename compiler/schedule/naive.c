/* Schedules of GEMMs without tiles. See scheduler.h. */
#include "machine/tuning.h"
#include "schedule/scheduler.h"

#include <math.h>

/* Naive GEMMs: each output is one chain and nothing is shared. A tile would have at most
 * SCHED_NAIVE_MOST multiply-adds, k is short enough for one thread, and there are many such tiles,
 * or may be. Smaller GEMMs keep tiles, which other kernels can follow in the same launch. */

static bool has_unit_k(const Kernel *kernel) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    return dim_hi(indextab_dims(tab), index_axis_extent(tab, gemm_axis_k(kernel))) <= 1;
}

typedef int64_t Bound(const DimTab *dims, DimId dim);

/* The number of tiles of SCHED_NAIVE_ROWS rows and all columns, from the extents of the graph's
 * matmul; *in_tile: multiply-adds per tile. */
static double n_places(const Plan *plan, const Kernel *kernel, Bound *bound, double *in_tile) {
    const Graph *graph = plan->graph;
    const Node *node = graph_node(graph, kernel->reduces.data[0].node);
    const Shape *out = &node->shape, *right = &graph_node(graph, node->args[1])->shape;
    uint32_t n_batch_axes = gemm_n_batch_axes(graph, node);
    double batches = 1, rows = 1;
    double columns = (double)bound(graph->dims, out->dims[out->rank - 1]);
    double depth = (double)bound(graph->dims, right->dims[right->rank - 2]);
    for (uint32_t d = 0; d + 1 < out->rank; d++) {
        double extent = (double)bound(graph->dims, out->dims[d]);
        if (d < n_batch_axes)
            batches *= extent;
        else
            rows *= extent;
    }
    *in_tile = fmin(rows, SCHED_NAIVE_ROWS) * columns * depth;
    return batches * ceil(rows / SCHED_NAIVE_ROWS);
}

static bool is_tiny(const Plan *plan, const Kernel *kernel) {
    const Graph *graph = plan->graph;
    const Node *node = graph_node(graph, kernel->reduces.data[0].node);
    const Shape *out = &node->shape, *right = &graph_node(graph, node->args[1])->shape;
    bool is_vector = dim_hi(graph->dims, out->dims[out->rank - 1]) <= 1;
    double least, most;
    double n_least = n_places(plan, kernel, dim_lo, &least);
    double n_most = n_places(plan, kernel, dim_hi, &most);
    return !(is_vector && !gemm_n_batch_axes(graph, node)) && most <= SCHED_NAIVE_MOST &&
           dim_hi(graph->dims, right->dims[right->rank - 2]) <= SCHED_NAIVE_DEPTH &&
           (n_least >= SCHED_NAIVE_LEAST_TILES || n_most >= SCHED_NAIVE_MANY_TILES);
}

bool sched_naive_may(const Plan *plan, const Kernel *kernel) {
    return has_unit_k(kernel) || is_tiny(plan, kernel);
}

static void list_variants(const Scheduler *s, Candidates *list) {
    Variant *variant = candidate_always(list);
    int64_t depth = dim_hi(s->dims, kernel_axis_extent(s->kernel, gemm_axis_k(s->kernel)));
    uint32_t unroll = SCHED_MAP_UNROLL;
    while (unroll > 1 && unroll * depth > SCHED_NAIVE_STEPS) unroll /= 2;
    variant->sched.template = TEMPLATE_GPU_GEMM_NAIVE;
    variant->sched.threads = SCHED_NAIVE_THREADS;
    variant->sched.unroll = unroll;
    variant->grid = dim_ceil_div(s->dims, kernel_n_rows(s->kernel), SCHED_NAIVE_THREADS * unroll);
}

static bool may(const Scheduler *s) {
    return sched_naive_may(s->plan, s->kernel);
}

static bool in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    variant->sched.threads = threads;
    variant->grid = dim_ceil_div(indextab_dims(scalartab_indices(kernel->scalars)),
                                 kernel_n_rows(kernel), threads * variant->sched.unroll);
    return true;
}

const TemplateSchedule schedule_gpu_gemm_naive = {
    .may = may, .list = list_variants, .in_one_block = in_one_block};
