/* Bounds of polynomials over atoms, internal to the dims. */
#ifndef FUSEC_IR_DIM_DIM_RANGE_H
#define FUSEC_IR_DIM_DIM_RANGE_H

#include "ir/dim/dim_state.h"

typedef struct Range {
    bool failed; /* the arithmetic leaves [-2^62, 2^62] */
    int64_t lo, hi, multiple;
} Range;

Range range_mul(Range a, Range b);
Range atom_range(const DimTab *tab, const DimAtom *atom);
Range monomial_range(const DimTab *tab, uint32_t monomial);
/* Tightens `range`, the bounds of a constant and terms, by those of the same polynomial in x - lo
 * for every atom x, lo being its least value. B*T - B, where B and T are at least 1, is at least 0;
 * its terms, each by itself, reach far below. */
void tighten_from_least(const DimTab *tab, int64_t constant, const Term *terms, uint32_t n,
                        Range *range);

#endif
