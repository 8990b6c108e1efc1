/* Schedules of GEMMs. See gemm.h. */
#include "schedule/gemm.h"

DimId gemm_n_batches(const Kernel *kernel) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId n = dim_const(dims, 1);
    for (uint32_t k = 0; k + 2 < kernel->n_parallel; k++)
        n = dim_mul(dims, n, index_axis_extent(tab, k));
    return n;
}
