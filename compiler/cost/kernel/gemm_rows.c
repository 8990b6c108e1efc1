/* See gemm_rows.h. */
#include "cost/kernel/gemm_rows.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include <math.h>

double cost_rows_gemm_us(const Sched *sched, double waves, double k, uint32_t elem_bytes) {
    if (template_info(sched->template)->uses_copy_engine)
        return 0; /* the copy engine is further
                   * ahead */
    double bytes =
        (double)(sched->gemm.tile_m + sched->gemm.tile_n) * sched->gemm.tile_k * elem_bytes;
    return waves * ceil(k / sched->gemm.tile_k) *
           (COST_ROWS_STEP_US + bytes / COST_ROWS_STEP_BYTES_PER_US);
}

double cost_rows_us(const Sched *sched, double waves, double columns, double prims) {
    double elems = sched->gemm.tile_m * columns / sched->threads;
    return ceil(waves) * elems * (prims * COST_ROWS_PRIM_US + COST_ROWS_ELEM_US);
}

double cost_rows_wgmma_us(const Sched *sched, double waves, double columns, double prims) {
    double elems = sched->gemm.tile_m * columns / (sched->gemm.warps_m * WARP_THREADS);
    return waves * COST_ROWS_TILE_US +
           ceil(waves) * elems * (prims * COST_ROWS_PRIM_US + COST_ROWS_OWN_ELEM_US);
}

double cost_rows_begin_us(const Sched *sched, double columns) {
    bool is_wide =
        columns > COST_ROWS_WIDE_COLUMNS && !template_info(sched->template)->uses_copy_engine;
    return COST_ROWS_BEGIN_US + (is_wide ? COST_ROWS_WIDE_US : 0);
}
