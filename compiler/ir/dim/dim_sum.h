/* The sum of many dims, of which few differ: it interns one dim for each of the few, not one for
 * each addition. */
#ifndef FUSEC_IR_DIM_DIM_SUM_H
#define FUSEC_IR_DIM_DIM_SUM_H

#include "ir/dim/dim.h"

enum { DIM_SUM_DIFFERENT = 8 };

typedef struct DimSum {
    DimTab *tab;
    DimId added;                   /* DIM_NONE: a dim or the sum is none */
    DimId dims[DIM_SUM_DIFFERENT]; /* not in `added` yet */
    int64_t times[DIM_SUM_DIFFERENT];
    uint32_t n;
} DimSum;

DimSum dim_sum_new(DimTab *tab);
/* Adds a dim that is never negative. */
void dim_sum_add(DimSum *sum, DimId dim);
/* The sum so far; DIM_NONE if it could exceed the limit of dims. */
DimId dim_sum_total(DimSum *sum);

#endif
