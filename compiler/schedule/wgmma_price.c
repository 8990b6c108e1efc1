/* See wgmma_price.h. A wave is as many blocks as there are processors. */
#include "schedule/wgmma_price.h"
#include "machine/machine.h"

/* Fitted on an H200 to the time of each tile alone for 72 GEMMs of bf16, with extents of 32 to 8192
 * (docs/results). The lhs lay along k, the rhs across it. 128 x 240 in clusters is interpolated and
 * was confirmed later; 64 x 256 is judged. A rhs across k is fetched in whole blocks of 64 columns:
 * 128 x 176 and 128 x 208 took a seventh longer than the time at which they would pay. */
const PricedTile *priced_tiles(uint32_t *n) {
    static const PricedTile tiles[] = {
        {128, 256, 1, true, true, .share = 15, .step = 635, .left = 7, .right = 41, .rest = 2683},
        {128, 240, 2, true, false, .share = 15, .step = 607, .left = 37, .right = 16, .rest = 3217},
        {128, 192, 2, true, false, .share = 15, .step = 486, .left = 47, .right = 23, .rest = 2971},
        {128, 192, 1, true, true, .share = 20, .step = 489, .left = 54, .right = 55, .rest = 2514},
        {128, 128, 1, true, true, .share = 30, .step = 368, .left = 136, .right = 45, .rest = 1212},
        {64, 256, 1, false, true, .share = 25, .step = 400, .left = 40, .right = 110, .rest = 2500},
        {64, 192, 1, false, true, .share = 35, .step = 313, .left = 52, .right = 107, .rest = 1830},
        {64, 128, 1, true, true, .share = 50, .step = 257, .left = 73, .right = 63, .rest = 565},
        {64, 64, 1, true, false, .share = 55, .step = 179, .left = 76, .right = 29, .rest = 492},
    };
    *n = sizeof tiles / sizeof *tiles;
    return tiles;
}

/* 1 if the rows are poorly aligned, else 0. */
static DimId is_poor(DimTab *dims, const PricedRows *rows) {
    int64_t whole = (rows->is_along_k ? SECTOR_BYTES : LINE_BYTES) / rows->elem_bytes;
    if (dim_multiple(dims, rows->pitch) % whole == 0) return dim_const(dims, 0);
    DimId up = dim_ceil_div(dims, rows->pitch, whole);
    DimId down = dim_div(dims, rows->pitch, dim_const(dims, whole));
    return dim_sub(dims, up, down);
}

/* The weight of a row of an operand: from the side of the table whose rows lay as this operand's
 * do. */
static int64_t weight_of(const PricedTile *tile, bool is_left, bool is_along_k) {
    int64_t left = tile->m, right = tile->n / tile->cluster, own = is_left ? left : right;
    return is_along_k ? tile->left * own / left : tile->right * own / right;
}

/* Adds a measure. A constant goes to the fixed time, and equal measures are merged. */
static bool add_measure(const DimTab *dims, Price *price, DimId measure, int64_t weight) {
    int64_t value;
    uint32_t i = 0;
    if (measure == DIM_NONE) return false;
    if (dim_is_const(dims, measure, &value)) {
        price->fixed += value * weight;
        return true;
    }
    while (i < price->n_measures && price->measures[i] != measure) i++;
    if (i == price->n_measures) price->measures[price->n_measures++] = measure;
    price->weights[i] += weight;
    return true;
}

/* The number of steps in which the rows of the lhs, or of the rhs, are poorly aligned. */
static DimId poor_steps(DimTab *dims, const PricedWork *works, uint32_t n_works, bool is_left) {
    DimId sum = dim_const(dims, 0);
    for (uint32_t i = 0; i < n_works; i++) {
        DimId poor = is_poor(dims, is_left ? &works[i].left : &works[i].right);
        poor = dim_mul(dims, works[i].steps, poor);
        sum = dim_add(dims, sum, poor);
    }
    return sum;
}

bool set_tile_price(DimTab *dims, const PricedTile *tile, const PricedWork *works, uint32_t n_works,
                    Price *price) {
    DimId steps = dim_const(dims, 0);
    for (uint32_t i = 0; i < n_works; i++) steps = dim_add(dims, steps, works[i].steps);
    price->percent = tile->share;
    price->fixed = tile->rest * n_works;
    DimId left = poor_steps(dims, works, n_works, true);
    DimId right = poor_steps(dims, works, n_works, false);
    return add_measure(dims, price, steps, tile->step) &&
           add_measure(dims, price, left, weight_of(tile, true, works->left.is_along_k)) &&
           add_measure(dims, price, right, weight_of(tile, false, works->right.is_along_k));
}
