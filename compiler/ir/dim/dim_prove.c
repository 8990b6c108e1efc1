/* Proofs about dims with floor divisions by constants: the difference is multiplied by the
 * divisors, then every d * floor(n / d) is replaced by a bound in n. An integer above -1 is at
 * least 0. Also proofs about polynomials that the ranges of single terms do not give: each symbol
 * is written as its least value plus a nonnegative rest, and all coefficients are then at least 0.
 */
#include "ir/graph.h"

static const int64_t max_scale = 1 << 20;

/* The constant divisor of the first division among the term's atoms, or 0; sets `at` to its
 * index. */
static int64_t term_divisor(const DimTab *dims, const DimTerm *term, uint32_t *at) {
    for (uint32_t i = 0; i < term->n_atoms; i++) {
        DimAtom atom = dim_atom(dims, term->atoms[i]);
        int64_t divisor;
        if (!atom.is_division || !dim_is_const(dims, atom.divisor, &divisor)) continue;
        *at = i;
        return divisor;
    }
    return 0;
}

static bool has_division(const DimTab *dims, DimId dim) {
    bool has = false;
    for (uint32_t i = 0; i < dim_n_terms(dims, dim); i++) {
        DimTerm term = dim_term(dims, dim, i);
        uint32_t at;
        has = has || term_divisor(dims, &term, &at) != 0;
    }
    return has;
}

/* Whether the term's division is of a dim with divisions. */
static bool is_nested(const DimTab *dims, const DimTerm *term) {
    uint32_t at = 0;
    return term_divisor(dims, term, &at) != 0 &&
           has_division(dims, dim_atom(dims, term->atoms[at]).numerator);
}

static bool has_nested(const DimTab *dims, DimId dim) {
    bool has = false;
    for (uint32_t i = 0; i < dim_n_terms(dims, dim); i++) {
        DimTerm term = dim_term(dims, dim, i);
        has = has || is_nested(dims, &term);
    }
    return has;
}

/* The dim of an atom. */
static DimId atom_dim(DimTab *dims, uint32_t id) {
    DimAtom atom = dim_atom(dims, id);
    return atom.is_division ? dim_div(dims, atom.numerator, atom.divisor)
                            : dim_symbol(dims, atom.symbol);
}

/* coefficient * product of the atoms except atom `skip` (UINT32_MAX: none). */
static DimId term_dim(DimTab *dims, DimTerm term, int64_t coefficient, uint32_t skip) {
    DimId product = dim_const(dims, coefficient);
    for (uint32_t i = 0; i < term.n_atoms && product; i++)
        if (i != skip) product = dim_mul(dims, product, atom_dim(dims, term.atoms[i]));
    return product;
}

/* The least number that makes every division's coefficient a multiple of its divisor. */
static int64_t needed_scale(const DimTab *dims, DimId dim) {
    int64_t scale = 1;
    bool outer = has_nested(dims, dim);
    for (uint32_t i = 0; i < dim_n_terms(dims, dim); i++) {
        DimTerm term = dim_term(dims, dim, i);
        uint32_t at;
        int64_t divisor = term_divisor(dims, &term, &at);
        if (divisor < 1 || divisor > max_scale || (outer && !is_nested(dims, &term))) continue;
        int64_t coefficient = term.coefficient < 0 ? -term.coefficient : term.coefficient;
        if (coefficient % divisor == 0) continue;
        for (int64_t factor = 2; factor <= divisor; factor++) {
            if (divisor % factor == 0 && coefficient % divisor * factor % divisor == 0 &&
                scale % factor != 0 && scale <= max_scale / factor) {
                scale *= factor;
                break;
            }
        }
    }
    return scale;
}

/* A lower bound of the term without its division; with `exactly`, an equal dim or DIM_NONE. */
static DimId relaxed_term(DimTab *dims, DimTerm term, bool exactly) {
    uint32_t at = 0;
    int64_t divisor = term_divisor(dims, &term, &at);
    if (divisor < 1 || term.coefficient % divisor != 0)
        return term_dim(dims, term, term.coefficient, UINT32_MAX);
    DimId numerator = dim_atom(dims, term.atoms[at]).numerator;
    DimId rest = term_dim(dims, term, term.coefficient / divisor, at);
    bool is_exact = dim_multiple(dims, numerator) % divisor == 0;
    if (!rest || (!is_exact && exactly)) return DIM_NONE;
    if (!is_exact) {
        DimId others = term_dim(dims, term, 1, at);
        if (!others || dim_lo(dims, others) < 0) return DIM_NONE;
        if (term.coefficient > 0)
            numerator = dim_sub(dims, numerator, dim_const(dims, divisor - 1));
    }
    return dim_mul(dims, rest, numerator);
}

/* The dim times `scale`, without its divisions. If the numerators of some divisions have divisions,
 * only those outer ones go: the inner divisions may then cancel out with other terms. */
static DimId relaxed(DimTab *dims, DimId dim, int64_t scale, bool exactly) {
    dim = dim_mul_const(dims, dim, scale);
    if (!dim) return DIM_NONE;
    DimId sum = dim_const(dims, dim_constant_part(dims, dim));
    uint32_t n = dim_n_terms(dims, dim);
    bool outer = has_nested(dims, dim);
    for (uint32_t i = 0; i < n && sum; i++) {
        DimTerm term = dim_term(dims, dim, i);
        bool is_kept = outer && !is_nested(dims, &term);
        sum = dim_add(dims, sum,
                      is_kept ? term_dim(dims, term, term.coefficient, UINT32_MAX)
                              : relaxed_term(dims, term, exactly));
    }
    return sum;
}

enum { MAX_ROUNDS = 6, MAX_TERMS = 16, MAX_ATOMS = 6 }; /* rounds for divisions inside divisions */

/* The term with each symbol s replaced by s + its least value. Returns DIM_NONE if the term has a
 * division, which could simplify together with other terms. */
static DimId shifted_term(DimTab *dims, DimTerm term) {
    DimId product = dim_const(dims, term.coefficient);
    for (uint32_t i = 0; i < term.n_atoms && product; i++) {
        DimId atom = atom_dim(dims, term.atoms[i]);
        if (dim_atom(dims, term.atoms[i]).is_division) return DIM_NONE;
        DimId shifted = dim_add(dims, atom, dim_const(dims, dim_lo(dims, atom)));
        product = shifted ? dim_mul(dims, product, shifted) : DIM_NONE;
    }
    return product;
}

/* Whether the dim is at least 0 for all symbol values at or above their least values. */
static bool rises_from_zero(DimTab *dims, DimId dim) {
    uint32_t n = dim_n_terms(dims, dim);
    DimId sum = dim_const(dims, dim_constant_part(dims, dim));
    if (n > MAX_TERMS) return false;
    for (uint32_t i = 0; i < n && sum; i++) {
        DimTerm term = dim_term(dims, dim, i);
        if (term.n_atoms > MAX_ATOMS) return false;
        DimId shifted = shifted_term(dims, term);
        sum = shifted ? dim_add(dims, sum, shifted) : DIM_NONE;
    }
    if (!sum || dim_constant_part(dims, sum) < 0) return false;
    for (uint32_t i = 0; i < dim_n_terms(dims, sum); i++)
        if (dim_term(dims, sum, i).coefficient < 0) return false;
    return true;
}

bool dim_prove_le(DimTab *dims, DimId a, DimId b) {
    if (dim_always_le(dims, a, b)) return true;
    DimId difference = a && b ? dim_sub(dims, b, a) : DIM_NONE;
    int64_t scale = 1; /* the difference is multiplied by it: above -scale means at least 0 */
    for (int i = 0; i < MAX_ROUNDS && difference; i++) {
        DimId rounded = dim_add(dims, difference, dim_const(dims, scale - 1));
        if (rounded && (dim_lo(dims, rounded) >= 0 || rises_from_zero(dims, rounded))) return true;
        int64_t factor = needed_scale(dims, difference);
        if (scale > max_scale / factor) return false;
        scale *= factor;
        difference = relaxed(dims, difference, factor, false);
    }
    return false;
}

bool dim_prove_equal(DimTab *dims, DimId a, DimId b) {
    if (!a || !b) return false;
    if (a == b) return true;
    DimId difference = dim_sub(dims, a, b);
    for (int i = 0; i < MAX_ROUNDS && difference; i++) {
        if (dim_equals_const(dims, difference, 0)) return true;
        difference = relaxed(dims, difference, needed_scale(dims, difference), true);
    }
    return false;
}
