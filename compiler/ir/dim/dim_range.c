/* See dim_range.h. */
#include "ir/dim/dim_range.h"

#include "base/arith.h"
#include "base/checked.h"

#include <string.h>

Range atom_range(const DimTab *tab, const DimAtom *atom) {
    if (!atom->is_division) {
        const DimSymbol *symbol = &tab->symbols.data[atom->symbol];
        return (Range){.lo = symbol->lo, .hi = symbol->hi, .multiple = symbol->multiple};
    }
    const Dim *n = dim_get(tab, atom->numerator), *d = dim_get(tab, atom->divisor);
    int64_t corners[4] = {floor_div(n->lo, d->lo), floor_div(n->lo, d->hi), floor_div(n->hi, d->lo),
                          floor_div(n->hi, d->hi)};
    Range range = {.lo = corners[0], .hi = corners[0], .multiple = 1};
    for (int i = 1; i < 4; i++) {
        if (corners[i] < range.lo) range.lo = corners[i];
        if (corners[i] > range.hi) range.hi = corners[i];
    }
    return range;
}

Range range_mul(Range a, Range b) {
    int64_t c[4];
    Range range = {.failed = !checked_mul(a.lo, b.lo, &c[0]) || !checked_mul(a.lo, b.hi, &c[1]) ||
                             !checked_mul(a.hi, b.lo, &c[2]) || !checked_mul(a.hi, b.hi, &c[3]) ||
                             !checked_mul(a.multiple, b.multiple, &range.multiple)};
    if (range.failed) return range;
    range.lo = range.hi = c[0];
    for (int i = 1; i < 4; i++) {
        if (c[i] < range.lo) range.lo = c[i];
        if (c[i] > range.hi) range.hi = c[i];
    }
    return range;
}

Range monomial_range(const DimTab *tab, uint32_t monomial) {
    const Monomial *m = &tab->monomials.data[monomial];
    Range range = {.lo = 1, .hi = 1, .multiple = 1};
    for (uint32_t i = 0; i < m->n_atoms && !range.failed; i++)
        range = range_mul(range, atom_range(tab, &tab->atoms.data[m->atoms[i]]));
    return range;
}

enum { MAX_SHIFTED = 32, MAX_FACTORS = 4 };

/* coefficient * product of (x - lo) of the atoms x. */
typedef struct Part {
    int64_t coefficient;
    uint32_t n_atoms, atoms[MAX_FACTORS];
} Part;

typedef struct Shifted {
    bool failed;
    uint32_t n;
    Part parts[MAX_SHIFTED];
} Shifted;

static void add_part(Shifted *sum, const Part *part) {
    uint32_t i = 0;
    while (i < sum->n && (sum->parts[i].n_atoms != part->n_atoms ||
                          memcmp(sum->parts[i].atoms, part->atoms, sizeof part->atoms) != 0))
        i++;
    if (i == MAX_SHIFTED) sum->failed = true;
    if (sum->failed) return;
    if (i == sum->n)
        sum->parts[sum->n++] = *part;
    else if (!checked_add(sum->parts[i].coefficient, part->coefficient, &sum->parts[i].coefficient))
        sum->failed = true;
}

/* A product of atoms x = lo + (x - lo) is a sum over the sets of atoms of which it takes x - lo. */
static void add_shifted(const DimTab *tab, Shifted *sum, const Term *term) {
    const Monomial *m = &tab->monomials.data[term->monomial];
    sum->failed = sum->failed || m->n_atoms > MAX_FACTORS;
    for (uint32_t set = 0; !sum->failed && set < 1u << m->n_atoms; set++) {
        Part part = {.coefficient = term->coefficient};
        for (uint32_t i = 0; i < m->n_atoms; i++) {
            int64_t lo = atom_range(tab, &tab->atoms.data[m->atoms[i]]).lo;
            if (set >> i & 1)
                part.atoms[part.n_atoms++] = m->atoms[i];
            else if (!checked_mul(part.coefficient, lo, &part.coefficient))
                sum->failed = true;
        }
        if (part.coefficient) add_part(sum, &part);
    }
}

static Range part_range(const DimTab *tab, const Part *part) {
    Range range = {.lo = part->coefficient, .hi = part->coefficient, .multiple = 1};
    for (uint32_t i = 0; i < part->n_atoms && !range.failed; i++) {
        Range atom = atom_range(tab, &tab->atoms.data[part->atoms[i]]);
        range = range_mul(range, (Range){.lo = 0, .hi = atom.hi - atom.lo, .multiple = 1});
    }
    return range;
}

/* Only sums with products and terms of both signs have tighter bounds. */
static bool may_be_tighter(const DimTab *tab, const Term *terms, uint32_t n) {
    bool has_product = false, has_more = false, has_less = false;
    for (uint32_t i = 0; i < n; i++) {
        has_product = has_product || tab->monomials.data[terms[i].monomial].n_atoms > 1;
        has_more = has_more || terms[i].coefficient > 0;
        has_less = has_less || terms[i].coefficient < 0;
    }
    return has_product && has_more && has_less;
}

void tighten_from_least(const DimTab *tab, int64_t constant, const Term *terms, uint32_t n,
                        Range *range) {
    if (!may_be_tighter(tab, terms, n)) return;
    Shifted sum = {.n = 1, .parts[0].coefficient = constant};
    for (uint32_t i = 0; i < n; i++) add_shifted(tab, &sum, &terms[i]);
    int64_t lo = 0, hi = 0;
    for (uint32_t i = 0; i < sum.n && !sum.failed; i++) {
        Range part = part_range(tab, &sum.parts[i]);
        sum.failed =
            part.failed || !checked_add(lo, part.lo, &lo) || !checked_add(hi, part.hi, &hi);
    }
    if (sum.failed) return;
    if (lo > range->lo) range->lo = lo;
    if (hi < range->hi) range->hi = hi;
}
