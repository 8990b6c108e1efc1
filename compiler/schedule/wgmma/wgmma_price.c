/* See wgmma_price.h. A wave is as many blocks as there are processors. */
#include "schedule/wgmma/wgmma_price.h"
#include "machine/machine.h"

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
static int64_t weight_of(const WgmmaTile *tile, bool is_left, bool is_along_k) {
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

bool set_tile_price(DimTab *dims, const WgmmaTile *tile, const PricedWork *works, uint32_t n_works,
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
