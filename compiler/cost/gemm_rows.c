/* See gemm_rows.h. */
#include "cost/gemm_rows.h"

#include <math.h>

enum { WARP_THREADS = 32, WIDE_COLUMNS = 64 };
static const double BEGIN_US = 0.1;
/* Of wider rows, which all warps of a block have a part of, but for wgmma's: what 16 captured pairs
 * of 64 rows lack at the median. */
static const double WIDE_US = 0.5;
/* A step of k, of few blocks, whose stages are fewer bytes than hide the way from memory. */
static const double STEP_US = 0.10, STEP_BYTES_PER_US = 115e3;
/* An element that a thread has: by the primitives of its rows, and its way from the accumulators
 * through shared memory, to other warps or, by wgmma, within one. */
static const double PRIM_US = 0.00065, ELEM_US = 0.05, OWN_ELEM_US = 0.0108;
/* A tile by wgmma, while all processors have one: its rows wait for the last of their product, and
 * the next tile's for them. */
static const double TILE_US = 1.0;

double cost_rows_product_us(const Sched *product, double waves, double k, uint32_t elem_bytes) {
    if (product->engine == GEMM_WGMMA) return 0; /* it is further ahead */
    double bytes = (double)(product->tile_m + product->tile_n) * product->tile_k * elem_bytes;
    return waves * ceil(k / product->tile_k) * (STEP_US + bytes / STEP_BYTES_PER_US);
}

double cost_rows_us(const Sched *product, double waves, double columns, double prims) {
    double elems = product->tile_m * columns / product->threads;
    return ceil(waves) * elems * (prims * PRIM_US + ELEM_US);
}

double cost_rows_wgmma_us(const Sched *product, double waves, double columns, double prims) {
    double elems = product->tile_m * columns / (product->warps_m * WARP_THREADS);
    return waves * TILE_US + ceil(waves) * elems * (prims * PRIM_US + OWN_ELEM_US);
}

double cost_rows_begin_us(const Sched *product, double columns) {
    bool is_wide = columns > WIDE_COLUMNS && product->engine != GEMM_WGMMA;
    return BEGIN_US + (is_wide ? WIDE_US : 0);
}
