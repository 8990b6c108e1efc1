/* The table of dims, internal to its files: dim.c makes dims, and dim_eval.c finds their values.
 * See dim.h. */
#ifndef FUSEC_IR_DIM_DIM_STATE_H
#define FUSEC_IR_DIM_DIM_STATE_H

#include "base/hashids.h"
#include "base/vec.h"
#include "ir/dim/dim.h"

typedef struct Monomial {
    uint32_t n_atoms;
    const uint32_t *atoms; /* ascending */
} Monomial;

typedef struct Term {
    int64_t coefficient; /* never 0 */
    uint32_t monomial;
} Term;

typedef struct Dim {
    int64_t constant;
    uint32_t n_terms;
    const Term *terms; /* ascending by monomial */
    int64_t lo, hi, multiple;
} Dim;

enum { N_SMALL = 16 };

/* A sum that was asked for: a + factor * b; or with factor 0 a product: a * b. */
typedef struct KnownSum {
    DimId a, b, sum; /* a is DIM_NONE: none was */
    int32_t factor;
} KnownSum;

/* An order that was asked for: whether a is never above b. */
typedef struct KnownOrder {
    DimId a, b;
    bool is;
} KnownOrder;

enum { N_KNOWN_SUMS = 1024 };

struct DimTab {
    Arena *arena;
    DimId small[N_SMALL]; /* the numbers from 0 on, which most sums ask for; DIM_NONE: not yet */
    Vec(DimSymbol) symbols;
    Vec(DimAtom) atoms;
    Vec(Monomial) monomials;
    Vec(Dim) dims;        /* [0] is unused and stands for DIM_NONE */
    HashIds ids;          /* hash table of dims */
    KnownSum *known_sums; /* the last of each hash; NULL: none */
    KnownOrder *known_orders;
};

static inline const Dim *dim_get(const DimTab *tab, DimId dim) {
    return &tab->dims.data[dim];
}

#endif
