/* What tiles of GEMM_WGMMA cost where extents are known only when a run begins: expressions
 * that the runtime compares. See gemm.h. */
#ifndef FUSEC_SCHEDULE_WGMMA_PRICE_H
#define FUSEC_SCHEDULE_WGMMA_PRICE_H

#include "plan/kernel.h"

/* Sizes that are worth a variant, the largest first: columns are those of all products that a
 * block makes at once. */
typedef struct PricedTile {
    uint32_t m, n, cluster;
    bool is_for_one, is_for_several; /* products: which it is offered to */
    /* Percent of what it takes that goes with the blocks that run, since they contend for the
     * cache; what is left goes with the waves of blocks. */
    int64_t share;
    /* Nanoseconds of a step of k; of one for which rows of the left and of the rhs are
     * poorly aligned, more; and of all else. */
    int64_t step, left, right, rest;
} PricedTile;

const PricedTile *priced_tiles(uint32_t *n);

/* Rows of an operand as they are fetched. Along k they take longer if they begin within a sector of
 * memory, across k if they begin within a line. */
typedef struct PricedRows {
    DimId pitch; /* elements */
    uint32_t elem_bytes;
    bool is_along_k;
} PricedRows;

/* One of the products of a launch: its steps of k. */
typedef struct PricedWork {
    DimId steps;
    PricedRows left, right;
} PricedWork;

/* False: an expression overflows. */
bool set_tile_price(DimTab *dims, const PricedTile *tile, const PricedWork *works, uint32_t n_works,
                    Price *price);

#endif
