/* Schedules of GEMMs. See gemm.h. */
#include "schedule/gemm.h"

DimId gemm_gpu_grid(const Kernel *kernel, uint32_t tile_m, uint32_t tile_n) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId m = index_axis_extent(tab, gemm_axis_m(kernel));
    DimId n = index_axis_extent(tab, gemm_axis_n(kernel));
    DimId rows = dim_ceil_div(dims, m, tile_m), columns = dim_ceil_div(dims, n, tile_n);
    DimId tiles = dim_mul(dims, rows, columns);
    return dim_mul(dims, gemm_n_batches(kernel), tiles);
}

DimId gemm_launch_grid(const GemmLaunch *launch, const Kernel *kernel, uint32_t tile_m,
                       uint32_t tile_n) {
    uint32_t n;
    const Kernel *kernels = gemm_launch_kernels(launch, kernel, &n);
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    DimId all = gemm_gpu_grid(kernels, tile_m, tile_n);
    for (uint32_t i = 1; i < n; i++)
        all = dim_add(dims, all, gemm_gpu_grid(&kernels[i], tile_m, tile_n));
    return all;
}

bool gemm_is_wide(const Plan *plan, const Kernel *kernel) {
    const int64_t limit = INT64_C(1) << 30;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId rows = kernel_n_rows(kernel), k = kernel_n_reduced(kernel);
    if (!rows || dim_hi(dims, rows) > limit || !k || dim_hi(dims, k) > limit) return true;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        DimId n = shape_n_elems(dims, &plan->buffers.data[kernel->args.data[i]].shape);
        if (!n || dim_hi(dims, n) > limit) return true;
    }
    return false;
}

static bool is_run(IndexTab *tab, IndexId index, uint32_t axis, uint32_t lanes, bool is_whole) {
    return index_lane_motion(tab, index, axis, lanes) == LANES_CONTIGUOUS &&
           (!is_whole || index_is_multiple(tab, index, axis, lanes));
}

uint64_t gemm_run_args(const Kernel *kernel, uint32_t axis, uint32_t lanes, bool are_whole) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    uint64_t args = 0;
    for (uint32_t a = 0; a < kernel->args.n; a++) {
        uint32_t buffer = kernel->args.data[a];
        bool has_run = false;
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars) && !has_run; id++) {
            const Scalar *s = scalar_get(kernel->scalars, id);
            has_run = s->kind == SCALAR_LOAD && s->buffer == buffer &&
                      is_run(tab, s->index, axis, lanes, are_whole);
        }
        for (uint32_t i = 0; i < kernel->row_stores.n && !has_run; i++)
            has_run = kernel->row_stores.data[i].buffer == buffer &&
                      is_run(tab, kernel->row_stores.data[i].address, axis, lanes, are_whole);
        if (has_run) args |= (uint64_t)1 << a;
    }
    return args;
}

uint32_t gemm_n_batch_axes(const Graph *graph, const Node *matmul) {
    const Shape *right = &graph_node(graph, matmul->args[1])->shape;
    uint32_t n = matmul->shape.rank - 2, own = right->rank - 2;
    while (n > 0 && (own == 0 || dim_equals_const(graph->dims, right->dims[own - 1], 1))) {
        n--;
        if (own > 0) own--;
    }
    bool has_m = dim_hi(graph->dims, matmul->shape.dims[matmul->shape.rank - 2]) > 1;
    return n && has_m ? matmul->shape.rank - 2 : n;
}

bool sched_gemm_has_tensor_cores(Dtype operands, Precision precision) {
    if (dtype_is_single(operands)) return precision == PRECISION_TF32;
    return dtype_info(operands)->mma != MMA_NONE;
}

bool gemm_has_tensor_cores(const Kernel *kernel) {
    const Reduce *reduce = &kernel->reduces.data[0];
    Dtype left = scalar_get(kernel->scalars, reduce->lhs)->dtype;
    Dtype right = scalar_get(kernel->scalars, reduce->rhs)->dtype;
    bool are_alike = left == right || (dtype_in(left, DTS_STORED) && dtype_in(right, DTS_STORED));
    return are_alike && sched_gemm_has_tensor_cores(left, reduce->precision);
}

bool sched_gpu_gemm_copies(const Plan *plan, const Kernel *kernel) {
    return !sched_naive_may(plan, kernel) && !sched_gemv_may(plan, kernel) &&
           gemm_has_tensor_cores(kernel);
}

int64_t sched_gemm_widest_rows(const Plan *plan, const Kernel *kernel) {
    if (sched_naive_may(plan, kernel) || sched_gemv_may(plan, kernel)) return 0;
    Dtype left = scalar_get(kernel->scalars, kernel->reduces.data[0].lhs)->dtype;
    return gemm_has_tensor_cores(kernel) ? sched_mma_widest_rows(left) : sched_simt_widest_rows();
}
