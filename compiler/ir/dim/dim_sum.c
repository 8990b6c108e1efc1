/* See dim_sum.h. */
#include "ir/dim/dim_sum.h"

DimSum dim_sum_new(DimTab *tab) {
    return (DimSum){.tab = tab, .added = dim_const(tab, 0)};
}

DimId dim_sum_total(DimSum *sum) {
    for (uint32_t i = 0; i < sum->n; i++)
        sum->added =
            dim_add(sum->tab, sum->added, dim_mul_const(sum->tab, sum->dims[i], sum->times[i]));
    sum->n = 0;
    return sum->added;
}

void dim_sum_add(DimSum *sum, DimId dim) {
    uint32_t i = 0;
    while (i < sum->n && sum->dims[i] != dim) i++;
    if (i == DIM_SUM_DIFFERENT) {
        dim_sum_total(sum);
        i = 0;
    }
    if (i == sum->n) {
        sum->dims[sum->n++] = dim;
        sum->times[i] = 0;
    }
    sum->times[i]++;
}
