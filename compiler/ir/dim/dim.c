/* Dims as canonical polynomials over symbols and irreducible floor divisions.
 *
 * A monomial is an interned sorted list of atoms; a dim is a constant and terms sorted by monomial.
 * Monomials are found by linear search: a graph has a few. */
#include "ir/dim/dim_range.h"

#include "base/arith.h"
#include "base/checked.h"
#include "ir/predicate.h"

#include <string.h>

enum { MAX_TERMS = 256 };

/* A dim under construction. */
typedef struct Sum {
    bool failed;
    int64_t constant;
    Vec(Term) terms;
} Sum;

static int64_t gcd(int64_t a, int64_t b) {
    if (a < 0) a = -a;
    if (b < 0) b = -b;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

DimTab *dimtab_new(Arena *arena) {
    DimTab *tab = arena_array(arena, DimTab, 1);
    tab->arena = arena;
    vec_push(arena, &tab->dims, (Dim){0});
    return tab;
}

/* Arrays are only appended to, so the copy shares them until it appends. */
DimTab *dimtab_copy(Arena *arena, const DimTab *tab) {
    DimTab *copy = arena_copy(arena, tab, sizeof *tab);
    copy->arena = arena;
    copy->symbols.capacity = copy->symbols.n;
    copy->atoms.capacity = copy->atoms.n;
    copy->monomials.capacity = copy->monomials.n;
    copy->dims.capacity = copy->dims.n;
    copy->ids = hashids_copy(arena, &tab->ids);
    copy->known_sums = NULL;
    copy->known_orders = NULL;
    return copy;
}

uint32_t dim_declare(DimTab *tab, DimSymbol symbol) {
    uint32_t index = tab->symbols.n;
    /* A rule comes from a plan, which may be freed before the table. */
    if (symbol.rule) {
        symbol.rule = arena_copy(tab->arena, symbol.rule, sizeof *symbol.rule);
        symbol.name = str_format(tab->arena, "%s", symbol.name);
    }
    vec_push(tab->arena, &tab->symbols, symbol);
    return index;
}

uint32_t dim_n_symbols(const DimTab *tab) {
    return tab->symbols.n;
}

const DimSymbol *dim_symbol_info(const DimTab *tab, uint32_t symbol) {
    return &tab->symbols.data[symbol];
}

/* Interning. */

#define NO_MONOMIAL UINT32_MAX

static uint32_t find_monomial(const DimTab *tab, const uint32_t *atoms, uint32_t n) {
    for (uint32_t i = 0; i < tab->monomials.n; i++) {
        const Monomial *m = &tab->monomials.data[i];
        if (m->n_atoms == n && memcmp(m->atoms, atoms, n * sizeof *atoms) == 0) return i;
    }
    return NO_MONOMIAL;
}

static uint32_t intern_monomial(DimTab *tab, const uint32_t *atoms, uint32_t n) {
    uint32_t known = find_monomial(tab, atoms, n);
    if (known != NO_MONOMIAL) return known;
    Monomial fresh = {.n_atoms = n, .atoms = arena_copy(tab->arena, atoms, n * sizeof *atoms)};
    vec_push(tab->arena, &tab->monomials, fresh);
    return tab->monomials.n - 1;
}

static uint32_t intern_atom(DimTab *tab, DimAtom atom) {
    for (uint32_t i = 0; i < tab->atoms.n; i++) {
        const DimAtom *a = &tab->atoms.data[i];
        if (a->is_division == atom.is_division && a->symbol == atom.symbol &&
            a->numerator == atom.numerator && a->divisor == atom.divisor)
            return i;
    }
    vec_push(tab->arena, &tab->atoms, atom);
    return tab->atoms.n - 1;
}

static void sum_add(DimTab *tab, Sum *sum, int64_t coefficient, uint32_t monomial) {
    for (uint32_t i = 0; i < sum->terms.n; i++) {
        Term *term = &sum->terms.data[i];
        if (term->monomial != monomial) continue;
        if (!checked_add(term->coefficient, coefficient, &term->coefficient)) sum->failed = true;
        return;
    }
    if (sum->terms.n >= MAX_TERMS) sum->failed = true;
    if (!sum->failed)
        vec_push(tab->arena, &sum->terms, (Term){.coefficient = coefficient, .monomial = monomial});
}

static void sum_add_const(Sum *sum, int64_t value) {
    if (!checked_add(sum->constant, value, &sum->constant)) sum->failed = true;
}

static void sum_normalise(Sum *sum) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < sum->terms.n; i++)
        if (sum->terms.data[i].coefficient) sum->terms.data[n++] = sum->terms.data[i];
    sum->terms.n = n;
    for (uint32_t i = 1; i < n; i++) {
        Term term = sum->terms.data[i];
        uint32_t j = i;
        for (; j > 0 && sum->terms.data[j - 1].monomial > term.monomial; j--)
            sum->terms.data[j] = sum->terms.data[j - 1];
        sum->terms.data[j] = term;
    }
}

static void sum_add_dim(DimTab *tab, Sum *sum, const Dim *dim, int64_t factor);
static Range sum_range(DimTab *tab, Sum *sum, bool keeps);

enum { MAX_DIVISIONS = 4 };

/* Whether term `at` times `scale` is k d (n / d) with the symbolic or constant divisor d. */
static bool is_multiple_of_divisor(const DimTab *tab, const Term *term, DimAtom *division,
                                   int64_t *scale, int64_t *k) {
    const Monomial *monomial = &tab->monomials.data[term->monomial];
    int64_t divisor, common;
    uint32_t other = 0;
    *division = tab->atoms.data[monomial->atoms[0]];
    if (monomial->n_atoms == 1) {
        if (!division->is_division || !dim_is_const(tab, division->divisor, &divisor)) return false;
        common = gcd(term->coefficient, divisor);
        *scale = divisor / common;
        *k = term->coefficient / common;
        return true;
    }
    if (monomial->n_atoms != 2) return false;
    if (!division->is_division) *division = tab->atoms.data[monomial->atoms[other = 1]];
    DimAtom factor = tab->atoms.data[monomial->atoms[1 - other]];
    uint32_t symbol;
    *scale = 1;
    *k = term->coefficient;
    return division->is_division && dim_is_symbol(tab, division->divisor, &symbol) &&
           !factor.is_division && factor.symbol == symbol;
}

/* sum += factor * (d - 1) */
static void sum_add_rest(DimTab *tab, Sum *sum, DimId d, int64_t factor) {
    Dim divisor = *dim_get(tab, d);
    sum_add_dim(tab, sum, &divisor, factor);
    sum_add_const(sum, -factor);
}

/* Tightens the bounds of c (n / d) + rest by those of k n + rest, scaled so that the first term is
 * k d (n / d): d (n / d) is between n - d + 1 and n. This makes `n % d` a number below d, and
 * `n - n / 2` one of at least n / 2, for every n. `at` is the term with the division. */
static void tighten(DimTab *tab, const Sum *sum, uint32_t at, bool keeps, Range *range) {
    int64_t scale, k;
    DimAtom atom;
    if (!is_multiple_of_divisor(tab, &sum->terms.data[at], &atom, &scale, &k)) return;
    Sum low = {0};
    Dim own = {.constant = sum->constant, .n_terms = sum->terms.n};
    Term *terms = arena_copy(tab->arena, sum->terms.data, sum->terms.n * sizeof(Term));
    terms[at] = terms[--own.n_terms];
    own.terms = terms;
    Dim numerator = *dim_get(tab, atom.numerator);
    sum_add_dim(tab, &low, &own, scale);
    sum_add_dim(tab, &low, &numerator, k);
    Sum high = low;
    high.terms.data = arena_copy(tab->arena, low.terms.data, low.terms.n * sizeof(Term));
    high.terms.capacity = high.terms.n;
    sum_add_rest(tab, k > 0 ? &low : &high, atom.divisor, -k);
    Range least = sum_range(tab, &low, keeps);
    if (!least.failed && -floor_div(-least.lo, scale) > range->lo)
        range->lo = -floor_div(-least.lo, scale);
    if (!keeps) return;
    Range greatest = sum_range(tab, &high, keeps);
    if (!greatest.failed && floor_div(greatest.hi, scale) < range->hi)
        range->hi = floor_div(greatest.hi, scale);
}

/* Each division that is taken out leaves a sum of the others to tighten. For many divisions, as in
 * the bytes of a workspace, all subsets would be tried. */
static bool is_worth_tightening(const DimTab *tab, const Sum *sum) {
    uint32_t n = 0, n_products = 0;
    for (uint32_t i = 0; i < sum->terms.n; i++) {
        const Monomial *monomial = &tab->monomials.data[sum->terms.data[i].monomial];
        n += monomial->n_atoms == 1 && tab->atoms.data[monomial->atoms[0]].is_division;
        n_products += monomial->n_atoms == 2;
    }
    return sum->terms.n + n_products > 1 && n <= MAX_DIVISIONS;
}

/* The dim of a normal sum, or DIM_NONE if the table has none. */
static DimId find_sum(const DimTab *tab, const Sum *sum, uint64_t *hash) {
    uint32_t n = sum->terms.n, probe = 0;
    *hash = hash_mix(0, (uint64_t)sum->constant);
    for (uint32_t i = 0; i < n; i++) {
        *hash = hash_mix(*hash, (uint64_t)sum->terms.data[i].coefficient);
        *hash = hash_mix(*hash, sum->terms.data[i].monomial);
    }
    for (DimId id; (id = hashids_next(&tab->ids, *hash, &probe));) {
        const Dim *dim = dim_get(tab, id);
        if (dim->constant != sum->constant || dim->n_terms != n) continue;
        bool same = true;
        for (uint32_t i = 0; same && i < n; i++)
            same = dim->terms[i].coefficient == sum->terms.data[i].coefficient &&
                   dim->terms[i].monomial == sum->terms.data[i].monomial;
        if (same) return id;
    }
    return DIM_NONE;
}

/* Adds coefficient * (the monomial without one of its atoms). False if it does not have the atom,
 * or if the rest is no monomial yet and the table does not keep it. */
static bool add_without(DimTab *tab, Sum *sum, const Term *term, uint32_t atom, bool keeps) {
    const Monomial m = tab->monomials.data[term->monomial];
    uint32_t at = 0;
    while (at < m.n_atoms && m.atoms[at] != atom) at++;
    if (at == m.n_atoms) return false;
    uint32_t *atoms = arena_copy(tab->arena, m.atoms, m.n_atoms * sizeof *atoms);
    for (uint32_t i = at + 1; i < m.n_atoms; i++) atoms[i - 1] = atoms[i];
    if (m.n_atoms == 1) {
        sum_add_const(sum, term->coefficient);
        return true;
    }
    uint32_t rest = keeps ? intern_monomial(tab, atoms, m.n_atoms - 1)
                          : find_monomial(tab, atoms, m.n_atoms - 1);
    if (rest != NO_MONOMIAL) sum_add(tab, sum, term->coefficient, rest);
    return rest != NO_MONOMIAL;
}

static bool has_quotient(const DimTab *tab, const Sum *sum) {
    bool has = false;
    for (uint32_t i = 0; i < sum->terms.n; i++) {
        const Monomial *m = &tab->monomials.data[sum->terms.data[i].monomial];
        for (uint32_t a = 0; a < m->n_atoms; a++)
            has = has || tab->atoms.data[m->atoms[a]].is_division;
    }
    return has;
}

/* Tightens the bounds of a sum whose terms share an atom by those of atom * (the rest):
 * B*T - B*(T/2) is not negative, as T - T/2 is not. */
static void tighten_by_factor(DimTab *tab, const Sum *sum, bool keeps, Range *range) {
    if (sum->constant || sum->terms.n < 2 || !has_quotient(tab, sum)) return;
    const Monomial first = tab->monomials.data[sum->terms.data[0].monomial];
    for (uint32_t a = 0; a < first.n_atoms; a++) {
        Sum rest = {0};
        bool is_shared = true;
        for (uint32_t i = 0; i < sum->terms.n && is_shared; i++)
            is_shared = add_without(tab, &rest, &sum->terms.data[i], first.atoms[a], keeps);
        if (!is_shared) continue;
        Range product = sum_range(tab, &rest, keeps);
        if (!product.failed)
            product = range_mul(product, atom_range(tab, &tab->atoms.data[first.atoms[a]]));
        if (product.failed) continue;
        if (product.lo > range->lo) range->lo = product.lo;
        if (product.hi < range->hi) range->hi = product.hi;
    }
}

static Range normal_range(DimTab *tab, const Sum *sum, bool keeps) {
    Range all = {.lo = sum->constant, .hi = sum->constant, .multiple = gcd(sum->constant, 0)};
    for (uint32_t i = 0; i < sum->terms.n; i++) {
        int64_t c = sum->terms.data[i].coefficient;
        Range range = monomial_range(tab, sum->terms.data[i].monomial);
        range = range.failed
                    ? range
                    : range_mul(range, (Range){.lo = c, .hi = c, .multiple = c < 0 ? -c : c});
        if (range.failed || !checked_add(all.lo, range.lo, &all.lo) ||
            !checked_add(all.hi, range.hi, &all.hi))
            return (Range){.failed = true};
        all.multiple = gcd(all.multiple, range.multiple);
    }
    for (uint32_t i = 0; i < sum->terms.n && is_worth_tightening(tab, sum); i++)
        tighten(tab, sum, i, keeps, &all);
    tighten_by_factor(tab, sum, keeps, &all);
    tighten_from_least(tab, sum->constant, sum->terms.data, sum->terms.n, &all);
    return all;
}

static DimId intern_sum(DimTab *tab, Sum *sum) {
    uint64_t hash;
    if (sum->failed) return DIM_NONE;
    sum_normalise(sum);
    DimId known = find_sum(tab, sum, &hash);
    if (known) return known;
    uint32_t n = sum->terms.n;
    Range range = normal_range(tab, sum, true);
    if (range.failed) return DIM_NONE;
    Dim dim = {.constant = sum->constant,
               .n_terms = n,
               .terms = arena_copy(tab->arena, sum->terms.data, n * sizeof(Term)),
               .lo = range.lo,
               .hi = range.hi,
               .multiple = range.multiple};
    vec_push(tab->arena, &tab->dims, dim);
    hashids_add(tab->arena, &tab->ids, hash, tab->dims.n - 1);
    return tab->dims.n - 1;
}

/* The range of a sum, which becomes a dim if the table `keeps` it; otherwise the least value is
 * tight, and the greatest may not be. */
static Range sum_range(DimTab *tab, Sum *sum, bool keeps) {
    uint64_t hash;
    DimId id = DIM_NONE;
    if (keeps) id = intern_sum(tab, sum);
    if ((keeps && !id) || sum->failed) return (Range){.failed = true};
    if (!keeps) sum_normalise(sum);
    if (!keeps) id = find_sum(tab, sum, &hash);
    if (!id) return normal_range(tab, sum, false);
    const Dim *dim = dim_get(tab, id);
    return (Range){.lo = dim->lo, .hi = dim->hi, .multiple = dim->multiple};
}

/* sum += factor * dim */
static void sum_add_dim(DimTab *tab, Sum *sum, const Dim *dim, int64_t factor) {
    int64_t constant, c;
    if (!checked_mul(dim->constant, factor, &constant)) sum->failed = true;
    if (!sum->failed) sum_add_const(sum, constant);
    for (uint32_t i = 0; i < dim->n_terms && !sum->failed; i++) {
        if (checked_mul(dim->terms[i].coefficient, factor, &c))
            sum_add(tab, sum, c, dim->terms[i].monomial);
        else
            sum->failed = true;
    }
}

DimId dim_const(DimTab *tab, int64_t value) {
    Sum sum = {0};
    bool is_small = value >= 0 && value < N_SMALL;
    if (is_small && tab->small[value]) return tab->small[value];
    sum_add_const(&sum, value);
    DimId id = intern_sum(tab, &sum);
    if (is_small) tab->small[value] = id;
    return id;
}

DimId dim_symbol(DimTab *tab, uint32_t symbol) {
    uint32_t atom = intern_atom(tab, (DimAtom){.symbol = symbol});
    Sum sum = {0};
    sum_add(tab, &sum, 1, intern_monomial(tab, &atom, 1));
    return intern_sum(tab, &sum);
}

static bool is_number(const DimTab *tab, DimId id, int64_t number) {
    const Dim *dim = dim_get(tab, id);
    return dim->n_terms == 0 && dim->constant == number;
}

/* The place of a + factor * b among the known sums; of a * b if the factor is 0. */
static KnownSum *known_sum(DimTab *tab, DimId a, DimId b, int32_t factor) {
    if (!tab->known_sums) tab->known_sums = arena_array(tab->arena, KnownSum, N_KNOWN_SUMS);
    uint64_t hash = hash_mix(hash_mix((uint64_t)factor, a), b);
    return &tab->known_sums[hash % N_KNOWN_SUMS];
}

static Sum scaled_sum(DimTab *tab, DimId a, DimId b, int32_t factor) {
    Dim da = *dim_get(tab, a), db = *dim_get(tab, b);
    Sum sum = {0};
    sum_add_dim(tab, &sum, &da, 1);
    sum_add_dim(tab, &sum, &db, factor);
    return sum;
}

static DimId make_sum(DimTab *tab, DimId a, DimId b, int32_t factor) {
    ArenaMark mark = arena_mark(tab->arena);
    uint32_t n = tab->dims.n;
    Sum sum = scaled_sum(tab, a, b, factor);
    DimId id = intern_sum(tab, &sum);
    if (tab->dims.n == n) arena_rewind(tab->arena, mark);
    return id;
}

/* Guards ask for the same sums again and again. */
static DimId add_scaled(DimTab *tab, DimId a, DimId b, int32_t factor) {
    if (!a || !b) return DIM_NONE;
    if (is_number(tab, b, 0)) return a;
    if (factor == 1 && is_number(tab, a, 0)) return b;
    const Dim *da = dim_get(tab, a), *db = dim_get(tab, b);
    if (!da->n_terms && !db->n_terms) {
        int64_t added, all;
        bool is_good =
            checked_mul(db->constant, factor, &added) && checked_add(da->constant, added, &all);
        return is_good ? dim_const(tab, all) : DIM_NONE;
    }
    KnownSum *known = known_sum(tab, a, b, factor);
    if (known->a != a || known->b != b || known->factor != factor)
        *known = (KnownSum){a, b, make_sum(tab, a, b, factor), factor};
    return known->sum;
}

DimId dim_add(DimTab *tab, DimId a, DimId b) {
    return add_scaled(tab, a, b, 1);
}

DimId dim_sub(DimTab *tab, DimId a, DimId b) {
    return add_scaled(tab, a, b, -1);
}

static uint32_t monomial_mul(DimTab *tab, uint32_t a, uint32_t b) {
    Monomial ma = tab->monomials.data[a], mb = tab->monomials.data[b];
    uint32_t n = ma.n_atoms + mb.n_atoms, i = 0, j = 0;
    uint32_t *atoms = arena_array(tab->arena, uint32_t, n);
    for (uint32_t k = 0; k < n; k++)
        atoms[k] = j >= mb.n_atoms || (i < ma.n_atoms && ma.atoms[i] <= mb.atoms[j])
                       ? ma.atoms[i++]
                       : mb.atoms[j++];
    return intern_monomial(tab, atoms, n);
}

static DimId make_product(DimTab *tab, DimId a, DimId b) {
    Dim da = *dim_get(tab, a), db = *dim_get(tab, b);
    Sum sum = {0};
    sum_add_dim(tab, &sum, &db, da.constant);
    for (uint32_t i = 0; i < da.n_terms && !sum.failed; i++) {
        int64_t c;
        if (!checked_mul(da.terms[i].coefficient, db.constant, &c)) return DIM_NONE;
        if (c) sum_add(tab, &sum, c, da.terms[i].monomial);
        for (uint32_t j = 0; j < db.n_terms && !sum.failed; j++) {
            if (!checked_mul(da.terms[i].coefficient, db.terms[j].coefficient, &c)) return DIM_NONE;
            sum_add(tab, &sum, c, monomial_mul(tab, da.terms[i].monomial, db.terms[j].monomial));
        }
    }
    return intern_sum(tab, &sum);
}

DimId dim_mul(DimTab *tab, DimId a, DimId b) {
    if (!a || !b) return DIM_NONE;
    if (is_number(tab, a, 1)) return b;
    if (is_number(tab, b, 1)) return a;
    const Dim *da = dim_get(tab, a), *db = dim_get(tab, b);
    if (!da->n_terms && !db->n_terms) {
        int64_t product;
        bool is_good = checked_mul(da->constant, db->constant, &product);
        return is_good ? dim_const(tab, product) : DIM_NONE;
    }
    KnownSum *known = known_sum(tab, a, b, 0);
    if (known->a != a || known->b != b || known->factor != 0)
        *known = (KnownSum){a, b, make_product(tab, a, b), 0};
    return known->sum;
}

DimId dim_mul_const(DimTab *tab, DimId a, int64_t factor) {
    if (!a) return DIM_NONE;
    Dim da = *dim_get(tab, a);
    Sum sum = {0};
    sum_add_dim(tab, &sum, &da, factor);
    return intern_sum(tab, &sum);
}

/* Division. */

/* Removes the atoms of `by` from `of`. Returns false if `of` does not contain all of them. */
static bool monomial_div(DimTab *tab, uint32_t of, uint32_t by, uint32_t *quotient, bool *is_one) {
    Monomial mo = tab->monomials.data[of], mb = tab->monomials.data[by];
    if (mb.n_atoms > mo.n_atoms) return false;
    uint32_t n = 0, j = 0;
    uint32_t *atoms = arena_array(tab->arena, uint32_t, mo.n_atoms);
    for (uint32_t i = 0; i < mo.n_atoms; i++) {
        if (j < mb.n_atoms && mo.atoms[i] == mb.atoms[j])
            j++;
        else
            atoms[n++] = mo.atoms[i];
    }
    if (j < mb.n_atoms) return false;
    *is_one = n == 0;
    if (n) *quotient = intern_monomial(tab, atoms, n);
    return true;
}

/* Splits a = b * quotient + rest term by term, for a b that is a constant or one term. A b of
 * several terms divides only multiples of itself. */
static void div_terms(DimTab *tab, DimId a, DimId b, Sum *quotient, Sum *rest) {
    Dim da = *dim_get(tab, a), db = *dim_get(tab, b);
    bool b_is_const = db.n_terms == 0;
    int64_t c = b_is_const ? db.constant : db.terms[0].coefficient;
    if (b_is_const) {
        int64_t q = floor_div(da.constant, c);
        sum_add_const(quotient, q);
        sum_add_const(rest, da.constant - q * c);
    } else {
        sum_add_const(rest, da.constant);
    }
    for (uint32_t i = 0; i < da.n_terms; i++) {
        Term term = da.terms[i];
        uint32_t monomial = term.monomial;
        bool is_one = false;
        if (!b_is_const &&
            !monomial_div(tab, term.monomial, db.terms[0].monomial, &monomial, &is_one)) {
            sum_add(tab, rest, term.coefficient, term.monomial);
            continue;
        }
        int64_t q = term.coefficient % c == 0 ? term.coefficient / c : 0;
        if (q == 0)
            sum_add(tab, rest, term.coefficient, term.monomial);
        else if (is_one)
            sum_add_const(quotient, q);
        else
            sum_add(tab, quotient, q, monomial);
    }
}

/* Trial division by a divisor of several terms: finds only exact multiples, by the leading
 * terms. */
static DimId exact_div_many(DimTab *tab, DimId a, DimId b) {
    Dim da = *dim_get(tab, a), db = *dim_get(tab, b);
    if (da.n_terms == 0) return da.constant == 0 ? a : DIM_NONE;
    DimId quotient = dim_const(tab, 0), rest = a;
    for (int step = 0; step < 16; step++) {
        Dim dr = *dim_get(tab, rest);
        if (dr.n_terms == 0) return dr.constant == 0 ? quotient : DIM_NONE;
        DimId q = DIM_NONE;
        for (uint32_t i = dr.n_terms; i-- > 0 && !q;) {
            uint32_t monomial = 0;
            bool is_one = false;
            Term lead = db.terms[db.n_terms - 1];
            if (!monomial_div(tab, dr.terms[i].monomial, lead.monomial, &monomial, &is_one))
                continue;
            if (dr.terms[i].coefficient % lead.coefficient) continue;
            int64_t c = dr.terms[i].coefficient / lead.coefficient;
            Sum sum = {0};
            if (is_one)
                sum_add_const(&sum, c);
            else
                sum_add(tab, &sum, c, monomial);
            q = intern_sum(tab, &sum);
        }
        if (!q) return DIM_NONE;
        quotient = dim_add(tab, quotient, q);
        rest = dim_sub(tab, rest, dim_mul(tab, q, b));
        if (!quotient || !rest) return DIM_NONE;
    }
    return DIM_NONE;
}

static bool is_single_term(const Dim *dim) {
    return dim->n_terms == 0 || (dim->n_terms == 1 && dim->constant == 0);
}

DimId dim_exact_div(DimTab *tab, DimId a, DimId b) {
    if (!a || !b || dim_equals_const(tab, b, 0)) return DIM_NONE;
    if (a == b) return dim_const(tab, 1);
    if (!is_single_term(dim_get(tab, b))) return exact_div_many(tab, a, b);
    Sum quotient = {0}, rest = {0};
    div_terms(tab, a, b, &quotient, &rest);
    if (rest.failed || rest.constant) return DIM_NONE;
    sum_normalise(&rest);
    return rest.terms.n ? DIM_NONE : intern_sum(tab, &quotient);
}

/* floor((T + c) / d) does not depend on the part of c below the common divisor of T and d. */
static void drop_fraction(DimTab *tab, Sum *rest, int64_t divisor) {
    Sum moving = {.terms = rest->terms};
    moving.terms.data = arena_copy(tab->arena, rest->terms.data, rest->terms.n * sizeof(Term));
    DimId terms = intern_sum(tab, &moving);
    if (!terms || rest->constant < 0) return;
    int64_t common = gcd(dim_get(tab, terms)->multiple, divisor);
    if (common) rest->constant -= rest->constant % common;
}

DimId dim_div(DimTab *tab, DimId a, DimId b) {
    if (!a || !b || dim_get(tab, b)->lo <= 0) return DIM_NONE;
    if (dim_equals_const(tab, b, 1)) return a;
    DimId exact = dim_exact_div(tab, a, b);
    if (exact) return exact;
    Sum quotient = {0}, rest = {0};
    if (is_single_term(dim_get(tab, b))) {
        div_terms(tab, a, b, &quotient, &rest);
        int64_t divisor;
        if (dim_is_const(tab, b, &divisor)) drop_fraction(tab, &rest, divisor);
    } else {
        Dim da = *dim_get(tab, a);
        sum_add_dim(tab, &rest, &da, 1);
    }
    DimId q = intern_sum(tab, &quotient), r = intern_sum(tab, &rest);
    if (!q || !r) return DIM_NONE;
    if (dim_get(tab, r)->lo >= 0 && dim_get(tab, r)->hi < dim_get(tab, b)->lo) return q;
    DimId nested = dim_div_nested(tab, r, b);
    if (nested) return dim_add(tab, q, nested);
    uint32_t atom = intern_atom(tab, (DimAtom){.is_division = true, .numerator = r, .divisor = b});
    Sum sum = {0};
    sum_add(tab, &sum, 1, intern_monomial(tab, &atom, 1));
    return dim_add(tab, q, intern_sum(tab, &sum));
}

/* Queries. */

bool dim_is_const(const DimTab *tab, DimId dim, int64_t *value) {
    const Dim *d = dim_get(tab, dim);
    if (!dim || d->n_terms) return false;
    *value = d->constant;
    return true;
}

bool dim_equals_const(const DimTab *tab, DimId dim, int64_t value) {
    int64_t actual;
    return dim_is_const(tab, dim, &actual) && actual == value;
}

bool dim_is_symbol(const DimTab *tab, DimId dim, uint32_t *symbol) {
    const Dim *d = dim_get(tab, dim);
    if (!dim || d->constant || d->n_terms != 1 || d->terms[0].coefficient != 1) return false;
    const Monomial *m = &tab->monomials.data[d->terms[0].monomial];
    if (m->n_atoms != 1 || tab->atoms.data[m->atoms[0]].is_division) return false;
    *symbol = tab->atoms.data[m->atoms[0]].symbol;
    return true;
}

int64_t dim_lo(const DimTab *tab, DimId dim) {
    return dim_get(tab, dim)->lo;
}

int64_t dim_hi(const DimTab *tab, DimId dim) {
    return dim_get(tab, dim)->hi;
}

int64_t dim_multiple(const DimTab *tab, DimId dim) {
    return dim_get(tab, dim)->multiple;
}

static KnownOrder *known_order(DimTab *tab, DimId a, DimId b) {
    if (!tab->known_orders) tab->known_orders = arena_array(tab->arena, KnownOrder, N_KNOWN_SUMS);
    return &tab->known_orders[hash_mix(hash_mix(0, a), b) % N_KNOWN_SUMS];
}

/* Large plans ask for the order of many pairs, so the difference does not become a dim. */
bool dim_always_le(DimTab *tab, DimId a, DimId b) {
    if (!a || !b) return false;
    if (dim_get(tab, a)->hi <= dim_get(tab, b)->lo) return true;
    if (!dim_get(tab, a)->n_terms && !dim_get(tab, b)->n_terms) return false;
    KnownOrder *known = known_order(tab, a, b);
    if (known->a == a && known->b == b) return known->is;
    ArenaMark mark = arena_mark(tab->arena);
    Sum difference = scaled_sum(tab, b, a, -1);
    Range range = sum_range(tab, &difference, false);
    arena_rewind(tab->arena, mark);
    *known = (KnownOrder){a, b, !range.failed && range.lo >= 0};
    return known->is;
}

/* Structure. */

int64_t dim_constant_part(const DimTab *tab, DimId dim) {
    return dim_get(tab, dim)->constant;
}

uint32_t dim_n_terms(const DimTab *tab, DimId dim) {
    return dim_get(tab, dim)->n_terms;
}

DimTerm dim_term(const DimTab *tab, DimId dim, uint32_t i) {
    Term term = dim_get(tab, dim)->terms[i];
    const Monomial *m = &tab->monomials.data[term.monomial];
    return (DimTerm){.coefficient = term.coefficient, .n_atoms = m->n_atoms, .atoms = m->atoms};
}

DimAtom dim_atom(const DimTab *tab, uint32_t atom) {
    return tab->atoms.data[atom];
}
