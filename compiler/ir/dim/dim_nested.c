/* Quotients that other functions of dims make. */
#include "ir/dim/dim.h"

DimId dim_ceil_div(DimTab *tab, DimId a, int64_t step) {
    DimId last = dim_add(tab, a, dim_const(tab, step - 1));
    return dim_div(tab, last, dim_const(tab, step));
}

DimId dim_round_up(DimTab *tab, DimId a, int64_t step) {
    if (a == DIM_NONE || dim_multiple(tab, a) % step == 0) return a;
    DimId steps = dim_ceil_div(tab, a, step);
    return steps == DIM_NONE ? DIM_NONE : dim_mul_const(tab, steps, step);
}

/* A quotient of a quotient is one: floor((floor(x / d) + c) / b) is floor((x + c d) / (d b)). */
DimId dim_div_nested(DimTab *tab, DimId a, DimId b) {
    if (dim_n_terms(tab, a) != 1) return DIM_NONE;
    DimTerm term = dim_term(tab, a, 0);
    if (term.coefficient != 1 || term.n_atoms != 1) return DIM_NONE;
    DimAtom atom = dim_atom(tab, term.atoms[0]);
    if (!atom.is_division || dim_lo(tab, atom.numerator) < 0) return DIM_NONE;
    DimId more = dim_mul_const(tab, atom.divisor, dim_constant_part(tab, a));
    DimId numerator = dim_add(tab, atom.numerator, more);
    if (!numerator || dim_lo(tab, numerator) < 0) return DIM_NONE;
    return dim_div(tab, numerator, dim_mul(tab, atom.divisor, b));
}
