/* Dims: tensor extents as interned canonical integer expressions over named symbols. Equal
 * expressions have equal ids; ids are small integers, stable in order of creation.
 *
 * Canonical form: constant + sum of coefficient * product of atoms; an atom is a symbol or a floor
 * division of two dims that does not simplify. Every dim knows a range and a multiple, from its
 * symbols' declarations. Arithmetic that could pass 2^62 anywhere in its range gives DIM_NONE. */
#ifndef FUSEC_IR_DIM_H
#define FUSEC_IR_DIM_H

#include "base/str.h"
#include "base/vec.h"

typedef uint32_t DimId;
enum { DIM_NONE = 0, DIM_MAX_SYMBOLS = 64 };
#define DIM_LIMIT ((int64_t)1 << 62)

typedef Vec(DimId) VecDim;
typedef struct DimTab DimTab;

/* How a symbol follows from others where a kernel is launched: see ir/predicate.h. */
typedef struct DimRule DimRule;

typedef struct DimSymbol {
    Str name;
    int64_t lo, hi; /* inclusive */
    int64_t multiple;
    const DimRule *rule; /* NULL: declared by the source */
} DimSymbol;

DimTab *dimtab_new(Arena *arena);
/* A table of the same dims by the same ids, to which others are added. */
DimTab *dimtab_copy(Arena *arena, const DimTab *tab);
/* Declares a symbol; its index counts from 0 in order of declaration. lo >= 0, multiple >= 1. */
uint32_t dim_declare(DimTab *tab, DimSymbol symbol);
uint32_t dim_n_symbols(const DimTab *tab);
const DimSymbol *dim_symbol_info(const DimTab *tab, uint32_t symbol);

DimId dim_const(DimTab *tab, int64_t value);
DimId dim_symbol(DimTab *tab, uint32_t symbol);
DimId dim_add(DimTab *tab, DimId a, DimId b);
DimId dim_sub(DimTab *tab, DimId a, DimId b);
DimId dim_mul(DimTab *tab, DimId a, DimId b);
/* Floor division; b must be positive over its whole range, else DIM_NONE. */
DimId dim_div(DimTab *tab, DimId a, DimId b);
DimId dim_mul_const(DimTab *tab, DimId a, int64_t factor);
/* ceil(a / step) for a constant positive step. */
DimId dim_ceil_div(DimTab *tab, DimId a, int64_t step);
/* The least multiple of `step` that is at least `a`; `a` itself where that is known to be one. */
DimId dim_round_up(DimTab *tab, DimId a, int64_t step);

bool dim_is_const(const DimTab *tab, DimId dim, int64_t *value);
bool dim_equals_const(const DimTab *tab, DimId dim, int64_t value);
bool dim_is_symbol(const DimTab *tab, DimId dim, uint32_t *symbol);
int64_t dim_lo(const DimTab *tab, DimId dim);
int64_t dim_hi(const DimTab *tab, DimId dim);
/* The largest known number that divides the dim's every value (0 for the constant 0). */
int64_t dim_multiple(const DimTab *tab, DimId dim);
/* a / b when b divides a as a polynomial (so for all values); DIM_NONE otherwise. */
DimId dim_exact_div(DimTab *tab, DimId a, DimId b);
/* Whether a <= b for all values of the symbols, as far as ranges and the difference tell. */
bool dim_always_le(DimTab *tab, DimId a, DimId b);
/* The largest value of `dims`, 0 of none; false as of dim_eval. */
bool dim_eval_largest(const DimTab *tab, const VecDim *dims, const int64_t *symbol_values,
                      int64_t *value);
/* Bit set of the symbols in it; for one that stands for a value, those of the value. */
uint64_t dim_symbols_used(const DimTab *tab, DimId dim);

/* The value for given symbol values (indexed by symbol); false on overflow or division by zero. */
bool dim_eval(const DimTab *tab, DimId dim, const int64_t *symbol_values, int64_t *value);
/* The same as a number; 0 for DIM_NONE and where there is no value. */
double dim_number(const DimTab *tab, DimId dim, const int64_t *symbol_values);

/* 1 where value >= bound, else 0; DIM_NONE: out of range. */
DimId dim_at_least(DimTab *tab, DimId value, int64_t bound);
/* A symbol that stands for a value of 0 or 1, the same for the same; behind the name there is a
 * number, for others than the first. DIM_NONE: there are no symbols left. */
DimId dim_name_value(Arena *arena, DimTab *tab, const char *name, DimId value);
/* Whether rows are copied, addresses being aligned; `*extent` is what they have. False too where
 * that is not known. */
bool dim_rule_copies(const DimTab *tab, const DimRule *rule, const int64_t *symbol_values,
                     int64_t *extent);
/* Fills in the values of symbols that have rules. */
void dim_follow_rules(const DimTab *tab, int64_t *symbol_values);

/* Source syntax: `2*B + H*W + 1`, a division as `(B + 1) / 2`. Parses back to the same dim. */
void dim_print(const DimTab *tab, DimId dim, Text *out);
/* `max(a, b)` of several. */
void dim_print_largest(const DimTab *tab, const VecDim *dims, Text *out);
const char *dim_str(const DimTab *tab, Arena *arena, DimId dim);

/* The dim's structure, for a code generator: constant + sum over terms. */
typedef struct DimTerm {
    int64_t coefficient;
    uint32_t n_atoms;
    const uint32_t *atoms; /* repeated for powers */
} DimTerm;
typedef struct DimAtom {
    bool is_division;
    uint32_t symbol;          /* when not a division */
    DimId numerator, divisor; /* when a division */
} DimAtom;
int64_t dim_constant_part(const DimTab *tab, DimId dim);
uint32_t dim_n_terms(const DimTab *tab, DimId dim);
DimTerm dim_term(const DimTab *tab, DimId dim, uint32_t i);
DimAtom dim_atom(const DimTab *tab, uint32_t atom);

#endif
