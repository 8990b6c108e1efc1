/* Predicted times of wgmma tiles for extents that are known only at run time, as expressions that
 * the runtime compares. See gemm.h. */
#ifndef FUSEC_SCHEDULE_WGMMA_WGMMA_PRICE_H
#define FUSEC_SCHEDULE_WGMMA_WGMMA_PRICE_H

#include "machine/tiles.h"
#include "plan/kernel.h"

/* The rows of an operand as they are fetched. Along k they take longer if they begin inside a
 * sector of memory, across k if they begin inside a cache line. */
typedef struct PricedRows {
    DimId pitch; /* elements */
    uint32_t elem_bytes;
    bool is_along_k;
} PricedRows;

/* One GEMM of the launch: its steps of k. */
typedef struct PricedWork {
    DimId steps;
    PricedRows left, right;
} PricedWork;

/* False: an expression overflows. */
bool set_tile_price(DimTab *dims, const WgmmaTile *tile, const PricedWork *works, uint32_t n_works,
                    Price *price);

#endif
