/* The values of dims where their symbols have values, and the symbols on which they depend. See
 * dim.h. */
#include "base/arith.h"
#include "base/checked.h"
#include "ir/dim/dim_state.h"
#include "ir/predicate.h"

static uint64_t atom_symbols(const DimTab *tab, const DimAtom *atom) {
    if (!atom->is_division) {
        const DimRule *rule = dim_symbol_info(tab, atom->symbol)->rule;
        if (rule && rule->value != DIM_NONE) return dim_symbols_used(tab, rule->value);
        return (uint64_t)1 << atom->symbol;
    }
    return dim_symbols_used(tab, atom->numerator) | dim_symbols_used(tab, atom->divisor);
}

uint64_t dim_symbols_used(const DimTab *tab, DimId dim) {
    uint64_t used = 0;
    const Dim *d = dim_get(tab, dim);
    for (uint32_t i = 0; i < d->n_terms; i++) {
        const Monomial *m = &tab->monomials.data[d->terms[i].monomial];
        for (uint32_t k = 0; k < m->n_atoms; k++)
            used |= atom_symbols(tab, &tab->atoms.data[m->atoms[k]]);
    }
    return used;
}

static bool atom_eval(const DimTab *tab, const DimAtom *atom, const int64_t *values, int64_t *out) {
    if (!atom->is_division) {
        *out = values[atom->symbol];
        return true;
    }
    int64_t n, d;
    if (!dim_eval(tab, atom->numerator, values, &n) || !dim_eval(tab, atom->divisor, values, &d))
        return false;
    if (d <= 0) return false;
    *out = floor_div(n, d);
    return true;
}

bool dim_eval(const DimTab *tab, DimId dim, const int64_t *values, int64_t *value) {
    const Dim *d = dim_get(tab, dim);
    int64_t total = d->constant;
    for (uint32_t i = 0; i < d->n_terms; i++) {
        const Monomial *m = &tab->monomials.data[d->terms[i].monomial];
        int64_t product = d->terms[i].coefficient, factor;
        for (uint32_t k = 0; k < m->n_atoms; k++)
            if (!atom_eval(tab, &tab->atoms.data[m->atoms[k]], values, &factor) ||
                !checked_mul(product, factor, &product))
                return false;
        if (!checked_add(total, product, &total)) return false;
    }
    *value = total;
    return true;
}

double dim_number(const DimTab *tab, DimId dim, const int64_t *symbol_values) {
    int64_t value;
    return dim != DIM_NONE && dim_eval(tab, dim, symbol_values, &value) ? (double)value : 0;
}
