/* Predicted times of wgmma tiles for extents that are known only at run time, as expressions that
 * the runtime compares. See gemm.h. */
#ifndef FUSEC_SCHEDULE_WGMMA_PRICE_H
#define FUSEC_SCHEDULE_WGMMA_PRICE_H

#include "plan/kernel.h"

/* The tile sizes that get a variant, largest first. The columns are those of all GEMMs that share a
 * block. */
typedef struct PricedTile {
    uint32_t m, n, cluster;
    bool is_for_one, is_for_several; /* whether it is for a single GEMM, and for several that share
                                      * blocks */
    /* Percent of the time that scales with the running blocks, because they contend for the cache;
     * the rest scales with the waves of blocks. */
    int64_t share;
    /* Nanoseconds: of a step of k, of poorly aligned rows of the lhs and of the rhs in a step, and
     * of everything else. */
    int64_t step, left, right, rest;
} PricedTile;

const PricedTile *priced_tiles(uint32_t *n);

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
bool set_tile_price(DimTab *dims, const PricedTile *tile, const PricedWork *works, uint32_t n_works,
                    Price *price);

#endif
