/* Schedules of turns. See one_block.h. */
#include "schedule/one_block.h"

#include "schedule/flat.h"
#include "schedule/gemm.h"
#include "schedule/row.h"

enum {
    WARP_THREADS = 32,
    COLUMN_THREADS = 256, /* a column's block is eight chains of 32 threads */
    MIN_WARPS = 4,        /* of the block */
    TILE_DEPTH = 32,
    MAX_TILE_BYTES = 24 * 1024, /* of the operands' tiles in shared memory, twice */
    FEW_ROWS = 8
};

static DimId ceil_div(const Kernel *kernel, DimId dim, int64_t divisor) {
    return dim_ceil_div(indextab_dims(scalartab_indices(kernel->scalars)), dim, divisor);
}

/* The warps' split and the tile, with few outputs for each thread: 8 by 4 threads of a warp, or 1
 * by 32 for one row. */
static void set_fma_tile(const Kernel *kernel, Variant *variant) {
    Sched *sched = &variant->sched;
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t n_warps = sched->threads / WARP_THREADS;
    int64_t m = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)));
    int64_t n = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_n(kernel)));
    sched->warps_m = m <= FEW_ROWS ? 1 : n_warps / MIN_WARPS < 4 ? 2 : 4;
    sched->warps_n = n_warps / sched->warps_m;
    if (m == 1) {
        sched->tile_m = 1;
        sched->tile_n = WARP_THREADS * sched->warps_n;
    } else {
        sched->tile_m = m <= FEW_ROWS ? FEW_ROWS : m <= 32 ? 32 : 64;
        sched->tile_n = 4 * sched->warps_n;
        while (sched->tile_n < n && sched->tile_n < 64) sched->tile_n *= 2;
    }
    sched->tile_k = TILE_DEPTH;
    uint32_t bytes = 2 * (sched->tile_m + sched->tile_n) * dtype_bytes(kernel->reduces.data[0].acc);
    while (sched->tile_k > 4 && sched->tile_k * bytes > MAX_TILE_BYTES) sched->tile_k /= 2;
    sched->stages = 2;
    variant->grid = gemm_gpu_grid(kernel, sched->tile_m, sched->tile_n);
}

static bool contract_turn(const Kernel *kernel, Variant *variant) {
    switch (variant->sched.engine) {
    case GEMM_FMA:
        set_fma_tile(kernel, variant);
        return true;
    case GEMM_NAIVE:
        variant->grid =
            ceil_div(kernel, kernel_n_rows(kernel), variant->sched.threads * variant->sched.unroll);
        return true;
    case GEMM_GEMV:
        sched_gemv_one_block(kernel, variant);
        return true;
    case GEMM_MMA:
    case GEMM_WGMMA: /* their tiles are no smaller than what they are good for */
        break;
    }
    return false;
}

bool sched_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    Sched *sched = &variant->sched;
    uint32_t own = sched->threads;
    DimId rows = kernel_n_rows(kernel);
    if (kernel->segment_axis != NO_AXIS || variant->shared_bytes) return false;
    sched->threads = threads;
    switch (kernel->form) {
    case FORM_MAP: /* one element at a time where lanes lie along another axis than the last */
        if (sched->lanes_out) sched->lanes = 1;
        sched->lanes_out = sched->lanes_in = 0;
        variant->grid = sched_map_grid(kernel, sched);
        return true;
    case FORM_ROW: /* the barriers of a team of several warps are the block's; no row of a cluster
                    */
        if (sched->cluster > 1 ||
            (sched->threads_per_row > WARP_THREADS && sched->threads_per_row != threads &&
             !sched_row_widen(sched, threads)))
            return false;
        variant->grid = ceil_div(kernel, rows, threads / sched->threads_per_row);
        return true;
    case FORM_COLUMN:
        return threads == COLUMN_THREADS && own == COLUMN_THREADS;
    case FORM_GEMM:
        return contract_turn(kernel, variant);
    }
    return false;
}
