/* Schedules for one-block launches. See one_block.h. */
#include "schedule/one_block.h"
#include "machine/tuning.h"
#include "machine/machine.h"

#include "schedule/flat.h"
#include "schedule/gemm.h"
#include "schedule/row.h"

enum { COLUMN_THREADS = 256 }; /* a column's block is eight chains of 32 threads */

static DimId ceil_div(const Kernel *kernel, DimId dim, int64_t divisor) {
    return dim_ceil_div(indextab_dims(scalartab_indices(kernel->scalars)), dim, divisor);
}

/* Chooses the arrangement of warps and the tile, with few outputs per thread: 8 by 4 threads per
 * warp, or 1 by 32 for one row. */
static void set_fma_tile(const Kernel *kernel, Variant *variant) {
    Sched *sched = &variant->sched;
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t n_warps = sched->threads / WARP_THREADS;
    int64_t m = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)));
    int64_t n = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_n(kernel)));
    GemmSched *gemm = &sched->gemm;
    gemm->warps_m = m <= SCHED_ONE_BLOCK_ROWS ? 1 : n_warps / SCHED_ONE_BLOCK_WARPS < 4 ? 2 : 4;
    gemm->warps_n = n_warps / gemm->warps_m;
    if (m == 1) {
        gemm->tile_m = 1;
        gemm->tile_n = WARP_THREADS * gemm->warps_n;
    } else {
        gemm->tile_m = m <= SCHED_ONE_BLOCK_ROWS ? SCHED_ONE_BLOCK_ROWS : m <= 32 ? 32 : 64;
        gemm->tile_n = 4 * gemm->warps_n;
        while (gemm->tile_n < n && gemm->tile_n < 64) gemm->tile_n *= 2;
    }
    gemm->tile_k = SCHED_ONE_BLOCK_DEPTH;
    uint32_t bytes = 2 * (gemm->tile_m + gemm->tile_n) * dtype_bytes(kernel->reduces.data[0].acc);
    while (gemm->tile_k > 4 && gemm->tile_k * bytes > SCHED_ONE_BLOCK_BYTES) gemm->tile_k /= 2;
    gemm->stages = 2;
    variant->grid = gemm_gpu_grid(kernel, gemm->tile_m, gemm->tile_n);
}

static bool gemm_one_block(const Kernel *kernel, Variant *variant) {
    switch (sched_engine(&variant->sched)) {
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
    case GEMM_NONE:
    case GEMM_MMA:
    case GEMM_WGMMA: /* the tiles of these engines are too large for one block */
        break;
    }
    return false;
}

/* Accesses single elements if lanes lie along another axis than the last. */
static bool map_one_block(const Kernel *kernel, Variant *variant) {
    Sched *sched = &variant->sched;
    if (sched->template == TEMPLATE_GPU_MAP_TILE) {
        if (sched->map_tile.lanes_out) sched->lanes = 1;
        sched->template = TEMPLATE_GPU_MAP;
    }
    variant->grid = sched_map_grid(kernel, sched);
    return true;
}

/* Rows with threads of several warps use the block's barriers. Clusters are not possible. */
static bool row_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    Sched *sched = &variant->sched;
    uint32_t own = sched->row.threads_per_row;
    if (sched->cluster > 1 ||
        (own > WARP_THREADS && own != threads && !sched_row_widen(sched, threads)))
        return false;
    variant->grid = ceil_div(kernel, kernel_n_rows(kernel), threads / sched->row.threads_per_row);
    return true;
}

bool sched_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    uint32_t own = variant->sched.threads;
    if (kernel->segment_axis != NO_AXIS || variant->shared_bytes) return false;
    variant->sched.threads = threads;
    switch (kernel->form) {
    case FORM_MAP:
        return map_one_block(kernel, variant);
    case FORM_ROW:
        return row_one_block(kernel, threads, variant);
    case FORM_COLUMN:
        return threads == COLUMN_THREADS && own == COLUMN_THREADS;
    case FORM_GEMM:
        return gemm_one_block(kernel, variant);
    }
    return false;
}
