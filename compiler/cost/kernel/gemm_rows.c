/* See gemm_rows.h. */
#include "cost/kernel/gemm_rows.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include <math.h>

double cost_rows_product_us(const Sched *product, double waves, double k, uint32_t elem_bytes) {
    if (template_info(product->template)->uses_copy_engine) return 0; /* it is further ahead */
    double bytes =
        (double)(product->gemm.tile_m + product->gemm.tile_n) * product->gemm.tile_k * elem_bytes;
    return waves * ceil(k / product->gemm.tile_k) *
           (COST_ROWS_STEP_US + bytes / COST_ROWS_STEP_BYTES_PER_US);
}

double cost_rows_us(const Sched *product, double waves, double columns, double prims) {
    double elems = product->gemm.tile_m * columns / product->threads;
    return ceil(waves) * elems * (prims * COST_ROWS_PRIM_US + COST_ROWS_ELEM_US);
}

double cost_rows_wgmma_us(const Sched *product, double waves, double columns, double prims) {
    double elems = product->gemm.tile_m * columns / (product->gemm.warps_m * WARP_THREADS);
    return waves * COST_ROWS_TILE_US +
           ceil(waves) * elems * (prims * COST_ROWS_PRIM_US + COST_ROWS_OWN_ELEM_US);
}

double cost_rows_begin_us(const Sched *product, double columns) {
    bool is_wide =
        columns > COST_ROWS_WIDE_COLUMNS && !template_info(product->template)->uses_copy_engine;
    return COST_ROWS_BEGIN_US + (is_wide ? COST_ROWS_WIDE_US : 0);
}
