/* Softmax and product: the facts on which its schedules, prices and templates agree. */
#ifndef FUSEC_TEMPLATE_ONLINE_H
#define FUSEC_TEMPLATE_ONLINE_H

#include "machine/tuning.h"
#include "plan/kernel.h"

/* Units of `n_rows` rows of one batch by `n_columns` columns. */
static inline DimId online_n_units(DimTab *dims, const Kernel *kernel, int64_t n_rows,
                                   int64_t n_columns) {
    DimId rows = dim_ceil_div(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)), n_rows);
    DimId columns = dim_ceil_div(dims, kernel_axis_extent(kernel, gemm_axis_n(kernel)), n_columns);
    DimId units = dim_mul(dims, rows, columns);
    for (uint32_t axis = 0; axis < gemm_axis_m(kernel) && units; axis++)
        units = dim_mul(dims, units, kernel_axis_extent(kernel, axis));
    return units;
}

/* GPU_ONLINE: the columns of a warp. */
static inline uint32_t online_warp_columns(const Sched *sched) {
    return sched->unroll > 1 ? SCHED_ONLINE_COLUMNS : SCHED_ONLINE_ROW_COLUMNS;
}

#endif
